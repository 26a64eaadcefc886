package transcript

import (
	"cmp"
	"strconv"
	"strings"
	"time"
)

// claudeAI is the data export of claude.ai: conversations.json, an array of
// conversations. Text that was attached to a prompt is documents rather than what the
// user says: see Options.Attachments.
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
	title, model := v.member("name").text(), v.member("model").text()
	path := f.claudeBranch(messages, v.member("current_leaf_message_uuid").text(), line)
	for _, i := range path {
		m := &messages[i]
		t, reason := m.turn(f.im.o.Attachments)
		t.Date = conv.at(f.date(m.date, line))
		if reason != "" {
			f.skip(reason)
			continue
		}
		if t.ExternalID == "" && id != "" {
			t.ExternalID = id + "#" + strconv.Itoa(i)
		}
		conv.add(t, line)
		conv.note("title", title)
		conv.note("model", model)
	}
	conv.end()
}

// turn is the turn in a message, without its date, or the reason why there is none.
func (m *claudeMessage) turn(attachments bool) (t Turn, reason string) {
	role, reason := roleOf(m.sender)
	t = Turn{ExternalID: m.uuid, Role: role}
	if reason != "" {
		return t, reason
	}
	t.Text = m.content.text()
	if len(m.content) == 0 {
		t.Text = Clean(m.text) // with blocks it holds placeholders for some of them
	}
	if attachments {
		t.Text = Clean(t.Text + "\n" + m.attached())
	}
	switch {
	case t.Text != "":
	case m.content.has("tool_use", "tool_result"):
		reason = skipToolCall
	case m.attached() != "":
		reason = skipAttachment
	default:
		reason = skipEmpty
	}
	return t, reason
}

// attached is the text of attached documents.
func (m *claudeMessage) attached() string {
	var texts []string
	for a := range m.attachments.elements {
		if text := Clean(a.member("extracted_content").text()); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

// noParent is what official exports give the first messages as what they follow.
const noParent = "00000000-0000-4000-8000-000000000000"

// claudeBranch are the indexes of the messages of one branch in order: that of leaf
// or, where there is none, of the newest message that nothing follows. Where some do
// not say what they follow, it is all of them as they stand.
func (f *file) claudeBranch(messages []claudeMessage, leaf string, line int) []int {
	links, all := make([]link, 0, len(messages)), make([]int, 0, len(messages))
	known := map[string]bool{}
	complete, date := true, time.Time{}
	for i, m := range messages {
		if m.uuid != "" && known[m.uuid] {
			f.skip(skipDuplicate)
			continue
		}
		known[m.uuid] = true
		complete = complete && m.linked && m.uuid != ""
		if !m.date.IsZero() {
			date = m.date.Time // of the one before where there is none: exports are in order of time
		}
		links, all = append(links, link{id: m.uuid, parent: m.parent, date: date}), append(all, i)
	}
	connected := false
	for i := range links {
		l := &links[i]
		// Before the first message there is nothing, whatever it says it follows.
		l.root = l.parent == "" || l.parent == noParent || l.parent == links[0].parent && !known[l.parent]
		connected = connected || known[l.parent]
	}
	if !complete || !connected {
		return all
	}
	path := f.follow(links, leaf, line)
	for range len(all) - len(path) {
		f.skip(skipBranch)
	}
	for n, i := range path {
		path[n] = all[i]
	}
	return path
}
