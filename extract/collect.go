package extract

import "strings"

// itemKeys are the fields of an item. No other is read: the names models invent
// do not converge. The one alias is quote, for evidence.
var itemKeys = []string{"content", "salience", "source", "observed", "date", "tags", "meta", "evidence", "quote"}

// answerKeys hold items, or a list of them, by the names models use for a wrapper.
var answerKeys = []string{
	"memories", "memory", "candidates", "candidate", "facts", "fact", "items", "item", "results", "result",
	"records", "record", "entries", "data", "output", "response", "answer",
}

// argumentKeys hold what a tool was called with, which is the answer.
var argumentKeys = []string{"arguments", "parameters", "input"}

// envelopeKeys lead there, and to the text of a whole completion. An empty list
// under them says nothing.
var envelopeKeys = []string{"function", "function_call", "tool_calls", "choices", "message"}

// asideKeys hold what looks like an answer and is none.
var asideKeys = set([]string{
	"meta", "metadata", "example", "examples", "draft", "drafts", "rejected", "discarded", "excluded", "skipped",
	"reasoning", "thinking", "thoughts", "analysis",
})

var (
	knownKeys   = set(itemKeys, answerKeys)
	listKeys    = set(answerKeys, argumentKeys)
	wrapperKeys = set(answerKeys, argumentKeys, envelopeKeys)
)

func set(lists ...[]string) map[string]bool {
	m := make(map[string]bool)
	for _, list := range lists {
		for _, s := range list {
			m[s] = true
		}
	}
	return m
}

// itemShaped reports whether the object v means to be an item.
func itemShaped(v value) bool { return v.has("content") || v.has("salience") }

// wraps reports whether a known wrapper key of v holds something.
func (v value) wraps() bool {
	for i, key := range v.keys {
		if wrapperKeys[key] && v.list[i].holds() {
			return true
		}
	}
	return false
}

// schema reports whether the object v looks like a JSON Schema: a model that
// repeats the schema instead of filling it. Its examples are no memories.
func schema(v value) bool {
	if v.has("$schema") || v.has("$defs") || v.has("$ref") || v.has("properties") {
		return true
	}
	t, _ := v.get("type")
	return t.text == "object" || t.text == "array"
}

// collector gathers the items of the values of one group.
type collector struct {
	answer
	budget *budget
}

// spot says where a value stands in an answer.
type spot struct {
	level   int  // wrappers around it
	listed  bool // an empty list here is an answer
	element bool // in a list, where an object must be an item or hold one
}

// in returns the spot of what a value at s holds.
func (s spot) in(listed, element bool) spot { return spot{s.level + 1, listed, element} }

// value takes the items in v.
func (c *collector) value(v value, s spot) {
	c.open = c.open || v.open
	switch v.kind {
	case kindBroken:
		c.skipped++
	case kindText:
		c.text(v.text, s)
	case kindArray:
		c.array(v, s)
	case kindObject:
		c.object(v, s)
	default: // nothing in it
	}
}

func (c *collector) array(v value, s spot) {
	if len(v.list) == 0 && s.listed && !v.open && !v.elided {
		c.empty = true
	}
	if s.level == maxLevel {
		return
	}
	in := s.in(s.listed, true)
	if v.open { // it may be no more than a bracket in prose
		in.level--
	}
	for _, el := range v.list {
		c.value(el, in)
	}
}

func (c *collector) object(v value, s spot) {
	content, hasContent := v.get("content")
	switch {
	case v.open && itemShaped(v): // 0.9 where it was cut may have been 0.95
	case hasContent && v.has("salience"):
		c.add(v)
	case s.level == maxLevel || schema(v):
	case hasContent: // a message whose text is the answer, or an item without salience
		inner := collector{budget: c.budget}
		if inner.value(content, s.in(true, false)); !inner.found() {
			inner.skipped++
		}
		c.merge(inner.answer)
	case c.members(v, s, true):
	case v.open: // it could still bring a known key
	case !v.has("salience") && c.members(v, s, false):
	case v.has("salience") || s.element && len(v.keys) > 0:
		c.skipped++
	}
}

// members descends into the known wrapper keys of v, or into the others. It
// reports whether there were any.
func (c *collector) members(v value, s spot, known bool) bool {
	last := make(map[string]int)
	for i, key := range v.keys {
		if wrapperKeys[key] == known && !asideKeys[key] && (v.list[i].holds() || encoded(v.list[i].text)) {
			last[key] = i
		}
	}
	for i, key := range v.keys {
		if at, ok := last[key]; ok && at == i {
			c.value(v.list[i], s.in(listKeys[key] && !v.open, false))
		}
	}
	return len(last) > 0
}

// text takes the items in a string that holds JSON.
func (c *collector) text(s string, at spot) {
	if at.level == maxLevel || !encoded(s) {
		return
	}
	a, _ := readText(s, at.level+1, c.budget)
	a.empty = a.empty && at.listed
	c.merge(a)
}

// encoded reports whether the string s may be an answer in itself.
func encoded(s string) bool {
	s = trim(s)
	return s != "" && strings.IndexByte("[{\"`~<", s[0]) >= 0
}

// add takes the item v.
func (c *collector) add(v value) {
	cand, clamped, ok := item(v)
	if !ok {
		c.skipped++
		return
	}
	if clamped {
		c.clamped++
	}
	c.put(cand)
}
