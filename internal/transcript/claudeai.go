package transcript

import (
	"cmp"
	"strconv"
)

// claudeAI is the data export of claude.ai: conversations.json, an array of
// conversations. Text that was attached to a prompt is left out: it is documents
// rather than what the user says.
var claudeAI = format{
	name:  "claude-ai",
	grows: true,
	match: func(keys members) bool {
		return has(keys, "chat_messages") || has(keys, "uuid", "messages")
	},
	read: func(f *file) {
		for rec := range f.records {
			if v, ok := f.object(rec); ok {
				f.claudeChat(v, rec.line)
			}
		}
	},
}

type claudeMessage struct {
	uuid, sender, parent string
	date                 stamp
	text                 string
	content              content
	attachments          value
	// linked says that the message tells what it follows, if only nothing.
	linked bool
}

func parseClaudeMessage(v value) (m claudeMessage) {
	for key, member := range v.members {
		switch string(key) {
		case "uuid":
			m.uuid = member.text()
		case "parent_message_uuid":
			m.parent, m.linked = member.text(), true
		case "sender":
			m.sender = member.text()
		case "role":
			m.sender = cmp.Or(m.sender, member.text())
		case "created_at":
			m.date = member.stamp()
		case "text":
			m.text = member.text()
		case "content":
			m.content = member.content()
		case "attachments":
			m.attachments = member
		}
	}
	return m
}

func (f *file) claudeChat(v value, line int) {
	var messages []claudeMessage
	for _, name := range []string{"chat_messages", "messages"} {
		for m := range v.member(name).elements {
			messages = append(messages, parseClaudeMessage(m))
		}
		if len(messages) > 0 {
			break
		}
	}
	if len(messages) == 0 {
		f.skip(skipEmptyConversation)
		return
	}
	id := v.member("uuid").text()
	conv := f.conversation(id)
	conv.carry = true
	conv.at(f.date(v.member("created_at").stamp(), line))
	path := branch(messages, v.member("current_leaf_message_uuid").text())
	seen := map[string]bool{}
	for i, m := range messages {
		if path != nil && !path[m.uuid] {
			f.skip(skipBranch)
			continue
		}
		if m.uuid != "" && seen[m.uuid] {
			f.skip(skipDuplicate)
			continue
		}
		seen[m.uuid] = true
		t, reason := m.turn()
		t.Date = conv.at(f.date(m.date, line))
		if reason != "" {
			f.skip(reason)
			continue
		}
		if t.ExternalID == "" && id != "" {
			t.ExternalID = id + "#" + strconv.Itoa(i)
		}
		conv.add(t, line)
		conv.note("title", v.member("name").text())
		conv.note("model", v.member("model").text())
	}
	conv.end()
}

// turn is the turn in a message, without its date, or the reason why there is none.
func (m *claudeMessage) turn() (t Turn, reason string) {
	role, reason := roleOf(m.sender)
	t = Turn{ExternalID: m.uuid, Role: role}
	if reason != "" {
		return t, reason
	}
	t.Text = m.content.text()
	if len(m.content) == 0 {
		t.Text = Clean(m.text) // with blocks it holds placeholders for some of them
	}
	switch {
	case t.Text != "":
	case m.content.has("tool_use", "tool_result"):
		reason = skipToolCall
	case m.attached():
		reason = skipAttachment
	default:
		reason = skipEmpty
	}
	return t, reason
}

// attached reports whether the text of a document is attached.
func (m *claudeMessage) attached() bool {
	for a := range m.attachments.elements {
		if a.member("extracted_content").text() != "" {
			return true
		}
	}
	return false
}

// branch are the messages that lead to leaf or, where that is none, to the newest
// message that nothing follows: the others are of edited questions and regenerated
// answers. It is nil, for all, where some do not say what they follow.
func branch(messages []claudeMessage, leaf string) map[string]bool {
	parents, followed := map[string]string{}, map[string]bool{}
	for _, m := range messages {
		if !m.linked || m.uuid == "" {
			return nil
		}
		parents[m.uuid], followed[m.parent] = m.parent, true
	}
	linked := false
	var newest claudeMessage
	for _, m := range messages {
		linked = linked || followed[m.uuid]
		if !followed[m.uuid] && !m.date.Before(newest.date.Time) {
			newest = m
		}
	}
	if !linked || newest.uuid == "" {
		return nil
	}
	if _, ok := parents[leaf]; !ok {
		leaf = newest.uuid
	}
	path := map[string]bool{}
	for _, ok := parents[leaf]; ok && !path[leaf]; _, ok = parents[leaf] {
		path[leaf] = true
		leaf = parents[leaf]
	}
	return path
}
