package heuristic

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// index gathers the names of a text. A name that opens a sentence and has no
// evidence of its own waits for its word to be seen capitalised inside one.
type index struct {
	names   []mention
	keys    []byte // of the names, one after the other
	inside  [insideSize]uint32
	filled  int
	sure    int
	waiting int
}

// mention is a name found: keys[lo:hi].
type mention struct {
	lo, hi int
	first  uint32 // hash of its first word
	full   bool   // a name and a surname, of which the first may stand alone later
	sure   bool
}

const (
	insideSize = 256 // slots for words seen capitalised inside a sentence
	maxWaiting = 16  // names that wait for evidence at a time
)

func (x *index) reset() {
	x.names, x.keys = x.names[:0], x.keys[:0]
	if x.filled > 0 {
		clear(x.inside[:])
	}
	x.filled, x.sure, x.waiting = 0, 0, 0
}

// see notes a word capitalised inside a sentence, and trusts the names that
// waited for it.
func (x *index) see(h uint32) {
	if x.waiting > 0 {
		for i := range x.names {
			if m := &x.names[i]; !m.sure && m.first == h {
				m.sure = true
				x.sure++
				x.waiting--
			}
		}
	}
	if x.filled == insideSize/2 || h == 0 {
		return
	}
	i := mix(h) % insideSize
	for ; x.inside[i] != 0; i = (i + 1) % insideSize {
		if x.inside[i] == h {
			return
		}
	}
	x.inside[i] = h
	x.filled++
}

func (x *index) seen(h uint32) bool {
	for i := mix(h) % insideSize; x.inside[i] != 0; i = (i + 1) % insideSize {
		if x.inside[i] == h {
			return true
		}
	}
	return false
}

// add takes the key at the end of keys as a name, unless it is known already, is
// the first word of a name of two words, or there is no room left for it.
func (x *index) add(lo int, first uint32, words int, full, sure bool) {
	key := x.keys[lo:]
	for i := range x.names {
		m := &x.names[i]
		switch {
		case words == 1 && m.full && m.first == first:
		case !bytes.Equal(x.keys[m.lo:m.hi], key):
			continue
		case sure && !m.sure:
			m.sure = true
			x.sure++
			x.waiting--
		}
		x.keys = x.keys[:lo]
		return
	}
	if len(key) == 0 || x.sure >= MaxEntities || !sure && x.waiting >= maxWaiting {
		x.keys = x.keys[:lo]
		return
	}
	if sure {
		x.sure++
	} else {
		x.waiting++
	}
	x.names = append(x.names, mention{lo, len(x.keys), first, full, sure})
}

// entities returns the names found.
func (d *doc) entities() []string {
	x := &d.index
	n := min(x.sure, MaxEntities)
	if n == 0 {
		return nil
	}
	keys := string(x.keys)
	out := make([]string, 0, n)
	for i := range x.names {
		if m := &x.names[i]; m.sure && len(out) < n {
			out = append(out, keys[m.lo:m.hi])
		}
	}
	return out
}

// mayOpen are the classes of a word a name may start with.
const mayOpen = upper | signal | tool

// findNames adds the names of the open sentence to the index.
func (d *doc) findNames() {
	if d.shape == heading || d.shape == tableHeader {
		return
	}
	tokens := d.tokens
	lang := d.tongue()
	inQuote := 0 // the end of a quoted title that has been taken
	list := false
	for i := 0; i < len(tokens); i++ {
		t := &tokens[i]
		if t.mark == quote && i >= inQuote {
			if end := quotedTitle(tokens, i); end > 0 {
				inQuote = end + 1
				if end-i > 2 || !d.opens(i+1) || end+1 < len(tokens) && d.word(end+1) == "by" {
					d.name(i+1, end, true)
					i = end
					continue
				}
			}
		}
		if t.class&mayOpen == 0 {
			if t.mark == word && !t.is(opener) {
				list = d.word(i) == "in" && i > 0 && crafted(d.word(i-1))
			}
			continue
		}
		if list && t.is(upper) { // a language by its name: Go, R
			d.name(i, i+1, true)
			continue
		}
		if !d.part(i, lang) || t.is(single) && !t.is(signal) && !d.initial(i) {
			if t.is(upper) && d.word(i) == "Will" && d.opens(i) && i+1 < len(tokens) && tokens[i+1].is(auxil) {
				d.name(i, i+1, true)
			}
			continue
		}
		hi := d.extend(i, lang)
		d.weigh(i, hi, lang)
		i = hi - 1
	}
}

