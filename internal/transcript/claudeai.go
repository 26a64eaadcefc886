package transcript

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
)

// claudeAI is the data export of claude.ai: conversations.json, an array of
// conversations. Text that was attached to a prompt is left out: it is documents
// rather than what the user says.
var claudeAI = format{
	name:  "claude-ai",
	grows: true,
	match: func(keys map[string]json.RawMessage) bool {
		return has(keys, "chat_messages") || has(keys, "uuid", "messages")
	},
	read: func(f *file) {
		for rec := range f.records {
			var c claudeConversation
			if f.object(rec, &c) {
				c.read(f, rec.line)
			}
		}
	},
}

type claudeConversation struct {
	UUID         string          `json:"uuid"`
	Name         string          `json:"name"`
	Model        string          `json:"model"`
	CreatedAt    stamp           `json:"created_at"`
	Leaf         string          `json:"current_leaf_message_uuid"`
	ChatMessages []claudeMessage `json:"chat_messages"`
	Messages     []claudeMessage `json:"messages"`
}

type claudeMessage struct {
	UUID        string          `json:"uuid"`
	Parent      json.RawMessage `json:"parent_message_uuid"`
	Sender      string          `json:"sender"`
	Role        string          `json:"role"`
	CreatedAt   stamp           `json:"created_at"`
	Text        string          `json:"text"`
	Content     content         `json:"content"`
	Attachments []attachment    `json:"attachments"`
}

type attachment struct {
	Text string `json:"extracted_content"`
}

func (c *claudeConversation) read(f *file, line int) {
	messages := c.ChatMessages
	if len(messages) == 0 {
		messages = c.Messages
	}
	if len(messages) == 0 {
		f.skip(skipEmptyConversation)
		return
	}
	conv := f.conversation(c.UUID)
	conv.carry = true
	conv.at(f.date(c.CreatedAt, line))
	path := branch(messages, c.Leaf)
	seen := map[string]bool{}
	for i, m := range messages {
		if path != nil && !path[m.UUID] {
			f.skip(skipBranch)
			continue
		}
		if m.UUID != "" && seen[m.UUID] {
			f.skip(skipDuplicate)
			continue
		}
		seen[m.UUID] = true
		t, reason := m.turn()
		t.Date = conv.at(f.date(m.CreatedAt, line))
		if reason != "" {
			f.skip(reason)
			continue
		}
		if t.ExternalID == "" && c.UUID != "" {
			t.ExternalID = c.UUID + "#" + strconv.Itoa(i)
		}
		conv.add(t, line)
		conv.note("title", c.Name)
		conv.note("model", c.Model)
	}
	conv.end()
}

// turn is the turn in a message, without its date, or the reason why there is none.
func (m *claudeMessage) turn() (t Turn, reason string) {
	role, reason := roleOf(cmp.Or(m.Sender, m.Role))
	t = Turn{ExternalID: m.UUID, Role: role}
	if reason != "" {
		return t, reason
	}
	t.Text = m.Content.text(isText)
	if len(m.Content) == 0 {
		t.Text = Clean(m.Text) // with blocks it holds placeholders for some of them
	}
	switch {
	case t.Text != "":
	case m.Content.has("tool_use", "tool_result"):
		reason = skipToolCall
	case slices.ContainsFunc(m.Attachments, func(a attachment) bool { return a.Text != "" }):
		reason = skipAttachment
	default:
		reason = skipEmpty
	}
	return t, reason
}

// branch are the messages that lead to leaf or, where that is none, to the newest
// message that nothing follows: the others are of edited questions and regenerated
// answers. It is nil, for all, where some do not say what they follow.
func branch(messages []claudeMessage, leaf string) map[string]bool {
	parents, followed := map[string]string{}, map[string]bool{}
	for _, m := range messages {
		if m.Parent == nil || m.UUID == "" {
			return nil
		}
		var parent string
		_ = json.Unmarshal(m.Parent, &parent) // null where nothing comes before
		parents[m.UUID], followed[parent] = parent, true
	}
	linked := false
	var newest claudeMessage
	for _, m := range messages {
		linked = linked || followed[m.UUID]
		if !followed[m.UUID] && !m.CreatedAt.Before(newest.CreatedAt.Time) {
			newest = m
		}
	}
	if !linked || newest.UUID == "" {
		return nil
	}
	if _, ok := parents[leaf]; !ok {
		leaf = newest.UUID
	}
	path := map[string]bool{}
	for _, ok := parents[leaf]; ok && !path[leaf]; _, ok = parents[leaf] {
		path[leaf] = true
		leaf = parents[leaf]
	}
	return path
}
