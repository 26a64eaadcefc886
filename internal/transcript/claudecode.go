package transcript

import (
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
	match: func(keys members) bool {
		return isType(keys, RoleUser, RoleAssistant) && has(keys, "message") ||
			has(keys, "type", "sessionId") || has(keys, "type", "leafUuid") || isType(keys, "file-history-snapshot")
	},
	read: readClaudeCode,
}

type claudeLine struct {
	kind, uuid, session, cwd, branch string
	timestamp                        stamp
	sidechain, meta, summary, failed bool
	messageID, model                 string
	content                          content
	// Of an attachment.
	attached, mode string
	prompt         value
}

func parseClaudeLine(v value) (l claudeLine) {
	for key, m := range v.members {
		switch string(key) {
		case "type":
			l.kind = m.text()
		case "uuid":
			l.uuid = m.text()
		case "sessionId":
			l.session = m.text()
		case "cwd":
			l.cwd = m.text()
		case "gitBranch":
			l.branch = m.text()
		case "timestamp":
			l.timestamp = m.stamp()
		case "isSidechain":
			l.sidechain = m.isTrue()
		case "isMeta":
			l.meta = m.isTrue()
		case "isCompactSummary", "isVisibleInTranscriptOnly":
			l.summary = l.summary || m.isTrue()
		case "isApiErrorMessage":
			l.failed = m.isTrue()
		case "message":
			l.messageID, l.model, l.content = m.member("id").text(), m.member("model").text(), m.member("content").content()
		case "attachment":
			l.attached, l.mode, l.prompt = m.member("type").text(), m.member("commandMode").text(), m.member("prompt")
		}
	}
	return l
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
		v, ok := f.object(rec)
		if !ok {
			continue
		}
		l := parseClaudeLine(v)
		t, reason := l.turn()
		t.Date = c.at(f.date(l.timestamp, rec.line))
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
		c.after(rec.dropped)
		seen[id] = struct{}{}
		if t.Role == RoleUser && l.session != c.session {
			c.end() // of a file that holds several
		}
		if len(c.turns) == 0 {
			c.session = l.session
		}
		c.part(l.messageID, t, rec.line)
		c.note("cwd", l.cwd)
		c.note("branch", l.branch)
		c.note("model", l.model)
	}
	c.end()
	if turns == 0 && sidechains > 0 {
		f.leaveSubagent()
	}
}

// turn is the turn in the line, without its date, or the reason why there is none.
func (l *claudeLine) turn() (t Turn, reason string) {
	t = Turn{ExternalID: l.uuid, Role: RoleUser}
	switch queued := l.kind == "attachment" && l.attached == "queued_command"; {
	case l.sidechain:
		return t, skipSidechain
	case queued && (l.mode == "" || l.mode == "prompt"):
		// Typed while a tool ran. It has no uuid.
		prompt := l.prompt.text()
		if prompt == "" {
			prompt = l.prompt.content().text()
		}
		t.ExternalID = "q:" + contentID(l.session, l.timestamp.raw, prompt)
		t.Text, reason = claudePrompt(l.prompt.content())
	case l.kind != RoleUser && l.kind != RoleAssistant:
		return t, skipMetaLine
	case l.meta:
		return t, skipMeta
	case l.summary:
		return t, skipSummary
	case l.failed || l.model == "<synthetic>":
		return t, skipSynthetic
	case l.kind == RoleUser:
		t.Text, reason = claudePrompt(l.content)
	default:
		t.Role = RoleAssistant
		t.Text, reason = claudeAnswer(l.content)
	}
	if t.ExternalID == "" {
		t.ExternalID = contentID(l.session, l.timestamp.raw, t.Role, t.Text)
	}
	return t, reason
}

// claudePrompt is what the user typed.
func claudePrompt(c content) (text, reason string) {
	injected := false
	text = c.join(func(b block, text string) string {
		if !b.isText() {
			return ""
		}
		typed := withoutInjected(text)
		injected = injected || typed != text
		return typed
	})
	switch {
	case text == "" && injected:
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
	switch text = c.text(); {
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
const maxInjected = 100

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