// crafted reports whether what follows "in" is a language something is made in.
func crafted(w string) bool {
	switch w {
	case "written", "Written", "rewritten", "coded", "implemented", "programmed":
		return true
	}
	return false
}

func (d *doc) word(i int) string { return d.text[d.tokens[i].start:d.tokens[i].end] }

// part reports whether a token may belong to a name.
func (d *doc) part(i int, lang tongue) bool {
	t := &d.tokens[i]
	if t.mark != word || t.is(code|uncased) || !t.is(upper|caps|numeric|signal|tool) {
		return false
	}
	if t.is(weekday|unit) || t.is(month) && !(i > 0 && d.tokens[i-1].is(kin)) {
		return false
	}
	if lang == english || lang == unwritten {
		return !t.is(function)
	}
	return !(t.lex != nil && (t.lex.votes>>(8*lang))&0xff != 0) && !t.is(title)
}

// initial reports whether the token at i is an initial before a name: J. Keats.
func (d *doc) initial(i int) bool {
	return d.tokens[i].is(upper) && i+2 < len(d.tokens) && d.tokens[i+1].mark == dot && d.tokens[i+2].is(upper)
}

// extend returns the end of the name that opens at i.
func (d *doc) extend(i int, lang tongue) int {
	tokens := d.tokens
	script := tokens[i].class & foreign
	follows := func(j int) bool {
		return j < len(tokens) && tokens[j].class&foreign == script && d.part(j, lang)
	}
	capital := func(j int) bool { return follows(j) && tokens[j].is(upper) }
	hi := i + 1
	for hi < len(tokens) {
		t, last := &tokens[hi], &tokens[hi-1]
		switch {
		case last.ends > 0 && capital(hi) && capital(hi+1):
			return hi // whose it is: Ola's Green Fund
		case follows(hi):
			hi++
		case last.is(feast) && last.is(upper) && t.is(weekday) && t.is(upper):
			hi++
		case t.mark == dot && capital(hi+1) && last.is(single):
			hi += 2
		case t.is(particle) && !t.is(upper) && lang == english && capital(hi+1):
			hi += 2
		case t.is(particle) && !t.is(upper) && lang == english && hi+1 < len(tokens) && tokens[hi+1].is(particle) && capital(hi+2):
			hi += 3
		case last.is(body) && lang == english && d.word(hi) == "of" && capital(hi+1):
			hi += 2
		case last.is(body) && lang == english && d.word(hi) == "of" && hi+1 < len(tokens) && d.word(hi+1) == "the" && capital(hi+2):
			hi += 3
		default:
			return hi
		}
	}
	return hi
}

// quotedTitle returns the index of the mark that closes a title of capitalised
// words quoted from i on, or 0.
func quotedTitle(tokens []token, i int) int {
	content := false
	for j := i + 1; j < len(tokens) && j < i+10; j++ {
		t := &tokens[j]
		switch {
		case t.mark == quote:
			if content && tokens[j-1].is(upper|numeric) && tokens[i+1].is(upper|numeric) {
				return j
			}
			return 0
		case t.mark != word || t.is(code):
			return 0
		case t.is(upper):
			content = content || !t.is(function)
		case !t.is(function | numeric | particle):
			return 0
		}
	}
	return 0
}

// weigh decides on a run of name words.
func (d *doc) weigh(lo, hi int, lang tongue) {
	tokens := d.tokens
	opens := d.shape != table && d.opens(lo)
	for lang == english && opens && hi-lo > 1 && tokens[lo].is(command|past) && !tokens[lo].is(signal|known) {
		lo, opens = lo+1, false // "Tell Otto"
	}
	if lang == german {
		lo = d.afterNouns(lo, hi)
	}
	for hi > lo && !tokens[lo].is(mayOpen) {
		lo++
	}
	if lo == hi {
		return
	}
	t := &tokens[lo]
	one := hi-lo == 1
	if one && (t.is(people|jargon) || d.number(t) || d.control(lo)) {
		return
	}
	if t.is(caps) && one && t.is(common|command|kin|timeWord) {
		return // shouted
	}
	switch {
	case !opens:
		if lang == german && !d.germanName(lo, hi) {
			return
		}
		for i := lo; i < hi; i++ {
			if tokens[i].is(upper) {
				d.index.see(tokens[i].hash)
			}
		}
		d.name(lo, hi, true)
	case !one:
		d.name(lo, hi, lang != german || d.germanName(lo, hi))
	default:
		d.name(lo, hi, d.cased(t) || d.index.seen(t.hash) || d.evident(lo, lang))
	}
}

