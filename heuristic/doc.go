package heuristic

import (
	"strings"
	"sync"
)

// doc is a text cut into tokens and sentences. It is pooled: nothing it holds
// outlives release but strings of the text itself.
type doc struct {
	text       string
	transcript bool
	turns      []turn
	tokens     []token
	sentences  []sentence

	// The state of the cut.
	turn      turn
	lineStart int
	shape     shape
	first     int  // first token of the open sentence
	inQuote   bool // inside double quotation marks
	starts    bool // the next word starts a clause

	// The state of a verdict.
	hits   []hit
	out    []Result
	seen   map[string]bool // keys of entities returned
	inside map[uint64]bool // words capitalised inside a sentence, by hash
}

// sentence is a run of tokens with one verdict. A heading, a table cell or a
// list item is a sentence too.
type sentence struct {
	first, end int // tokens
	shape      shape
	question   bool
	inferred   bool
}

var docs = sync.Pool{New: func() any { return &doc{seen: make(map[string]bool), inside: make(map[uint64]bool)} }}

// read cuts a text into tokens and sentences. The caller releases the result.
func read(text string) *doc {
	d := docs.Get().(*doc)
	d.text = text
	d.splitTurns()
	for _, t := range d.turns {
		d.turn = t
		d.readTurn(t.body, t.end)
	}
	return d
}

// maxPooled bounds what a pooled doc may keep, in tokens.
const maxPooled = 1 << 16

func (d *doc) release() {
	if cap(d.tokens) > maxPooled {
		return
	}
	clear(d.tokens)
	clear(d.out)
	*d = doc{
		turns: d.turns[:0], tokens: d.tokens[:0], sentences: d.sentences[:0],
		hits: d.hits[:0], out: d.out[:0], seen: d.seen, inside: d.inside,
	}
	docs.Put(d)
}

// readTurn cuts text[i:end], the words of one speaker, line by line.
func (d *doc) readTurn(i, end int) {
	d.inQuote = false
	fenced, tableHead, prev := false, true, blank
	for i < end {
		lineEnd := end
		if n := strings.IndexByte(d.text[i:end], '\n'); n >= 0 {
			lineEnd = i + n
		}
		s, from := shapeOf(d.text, i, lineEnd, prev, fenced)
		switch {
		case s == fence:
			fenced = !fenced
			d.endSentence()
		case s == table:
			d.endSentence()
			d.readRow(from, lineEnd, tableHead)
			tableHead = false
		case s == blank || s == listing || s == rule:
			d.endSentence()
			d.inQuote = false
		default:
			if s != prose || prev != prose && prev != item || !continues(d.text[i:lineEnd]) {
				d.endSentence()
			}
			if s == prose && prev == item {
				s = item
			}
			d.shape, d.lineStart = s, from
			d.scan(from, lineEnd)
		}
		if s != table && s != rule {
			tableHead = true
		}
		prev = s
		i = lineEnd + 1
	}
	d.endSentence()
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
func (d *doc) add(t token) {
	open := len(d.tokens) == d.first
	if open {
		if d.closes(&t) {
			return
		}
		d.starts = true
	}
	switch t.mark {
	case word:
		if d.starts {
			t.class |= clauseStart
			d.starts = t.is(opener)
		} else if n := len(d.tokens) - 1; n >= d.first && d.tokens[n].mark == comma && t.is(opener) {
			d.starts = true
		}
		if d.inQuote {
			t.class |= quoted
		}
	case quote:
		d.inQuote = !d.inQuote
	case semicolon, colon, dash, bracket:
		d.starts = true
	}
	d.tokens = append(d.tokens, t)
	if t.mark == stop || t.mark == query || len(d.tokens)-d.first == maxSentence {
		d.endSentence()
		if t.mark == query {
			d.question()
		}
	}
}

// closes adds a mark that sticks to the end of the sentence before: a closing
// quotation mark or bracket, or one more full stop.
func (d *doc) closes(t *token) bool {
	n := len(d.sentences)
	if t.mark == word || n == 0 || d.tokens[d.first-1].end != t.start || t.mark == quote && !d.inQuote {
		return false
	}
	if t.mark == quote {
		d.inQuote = false
	}
	d.tokens = append(d.tokens, *t)
	d.first++
	s := &d.sentences[n-1]
	s.end = d.first
	s.question = s.question || t.mark == query
	return true
}

// question marks the sentence just closed.
func (d *doc) question() {
	if n := len(d.sentences); n > 0 {
		d.sentences[n-1].question = true
	}
}

func (d *doc) endSentence() {
	end := len(d.tokens)
	if end == d.first {
		return
	}
	d.sentences = append(d.sentences, sentence{first: d.first, end: end, shape: d.shape, inferred: d.turn.inferred})
	d.first = end
}
