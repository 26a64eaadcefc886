package extract

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Typographic quotes open and close alike: models mix them up.
const (
	singleCurly = "‘’‚"
	doubleCurly = "“”„"
)

// quoteLen returns the length of the quotation mark s begins with, or 0.
func quoteLen(s string) int {
	if s == "" {
		return 0
	}
	if s[0] == '"' || s[0] == '\'' {
		return 1
	}
	if s[0] != singleCurly[0] {
		return 0
	}
	r, n := utf8.DecodeRuneInString(s)
	if strings.ContainsRune(singleCurly+doubleCurly, r) {
		return n
	}
	return 0
}

// closes reports whether the mark can close a string opened by open. A straight
// quote is closed by its like only.
func closes(mark, open string) bool {
	switch {
	case strings.Contains(singleCurly, open):
		return mark == "'" || strings.Contains(singleCurly, mark)
	case strings.Contains(doubleCurly, open):
		return mark == `"` || strings.Contains(doubleCurly, mark)
	}
	return mark == open
}

// text reads the quoted string at pos. A closing mark counts only where what
// follows fits; any other is an inner quote that should have been escaped and
// is kept. So that this repair never eats the neighbours, it fails at an inner
// quote that ends a known key.
func (p *parser) text(depth int, at place) (value, bool) {
	n := quoteLen(p.rest())
	open := p.src[p.pos : p.pos+n]
	p.pos += n
	var (
		b         strings.Builder
		from      = p.pos
		swallowed bool
	)
	for p.step() {
		if n := plain(p.rest()); n > 0 {
			p.spend(n - 1)
			p.pos += n
			continue
		}
		if p.src[p.pos] == '\\' {
			b.WriteString(p.src[from:p.pos])
			p.escape(&b)
			from = min(p.pos, p.end)
			continue
		}
		n := quoteLen(p.rest())
		if n == 0 {
			p.pos++
			continue
		}
		if closes(p.src[p.pos:p.pos+n], open) {
			if p.closed(p.pos+n, depth, at) {
				b.WriteString(p.src[from:p.pos])
				p.pos += n
				return value{kind: kindText, text: b.String()}, true
			}
			if p.endsKnownKey(p.pos, n) {
				return value{}, false
			}
		} else if open != `"` && p.endsKnownKey(p.pos, n) {
			swallowed = true
		}
		p.pos += n
	}
	p.pos = p.end
	if swallowed { // an apostrophe in prose, not a string
		return value{}, false
	}
	b.WriteString(p.src[from:p.end])
	p.cut = true
	return value{kind: kindText, text: b.String(), open: true}, true
}

// plain returns the length of what s begins with that ends no string, escapes
// nothing and is no quotation mark.
func plain(s string) int {
	for i := range len(s) {
		if c := s[i]; c == '"' || c == '\'' || c == '\\' || c == singleCurly[0] {
			return i
		}
	}
	return len(s)
}

// closed reports whether a string in place may end before i. For valid JSON it
// is true at the first closing mark.
func (p *parser) closed(i, depth int, at place) bool {
	i, newline := p.skipSpace(i)
	if i >= p.end {
		return true
	}
	c := p.src[i]
	if at == inArray || at == anywhere {
		if c == ']' || c == '}' || quoteLen(p.src[i:p.end]) > 0 || c == ',' && p.beginsValue(i+1) {
			return true
		}
	}
	if at == inArray {
		return false
	}
	switch c {
	case '}':
		return depth <= 2 || p.endsContainer(i+1, ",]}{`")
	case ']':
		return p.endsContainer(i+1, "]}`")
	case ',':
		j, _ := p.skipSpace(i + 1)
		return j >= p.end || strings.IndexByte("}]", p.src[j]) >= 0 || p.beginsMember(j) ||
			p.src[j] == '{' && p.beginsMember(j+1)
	}
	return p.beginsMember(i) && (newline || quoteLen(p.src[i:p.end]) > 0)
}

// endsContainer reports whether the text before i, a closing bracket, is
// followed by one of the bytes in next, a line end or nothing.
func (p *parser) endsContainer(i int, next string) bool {
	i, newline := p.skipSpace(i)
	return newline || i >= p.end || strings.IndexByte(next, p.src[i]) >= 0
}

func (p *parser) beginsValue(i int) bool {
	i, _ = p.skipSpace(i)
	if i >= p.end {
		return true
	}
	if strings.IndexByte("[{]}-.", p.src[i]) >= 0 || digit(p.src[i]) || quoteLen(p.src[i:p.end]) > 0 {
		return true
	}
	j := i
	for j < p.end && !delimits(p.src[j:p.end]) {
		j++
	}
	_, ok := literal(p.src[i:j])
	return ok
}

// beginsMember reports whether a key and a colon stand at i.
func (p *parser) beginsMember(i int) bool {
	i, _ = p.skipSpace(i)
	look := parser{src: p.src, pos: i, end: p.end, budget: p.budget}
	key, ok := look.key()
	return ok && (quoteLen(p.src[i:p.end]) > 0 || p.bare || knownKeys[key])
}

