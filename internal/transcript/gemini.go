package transcript

import (
	"slices"
	"strings"
)

// geminiCLI is the session log of Gemini CLI, ~/.gemini/tmp/*/chats/session-*: one
// JSON object at first, later JSON lines in which messages are added, written again
// and taken back. The end of a session is held, since any of it may be taken back.
var geminiCLI = format{
	name:  "gemini-cli",
	grows: true,
	match: func(keys members) bool {
		return has(keys, "sessionId") && !has(keys, "type") &&
			(has(keys, "messages") || has(keys, "projectHash") || has(keys, "startTime"))
	},
	read: func(f *file) {
		s := geminiSession{f: f, c: f.conversation("")}
		for rec := range f.records {
			v, ok := f.object(rec)
			if !ok {
				continue
			}
			header := v.member("sessionId").text() != "" && !v.member("type").given()
			if header && v.member("kind").text() == "subagent" {
				f.leaveSubagent()
				return
			}
			s.record(v, header, rec)
		}
		s.end()
	},
}

type geminiSession struct {
	f        *file
	id       string
	c        *conversation
	messages []geminiMessage
	index    map[string]int // of messages, by id
	size     int            // of their texts
}

// geminiMessage is a turn with its bare id, or the reason why there is none.
type geminiMessage struct {
	turn          Turn
	model, reason string
	line, dropped int
}

func (s *geminiSession) record(v value, header bool, rec record) {
	switch set, rewindTo := v.member("$set"), v.member("$rewindTo").text(); {
	case header:
		if id := v.member("sessionId").text(); id != s.id {
			s.end()
			s.id, s.c = id, s.f.conversation(id)
		}
		s.putAll(v.member("messages"), rec)
	case s.id == "":
		s.f.skip(skipNonMessage)
	case set.given():
		s.putAll(set.member("messages"), rec)
	case rewindTo != "":
		s.rewind(rewindTo)
	default:
		s.put(v, rec)
	}
}

func (s *geminiSession) putAll(messages value, rec record) {
	for m := range messages.elements {
		s.put(m, rec)
	}
}

// put adds a message, or replaces that of the same id.
func (s *geminiSession) put(v value, rec record) {
	m := geminiMessage{turn: Turn{ExternalID: v.member("id").text()}, model: v.member("model").text(), line: rec.line, dropped: rec.dropped}
	switch v.member("type").text() {
	case RoleUser:
		m.turn.Role = RoleUser
	case "gemini":
		m.turn.Role = RoleAssistant
	default:
		s.f.skip(skipMetaLine)
		return
	}
	when := v.member("timestamp").stamp()
	m.turn.Date = s.f.date(when, rec.line)
	m.turn.Text = v.member("content").content().join(func(b block, text string) string {
		if b.thought || b.kind != "" && b.kind != typeText {
			return ""
		}
		return text
	})
	if m.turn.ExternalID == "" {
		m.turn.ExternalID = contentID(s.id, when.raw, m.turn.Role, m.turn.Text)
	}
	switch {
	case m.turn.Role == RoleUser && strings.HasPrefix(m.turn.Text, "<session_context>"):
		m.reason = skipInjected
	case m.turn.Text == "" && v.member("toolCalls").given():
		m.reason = skipToolCall
	case m.turn.Text == "":
		m.reason = skipEmpty
	}
	s.size += len(m.turn.Text)
	if i, ok := s.index[m.turn.ExternalID]; ok {
		s.size -= len(s.messages[i].turn.Text)
		m.dropped = s.messages[i].dropped // its place stays
		s.messages[i] = m
		s.f.skip(skipSnapshot)
		return
	}
	s.index[m.turn.ExternalID] = len(s.messages)
	s.messages = append(s.messages, m)
	if s.size > heldBytes {
		s.settle((len(s.messages) + 1) / 2)
	}
}

// rewind drops the message with that id and what follows it.
func (s *geminiSession) rewind(id string) {
	i, ok := s.index[id]
	if !ok {
		return
	}
	for _, m := range s.messages[i:] {
		delete(s.index, m.turn.ExternalID)
		s.size -= len(m.turn.Text)
		s.f.skip(skipRewound)
	}
	s.messages = slices.Delete(s.messages, i, len(s.messages))
}

// settle lets the first n messages go: it is too late to take them back.
func (s *geminiSession) settle(n int) {
	for _, m := range s.messages[:n] {
		s.size -= len(m.turn.Text)
		if m.reason != "" {
			s.f.skip(m.reason)
			continue
		}
		s.c.after(m.dropped)
		s.c.add(m.turn, m.line)
		s.c.note("model", m.model)
	}
	s.messages, s.index = slices.Clone(s.messages[n:]), map[string]int{}
	for i, m := range s.messages {
		s.index[m.turn.ExternalID] = i
	}
}

// end yields the session in hand.
func (s *geminiSession) end() {
	s.settle(len(s.messages))
	s.c.end()
}
