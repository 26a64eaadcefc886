package transcript

import (
	"hash/maphash"
	"strconv"
)

// openAI is what scripts, gateways and fine-tuning write: objects with "messages",
// one a line or in an array, bare lists of messages, or messages that are records of
// their own and then one conversation. There are no ids and no dates.
var openAI = format{
	name:  "openai-messages",
	lists: true,
	match: func(keys members) bool {
		if has(keys, "prompt", "completion") {
			return true
		}
		if first, list := membersOf(keys["messages"]); list {
			return first == nil || has(first, "role")
		}
		return has(keys, "role", "content")
	},
	read: readOpenAI,
}

func readOpenAI(f *file) {
	bare := f.conversation("")
	for rec := range f.records {
		v, ok := f.value(rec)
		if !ok {
			continue
		}
		messages := v.member("messages")
		if v.kind() == '[' {
			messages = v
		}
		if f.repeats(v) {
			continue
		}
		c := f.record(v.member("id").id(), rec.line)
		model, empty := v.member("model").text(), true
		for m := range messages.elements {
			empty = false
			addOpenAI(c, m, rec.line)
			c.note("model", model)
		}
		c.end()
		switch {
		case !empty:
		case v.member("role").given():
			bare.after(rec.dropped)
			addOpenAI(bare, v, rec.line)
		case v.member("prompt").given() && v.member("completion").given():
			f.warn("legacy_record", rec.line, `a "prompt" with a "completion" is a training example of the old kind, no conversation: left out`)
		case v.kind() != '{' && v.kind() != '[':
			f.skip(skipNonObject)
		default:
			f.skip(skipEmptyConversation)
		}
	}
	bare.end()
}

// repeats reports whether a record without an id, and more than a message, is a
// duplicate of an earlier one of the file.
func (f *file) repeats(v value) bool {
	if v.member("id").given() || v.member("role").given() {
		return false
	}
	if f.whole == nil {
		f.whole = map[uint64]struct{}{}
	}
	key := maphash.Bytes(f.im.seed, v)
	if _, ok := f.whole[key]; ok {
		f.skip(skipDuplicateLine)
		f.left++
		return true
	}
	f.whole[key] = struct{}{}
	return false
}

func addOpenAI(c *conversation, m value, line int) {
	text := m.member("content").content()
	role, reason := roleOf(m.member("role").text())
	t := Turn{Role: role, Text: text.text()}
	switch {
	case reason != "":
	case t.Text == "" && (m.member("tool_calls").given() || m.member("function_call").given()):
		reason = skipToolCall
	case t.Text == "" && (m.member("refusal").given() || text.has("refusal")):
		reason = skipRefusal
	}
	if reason != "" {
		c.f.skip(reason)
		return
	}
	c.add(t, line)
}

// shareGPT is the other shape of training data: {"id", "conversations": [{"from",
// "value"}]}. Where there is no id, ids are as for openAI.
var shareGPT = format{
	name:  "sharegpt",
	grows: true,
	match: func(keys members) bool { return has(keys, "conversations") },
	read: func(f *file) {
		for rec := range f.records {
			if v, ok := f.object(rec); ok {
				f.shareGPT(v, rec.line)
			}
		}
	},
}

func (f *file) shareGPT(v value, line int) {
	if f.repeats(v) {
		return
	}
	id := v.member("id").id()
	c := f.record(id, line)
	n := 0
	for m := range v.member("conversations").elements {
		role, reason := roleOf(m.member("from").text() + m.member("role").text())
		t := Turn{Role: role}
		if id != "" {
			t.ExternalID = id + "/" + strconv.Itoa(n)
		}
		n++
		if reason != "" {
			f.skip(reason)
			continue
		}
		t.Text = append(m.member("value").content(), m.member("content").content()...).text()
		c.add(t, line)
	}
	if n == 0 {
		f.skip(skipEmptyConversation)
	}
	c.end()
}
