package heuristic

import (
	"unicode"
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

	upper       // starts with a capital
	caps        // all capitals, two or more
	signal      // inner capital, or a capital and a digit
	digit       // holds a digit
	numeric     // holds no letter
	single      // one letter
	possessive  // ends in 's or s'
	code        // path, address, identifier, call or back-quoted span
	quoted      // inside double quotation marks
	clauseStart // first word of a clause
	uncased     // a script without capitals
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

type token struct {
	start, end int // bytes of the text
	base       int // end without a possessive ending
	class      class
	hash       uint64
	lex        *lexeme // nil for a word without an entry
	mark       mark
}

func (t *token) is(c class) bool { return t.class&c != 0 }

// maxWord bounds a word that is looked up, in bytes of its folded form.
const maxWord = 24

// ascii holds what a byte below 0x80 is to the tokeniser.
var ascii = func() (t [utf8.RuneSelf]byte) {
	for c := range t {
		switch {
		case c >= 'a' && c <= 'z':
			t[c] = 'a'
		case c >= 'A' && c <= 'Z':
			t[c] = 'A'
		case c >= '0' && c <= '9':
			t[c] = '0'
		case c <= ' ':
			t[c] = ' '
		default:
			t[c] = '.'
		}
	}
	return t
}()

// scan cuts text[i:end], a line or a table cell, into tokens.
func (d *doc) scan(i, end int) {
	text := d.text
	for i < end {
		c := text[i]
		if c < utf8.RuneSelf {
			switch ascii[c] {
			case ' ':
				i++
			case 'a', 'A', '0':
				i = d.scanWord(i, end)
			default:
				i = d.scanMark(i, end)
			}
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:end])
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			i = d.scanWord(i, end)
		case unicode.IsSpace(r) || r == utf8.RuneError:
			i += n
		default:
			d.punct(runeMark(r), i, i+n)
			i += n
		}
	}
}

func runeMark(r rune) mark {
	switch r {
	case '“', '”', '„', '«', '»', '「', '」':
		return quote
	case '—', '–':
		return dash
	case '。', '！', '…':
		return stop
	case '？':
		return query
	case '，', '、':
		return comma
	case '；':
		return semicolon
	case '：':
		return colon
	}
	return other
}

// scanMark reads the punctuation at i, or the code it introduces.
func (d *doc) scanMark(i, end int) int {
	text := d.text
	switch c := text[i]; c {
	case '`':
		for j := i + 1; j < end; j++ {
			if text[j] == '`' {
				return d.code(i, j+1)
			}
		}
		d.punct(other, i, i+1)
	case '/', '@', '~', '$', '-', '<', '\\':
		if c == '-' && i+1 < end && text[i+1] == '-' && (i+2 == end || text[i+2] == ' ' || text[i+2] == '-') {
			for i+1 < end && text[i+1] == '-' {
				i++
			}
			d.punct(dash, i, i+1)
			break
		}
		if i+1 < end && text[i+1] != ' ' && (i == d.lineStart || text[i-1] == ' ' || text[i-1] == '(' || text[i-1] == '"') {
			return d.code(i, chunkEnd(text, i, end))
		}
		if c == '-' && i > 0 && (i+1 == end || text[i+1] == ' ') {
			d.punct(dash, i, i+1)
		} else {
			d.punct(other, i, i+1)
		}
	case '.':
		return d.scanStop(i, end)
	case '!':
		d.punct(stop, i, i+1)
	case '?':
		d.punct(query, i, i+1)
	case ',':
		d.punct(comma, i, i+1)
	case ';':
		d.punct(semicolon, i, i+1)
	case ':':
		d.punct(colon, i, i+1)
	case '"':
		d.punct(quote, i, i+1)
	case '(', ')', '[', ']', '{', '}', '|':
		d.punct(bracket, i, i+1)
	case '*', '_', '\'', '#':
		// Emphasis and single quotes cut nothing.
	default:
		d.punct(other, i, i+1)
	}
	return i + 1
}