// number reports whether a word with digits is a code or a measure rather than a
// name: LH441, 4K.
func (d *doc) number(t *token) bool {
	if !t.is(digit) || t.is(known|tool) {
		return false
	}
	letters, digits := 0, 0
	for _, c := range []byte(d.text[t.start:t.end]) {
		switch ascii7(c) {
		case letter, capital:
			letters++
		case number:
			digits++
		}
	}
	return letters == 1 && ascii7(d.text[t.start]) == number || letters <= 2 && digits >= 3
}

// control reports whether the word at i is the label of a control: click Save.
func (d *doc) control(i int) bool {
	if !d.tokens[i].is(common | command | label) {
		return false
	}
	for i--; i >= 0; i-- {
		if t := &d.tokens[i]; t.mark == word && !t.is(determin) {
			return t.is(ui)
		}
	}
	return false
}

// cased reports whether a word carries a casing signal of its own.
func (d *doc) cased(t *token) bool {
	if t.is(signal | tool) {
		return true
	}
	return t.is(caps) && t.lex == nil && t.end-t.start <= 5 || t.is(caps|known) && t.is(known)
}

// opens reports whether the token at i is the first word of its sentence, or the
// first after an opening quotation mark, colon or bracket.
func (d *doc) opens(i int) bool {
	for i--; i >= 0; i-- {
		switch d.tokens[i].mark {
		case quote, colon, other, bracket:
			continue
		}
		return false
	}
	return true
}

// tongue tells the language of the text read so far.
func (d *doc) tongue() tongue {
	best, top := english, d.votes&0xff
	for t := german; t < tongues; t++ {
		if n := d.votes >> (8 * t) & 0xff; n > top {
			best, top = t, n
		}
	}
	if uint64(d.foreign) > top {
		return unwritten
	}
	return best
}

// maxVotes bounds the words of a text that vote on its language, so that no sum
// of votes leaves its byte.
const maxVotes = 0xff

// evident reports whether the single word that opens a sentence is a name by the
// words around it.
func (d *doc) evident(i int, lang tongue) bool {
	t := &d.tokens[i]
	switch lang {
	case english:
		return d.evidentEnglish(i)
	case unwritten:
		return !t.is(foreign) // a Latin word in another script
	case german:
		return !d.germanNoun(t) && i+1 < len(d.tokens) && d.germanVerb(i+1)
	}
	return d.evidentRomance(i, lang)
}

// evidentEnglish looks for a lexicon entry, a possessive, an address, a list or a
// verb after a word that is not a common one.
func (d *doc) evidentEnglish(i int) bool {
	tokens := d.tokens
	t := &tokens[i]
	if t.is(known) {
		return true
	}
	w := d.text[t.start : t.end-uint32(t.ends)]
	if t.is(ordinary) || commonEnding(w) || ordinaryForm(w) || exclaimed(w) {
		return false
	}
	if t.ends > 0 {
		return true
	}
	if i+1 == len(tokens) {
		return false
	}
	next := &tokens[i+1]
	if next.mark == comma {
		return i+2 < len(tokens) // an address, or a list
	}
	if next.is(opener) && i+2 < len(tokens) && (d.word(i+1) == "and" || d.word(i+1) == "or") {
		return d.part(i+2, english) && tokens[i+2].is(upper) && !tokens[i+2].is(common|command)
	}
	plural := plural(w)
	for j := i + 1; j < len(tokens) && j <= i+2; j++ {
		n := &tokens[j]
		switch {
		case n.mark != word || n.is(upper|code):
			return false
		case n.is(auxil):
			return !plural || oneVerb(d.word(j))
		case n.is(past):
			return !plural
		case d.thirdPerson(j):
			return true
		case n.is(filler) || strings.HasSuffix(d.word(j), "ly"):
		default:
			return false
		}
	}
	return false
}

