package transcript

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// codex is the session log of Codex CLI, ~/.codex/sessions/…/rollout-*.jsonl. What
// was said stands in up to two layers: events, and the items sent to the model, which
// mirror the events and hold injected context, too. Versions differ in which they
// write, so the items count only for a role without events.
//
// Messages have no ids that last; lines have, since the file is only appended to.
var codex = format{
	name:  "codex",
	grows: true,
	match: func(keys map[string]json.RawMessage) bool {
		return isType(keys, "session_meta", "turn_context", "response_item", codexEvent, "compacted") && has(keys, "payload") ||
			has(keys, "id", "timestamp", "instructions")
	},
	read: readCodex,
}

func readCodex(f *file) {
	s := codexSession{c: f.conversation(""), events: map[string]bool{}}
	for rec := range f.records {
		var l codexLine
		if !f.object(rec, &l) {
			continue
		}
		if l.Payload == nil && l.Type != codexEvent && l.Type != "response_item" {
			_ = json.Unmarshal(rec.raw, &l.bare) // as above, fields of another kind stay zero
			l.Payload = &l.bare
			if l.Type != "" {
				l.Type = "response_item"
			} else if l.bare.ID != "" {
				l.Type = "session_meta"
			}
		}
		if reason := s.line(&l, rec.line); reason != "" {
			f.skip(reason)
		}
		if s.subagent {
			f.leaveSubagent()
			return
		}
	}
	s.flush()
	s.c.end()
}

// codexEvent is the type of lines of the layer of events.
const codexEvent = "event_msg"

type codexLine struct {
	Timestamp stamp         `json:"timestamp"`
	Type      string        `json:"type"`
	Payload   *codexPayload `json:"payload"`
	// bare is the line itself where, as in the first versions, it is no envelope.
	bare codexPayload
}

type codexPayload struct {
	Type    string  `json:"type"`
	Role    string  `json:"role"`
	Kind    string  `json:"kind"`
	Message string  `json:"message"`
	Content content `json:"content"`
	Item    struct {
		Type    string  `json:"type"`
		Content content `json:"content"`
	} `json:"item"`

	// Of session_meta and turn_context.
	ID           string          `json:"id"`
	Timestamp    stamp           `json:"timestamp"`
	ForkedFrom   string          `json:"forked_from_id"`
	Source       json.RawMessage `json:"source"`
	ThreadSource string          `json:"thread_source"`
	TurnID       string          `json:"turn_id"`
	Cwd          string          `json:"cwd"`
	Model        string          `json:"model"`
	Git          struct {
		Branch string `json:"branch"`
	} `json:"git"`
}

// codexSession is what is known of a session so far. Its turns are held back until
// it is clear which layer counts.
type codexSession struct {
	c        *conversation
	begun    bool
	subagent bool
	// replaying is true in a fork until its copy of the parent's log ends.
	replaying          bool
	date               time.Time
	cwd, branch, model string

	held []codexTurn
	size int
	// events tells the roles that have turns in the layer of events, and last is
	// the last of those turns.
	events map[string]bool
	last   codexTurn
}

type codexTurn struct {
	Turn

	line int
	// event is the type of the event; empty for an item.
	event              string
	cwd, branch, model string
}

// heldBytes is when held turns are let go: every layer has shown itself by then.
const heldBytes = 16 << 20

// line takes a line, or tells the reason why it is no turn.
func (s *codexSession) line(l *codexLine, line int) (reason string) {
	f, p := s.c.f, l.Payload
	if date := f.date(l.Timestamp, line); !date.IsZero() {
		s.date = date
	}
	switch {
	case l.Type == "session_meta" && !s.begun && p != nil:
		s.begin(p, line)
		return skipMetaLine
	case l.Type == "turn_context" && p != nil:
		s.replaying = s.replaying && !notOlder(p.TurnID, s.c.session)
		if !s.replaying {
			s.cwd, s.model = cmp.Or(p.Cwd, s.cwd), cmp.Or(p.Model, s.model)
			return skipMetaLine
		}
	}
	if s.replaying {
		return skipReplay
	}
	t := codexTurn{Turn: Turn{Date: s.date}, line: line, cwd: s.cwd, branch: s.branch, model: s.model}
	switch {
	case l.Type == "compacted":
		return skipSummary
	case l.Type != codexEvent && l.Type != "response_item":
		return skipMetaLine
	case p == nil || p.Type == "":
		return skipNonMessage
	case l.Type == codexEvent:
		reason = t.fromEvent(p)
	default:
		reason = t.fromItem(p)
	}
	switch {
	case reason != "":
		return reason
	case t.event != "" && t.event != s.last.event && t.Role == s.last.Role && t.Text == s.last.Text:
		s.last = codexTurn{}
		return skipMirror // versions that write both kinds of events
	case t.event != "":
		s.events[t.Role], s.last = true, t
	}
	s.held = append(s.held, t)
	if s.size += len(t.Text); s.size > heldBytes {
		s.flush()
	}
	return ""
}

