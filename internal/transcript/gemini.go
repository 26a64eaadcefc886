package transcript

import (
	"encoding/json"
	"slices"
	"strings"
)

// geminiCLI is the session log of Gemini CLI, ~/.gemini/tmp/*/chats/session-*: one
// JSON object at first, later JSON lines in which messages are added, written again
// and taken back. A session is held until its end, since any of it may be taken back.
var geminiCLI = format{
	name:  "gemini-cli",
	grows: true,
	match: func(keys map[string]json.RawMessage) bool {
		return has(keys, "sessionId") && !has(keys, "type") &&
			(has(keys, "messages") || has(keys, "projectHash") || has(keys, "startTime"))
	},
	read: func(f *file) {
		s := geminiSession{f: f}
		for rec := range f.records {
			var l geminiLine
			if !f.object(rec, &l) {
				continue
			}
			if l.SessionID != "" && l.Kind == "subagent" {
				f.leaveSubagent()
				return
			}
			s.line(l, rec.line)
		}
		s.end()
	},
}

type geminiLine struct {
	geminiMessage

	SessionID string          `json:"sessionId"`
	Kind      string          `json:"kind"`
	Messages  []geminiMessage `json:"messages"`
	Set       *struct {
		Messages []geminiMessage `json:"messages"`
	} `json:"$set"`
	RewindTo string `json:"$rewindTo"`
}

type geminiMessage struct {
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	Timestamp stamp           `json:"timestamp"`
	Model     string          `json:"model"`
	Content   content         `json:"content"`
	ToolCalls json.RawMessage `json:"toolCalls"`

	line int
}

type geminiSession struct {
	f        *file
	id       string
	messages []geminiMessage
	index    map[string]int // of messages, by id
}

func (s *geminiSession) line(l geminiLine, line int) {
	switch {
	case l.SessionID != "" && l.Type == "":
		if l.SessionID != s.id {
			s.end()
			s.id = l.SessionID
		}
		s.put(line, l.Messages...)
	case s.id == "":
		s.f.skip(skipNonMessage)
	case l.Set != nil:
		s.put(line, l.Set.Messages...)
	case l.RewindTo != "":
		s.rewind(l.RewindTo)
	default:
		s.put(line, l.geminiMessage)
	}
}

// put adds messages, or replaces those of the same id.
func (s *geminiSession) put(line int, messages ...geminiMessage) {
	for _, m := range messages {
		m.line = line
		i, known := s.index[m.ID]
		switch {
		case m.Type != RoleUser && m.Type != "gemini":
			s.f.skip(skipMetaLine)
		case known && m.ID != "":
			s.messages[i] = m
			s.f.skip(skipSnapshot)
		default:
			s.index[m.ID] = len(s.messages)
			s.messages = append(s.messages, m)
		}
	}
}

// rewind drops the message with that id and what follows it.
func (s *geminiSession) rewind(id string) {
	i, ok := s.index[id]
	if !ok {
		return
	}
	for _, m := range s.messages[i:] {
		delete(s.index, m.ID)
		s.f.skip(skipRewound)
	}
	s.messages = slices.Delete(s.messages, i, len(s.messages))
}

// end yields the session in hand.
func (s *geminiSession) end() {
	c := s.f.conversation(s.id)
	for _, m := range s.messages {
		t, reason := m.turn(s.id)
		t.Date = s.f.date(m.Timestamp, m.line)
		if reason != "" {
			s.f.skip(reason)
			continue
		}
		c.add(t, m.line)
		c.note("model", m.Model)
	}
	c.end()
	s.messages, s.index = nil, map[string]int{}
}

// turn is the turn in a message, without its date, or the reason why there is none.
func (m *geminiMessage) turn(session string) (t Turn, reason string) {
	t = Turn{ExternalID: m.ID, Role: RoleUser}
	if m.Type == "gemini" {
		t.Role = RoleAssistant
	}
	t.Text = m.Content.text(func(b block) bool { return !b.Thought && (b.Type == "" || b.Type == typeText) })
	if t.ExternalID == "" {
		t.ExternalID = contentID(session, m.Timestamp.raw, t.Role, t.Text)
	}
	switch {
	case t.Role == RoleUser && strings.HasPrefix(t.Text, "<session_context>"):
		reason = skipInjected
	case t.Text == "" && m.ToolCalls != nil:
		reason = skipToolCall
	case t.Text == "":
		reason = skipEmpty
	}
	return t, reason
}