// scanStop reads full stops: one ends a sentence unless it follows an
// abbreviation, a title or an initial, and dots of omission end one only before
// a capital.
func (d *doc) scanStop(i, end int) int {
	j := i
	for j < end && d.text[j] == '.' {
		j++
	}
	m := stop
	switch {
	case j-i > 1:
		if !capitalAfter(d.text, j, end) {
			m = dot
		}
	case j < end && !isSpace(d.text[j]) && d.text[j] != '"' && d.text[j] != ')' && d.text[j] != '\'' && d.text[j] < utf8.RuneSelf:
		m = dot
	case len(d.tokens) > d.first:
		last := &d.tokens[len(d.tokens)-1]
		if last.end == i && last.mark == word {
			initial := last.is(single) && last.is(upper) && !(last.lex != nil && last.lex.class&first != 0)
			if last.is(title|abbrev) || initial && capitalAfter(d.text, j, end) {
				m = dot
			}
		}
	}
	d.punct(m, i, j)
	return j
}

func isSpace(c byte) bool { return c <= ' ' }

func capitalAfter(text string, i, end int) bool {
	for i < end && (isSpace(text[i]) || text[i] == '"') {
		i++
	}
	r, _ := utf8.DecodeRuneInString(text[i:end])
	return unicode.IsUpper(r)
}

// chunkEnd is the end of the run of non-space bytes at i, without the
// punctuation that closes it.
func chunkEnd(text string, i, end int) int {
	j := i
	for j < end && !isSpace(text[j]) {
		j++
	}
	for j > i+1 {
		switch text[j-1] {
		case '.', ',', ';', ':', '!', '?', ')', '"', '\'':
			j--
			continue
		}
		break
	}
	return j
}

// code adds text[i:j] as one token that is no word of prose.
func (d *doc) code(i, j int) int {
	d.add(token{start: i, end: j, base: j, class: code, mark: word})
	return j
}

func (d *doc) punct(m mark, i, j int) {
	d.add(token{start: i, end: j, base: j, mark: m})
}

// scanWord reads the word at i: letters, digits and marks, with apostrophes,
// hyphens and dots inside. A change between a script without capitals and
// another one ends it, so that a particle does not stick to a name.
func (d *doc) scanWord(i, end int) int {
	var (
		text     = d.text
		buf      [maxWord]byte
		n        int // bytes folded into buf, maxWord+1 when it did not fit
		letters  int
		capitals int
		c        class
		j        = i
	)
	fold := func(b byte) {
		if n < maxWord {
			buf[n] = b
			n++
		} else {
			n = maxWord + 1
		}
	}
scan:
	for j < end {
		b := text[j]
		if b < utf8.RuneSelf {
			switch ascii[b] {
			case 'a':
				if c&uncased != 0 {
					break scan
				}
				letters++
				fold(b)
			case 'A':
				if c&uncased != 0 {
					break scan
				}
				if letters > 0 || c&digit != 0 {
					c |= signal
				} else {
					c |= upper
				}
				letters++
				capitals++
				fold(b | 0x20)
			case '0':
				if letters > 0 {
					c |= signal
				}
				c |= digit
				fold(b)
			case '.':
				joins := false
				switch b {
				case '\'', '-', '.', '&', '_':
					joins = j+1 < end && wordByte(text[j+1])
				case ',':
					joins = letters == 0 && j+1 < end && ascii7(text[j+1]) == '0'
				case '+':
					if letters == 1 && j+1 < end && text[j+1] == '+' {
						c |= signal
						j += 2
						fold('+')
					}
					break scan
				case '#':
					if letters == 1 {
						c |= signal
						j++
					}
					break scan
				case '%':
					if letters == 0 {
						j++
					}
					break scan
				case '/', '=', '\\', '(', ':', '@', '*':
					if codeFollows(text, i, j, end) {
						return d.code(i, chunkEnd(text, i, end))
					}
					break scan
				}
				if !joins {
					break scan
				}
				if b == '_' {
					c |= code
				}
				fold(b)
			default:
				break scan
			}
			j++
			continue
		}
		r, w := utf8.DecodeRuneInString(text[j:end])
		switch {
		case r == '’' || r == '‘':
			if j+w >= end || !wordByte(text[j+w]) {
				break scan
			}
			fold('\'')
		case unicode.IsLetter(r):
			if bare := caseless(r); bare != (c&uncased != 0) {
				if letters > 0 || c&digit != 0 {
					break scan
				}
				c |= uncased
			}
			if unicode.IsUpper(r) {
				if letters > 0 {
					c |= signal
				} else {
					c |= upper
				}
				capitals++
				r = unicode.ToLower(r)
			}
			letters++
			if m := utf8.RuneLen(r); n+m <= maxWord {
				n += utf8.EncodeRune(buf[n:], r)
			} else {
				n = maxWord + 1
			}
		case unicode.IsMark(r) || unicode.IsDigit(r):
			fold('0')
		default:
			break scan
		}
		j += w
	}
	if letters == 0 {
		c |= numeric | numeral
	}
	if letters == 1 && c&digit == 0 {
		c |= single
	}
	if capitals > 1 && capitals == letters {
		c = c&^signal | caps
		if c&digit != 0 {
			c |= signal
		}
	}
	if capitals == 0 {
		c &^= signal
	}
	t := token{start: i, end: j, base: j, class: c, mark: word}
	if n > maxWord {
		n = 0
	}
	d.lookup(&t, buf[:n])
	d.add(t)
	return j
}