// ordinary are the classes of words that open a sentence without being a name.
const ordinary = common | command | function | opener | filler | past | gerund | kin | label | numeral | people | jargon | timeWord | auxil | do | ask | body | negation

// ordinaryForm reports whether another number of a word is an ordinary one, or
// its first part before a hyphen is.
func ordinaryForm(w string) bool {
	var buf [maxWord]byte
	b := appendLower(buf[:0], w)
	if i := bytes.IndexByte(b, '-'); i > 0 {
		return classOf(b[:i])&(ordinary&^body) != 0
	}
	if n := len(b) - 1; b[n] == 's' {
		return classOf(b[:n])&(common|command|do|ask) != 0
	}
	return classOf(append(b, 's'))&common != 0
}

// classOf is what the lexicon knows of a folded word.
func classOf(folded []byte) class {
	if l := lexicon.find(folded, hash(folded)); l != nil {
		return l.class
	}
	return 0
}

// exclaimed reports whether a word is drawn out or has no vowel: Ooo, Hmm.
func exclaimed(w string) bool {
	vowels := false
	for i := range len(w) {
		vowels = vowels || vowel(w[i]|0x20) || w[i]|0x20 == 'y' || w[i] >= utf8.RuneSelf
		if i > 1 && w[i]|0x20 == w[i-1]|0x20 && w[i]|0x20 == w[i-2]|0x20 {
			return true
		}
	}
	return !vowels
}

func plural(w string) bool {
	return len(w) > 3 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us") && !strings.HasSuffix(w, "is")
}

// oneVerb reports whether a verb follows one thing only.
func oneVerb(w string) bool {
	switch w {
	case "is", "was", "has", "does", "isn't", "wasn't", "hasn't", "doesn't":
		return true
	}
	return false
}

// thirdPerson reports whether the word at i may be a verb of the third person:
// it ends in s.
func (d *doc) thirdPerson(i int) bool {
	w := d.word(i)
	return len(w) > 3 && w[len(w)-1] == 's' && w[len(w)-2] != 's' && d.tokens[i].ends == 0 && !d.tokens[i].is(function|timeWord|unit|numeral|kin)
}

// commonEndings are endings of abstract nouns, adverbs and adjectives.
var commonEndings = []string{"ing", "tion", "sion", "ment", "ness", "ity", "ance", "ence", "ship", "ism", "ly", "able", "ible", "ful", "less", "ous", "ive", "hood", "dom", "ical", "ology", "ists", "ers", "ure", "ware", "work", "time", "thing", "body", "where", "wise"}

func commonEnding(w string) bool {
	if len(w) < 6 {
		return false
	}
	for _, e := range commonEndings {
		if strings.HasSuffix(w, e) {
			return true
		}
	}
	return false
}

// evidentRomance looks for a finite verb after a word of a Romance language.
func (d *doc) evidentRomance(i int, lang tongue) bool {
	for j := i + 1; j < len(d.tokens) && j <= i+2; j++ {
		t := &d.tokens[j]
		if t.mark != word || t.is(upper|code) {
			return false
		}
		if t.is(verb) {
			return true
		}
		switch lang {
		case spanish:
			if hasEnding(d.word(j), "ó", "aba", "ía") {
				return true
			}
		case portuguese:
			if hasEnding(d.word(j), "ou", "eu", "iu", "ava", "ia") {
				return true
			}
		}
		switch d.word(j) {
		case "se", "si", "no", "não", "non", "ne", "n", "s", "ya", "já":
		default:
			return false
		}
	}
	return false
}

func hasEnding(w string, endings ...string) bool {
	for _, e := range endings {
		if len(w) > len(e)+2 && strings.HasSuffix(w, e) {
			return true
		}
	}
	return false
}

