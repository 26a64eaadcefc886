package heuristic

import (
	"math"
	"strings"
	"sync"
)

// want says what a pass over a text is for.
type want uint8

const (
	memories want = 1 << iota
	verdicts      // on the text as a whole
	names
)

// doc is one pass over a text. It holds the open sentence only, which is judged
// and forgotten as soon as it ends, so that memory does not grow with the text.
// It is pooled: nothing it holds outlives release but strings of the text itself.
type doc struct {
	text string
	want want

	// The open sentence. A heading, a table cell or a list item is one too.
	tokens    []token
	classes   class // of all its words, once it is judged
	shape     shape
	lineStart int
	closed    bool // ended by a full stop; what sticks to it may follow
	question  bool
	inQuote   bool // inside double quotation marks
	starts    bool // the next word starts a clause

	// The turn it stands in.
	transcript bool
	inferred   bool
	mute       bool // the rest of the turn is no statement
	before     span // the bytes of the sentence before, of the same paragraph
	turn       turn

	votes   uint64 // for the language, see tongue
	voted   int
	foreign int // words of other scripts than Latin

	hits  []hit
	out   []found
	whole whole
	index *index
}

// span is a range of bytes.
type span struct{ first, end uint32 }

var docs = sync.Pool{New: func() any {
	loadLexicon()
	return &doc{index: new(index)}
}}

// pass reads a text. The caller releases the result.
func pass(text string, w want) *doc {
	d := docs.Get().(*doc) //nolint:forcetypeassert // the pool holds nothing else
	d.text, d.want = text[:min(len(text), math.MaxInt32)], w
	d.read()
	return d
}

func (d *doc) release() {
	clear(d.out[:cap(d.out)])
	d.index.reset()
	*d = doc{tokens: d.tokens[:0], hits: d.hits[:0], out: d.out[:0], index: d.index}
	docs.Put(d)
}

// read cuts the text into sentences, line by line.
func (d *doc) read() {
	i := len(d.text) - len(strings.TrimLeft(d.text, " \t\r\n"))
	layout := d.layout(i)
	fenced, tableHead, prev, opens := false, true, blank, true
	for i < len(d.text) {
		labelled := false
		if layout.labels(opens) {
			if body, role, inferred, ok := speaker(d.text, i); ok && layout.turn(role) {
				d.endTurn(inferred)
				fenced, tableHead, prev, labelled = false, true, blank, true
				i = body
			}
		}
		end := len(d.text)
		if n := strings.IndexByte(d.text[i:], '\n'); n >= 0 {
			end = i + n
		}
		s, from := shapeOf(d.text, i, end, prev, fenced)
		switch s {
		case fence:
			fenced = !fenced
			d.endSentence()
		case table:
			d.endSentence()
			d.readRow(from, end, tableHead)
			tableHead = false
		case blank, listing, rule:
			d.endSentence()
			d.inQuote = false
			d.before = span{}
		default:
			if s != prose || prev != prose && prev != item || !continues(d.text[i:end]) {
				d.endSentence()
			}
			if s != prose {
				d.before = span{}
			} else if prev == item {
				s = item
			}
			d.shape, d.lineStart = s, from
			d.scan(from, end)
		}
		if s != table && s != rule {
			tableHead = true
		}
		opens = !labelled && isBlank(d.text[i:end])
		prev = s
		i = end + 1
	}
	d.endSentence()
	d.closeTurn()
}

func (d *doc) endTurn(inferred bool) {
	d.endSentence()
	d.closeTurn()
	d.inferred, d.mute, d.inQuote, d.before = inferred, false, false, span{}
}

func isBlank(s string) bool {
	for i := range len(s) {
		if !isSpace(s[i]) {
			return false
		}
	}
	return true
}

// continues reports whether a line of prose goes on with the sentence of the
// line before: it starts in lower case.
func continues(line string) bool {
	line = strings.TrimLeft(line, " \t")
	return line != "" && line[0] >= 'a' && line[0] <= 'z'
}

// readRow reads the cells of a table row, each as a sentence of its own.
func (d *doc) readRow(i, end int, head bool) {
	d.shape = table
	if head {
		d.shape = tableHeader
	}
	for i < end {
		cell := end
		if n := strings.IndexByte(d.text[i:end], '|'); n >= 0 {
			cell = i + n
		}
		d.lineStart = i
		d.scan(i, cell)
		d.endSentence()
		i = cell + 1
	}
}

// maxSentence bounds a sentence, in tokens: what goes on longer is cut, which
// keeps the work linear.
const maxSentence = 1 << 10

// add appends a token to the open sentence and closes it after a full stop.
func (d *doc) add(t *token) {
	if d.closed {
		if d.sticks(t) {
			return
		}
		d.endSentence()
	}
	n := len(d.tokens)
	if n == 0 {
		d.starts = true
	}
	switch t.mark {
	case word:
		if d.starts {
			t.class |= clauseStart
			d.starts = t.is(opener)
		} else if t.is(opener) && d.tokens[n-1].mark == comma {
			d.starts = true
		}
		if d.inQuote {
			t.class |= quoted
		}
		if t.lex != nil && t.lex.votes != 0 && d.voted < maxVotes && (n == 0 || !t.is(upper)) {
			d.votes += t.lex.votes
			d.voted++
		}
	case quote:
		d.inQuote = !d.inQuote
	case semicolon, colon, dash, bracket:
		d.starts = true
	case stop, query:
		d.closed, d.question = true, t.mark == query
	default:
	}
	d.tokens = append(d.tokens, *t)
	if len(d.tokens) == maxSentence {
		d.closed = true
	}
}

// sticks adds a mark to the sentence that has ended: a closing quotation mark or
// bracket, or one more full stop.
func (d *doc) sticks(t *token) bool {
	n := len(d.tokens)
	if t.mark == word || n == 0 || n > maxSentence || d.tokens[n-1].end != t.start || t.mark == quote && !d.inQuote {
		return false
	}
	if t.mark == quote {
		d.inQuote = false
	}
	d.tokens = append(d.tokens, *t)
	d.question = d.question || t.mark == query
	return true
}

// endSentence judges the open sentence and forgets it.
func (d *doc) endSentence() {
	if len(d.tokens) == 0 {
		return
	}
	if d.want&names != 0 {
		d.findNames()
	}
	if d.want&(memories|verdicts) != 0 {
		d.findMemories()
	}
	d.before = span{}
	if !d.question {
		d.before = span{d.tokens[0].start, d.tokens[len(d.tokens)-1].end}
	}
	d.tokens = d.tokens[:0]
	d.closed, d.question = false, false
}
