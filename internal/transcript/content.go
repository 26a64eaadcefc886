package transcript

import (
	"slices"
	"strings"
	"time"
)

// stamp is a date as parseDate reads it.
type stamp struct {
	time.Time

	// raw is the string as it was given, and bad marks what is no date.
	raw string
	bad bool
}

// stamp reads a date. 0 is how some programs write "no date".
func (v value) stamp() (s stamp) {
	var ok bool
	switch {
	case v.kind() == '"':
		s.raw = v.text()
		s.Time, ok = parseDateText(s.raw)
	case v.isNumber():
		s.Time, ok = parseDateText(string(v))
		ok = ok || strings.Trim(string(v), "-0.") == ""
	default:
		ok = !v.given()
	}
	s.bad = !ok
	return s
}

// date is the time of s, zero if unknown; what is no date is named.
func (f *file) date(s stamp, line int) time.Time {
	if s.bad {
		f.warn("bad_date", line, "not a date this reads (RFC 3339, or a number of seconds since 1970): taken for unknown")
	}
	return s.Time
}

// typeText is the type of a block of text, and what a bare string is taken for.
const typeText = "text"

// block is one part of a message.
type block struct {
	kind, contentType string
	text              value
	thought           bool
}

// content is a message's text or its blocks: a string, a block or a list of both.
type content []block

func (v value) content() (c content) {
	if v.kind() != '[' {
		return c.with(v)
	}
	for part := range v.elements {
		c = c.with(part)
	}
	return c
}

// with appends the block in v, if it is one.
func (c content) with(v value) content {
	if v.kind() == '"' {
		return append(c, block{kind: typeText, text: v})
	}
	if v.kind() != '{' {
		return c
	}
	var b block
	for key, member := range v.members {
		switch string(key) {
		case "type":
			b.kind = member.text()
		case "content_type":
			b.contentType = member.text()
		case "text":
			b.text = member
		case "thought":
			b.thought = member.isTrue()
		}
	}
	return append(c, b)
}

// has reports whether there is a block of one of types.
func (c content) has(types ...string) bool {
	return slices.ContainsFunc(c, func(b block) bool { return slices.Contains(types, b.kind) })
}

// join joins the text of the blocks, one a line. take is given a block that is not
// blank and its text, and returns what to keep of it.
func (c content) join(take func(b block, text string) string) string {
	var parts []string
	for _, b := range c {
		if b.text.kind() != '"' {
			continue
		}
		if text := Clean(take(b, Clean(b.text.text()))); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n")
}

// text is what most formats keep of content.
func (c content) text() string {
	return c.join(func(b block, text string) string {
		if b.isText() {
			return text
		}
		return ""
	})
}

func (b block) isText() bool {
	switch b.kind {
	case typeText, "Text", "input_text", "output_text":
		return true
	}
	return false
}
