package heuristic

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

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
	if t.is(weekday|unit) || t.is(month) && (i == 0 || !d.tokens[i-1].is(kin)) {
		return false
	}
	if lang == english || lang == unwritten {
		return !t.is(function)
	}
	return (t.lex == nil || (t.lex.votes>>(8*lang))&0xff == 0) && !t.is(title)
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
	opens := d.shape != table && (d.opens(lo) || lang == english && d.interrupts(lo))
	for lang == english && opens && hi-lo > 1 && tokens[lo].is(command|past) && !tokens[lo].is(signal|known) {
		lo, opens = lo+1, false // "Tell Otto"
	}
	if lang == german {
		lo = d.afterNouns(lo, hi)
	}
	for hi > lo && !tokens[lo].is(mayOpen) {
		lo++
	}
	for hi > lo+1 && d.number(&tokens[hi-1]) {
		hi--
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

// interrupts reports whether the token at i is a word that opens sentences and has
// a capital for that alone: after a pronoun ("I Bet"), or where nothing but an
// exclamation and a comma stands before it ("Oof, Go home").
func (d *doc) interrupts(i int) bool {
	if !d.tokens[i].is(common|command|do) || i == 0 {
		return false
	}
	if d.tokens[i-1].is(first) {
		return true
	}
	if i < 2 || d.tokens[i-1].mark != comma {
		return false
	}
	for i -= 2; i >= 0; i-- {
		if !d.tokens[i].is(opener | command) {
			return false
		}
	}
	return true
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
	return letters > 0 && letters <= 2 && digits >= 3 || letters == 1 && ascii7(d.text[t.start]) == number
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
		default:
			return false
		}
	}
	return true
}

// name adds tokens[lo:hi] to the index under its key: lower case, straight
// apostrophes, no possessive endings.
func (d *doc) name(lo, hi int, sure bool) {
	x := d.index
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
			w = stem(w, d.tongue())
		}
		x.keys = appendLower(x.keys, w)
	}
	last := &d.tokens[hi-1]
	full := words == 2 && !last.is(digit|single|caps) && !d.tokens[lo].is(caps)
	x.add(start, d.tokens[lo].hash, words, full, sure)
}

// stem cuts what is compounded with a name off it: Windows-specific, and any
// noun in German.
func stem(w string, lang tongue) string {
	n := strings.LastIndexByte(w, '-')
	if n <= 0 {
		return w
	}
	switch w[n+1:] {
	case "specific", "based", "style", "like", "only", "related", "compatible", "powered", "native", "inspired", "themed", "friendly", "led", "wide", "ish":
		return w[:n]
	}
	if lang == german && hasEnding(w[n+1:], germanEndings...) {
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
