package redact

import (
	"maps"
	"slices"

	"github.com/justfortytwo/backfill/extract"
)

// Candidate redacts c in place and returns how many secrets there were: in its
// content, evidence, tags and the values of its meta. An entity that holds one
// is dropped.
func (r Redactor) Candidate(c *extract.Candidate) int {
	total := 0
	text := func(s *string) bool {
		clean, n := r.Text(*s)
		*s = clean
		total += n
		return n > 0
	}
	text(&c.Content)
	text(&c.Evidence)
	for i := range c.Tags {
		text(&c.Tags[i])
	}
	kept := c.Entities[:0]
	for _, e := range c.Entities {
		if !text(&e) {
			kept = append(kept, e)
		}
	}
	c.Entities = kept
	if meta, n := r.Value(c.Meta); n > 0 {
		c.Meta, _ = meta.(map[string]any)
		total += n
	}
	return total
}

// Value redacts the strings of a decoded JSON value and returns how many secrets
// there were. A member whose own name says that it holds a secret counts as
// "name: value". v itself is not written to.
func (r Redactor) Value(v any) (any, int) {
	switch v := v.(type) {
	case string:
		return r.Text(v)
	case []any:
		var out []any
		total := 0
		for i, e := range v {
			clean, n := r.Value(e)
			if n > 0 && out == nil {
				out = slices.Clone(v)
			}
			if n > 0 {
				out[i] = clean
			}
			total += n
		}
		if total == 0 {
			return v, 0
		}
		return out, total
	case map[string]any:
		var out map[string]any
		total := 0
		for name, e := range v {
			clean, n := r.member(name, e)
			if n > 0 && out == nil {
				out = maps.Clone(v)
			}
			if n > 0 {
				out[name] = clean
			}
			total += n
		}
		if total == 0 {
			return v, 0
		}
		return out, total
	default:
		return v, 0
	}
}

// member redacts the value of a named member.
func (r Redactor) member(name string, v any) (any, int) {
	s, ok := v.(string)
	if !ok {
		return r.Value(v)
	}
	if clean, n := r.Text(s); n > 0 {
		return clean, n
	}
	quoted := name + `: "`
	if whole, n := r.Text(quoted + s + `"`); n > 0 && len(whole) > len(quoted) && whole[:len(quoted)] == quoted {
		return whole[len(quoted) : len(whole)-1], n
	}
	return v, 0
}
