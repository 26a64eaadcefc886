package heuristic

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// layout says where the turns of a transcript start.
type layout uint8

const (
	freeForm   layout = iota
	paragraphs        // each labelled paragraph is a turn
	lines             // each line with a role is a turn
)

// labels reports whether a line may start a turn.
func (l layout) labels(opensParagraph bool) bool {
	return l == lines || l == paragraphs && opensParagraph
}

// turn reports whether a label starts a turn.
func (l layout) turn(role bool) bool { return role || l == paragraphs }

// layout tells whether the text that starts at i is a transcript: its first line
// carries a role, or its first and another paragraph carry names. Where roles
// open lines but no later paragraph, each such line is a turn.
func (d *doc) layout(i int) layout {
	_, role, _, ok := speaker(d.text, i)
	if !ok {
		return freeForm
	}
	labelled, roles := 0, 0
	for opens := true; i < len(d.text); {
		if _, role, _, ok := speaker(d.text, i); ok {
			if opens {
				labelled++
			}
			if role {
				roles++
			}
		}
		n := strings.IndexByte(d.text[i:], '\n')
		if n < 0 {
			break
		}
		opens = isBlank(d.text[i : i+n])
		i += n + 1
	}
	d.transcript = role || labelled > 1
	switch {
	case !d.transcript:
		return freeForm
	case labelled > 1 || roles == 1:
		return paragraphs
	}
	return lines
}

// roleOf tells whether a folded label is a role, which makes a text a transcript
// wherever it opens a line, and whether the role is the assistant's.
func roleOf(label []byte) (role, assistant bool) {
	switch string(label) {
	case "user", "human", "system":
		return true, false
	case "assistant", "ai", "bot", "model":
		return true, true
	}
	return false, false
}

// maxLabel bounds a speaker label, in bytes.
const maxLabel = 40

// speaker reads the label at i: "User: " or "Maria Lopez: ". body is where the
// words begin; role reports one of the known roles.
func speaker(text string, i int) (body int, role, inferred, ok bool) {
	n := labelEnd(text[i:min(len(text), i+maxLabel)])
	if n <= 0 {
		return 0, false, false, false
	}
	body = i + n + 1
	if body < len(text) && !isSpace(text[body]) {
		return 0, false, false, false
	}
	for body < len(text) && text[body] == ' ' {
		body++
	}
	name := text[i : i+n]
	if n <= len("assistant") {
		var folded [len("assistant")]byte
		for i := range n {
			folded[i] = name[i] | 0x20
		}
		if role, inferred = roleOf(folded[:n]); role {
			return body, true, inferred, true
		}
	}
	return body, false, false, named(name)
}

// labelEnd is the index of the colon of a label, or -1. It gives up at the first
// byte that no label holds.
func labelEnd(s string) int {
	for i := range len(s) {
		switch c := s[i]; {
		case c == ':':
			return i
		case c < ' ' || c == ',' || c == '!' || c == '?' || c == ';':
			return -1
		}
	}
	return -1
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
		if classOf([]byte(strings.ToLower(w)))&(label|function|opener) != 0 {
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
