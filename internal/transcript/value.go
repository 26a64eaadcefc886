package transcript

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
)

// ident is an id, given as a string or a number.
type ident string

// UnmarshalJSON implements json.Unmarshaler.
func (i *ident) UnmarshalJSON(b []byte) error {
	*i = ""
	switch {
	case b[0] == '"':
		return json.Unmarshal(b, (*string)(i))
	case b[0] == '-' || b[0] >= '0' && b[0] <= '9':
		*i = ident(b)
	}
	return nil
}

// stamp is a date as parseDate reads it. 0 is how some programs write "no date".
type stamp struct {
	time.Time

	// raw is the string as it was given, and bad marks what is no date.
	raw string
	bad bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *stamp) UnmarshalJSON(b []byte) error {
	*s = stamp{}
	var ok bool
	switch {
	case b[0] == '"':
		if err := json.Unmarshal(b, &s.raw); err != nil {
			return err
		}
		s.Time, ok = parseDateText(s.raw)
	case b[0] == '-' || b[0] >= '0' && b[0] <= '9':
		s.Time, ok = parseDateText(string(b))
		ok = ok || strings.Trim(string(b), "-0.") == ""
	default:
		ok = string(b) == "null"
	}
	s.bad = !ok
	return nil
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
	Type        string `json:"type"`
	ContentType string `json:"content_type"`
	Text        string `json:"text"`
	Thought     bool   `json:"thought"`
}

// content is a message's text or its blocks: a string, a block or a list of both.
type content []block

// UnmarshalJSON implements json.Unmarshaler.
func (c *content) UnmarshalJSON(b []byte) error {
	*c = nil
	switch b[0] {
	case '"':
		var text string
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
		*c = content{{Type: typeText, Text: text}}
	case '{':
		*c = content{decodeBlock(b)}
	case '[':
		var parts []json.RawMessage
		// Of one kind as a rule; else one by one, as above.
		err := json.Unmarshal(b, (*[]block)(c))
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); !ok {
			return err
		}
		*c = nil
		if err := json.Unmarshal(b, &parts); err != nil {
			return err
		}
		for _, part := range parts {
			var text string
			if json.Unmarshal(part, &text) == nil {
				*c = append(*c, block{Type: typeText, Text: text})
			} else {
				*c = append(*c, decodeBlock(part))
			}
		}
	}
	return nil
}

func decodeBlock(raw []byte) block {
	var b block
	_ = json.Unmarshal(raw, &b) // fields of another kind stay zero
	return b
}

// has reports whether there is a block of one of types.
func (c content) has(types ...string) bool {
	return slices.ContainsFunc(c, func(b block) bool { return slices.Contains(types, b.Type) })
}

// text joins the text of the blocks for which keep is true, one a line.
func (c content) text(keep func(block) bool) string {
	var parts []string
	for _, b := range c {
		if text := Clean(b.Text); text != "" && keep(b) {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n")
}

// isText is what most formats keep of content.
func isText(b block) bool {
	switch b.Type {
	case typeText, "Text", "input_text", "output_text":
		return true
	}
	return false
}
