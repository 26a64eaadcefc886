package heuristic

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// turn is what one speaker says: text[body:end].
type turn struct {
	body, end int
	inferred  bool
}

// roles are the labels that make a text a transcript wherever they open a line.
var roles = map[string]bool{ // true: the assistant
	"user": false, "human": false, "system": false,
	"assistant": true, "ai": true, "bot": true, "model": true,
}

// maxLabel bounds a speaker label, in bytes.
const maxLabel = 40

// speaker reads the label at i: "User: " or "Maria Lopez: ". body is where the
// words begin; role reports one of the known roles.
func speaker(text string, i int) (body int, role, inferred, ok bool) {
	line := text[i:min(len(text), i+maxLabel)]
	n := strings.IndexByte(line, ':')
	if n <= 0 || strings.IndexByte(line[:n], '\n') >= 0 {
		return 0, false, false, false
	}
	body = i + n + 1
	if body < len(text) && !isSpace(text[body]) {
		return 0, false, false, false
	}
	for body < len(text) && text[body] == ' ' {
		body++
	}
	name := line[:n]
	if n <= len("assistant") {
		var folded [len("assistant")]byte
		for i := range n {
			folded[i] = name[i] | 0x20
		}
		if inferred, role = roles[string(folded[:n])]; role {
			return body, true, inferred, true
		}
	}
	return body, false, false, named(name)
}

// named reports whether a label looks like a speaker's name: one to three
// capitalised words, none of them a word that labels a note.
func named(s string) bool {
	words := 0
	for w := range strings.SplitSeq(s, " ") {
		r, _ := utf8.DecodeRuneInString(w)
		if !unicode.IsUpper(r) && !caseless(r) {
			return false
		}
		folded := []byte(strings.ToLower(w))
		if l := lexicon.find(folded, hash(folded)); l != nil && l.class&(label|function|opener) != 0 {
			return false
		}
		for _, r := range w {
			if !unicode.IsLetter(r) && !unicode.IsMark(r) && !strings.ContainsRune("'’-.", r) {
				return false
			}
		}
		words++
	}
	return words <= 3
}

// splitTurns finds the speakers of a transcript, or takes the whole text as one
// turn. A text is a transcript when its first line carries a role, or when its
// first and another paragraph carry names. Where roles open lines but no later
// paragraph, each such line is a turn.
func (d *doc) splitTurns() {
	text := d.text
	start := len(text) - len(strings.TrimLeft(text, " \t\r\n"))
	_, role, _, ok := speaker(text, start)
	if ok {
		paragraphs, lines := d.labels(start)
		d.transcript = role || paragraphs > 1
		if d.transcript {
			d.cutTurns(start, paragraphs > 1 || lines == 1)
			return
		}
	}
	d.turns = append(d.turns, turn{body: start, end: len(text)})
}

// eachLine calls f with the start of every line from i on and whether it opens a
// paragraph.
func eachLine(text string, i int, f func(i int, opens bool)) {
	opens := true
	for i < len(text) {
		f(i, opens)
		n := strings.IndexByte(text[i:], '\n')
		if n < 0 {
			return
		}
		opens = strings.TrimSpace(text[i:i+n]) == ""
		i += n + 1
	}
}

// labels counts the labelled paragraphs, and the lines that carry a role.
func (d *doc) labels(start int) (paragraphs, lines int) {
	eachLine(d.text, start, func(i int, opens bool) {
		_, role, _, ok := speaker(d.text, i)
		if ok && opens {
			paragraphs++
		}
		if role {
			lines++
		}
	})
	return paragraphs, lines
}

func (d *doc) cutTurns(start int, paragraphs bool) {
	eachLine(d.text, start, func(i int, opens bool) {
		body, role, inferred, ok := speaker(d.text, i)
		if !ok || paragraphs && !opens || !paragraphs && !role {
			return
		}
		if n := len(d.turns); n > 0 {
			d.turns[n-1].end = i
		}
		d.turns = append(d.turns, turn{body: body, end: len(d.text), inferred: inferred})
	})
}
