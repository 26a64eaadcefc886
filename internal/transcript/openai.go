package transcript

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// openAI is what scripts, gateways and fine-tuning write: objects with "messages",
// one a line or in an array, bare lists of messages, or messages that are records of
// their own and then one conversation. There are no ids and no dates.
var openAI = format{
	name:  "openai-messages",
	lists: true,
	match: func(keys map[string]json.RawMessage) bool {
		if has(keys, "prompt", "completion") {
			return true
		}
		if first, list := members(bytes.TrimSpace(keys["messages"])); list {
			return first == nil || has(first, "role")
		}
		return has(keys, "role", "content")
	},
	read: readOpenAI,
}

type openAILine struct {
	openAIMessage

	ID         ident           `json:"id"`
	Model      string          `json:"model"`
	Messages   []openAIMessage `json:"messages"`
	Prompt     json.RawMessage `json:"prompt"`
	Completion json.RawMessage `json:"completion"`
}

type openAIMessage struct {
	Role         string          `json:"role"`
	Content      content         `json:"content"`
	ToolCalls    json.RawMessage `json:"tool_calls"`
	FunctionCall json.RawMessage `json:"function_call"`
	Refusal      string          `json:"refusal"`
}

func readOpenAI(f *file) {
	bare := f.conversation("")
	for rec := range f.records {
		var l openAILine
		if bytes.TrimSpace(rec.raw)[0] == '[' {
			if !f.lenient(rec, &l.Messages) {
				continue
			}
		} else if !f.object(rec, &l) {
			continue
		}
		switch {
		case l.Role != "":
			l.add(bare, rec.line)
		case l.Prompt != nil && l.Completion != nil:
			f.warn("legacy_record", rec.line, `a "prompt" with a "completion" is a training example of the old kind, no conversation: left out`)
		case len(l.Messages) == 0:
			f.skip(skipEmptyConversation)
		default:
			session := string(l.ID)
			if session == "" {
				session = "L" + strconv.Itoa(rec.line)
			}
			c := f.conversation(session)
			for i := range l.Messages {
				l.Messages[i].add(c, rec.line)
				c.note("model", l.Model)
			}
			c.end()
		}
	}
	bare.end()
}

func (m *openAIMessage) add(c *conversation, line int) {
	role, reason := roleOf(m.Role)
	t := Turn{Role: role, Text: m.Content.text(isText)}
	switch {
	case reason != "":
	case t.Text == "" && (m.ToolCalls != nil || m.FunctionCall != nil):
		reason = skipToolCall
	case t.Text == "" && (m.Refusal != "" || m.Content.has("refusal")):
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
	match: func(keys map[string]json.RawMessage) bool { return has(keys, "conversations") },
	read: func(f *file) {
		for rec := range f.records {
			var l shareGPTLine
			if f.object(rec, &l) {
				l.read(f, rec.line)
			}
		}
	},
}

type shareGPTLine struct {
	ID            ident `json:"id"`
	Conversations []struct {
		From    string  `json:"from"`
		Value   content `json:"value"`
		Role    string  `json:"role"`
		Content content `json:"content"`
	} `json:"conversations"`
}

func (l *shareGPTLine) read(f *file, line int) {
	if len(l.Conversations) == 0 {
		f.skip(skipEmptyConversation)
		return
	}
	session := string(l.ID)
	c := f.conversation(session)
	if session == "" {
		c.session = "L" + strconv.Itoa(line)
	}
	for i, m := range l.Conversations {
		role, reason := roleOf(m.From + m.Role)
		if reason != "" {
			f.skip(reason)
			continue
		}
		t := Turn{Role: role}
		t.Text = append(m.Value, m.Content...).text(isText)
		if session != "" {
			t.ExternalID = session + "/" + strconv.Itoa(i)
		}
		c.add(t, line)
	}
	c.end()
}