// lookup completes a token from its folded form: the entry of the lexicon, the
// possessive ending, and the tense its ending shows.
func (d *doc) lookup(t *token, folded []byte) {
	t.hash = hash(folded)
	t.lex = lexicon.find(folded, t.hash)
	if n := len(folded); t.lex == nil && n > 2 {
		switch {
		case folded[n-2] == '\'' && folded[n-1] == 's':
			t.class |= possessive
			t.base = t.end - 2
			if c := d.text[t.end-2]; c >= utf8.RuneSelf { // ’ takes three bytes
				t.base = t.end - 4
			}
			folded = folded[:n-2]
			t.hash = hash(folded)
			t.lex = lexicon.find(folded, t.hash)
		case t.class&(signal|caps|digit) != 0:
		case n > 4 && folded[n-2] == 'e' && folded[n-1] == 'd':
			t.class |= past
		case n > 5 && folded[n-3] == 'i' && folded[n-2] == 'n' && folded[n-1] == 'g':
			t.class |= gerund
		}
	}
	if t.lex != nil {
		t.class |= t.lex.class
	}
}

func wordByte(b byte) bool { return b >= utf8.RuneSelf || ascii7(b) != '.' && ascii7(b) != ' ' }

func ascii7(b byte) byte {
	if b < utf8.RuneSelf {
		return ascii[b]
	}
	return 'a'
}

// codeFollows reports whether the mark at j makes text[i:j] part of a path, an
// address, an assignment or a call rather than a word.
func codeFollows(text string, i, j, end int) bool {
	if j+1 >= end {
		return false
	}
	next := text[j+1]
	switch text[j] {
	case '/':
		return wordByte(next) && j-i > 0
	case ':':
		return next == '/' || next == ':' || next == '\\'
	case '(':
		return next == ')' || wordByte(next) && j > i
	case '=', '\\', '@', '*':
		return wordByte(next)
	}
	return false
}

// caseless reports whether a letter belongs to a script of East Asia, which
// writes without capitals and mostly without spaces.
func caseless(r rune) bool {
	return r >= 0x1100 && (r <= 0x11FF || r >= 0x3040 && r <= 0x30FF || r >= 0x3400 && r <= 0x9FFF ||
		r >= 0xAC00 && r <= 0xD7AF || r >= 0xF900 && r <= 0xFAFF || r >= 0x20000 && r <= 0x3FFFF)
}