// endsKnownKey reports whether the quotation mark of n bytes at i ends a known
// key: a quoted word with a colon behind it.
func (p *parser) endsKnownKey(i, n int) bool {
	from := i
	for from > 0 && ('a' <= p.src[from-1] && p.src[from-1] <= 'z' || p.src[from-1] == '_') {
		from--
	}
	if !knownKeys[p.src[from:i]] {
		return false
	}
	if before, _ := utf8.DecodeLastRuneInString(p.src[:from]); quoteLen(string(before)) == 0 {
		return false
	}
	i, _ = p.skipSpace(i + n)
	return i < p.end && p.src[i] == ':'
}

// key reads a key and the colon behind it. At the end of the text it returns
// false with pos there.
func (p *parser) key() (string, bool) {
	var key string
	if n := quoteLen(p.rest()); n > 0 {
		open := p.src[p.pos : p.pos+n]
		p.pos += n
		var b strings.Builder
		for {
			if !p.step() {
				p.pos = p.end
				return "", false
			}
			if p.src[p.pos] == '\\' {
				p.escape(&b)
				continue
			}
			if n := quoteLen(p.rest()); n > 0 && closes(p.src[p.pos:p.pos+n], open) {
				p.pos += n
				break
			}
			b.WriteByte(p.src[p.pos])
			p.pos++
		}
		key = b.String()
	} else {
		from := p.pos
		for p.step() && identifier(p.src[p.pos]) && (p.pos > from || !digit(p.src[from])) {
			p.pos++
		}
		if key = p.src[from:p.pos]; key == "" {
			return "", false
		}
		p.bare = true
	}
	p.space()
	if p.peek() != ':' {
		return key, false
	}
	p.pos++
	return key, true
}

func identifier(c byte) bool {
	return letter(c) || digit(c) || c == '_' || c == '$' || c == '-'
}

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// escape decodes the escape sequence at pos into b. One that JSON does not know
// stays as it is, U+0000 is dropped and half a surrogate pair becomes U+FFFD.
// One that the end of the text cuts is dropped.
func (p *parser) escape(b *strings.Builder) {
	s := p.rest()
	if len(s) < 2 {
		p.pos = p.end
		return
	}
	if i := strings.IndexByte(`"'\/bfnrt`, s[1]); i >= 0 {
		b.WriteByte("\"'\\/\b\f\n\r\t"[i])
		p.pos += 2
		return
	}
	r, n := unicodeEscape(s)
	switch {
	case n < 0:
		p.pos = p.end
		return
	case n == 0:
		b.WriteByte('\\')
		p.pos++
		return
	}
	if utf16.IsSurrogate(r) {
		low, m := unicodeEscape(s[n:])
		if m < 0 {
			p.pos = p.end
			return
		}
		if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
			n += m
		}
	}
	if r != 0 {
		b.WriteRune(r)
	}
	p.pos += n
}

// unicodeEscape decodes the \uXXXX that s begins with and returns its length: 0
// if there is none, negative if the end of s cuts it.
func unicodeEscape(s string) (rune, int) {
	const length = 6
	if !strings.HasPrefix(s, `\u`) {
		return 0, 0
	}
	digits := s[2:min(len(s), length)]
	r, err := strconv.ParseUint(digits, 16, 16)
	switch {
	case digits != "" && err != nil:
		return 0, 0
	case len(s) < length:
		return 0, -1
	}
	return rune(r), length
}

// unescape decodes every escape sequence of s.
func unescape(s string) string {
	p := newParser(s, newBudget(len(s)))
	var b strings.Builder
	for p.pos < p.end {
		if s[p.pos] == '\\' {
			p.escape(&b)
			continue
		}
		b.WriteByte(s[p.pos])
		p.pos++
	}
	return b.String()
}

// space skips white space, zero-width characters and comments.
func (p *parser) space() { p.pos, _ = p.skipSpace(p.pos) }

// skipSpace returns the first position from i on that space does not skip, and
// whether a line ended on the way.
func (p *parser) skipSpace(i int) (end int, newline bool) {
	start := i
	for i < p.end {
		n := p.blank(i)
		if n == 0 {
			break
		}
		newline = newline || p.src[i] == '\n'
		i += n
	}
	p.spend(i - start)
	return i, newline
}

// blank returns the length of the invisible character or comment at i, or 0.
func (p *parser) blank(i int) int {
	c := p.src[i]
	switch {
	case c == '/' || c == '#':
		return p.comment(i)
	case c >= utf8.RuneSelf:
		if r, n := utf8.DecodeRuneInString(p.src[i:p.end]); invisible(r) {
			return n
		}
	case invisible(rune(c)):
		return 1
	}
	return 0
}

// comment returns the length of the comment at i, or 0. A # needs a blank behind
// it or nothing before it on its line: "issue #12" is no comment.
func (p *parser) comment(i int) int {
	s := p.src[i:p.end]
	switch s[0] {
	case '/':
		if strings.HasPrefix(s, "/*") {
			if n := strings.Index(s[2:], "*/"); n >= 0 {
				return 2 + n + 2
			}
			return len(s)
		}
		if !strings.HasPrefix(s, "//") {
			return 0
		}
	case '#':
		before := strings.TrimRight(p.src[:i], " \t")
		if !strings.HasSuffix(before, "\n") && !strings.HasPrefix(s[1:], " ") {
			return 0
		}
	}
	if n := strings.IndexByte(s, '\n'); n >= 0 {
		return n
	}
	return len(s)
}
