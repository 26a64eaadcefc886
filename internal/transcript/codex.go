package transcript

import (
	"cmp"
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
	match: func(keys members) bool {
		return isType(keys, codexHeader, codexContext, codexItem, codexEvent, "compacted") && has(keys, "payload") ||
			has(keys, "id", "timestamp", "instructions")
	},
	read: readCodex,
}

func readCodex(f *file) {
	s := codexSession{c: f.conversation(""), events: map[string]bool{}}
	for rec := range f.records {
		v, ok := f.object(rec)
		if !ok {
			continue
		}
		if reason := s.line(v, rec); reason != "" {
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

// codexLine takes a line apart. The first versions wrote bare items after a header.
func codexLine(v value) (kind string, timestamp stamp, payload value) {
	enveloped := false
	for key, m := range v.members {
		switch string(key) {
		case "type":
			kind = m.text()
		case "timestamp":
			timestamp = m.stamp()
		case "payload":
			payload, enveloped = m, true
		}
	}
	switch {
	case enveloped || kind == codexEvent || kind == codexItem:
	case kind != "":
		return codexItem, timestamp, v
	case v.member("id").given():
		return codexHeader, timestamp, v
	}
	return kind, timestamp, payload
}

// Types of lines.
const (
	codexHeader  = "session_meta"
	codexContext = "turn_context"
	codexEvent   = "event_msg"
	codexItem    = "response_item"
)

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

	line, dropped int
	// event is the type of the event; empty for an item.
	event              string
	cwd, branch, model string
}

// heldBytes is when held turns are let go: every layer has shown itself by then, and
// nobody takes back what is so far behind.
const heldBytes = 16 << 20

// line takes a line, or tells the reason why it is no turn.
func (s *codexSession) line(v value, rec record) (reason string) {
	kind, timestamp, p := codexLine(v)
	if date := s.c.f.date(timestamp, rec.line); !date.IsZero() {
		s.date = date
	}
	switch {
	case kind == codexHeader && !s.begun:
		s.begin(p, rec.line)
		return skipMetaLine
	case kind == codexContext:
		s.replaying = s.replaying && !notOlder(p.member("turn_id").text(), s.c.session)
		if !s.replaying {
			s.cwd, s.model = cmp.Or(p.member("cwd").text(), s.cwd), cmp.Or(p.member("model").text(), s.model)
			return skipMetaLine
		}
	}
	if s.replaying {
		return skipReplay
	}
	t := codexTurn{Turn: Turn{Date: s.date}, line: rec.line, dropped: rec.dropped, cwd: s.cwd, branch: s.branch, model: s.model}
	switch {
	case kind == "compacted":
		return skipSummary
	case kind != codexEvent && kind != codexItem:
		return skipMetaLine
	case !p.member("type").given():
		return skipNonMessage
	case kind == codexEvent:
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
func (s *codexSession) begin(p value, line int) {
	s.begun = true
	s.c.session, s.cwd, s.branch = p.member("id").text(), p.member("cwd").text(), p.member("git").member("branch").text()
	if date := s.c.f.date(p.member("timestamp").stamp(), line); !date.IsZero() {
		s.date = date
	}
	s.replaying = p.member("forked_from_id").text() != "" && isUUIDv7(s.c.session)
	s.subagent = p.member("thread_source").text() == "subagent" || p.member("source").member("subagent").given()
}

// fromEvent takes a turn from the layer of events.
func (t *codexTurn) fromEvent(p value) (reason string) {
	t.event = p.member("type").text()
	item := p.member("item")
	completed := ""
	if t.event == "item_completed" {
		completed = item.member("type").text()
	}
	switch {
	case t.event == "user_message":
		t.Role, t.Text = RoleUser, p.member("message").text()
	case t.event == "agent_message":
		t.Role, t.Text = RoleAssistant, p.member("message").text()
	case completed == "UserMessage":
		t.Role, t.Text = RoleUser, item.member("content").content().text()
	case completed == "AgentMessage":
		t.Role, t.Text = RoleAssistant, item.member("content").content().text()
	case strings.HasPrefix(t.event, "agent_reasoning"), completed == "Reasoning":
		return skipThinking
	default:
		return skipMetaLine
	}
	kind := p.member("kind").text()
	switch t.Text = Clean(t.Text); {
	case t.Text == "":
		return skipEmpty
	case kind == "environment_context", kind == "user_instructions":
		return skipInjected
	}
	return ""
}

// fromItem takes a turn from the layer of items.
func (t *codexTurn) fromItem(p value) (reason string) {
	switch kind := p.member("type").text(); {
	case kind == "reasoning":
		return skipThinking
	case strings.HasSuffix(kind, "_output"):
		return skipToolResult
	case strings.HasSuffix(kind, "_call"):
		return skipToolCall
	case kind != "message":
		return skipMetaLine
	}
	if t.Role, reason = roleOf(p.member("role").text()); reason != "" {
		return reason
	}
	injected := false
	t.Text = p.member("content").content().join(func(b block, text string) string {
		if !b.isText() {
			return ""
		}
		if t.Role == RoleUser && isCodexContext(text) {
			injected = true
			return ""
		}
		return text
	})
	switch {
	case t.Text != "":
		return ""
	case injected:
		return skipInjected
	default:
		return skipEmpty
	}
}

// isCodexContext tells the texts that the program sends in the user's name.
func isCodexContext(text string) bool {
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
		s.c.after(t.dropped)
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
