package extract

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// readText finds the answer in text: the values in prose, grouped, and of the
// groups the one that counts. level counts what was unwrapped to get here. cut
// reports that text ended inside a value.
func readText(text string, level int, b *budget) (a answer, cut bool) {
	text = trim(text)
	if inner, open, ok := quoted(text); ok {
		if level == maxLevel {
			return answer{}, open
		}
		a, cut = readText(inner, level+1, b)
		a.open = a.open || open
		return a, cut || open
	}
	s := scanner{parser: newParser(text, b), level: level}
	s.run()
	return s.past.best(), s.cut
}

// quoted decodes a text that is one JSON string; open if its end is missing.
func quoted(s string) (inner string, open, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		return "", false, false
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return unescape(s[1:i]), false, i == len(s)-1
		}
	}
	return unescape(s[1:]), true, true
}

// scanner walks through prose and reads the values in it. Code fences and
// reasoning tags mean something here only: inside a value they are content.
type scanner struct {
	*parser
	level int
	fence string // the mark that opened the fence around pos, or empty
	// infoEnd is where the language behind the last fence mark ends.
	infoEnd int
	// group is what the values yield that nothing but separators divide.
	group  answer
	fenced bool // group is
	past   choice
}

func (s *scanner) run() {
	for s.step() {
		c := s.src[s.pos]
		switch {
		case c == ' ' || c == '\n':
			s.pos++
		case letter(c):
			s.endGroup()
			s.pos++
		case s.tag() || s.fenceMark():
		case c == '[' || c == '{':
			s.bracket()
		default:
			n := separator(s.rest())
			if n == 0 {
				s.endGroup()
				_, n = utf8.DecodeRuneInString(s.rest())
			}
			s.pos += n
		}
	}
	s.endGroup()
}

// endGroup makes the next value start a group of its own.
func (s *scanner) endGroup() {
	if s.group.found() {
		s.past.add(s.group, s.fenced)
	}
	s.group = answer{}
	s.fenced = s.fence != ""
}

// bracket reads the value at pos into the group. What is no value is prose.
func (s *scanner) bracket() {
	run := 0
	for s.pos+run < s.end && s.src[s.pos+run] == '[' {
		run++
	}
	if run > maxLevel { // nothing that deep could be reached
		s.endGroup()
		s.spend(run)
		s.pos += run - maxLevel
	}
	start := s.pos
	v, ok := s.root()
	if !ok || s.inProse(v, start) {
		s.endGroup()
		return
	}
	c := collector{answer: s.group, budget: s.budget}
	c.value(v, spot{level: s.level, listed: run <= maxLevel})
	s.group = c.answer
}

// inProse reports whether the empty list v is none: a check box, or part of a
// word such as items[].
func (s *scanner) inProse(v value, start int) bool {
	if v.kind != kindArray || len(v.list) > 0 {
		return false
	}
	before := s.src[:start]
	if last, _ := utf8.DecodeLastRuneInString(before); alphanumeric(last) {
		return s.infoEnd != start
	}
	before = strings.TrimRight(before, " \t")
	return s.src[start:s.pos] == "[ ]" && before != "" && strings.IndexByte("-*+.)", before[len(before)-1]) >= 0
}

func alphanumeric(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// fenceMark handles the code fence at pos. A mark with a language behind it
// opens; any other opens or closes, whichever is next.
func (s *scanner) fenceMark() bool {
	rest := s.rest()
	if rest[0] != '`' && rest[0] != '~' {
		return false
	}
	info := strings.TrimLeft(rest, rest[:1])
	mark := rest[:len(rest)-len(info)]
	if len(mark) < 3 {
		return false
	}
	s.endGroup()
	s.pos += len(mark)
	word := info[:len(info)-len(strings.TrimLeftFunc(info, alphanumeric))]
	after := strings.TrimLeft(info[len(word):], " \t\r")
	switch {
	case word != "" && (after == "" || after[0] == '\n' || strings.HasPrefix(strings.ToLower(word), "json")):
		s.fence = mark
		s.pos += len(word)
		s.infoEnd = s.pos
	case s.fence == "":
		s.fence = mark
	case strings.HasPrefix(mark, s.fence):
		s.fence = ""
	}
	s.fenced = s.fence != ""
	return true
}

// tag handles the reasoning tag at pos. What an opening tag begins is no answer,
// nor is anything before a closing tag that nothing opened: the chat template
// did.
func (s *scanner) tag() bool {
	n, closing := reasoningTag(s.rest())
	if n == 0 {
		return false
	}
	s.endGroup()
	s.pos += n
	if closing {
		s.past, s.fence, s.fenced = choice{}, "", false
		return true
	}
	for s.step() {
		if n, closing := reasoningTag(s.rest()); closing {
			s.pos += n
			return true
		}
		s.pos++
	}
	return true
}

var reasoningNames = map[string]bool{
	"think": true, "thinking": true, "thought": true, "thoughts": true, "reasoning": true,
	"reflection": true, "analysis": true, "scratchpad": true,
}

// reasoningTag returns the length of the reasoning tag that s begins with, or 0:
// <think> and its kin, and the marks some chat templates use instead.
func reasoningTag(s string) (n int, closing bool) {
	switch s[0] {
	case '<':
		const channel = "<|channel|>"
		if strings.HasPrefix(s, channel) {
			return len(channel), !strings.HasPrefix(s[len(channel):], "analysis")
		}
		const longest = 64
		i := strings.IndexByte(s[:min(len(s), longest)], '>')
		if i < 0 || s[i-1] == '/' {
			return 0, false
		}
		name, closing := strings.CutPrefix(s[1:i], "/")
		if name, _, _ = strings.Cut(name, " "); reasoningNames[strings.ToLower(name)] {
			return i + 1, closing
		}
	case '[', "◁"[0]:
		for _, mark := range []string{"[THINK]", "◁think▷"} {
			if strings.HasPrefix(s, mark) {
				return len(mark), false
			}
		}
		for _, mark := range []string{"[/THINK]", "◁/think▷"} {
			if strings.HasPrefix(s, mark) {
				return len(mark), true
			}
		}
	}
	return 0, false
}

// separator returns the length of what s begins with and may stand between the
// values of one group, or 0: white space, a comma, a list mark, inline code,
// a closing bracket too many.
func separator(s string) int {
	r, n := utf8.DecodeRuneInString(s)
	if invisible(r) || strings.ContainsRune(",;`-*+•·–—]}", r) {
		return n
	}
	const longest = 3 // digits of a list number
	n = 0
	for n < min(len(s), longest) && digit(s[n]) {
		n++
	}
	if n > 0 && n < len(s) && (s[n] == '.' || s[n] == ')') {
		return n + 1
	}
	return 0
}

// choice keeps, of all groups so far, the last of each sort.
type choice struct{ fenced, bare, fencedRest, rest *answer }

func (c *choice) add(a answer, fenced bool) {
	switch valid := len(a.items) > 0; {
	case valid && fenced:
		c.fenced = &a
	case valid:
		c.bare = &a
	case fenced:
		c.fencedRest, c.rest = &a, &a
	default:
		c.rest = &a
	}
}

// best picks the answer that counts: the last with an item, fenced ones first. A
// fenced empty list beats a draft in prose.
func (c *choice) best() answer {
	switch {
	case c.fenced != nil:
		return *c.fenced
	case c.fencedRest != nil && c.fencedRest.skipped == 0:
		return *c.fencedRest
	case c.bare != nil:
		return *c.bare
	case c.rest != nil:
		return *c.rest
	}
	return answer{}
}
