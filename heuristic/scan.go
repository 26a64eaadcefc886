package heuristic

import (
	"encoding/binary"
	"unicode"
	"unicode/utf8"
)

// scan cuts text[i:end], a line or a table cell, into tokens.
func (d *doc) scan(i, end int) {
	text := d.text
	for i < end {
		c := text[i]
		if c < utf8.RuneSelf {
			switch ascii[c] {
			case space:
				i++
			case letter, capital:
				i = d.scanLetters(i, end)
			case number:
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
	case '。', '！', '…', '।':
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
	case len(d.tokens) > 0:
		last := &d.tokens[len(d.tokens)-1]
		if int(last.end) == i && last.mark == word {
			initial := last.is(single) && last.is(upper) && (last.lex == nil || last.lex.class&first == 0)
			if last.is(title|abbrev) || initial && capitalAfter(d.text, j, end) || dotted(d.text[last.start:last.end]) && !capitalAfter(d.text, j, end) {
				m = dot
			}
		}
	}
	d.punct(m, i, j)
	return j
}

// dotted reports whether a word is made of letters with dots between: U.K, e.g.
func dotted(w string) bool {
	if len(w) < 3 || len(w)&1 == 0 {
		return false
	}
	for i := range len(w) {
		if (i&1 == 1) != (w[i] == '.') {
			return false
		}
	}
	return true
}

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
	d.add(&token{start: uint32(i), end: uint32(j), class: code, mark: word})
	return j
}

func (d *doc) punct(m mark, i, j int) {
	d.add(&token{start: uint32(i), end: uint32(j), mark: m})
}

// maxWord bounds a word that is looked up, in bytes of its folded form.
const maxWord = 32

// folded is a word in lower case, with straight apostrophes, and its hash.
type folded struct {
	buf  [maxWord]byte
	n    int // bytes of the word, of which buf holds the first maxWord
	hash uint32
}

func (f *folded) add(b byte) {
	if f.n < maxWord {
		f.buf[f.n] = b
	}
	f.n++
	f.hash = (f.hash ^ uint32(b)) * hashPrime
}

// fold takes a word that is in lower case already.
func fold(w []byte) (f folded) {
	f.hash = hashStart
	for _, b := range w {
		f.add(b)
	}
	return f
}

// words returns the first sixteen bytes as numbers, which compare faster.
func (f *folded) words() (head, tail uint64) {
	return binary.LittleEndian.Uint64(f.buf[:8]), binary.LittleEndian.Uint64(f.buf[8:16])
}

func (f *folded) bytes() []byte { return f.buf[:min(f.n, maxWord)] }

// scanLetters reads the word at i where it is one of ASCII letters alone, as
// most are, and leaves any other to scanWord.
func (d *doc) scanLetters(i, end int) int {
	text := d.text[:end]
	var f folded
	h := uint32(hashStart)
	capitals := 0
	j := i
	for ; j < len(text); j++ {
		b := text[j]
		l := folds[b]
		if l == 0 {
			break
		}
		if n := j - i; n < maxWord {
			f.buf[n] = l
		}
		h = (h ^ uint32(l)) * hashPrime
		capitals += int((b ^ l) >> 5)
	}
	if j < len(text) {
		b := text[j]
		if !plainEnd[b] && (b != '.' && b != ':' || j+1 < len(text) && !isSpace(text[j+1])) {
			return d.scanWord(i, end)
		}
	}
	f.n, f.hash = j-i, h
	t := token{start: uint32(i), end: uint32(j)}
	t.class = shapeOfWord(text[i] != f.buf[0], capitals, j-i, capitals > 1 || capitals == 1 && text[i] == f.buf[0], 0)
	d.lookup(&t, &f)
	d.add(&t)
	return j
}

// shapeOfWord tells what the letters of a word show: whether it opens with a
// capital, how many of its letters are capitals, and whether one stands inside.
func shapeOfWord(opens bool, capitals, letters int, inner bool, c class) class {
	if opens {
		c |= upper
	}
	switch {
	case letters == 0:
		return c | numeric | numeral
	case letters == 1 && c&digit == 0:
		return c | single
	case capitals == 0:
		return c
	case capitals == letters && capitals > 1:
		c |= caps
		if c&digit != 0 {
			c |= signal
		}
	case inner || c&digit != 0:
		c |= signal
	}
	return c
}

// scanWord reads the word at i: letters, digits and marks, with apostrophes,
// hyphens and dots inside. A change between a script without capitals and
// another one ends it, so that a particle does not stick to a name.
func (d *doc) scanWord(i, end int) int {
	var (
		text     = d.text
		f        = folded{hash: hashStart}
		letters  int
		capitals int
		opens    bool
		inner    bool
		c        class
		j        = i
	)
scan:
	for j < end {
		b := text[j]
		if b < utf8.RuneSelf {
			switch ascii[b] {
			case letter:
				if c&uncased != 0 {
					break scan
				}
				letters++
				f.add(b)
			case capital:
				if c&uncased != 0 {
					break scan
				}
				if j == i {
					opens = true
				} else if ascii7(text[j-1]) != sign {
					inner = true
				}
				letters++
				capitals++
				f.add(b | 0x20)
			case number:
				c |= digit
				f.add(b)
			case sign:
				joins := false
				switch b {
				case '\'', '-', '.', '&', '_':
					joins = j+1 < end && wordByte(text[j+1])
					if b == '\'' && joins && d.elides(&f, text, i, j) {
						i = j + 1
						f, letters, capitals, opens, inner, c = folded{hash: hashStart}, 0, 0, false, false, 0
						j++
						continue
					}
				case ',':
					joins = letters == 0 && j+1 < end && ascii7(text[j+1]) == number
				case '+':
					if letters == 1 && j+1 < end && text[j+1] == '+' {
						c |= signal
						j += 2
						f.add('+')
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
				f.add(b)
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
			if d.elides(&f, text, i, j) {
				i = j + w
				f, letters, capitals, opens, inner, c = folded{hash: hashStart}, 0, 0, false, false, 0
				j = i
				continue
			}
			f.add('\'')
		case unicode.IsLetter(r):
			if bare := caseless(r); bare != (c&uncased != 0) {
				if letters > 0 || c&digit != 0 {
					break scan
				}
				c |= uncased
			}
			if letters == 0 && r >= firstForeign {
				c |= foreign
			}
			if unicode.IsUpper(r) {
				if j == i {
					opens = true
				} else {
					inner = true
				}
				capitals++
				r = unicode.ToLower(r)
			}
			letters++
			var enc [utf8.UTFMax]byte
			for _, b := range enc[:utf8.EncodeRune(enc[:], r)] {
				f.add(b)
			}
		case unicode.IsMark(r) || unicode.IsDigit(r):
			f.add('0')
		default:
			break scan
		}
		j += w
	}
	t := token{start: uint32(i), end: uint32(j)}
	t.class = shapeOfWord(opens, capitals, letters, inner, c)
	if t.is(foreign) {
		d.foreign++
	}
	d.lookup(&t, &f)
	d.add(&t)
	return j
}

// firstForeign is the first letter after the Latin scripts.
const firstForeign = 'Ͱ'

// elides reports whether text[i:j] before an apostrophe is an article or
// preposition of a Romance language that a name follows: d'Oslo, dell'Emma.
func (d *doc) elides(f *folded, text string, i, j int) bool {
	if f.n != j-i || f.n > 5 || text[i] != f.buf[0] {
		return false
	}
	k := j + 1
	if text[j] != '\'' {
		k = j + len("’")
	}
	if k >= len(text) || ascii7(text[k]) != capital {
		return false
	}
	switch string(f.buf[:f.n]) {
	case "d", "l", "un", "qu", "all", "dell", "dall", "nell", "sull", "quell":
		return true
	}
	return false
}

// lookup completes a token from its folded form: the entry of the lexicon, the
// possessive ending, and the tense its ending shows.
func (d *doc) lookup(t *token, f *folded) {
	t.hash = f.hash
	if f.n > maxWord {
		return
	}
	w := f.bytes()
	t.lex = lexicon.find(f)
	if n := len(w); t.lex == nil && n > 2 {
		switch {
		case w[n-2] == '\'' && w[n-1] == 's':
			t.ends = 2
			if d.text[t.end-2] >= utf8.RuneSelf { // ’ takes three bytes
				t.ends = 4
			}
			owner := fold(w[:n-2])
			t.hash = owner.hash
			t.lex = lexicon.find(&owner)
		case n > 3 && w[n-3] == '\'' && contracted(w[n-2:]), n > 2 && w[n-2] == '\'' && w[n-1] == 'd':
			t.class |= function
		case t.class&(signal|caps|digit) != 0:
		case n > 4 && w[n-2] == 'e' && w[n-1] == 'd':
			t.class |= past
		case n > 5 && w[n-3] == 'i' && w[n-2] == 'n' && w[n-1] == 'g':
			t.class |= gerund
		}
	}
	if t.lex != nil {
		t.class |= t.lex.class
	}
}

// contracted reports whether what follows an apostrophe is a verb: that'll.
func contracted(w []byte) bool {
	switch string(w) {
	case "ll", "ve", "re":
		return true
	}
	return false
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