// begin takes the first header. A fork's log begins with that of its parent.
func (s *codexSession) begin(p *codexPayload, line int) {
	s.begun = true
	s.c.session, s.cwd, s.branch = p.ID, p.Cwd, p.Git.Branch
	if date := s.c.f.date(p.Timestamp, line); !date.IsZero() {
		s.date = date
	}
	s.replaying = p.ForkedFrom != "" && isUUIDv7(p.ID)
	var source map[string]json.RawMessage
	s.subagent = p.ThreadSource == "subagent" || json.Unmarshal(p.Source, &source) == nil && has(source, "subagent")
}

// fromEvent takes a turn from the layer of events.
func (t *codexTurn) fromEvent(p *codexPayload) (reason string) {
	t.event = p.Type
	switch {
	case p.Type == "user_message":
		t.Role, t.Text = RoleUser, p.Message
	case p.Type == "agent_message":
		t.Role, t.Text = RoleAssistant, p.Message
	case p.Type == "item_completed" && p.Item.Type == "UserMessage":
		t.Role, t.Text = RoleUser, p.Item.Content.text(isText)
	case p.Type == "item_completed" && p.Item.Type == "AgentMessage":
		t.Role, t.Text = RoleAssistant, p.Item.Content.text(isText)
	case strings.HasPrefix(p.Type, "agent_reasoning"), p.Item.Type == "Reasoning":
		return skipThinking
	default:
		return skipMetaLine
	}
	switch t.Text = Clean(t.Text); {
	case t.Text == "":
		return skipEmpty
	case p.Kind == "environment_context", p.Kind == "user_instructions":
		return skipInjected
	}
	return ""
}

// fromItem takes a turn from the layer of items.
func (t *codexTurn) fromItem(p *codexPayload) (reason string) {
	switch {
	case p.Type == "reasoning":
		return skipThinking
	case strings.HasSuffix(p.Type, "_output"):
		return skipToolResult
	case strings.HasSuffix(p.Type, "_call"):
		return skipToolCall
	case p.Type != "message":
		return skipMetaLine
	case p.Role != RoleUser && p.Role != RoleAssistant:
		return skipSystem
	}
	t.Role = p.Role
	t.Text = p.Content.text(func(b block) bool { return isText(b) && (p.Role != RoleUser || !isCodexContext(b.Text)) })
	switch {
	case t.Text != "":
		return ""
	case p.Content.text(isText) != "":
		return skipInjected
	default:
		return skipEmpty
	}
}

// isCodexContext tells the texts that the program sends in the user's name.
func isCodexContext(text string) bool {
	text = strings.TrimSpace(text)
	for _, prefix := range []string{
		"<environment_context", "# AGENTS.md instructions", "<user_instructions", "<user_shell_command",
		"<turn_aborted", "<recommended_plugins", "<hook_prompt",
	} {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}

// flush adds the held turns of the layer that counts to the conversation.
func (s *codexSession) flush() {
	for _, t := range s.held {
		if t.event == "" && s.events[t.Role] {
			s.c.f.skip(skipMirror)
			continue
		}
		if s.c.session != "" {
			t.ExternalID = fmt.Sprintf("%s:L%d", s.c.session, t.line)
		}
		s.c.add(t.Turn, t.line)
		s.c.note("cwd", t.cwd)
		s.c.note("branch", t.branch)
		s.c.note("model", t.model)
	}
	s.held, s.size = nil, 0
}

// isUUIDv7 tells an id that begins with the time it was made at.
func isUUIDv7(id string) bool { return len(id) == 36 && id[8] == '-' && id[14] == '7' }

// notOlder compares the times in two ids.
func notOlder(id, than string) bool {
	return isUUIDv7(id) && strings.ToLower(id[:13]) >= strings.ToLower(than[:13])
}
