package heuristic

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

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
	default:
		return d.evidentRomance(i, lang)
	}
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
	if w := d.word(i + 1); i+2 < len(tokens) && (w == "and" || w == "or" || w == "&") {
		n := &tokens[i+2]
		return n.is(first) || d.part(i+2, english) && n.is(upper) && !n.is(common|command)
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
		case n.is(filler|negation) || strings.HasSuffix(d.word(j), "ly"):
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
func classOf(word []byte) class {
	f := fold(word)
	if l := lexicon.find(&f); f.n <= maxWord && l != nil {
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

// plural reports whether a word looks like the plural of a common noun: an s that
// does not follow a, i, o or u, as it does in Thomas, Chris and Carlos.
func plural(w string) bool {
	n := len(w) - 1
	return n > 2 && w[n] == 's' && strings.IndexByte("aious", w[n-1]) < 0
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
		default:
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