// germanEndings are endings of German nouns.
var germanEndings = []string{"ung", "ungen", "heit", "heiten", "keit", "keiten", "schaft", "tion", "tionen", "tät", "ment", "nis", "tum", "ling", "chen", "lein", "ik", "ie", "enz", "anz", "eur", "or", "er", "en", "ern", "eln", "in", "innen", "ist", "isten", "e", "zeug", "werk", "plan", "teil", "buch", "haus", "raum", "punkt", "stand", "satz", "markt", "grund", "problem", "bericht", "projekt", "system", "team", "leitung", "wert", "takt", "weg", "zug", "fall", "bogen", "leisch", "halt", "garten"}

// germanNoun reports whether a capitalised word of German is a common noun.
func (d *doc) germanNoun(t *token) bool {
	if t.is(known | signal | caps | tool) {
		return false
	}
	if t.is(plain) {
		return true
	}
	w := d.text[t.start:t.end]
	return len(w) > 3 && hasEnding(w, germanEndings...) || strings.IndexByte(w, '-') > 0
}

func (d *doc) germanVerb(i int) bool {
	t := &d.tokens[i]
	return t.mark == word && !t.is(upper) && (t.is(verb) || hasEnding(d.word(i), "te", "iert"))
}

// afterNouns skips the common nouns that a name stands in apposition to.
func (d *doc) afterNouns(lo, hi int) int {
	for hi-lo > 2 && d.germanNoun(&d.tokens[lo]) {
		lo++
	}
	return lo
}

// germanName reports whether capitals are evidence in German: in two words of
// which one is no common noun, in a word after a title or a bare preposition, or
// in a known name.
func (d *doc) germanName(lo, hi int) bool {
	if hi-lo > 1 {
		for i := lo; i < hi; i++ {
			if !d.germanNoun(&d.tokens[i]) && d.tokens[i].is(upper) {
				return true
			}
		}
		return false
	}
	t := &d.tokens[lo]
	if t.is(known|signal|tool) || t.is(caps) {
		return true
	}
	if lo > 0 && (d.tokens[lo-1].is(title) || lo > 1 && d.tokens[lo-1].mark == dot && d.tokens[lo-2].is(title)) {
		return true
	}
	if d.germanNoun(t) || lo == 0 {
		return false
	}
	switch d.word(lo - 1) {
	case "in", "bei", "von", "für", "mit", "nach", "aus", "an", "zu", "über", "gegen", "ohne", "durch", "und", "oder":
		return true
	}
	return d.tokens[lo-1].mark == comma || d.tokens[lo-1].mark == semicolon || lo+1 < len(d.tokens) && d.germanVerb(lo+1) && d.tokens[lo-1].mark != word
}

// name adds tokens[lo:hi] to the index under its key: lower case, straight
// apostrophes, no possessive endings.
func (d *doc) name(lo, hi int, sure bool) {
	x := &d.index
	start := len(x.keys)
	words := 0
	for i := lo; i < hi; i++ {
		t := &d.tokens[i]
		if t.mark == dot {
			x.keys = append(x.keys, '.')
			continue
		}
		if words > 0 {
			x.keys = append(x.keys, ' ')
		}
		words++
		w := d.text[t.start : t.end-uint32(t.ends)]
		if i == hi-1 {
			w = stem(w)
		}
		x.keys = appendLower(x.keys, w)
	}
	last := &d.tokens[hi-1]
	full := words == 2 && !last.is(digit|single|caps) && !d.tokens[lo].is(caps)
	x.add(start, d.tokens[lo].hash, words, full, sure)
}

// stem cuts an adjective's ending off a name: Windows-specific.
func stem(w string) string {
	n := strings.LastIndexByte(w, '-')
	if n <= 0 {
		return w
	}
	switch w[n+1:] {
	case "specific", "based", "style", "like", "only", "related", "compatible", "powered", "native", "inspired", "themed", "friendly", "led", "wide", "ish":
		return w[:n]
	}
	return w
}

func appendLower(b []byte, w string) []byte {
	for i := 0; i < len(w); {
		c := w[i]
		if c < utf8.RuneSelf {
			if ascii[c] == capital {
				c |= 0x20
			}
			b = append(b, c)
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(w[i:])
		switch {
		case r == '’':
			b = append(b, '\'')
		case r == utf8.RuneError && n == 1:
			b = append(b, w[i])
		default:
			b = utf8.AppendRune(b, unicode.ToLower(r))
		}
		i += n
	}
	return b
}
