package heuristic

import (
	"strings"
	"unicode/utf8"
)

// class is what is known of a token: the word classes of the lexicon and what
// its letters show.
type class uint64

const (
	first    class = 1 << iota // I, we and their contractions
	own                        // my, our
	second                     // you and its contractions
	third                      // he, she, they, it and their contractions
	determin                   // articles and other determiners
	auxil                      // forms of be, have, do, will and the modals
	filler                     // adverbs and auxiliaries a cue may be interrupted by
	negation                   // not, never, nobody, …n't
	month
	weekday
	timeWord // yesterday, tonight, last, next
	unit     // minute, percent, gigabyte
	kin      // brother, wife, cat
	numeral  // numbers in words, and digits
	function // words that never belong to a name
	opener   // interjections and conjunctions before the clause proper
	label    // what may stand before a colon without being a speaker
	title    // Dr, Mrs: belongs to a name that follows, ends no sentence
	abbrev   // e.g., vs: ends no sentence
	past     // past tense or participle
	gerund
	noVerb    // ends like a past tense or a gerund and is none
	work      // words of office life that make no fact of anyone's life
	condition // if, suppose
	reason    // because, so that
	contrast  // rather, instead, than
	scope     // always, never, every
	do        // verbs of instructions, in the imperative
	ask       // verbs of requests, in the imperative
	feast     // what makes a weekday a name: Black Friday
	common    // no name where it stands alone at a sentence start
	command   // a verb or adverb that opens a sentence: no part of the name after it
	known     // a given name, place or product that is also a name at a sentence start
	tool      // a product written in lower case
	people    // a people, language or cuisine
	jargon    // an acronym that names nothing
	particle  // van, de: joins two names
	body      // bank, university: joined by "of" to a name
	plain     // a common noun of German
	verb      // a finite verb of a language other than English
	delight   // thanks, wow, gorgeous
	ui        // click, choose: what follows is the label of a control

	upper       // starts with a capital
	caps        // all capitals, two or more
	signal      // inner capital, or a capital and a digit
	digit       // holds a digit
	numeric     // holds no letter
	single      // one letter
	code        // path, address, identifier, call or back-quoted span
	quoted      // inside double quotation marks
	clauseStart // first word of a clause
	uncased     // a script without capitals
	foreign     // a script other than Latin
)

// mark is the kind of a token: a word or a punctuation mark.
type mark uint8

const (
	word mark = iota
	comma
	stop // . ! … and their kin, where they end a sentence
	query
	colon
	semicolon
	dash
	bracket
	quote
	dot // a full stop that ends no sentence
	other
)

// token is a word or a mark of the open sentence: text[start:end].
type token struct {
	class class
	lex   *lexeme // nil for a word without an entry
	start uint32
	end   uint32
	hash  uint32 // of the folded word without a possessive ending
	ends  uint8  // bytes of the possessive ending
	mark  mark
}

func (t *token) is(c class) bool { return t.class&c != 0 }

// Kinds of bytes below 0x80, as the tokeniser sees them.
const (
	letter  = 'a'
	capital = 'A'
	number  = '0'
	space   = ' '
	sign    = '.'
)

var ascii = func() (t [utf8.RuneSelf]byte) {
	for c := range t {
		switch {
		case c >= 'a' && c <= 'z':
			t[c] = letter
		case c >= 'A' && c <= 'Z':
			t[c] = capital
		case c >= '0' && c <= '9':
			t[c] = number
		case c <= ' ':
			t[c] = space
		default:
			t[c] = sign
		}
	}
	return t
}()

// folds holds the lower case of an ASCII letter, and 0 for any other byte.
var folds = func() (t [256]byte) {
	for c := 'a'; c <= 'z'; c++ {
		t[c], t[c-'a'+'A'] = byte(c), byte(c)
	}
	return t
}()

// plainEnd holds the bytes that end a word whatever follows them.
var plainEnd = func() (t [256]bool) {
	for c := range t {
		t[c] = c <= ' ' || c == ',' || c == ';' || c == '!' || c == '?' || c == ')' || c == '"'
	}
	return t
}()

func isSpace(c byte) bool { return c <= ' ' }

// wordByte reports whether a byte may be part of a word.
func wordByte(b byte) bool { return b >= utf8.RuneSelf || ascii[b] != sign && ascii[b] != space }

// ascii7 is the kind of a byte; one of a longer rune counts as a letter.
func ascii7(b byte) byte {
	if b < utf8.RuneSelf {
		return ascii[b]
	}
	return letter
}

// contracted reports whether a word holds a verb: that's, there's.
func (t *token) contracted() bool { return t.lex != nil && strings.HasSuffix(t.lex.form, "'s") }
