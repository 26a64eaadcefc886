package transcript

import (
	"encoding/json"
	"hash/maphash"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// claudeCode is the session log of Claude Code, ~/.claude/projects/*/<session>.jsonl:
// one JSON object a line, one line for each block of an answer.
//
// Resumed and forked sessions begin with a copy of their origin under a new session
// id, but with the same uuids; so those alone are the ids. Lines are taken in order:
// the chain of parentUuid is often broken.
var claudeCode = format{
	name:  "claude-code",
	grows: true,
	match: func(keys map[string]json.RawMessage) bool {
		return isType(keys, RoleUser, RoleAssistant) && has(keys, "message") ||
			has(keys, "type", "sessionId") || has(keys, "type", "leafUuid") || isType(keys, "file-history-snapshot")
	},
	read: readClaudeCode,
}

type claudeLine struct {
	Type       string `json:"type"`
	UUID       string `json:"uuid"`
	SessionID  string `json:"sessionId"`
	Timestamp  stamp  `json:"timestamp"`
	Cwd        string `json:"cwd"`
	Branch     string `json:"gitBranch"`
	Sidechain  bool   `json:"isSidechain"`
	Meta       bool   `json:"isMeta"`
	Summary    bool   `json:"isCompactSummary"`
	Invisible  bool   `json:"isVisibleInTranscriptOnly"`
	APIError   bool   `json:"isApiErrorMessage"`
	Attachment struct {
		Type   string  `json:"type"`
		Mode   string  `json:"commandMode"`
		Prompt content `json:"prompt"`
	} `json:"attachment"`
	Message struct {
		ID      string  `json:"id"`
		Model   string  `json:"model"`
		Content content `json:"content"`
	} `json:"message"`
}

func readClaudeCode(f *file) {
	if name := filepath.ToSlash(f.path); strings.Contains(name, "/subagents/") || strings.HasPrefix(path.Base(name), "agent-") {
		f.leaveSubagent()
		return
	}
	c := f.conversation("")
	c.carry = true
	var turns, sidechains int
	seen := map[uint64]struct{}{}
	for rec := range f.records {
		var l claudeLine
		if !f.object(rec, &l) {
			continue
		}
		t, reason := l.turn()
		t.Date = c.at(f.date(l.Timestamp, rec.line))
		id := maphash.String(f.im.seed, t.ExternalID)
		if _, ok := seen[id]; ok && reason == "" {
			reason = skipDuplicate
		}
		if reason == skipSidechain {
			sidechains++
		}
		if reason != "" {
			f.skip(reason)
			continue
		}
		turns++
		seen[id] = struct{}{}
		if t.Role == RoleUser && l.SessionID != c.session {
			c.end() // of a file that holds several
		}
		if len(c.turns) == 0 {
			c.session = l.SessionID
		}
		c.part(l.Message.ID, t, rec.line)
		c.note("cwd", l.Cwd)
		c.note("branch", l.Branch)
		c.note("model", l.Message.Model)
	}
	c.end()
	if turns == 0 && sidechains > 0 {
		f.leaveSubagent()
	}
}

// turn is the turn in the line, without its date, or the reason why there is none.
func (l *claudeLine) turn() (t Turn, reason string) {
	t = Turn{ExternalID: l.UUID, Role: RoleUser}
	switch queued := l.Type == "attachment" && l.Attachment.Type == "queued_command"; {
	case l.Sidechain:
		return t, skipSidechain
	case queued && (l.Attachment.Mode == "" || l.Attachment.Mode == "prompt"):
		// Typed while a tool ran. It has no uuid.
		prompt := l.Attachment.Prompt.text(isText)
		if len(l.Attachment.Prompt) == 1 {
			prompt = l.Attachment.Prompt[0].Text
		}
		t.ExternalID = "q:" + contentID(l.SessionID, l.Timestamp.raw, prompt)
		t.Text, reason = claudePrompt(l.Attachment.Prompt)
	case l.Type != RoleUser && l.Type != RoleAssistant:
		return t, skipMetaLine
	case l.Meta:
		return t, skipMeta
	case l.Summary || l.Invisible:
		return t, skipSummary
	case l.APIError || l.Message.Model == "<synthetic>":
		return t, skipSynthetic
	case l.Type == RoleUser:
		t.Text, reason = claudePrompt(l.Message.Content)
	default:
		t.Role = RoleAssistant
		t.Text, reason = claudeAnswer(l.Message.Content)
	}
	if t.ExternalID == "" {
		t.ExternalID = contentID(l.SessionID, l.Timestamp.raw, t.Role, t.Text)
	}
	return t, reason
}

// claudePrompt is what the user typed.
func claudePrompt(c content) (text, reason string) {
	typed := c.text(isText)
	for i := range c {
		c[i].Text = withoutInjected(c[i].Text)
	}
	switch text = c.text(isText); {
	case text == "" && typed != "":
		return "", skipInjected
	case text == "" && c.has("tool_result"):
		return "", skipToolResult
	case text == "":
		return "", skipEmpty
	case strings.HasPrefix(text, "[Request interrupted by user"):
		return "", skipInterrupt
	}
	for _, prefix := range []string{"<command-", "<local-command", "<bash-input>", "<bash-stdout>", "<bash-stderr>"} {
		if strings.HasPrefix(text, prefix) {
			return "", skipCommand
		}
	}
	return text, ""
}

func claudeAnswer(c content) (text, reason string) {
	switch text = c.text(isText); {
	case text != "":
	case c.has("tool_use", "server_tool_use"):
		reason = skipToolCall
	case c.has("thinking", "redacted_thinking"):
		reason = skipThinking
	default:
		reason = skipEmpty
	}
	return text, reason
}

var (
	injectedTag = regexp.MustCompile(`(?m)^<(system-reminder|ide_\w+|user-prompt-submit-hook|task-notification)(?:\s[^>\n]*)?>`)
	blankLine   = regexp.MustCompile(`\n[ \t\r]*\n`)
)

// maxInjected bounds the search for tags in a prompt made of them.
const maxInjected = 1000

// withoutInjected removes what the program adds to prompts: an element that begins
// a line and ends before a blank one. The same tag elsewhere is what a user writes
// about.
func withoutInjected(s string) string {
	if !strings.Contains(s, "</") {
		return s
	}
	var b strings.Builder
	done := 0
	for _, m := range injectedTag.FindAllStringSubmatchIndex(s, maxInjected) {
		if m[0] < done {
			continue
		}
		end := "</" + s[m[2]:m[3]] + ">"
		body, _, closed := strings.Cut(s[m[1]:], end)
		if !closed || blankLine.MatchString(body) {
			continue
		}
		b.WriteString(s[done:m[0]])
		done = m[1] + len(body) + len(end)
	}
	b.WriteString(s[done:])
	return b.String()
}
