package transcript

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// claudeText is a line of a session log with content as JSON.
func claudeText(role, uuid, content string, more ...string) string {
	return fmt.Sprintf(`{"type":%q,"uuid":%q,"sessionId":"S","timestamp":"2026-01-12T09:00:00Z","message":{"role":%q,"content":%s}%s}`,
		role, uuid, role, content, strings.Join(more, "")) + "\n"
}

// blocks is content of blocks of text.
func blocks(texts ...string) string {
	b := make([]string, 0, len(texts))
	for _, text := range texts {
		b = append(b, fmt.Sprintf(`{"type":"text","text":%q}`, text))
	}
	return "[" + strings.Join(b, ",") + "]"
}

// answerPart is a part of the assistant's message id.
func answerPart(uuid, id string, texts ...string) string {
	return fmt.Sprintf(`{"type":"assistant","uuid":%q,"sessionId":"S","message":{"id":%q,"model":"m","content":%s}}`, uuid, id, blocks(texts...)) + "\n"
}

func TestClaudeCodePrompts(t *testing.T) {
	t.Parallel()

	tests := []struct{ name, content, want, skip string }{
		{"string", `"Hi"`, "Hi", ""},
		{"blocks", `[{"type":"text","text":"Hi"},{"type":"image","source":{}},"there"]`, "Hi\nthere", ""},
		{"one block", `{"type":"text","text":"Hi"}`, "Hi", ""},
		{"result of a tool", `[{"type":"tool_result","content":[{"type":"text","text":"out"}]}]`, "", skipToolResult},
		{"result and text", `[{"type":"tool_result","content":"out"},{"type":"text","text":"Stop"}]`, "Stop", ""},
		{"picture", `[{"type":"image","source":{}}]`, "", skipEmpty},
		{"null", `null`, "", skipEmpty},
		{"number", `7`, "", skipEmpty},
		{"slash command", `"<command-message>x</command-message>"`, "", skipCommand},
		{"output of a command", `"<local-command-stderr>x</local-command-stderr>"`, "", skipCommand},
		{"shell command", `"<bash-input>ls</bash-input>"`, "", skipCommand},
		{"interrupt", `[{"type":"text","text":"[Request interrupted by user for tool use]"}]`, "", skipInterrupt},
		{"command after a reminder", `"<system-reminder>x</system-reminder>\n<command-name>/x</command-name>"`, "", skipCommand},
		{"reminder alone", `"<system-reminder>x</system-reminder>"`, "", skipInjected},
		{"reminders around", `"<ide_opened_file a=\"b\">f\nline</ide_opened_file>Hi\n<task-notification>\nx\n</task-notification>\nthere"`, "Hi\n\nthere", ""},
		{"hook", `"<user-prompt-submit-hook>x</user-prompt-submit-hook>\nHi"`, "Hi", ""},
		{"block by block", blocks("<system-reminder>x</system-reminder>", "Hi"), "Hi", ""},
		{"inline", `"What is <system-reminder>x</system-reminder>?"`, "What is <system-reminder>x</system-reminder>?", ""},
		{"after another on its line", `"<ide_a>x</ide_a><system-reminder>y</system-reminder>"`, "<system-reminder>y</system-reminder>", ""},
		{"open until a blank line", `"<system-reminder>x\n \nHi</system-reminder>"`, "<system-reminder>x\n \nHi</system-reminder>", ""},
		{"never closed", `"<system-reminder>x\nHi</b>"`, "<system-reminder>x\nHi</b>", ""},
		{"another tag", `"<b>x</b>"`, "<b>x</b>", ""},
	}
	for _, tt := range tests {
		captures, sum := readText(t, Options{}, claudeText("user", "u", tt.content))
		if tt.want == "" {
			require.Empty(t, captures, tt.name)
			require.Equal(t, map[string]int{tt.skip: 1}, sum.Skips, tt.name)
			require.Equal(t, "no_turns", sum.Files[0].Reason, tt.name)
			continue
		}
		require.Equal(t, []string{"User: " + tt.want}, texts(captures), tt.name)
		require.Empty(t, sum.Skips, tt.name)
	}
}

func TestClaudeCodeLines(t *testing.T) {
	t.Parallel()

	hi := claudeText("user", "u", `"Hi"`)
	tests := []struct{ name, line, skip string }{
		{"sidechain", claudeText("user", "x", `"sub"`, `,"isSidechain":true`), skipSidechain},
		{"meta", claudeText("user", "x", `"caveat"`, `,"isMeta":true`), skipMeta},
		{"summary", claudeText("user", "x", `"sum"`, `,"isCompactSummary":true`), skipSummary},
		{"invisible", claudeText("user", "x", `"sum"`, `,"isVisibleInTranscriptOnly":true`), skipSummary},
		{"API error", claudeText("assistant", "x", `"err"`, `,"isApiErrorMessage":true`), skipSynthetic},
		{"synthetic", `{"type":"assistant","uuid":"x","message":{"model":"<synthetic>","content":"err"}}` + "\n", skipSynthetic},
		{"tool call", claudeText("assistant", "x", `[{"type":"tool_use"},{"type":"thinking","thinking":"t"}]`), skipToolCall},
		{"thinking", claudeText("assistant", "x", `[{"type":"redacted_thinking"}]`), skipThinking},
		{"nothing", claudeText("assistant", "x", `[]`), skipEmpty},
		{"unknown type", `{"type":"brand-new","uuid":"x","message":{"content":"text"}}` + "\n", skipMetaLine},
		{"message of another kind", `{"type":"user","uuid":"x","message":"text"}` + "\n", skipEmpty},
		{"queue operation", `{"type":"queue-operation","content":"text"}` + "\n", skipMetaLine},
		{"queued notification", `{"type":"attachment","attachment":{"type":"queued_command","commandMode":"task-notification","prompt":"text"}}` + "\n", skipMetaLine},
		{"same uuid", claudeText("user", "u", `"Hi"`), skipDuplicate},
		{"list", "[1]\n", skipNonObject},
	}
	for _, tt := range tests {
		captures, sum := readText(t, Options{}, hi+tt.line)
		require.Equal(t, []string{"User: Hi"}, texts(captures), tt.name)
		require.Equal(t, map[string]int{tt.skip: 1}, sum.Skips, tt.name)
		require.Empty(t, sum.Warnings, tt.name)
	}
}

func TestClaudeCodeAnswers(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, lines, want string
	}{
		{"parts", answerPart("1", "m", "One.") + answerPart("2", "m", "Two."), "One.\nTwo."},
		{"snapshots", answerPart("1", "m", "On") + answerPart("2", "m", "One.") + answerPart("3", "m", "One."), "One."},
		{"snapshots of all blocks", answerPart("1", "m", "One.") + answerPart("2", "m", "One.", "Tw") + answerPart("3", "m", "One.", "Two."), "One.\nTwo."},
		{"text of another message", answerPart("1", "m", "On") + answerPart("2", "n", "One."), "On\nOne."},
		{"messages without id", answerPart("1", "", "On") + answerPart("2", "", "One."), "On\nOne."},
		{"snapshots across a tool call", answerPart("1", "m", "On") + claudeText("assistant", "t", `[{"type":"tool_use"}]`) + answerPart("2", "m", "One."), "One."},
		{"snapshot of an earlier message", answerPart("1", "m", "On") + answerPart("2", "n", "Two.") + answerPart("3", "m", "One."), "On\nTwo.\nOne."},
	}
	for _, tt := range tests {
		captures, _ := readText(t, Options{}, claudeText("user", "u", `"Hi"`)+tt.lines)
		require.Equal(t, []string{"User: Hi\n\nAssistant: " + tt.want}, texts(captures), tt.name)
		require.Equal(t, []string{"claude-code:u", "claude-code:1"}, captures[0].TurnIDs, tt.name)
	}

	// A gateway that gives every message the same id.
	captures, _ := readText(t, Options{}, claudeText("user", "u", `"Hi"`)+answerPart("0", "n", "Look.")+answerPart("1", "m", "Yes.")+
		claudeText("user", "v", `"Why?"`)+answerPart("2", "m", "Yes. So."))
	require.Equal(t, []string{"User: Hi\n\nAssistant: Look.\nYes.", "User: Why?\n\nAssistant: Yes. So."}, texts(captures))
}

func TestClaudeCodeQueued(t *testing.T) {
	t.Parallel()

	line := `{"type":"attachment","attachment":{"type":"queued_command","prompt":%s},"sessionId":"S","timestamp":"2026-01-12T09:00:00Z"}` + "\n"
	captures, _ := readText(t, Options{}, fmt.Sprintf(line, `"also "`)+fmt.Sprintf(line, blocks("and")))
	require.Equal(t, []string{"User: also\n\nUser: and"}, texts(captures))
	// printf 'S\0002026-01-12T09:00:00Z\000also ' | sha256sum
	require.Equal(t, "claude-code:q:1294aa447a7f2a60a9cf3bd9fcb32564", captures[0].ExternalID)
}

func TestClaudeCodeMeta(t *testing.T) {
	t.Parallel()

	captures, _ := readText(t, Options{}, claudeText("user", "u", `"Hi"`, `,"cwd":"/a","gitBranch":"b\u0000"`)+answerPart("1", "m", "Yes.")+
		claudeText("user", "v", `"Why?"`, `,"cwd":"/c"`)+`{"type":"user","uuid":"w","sessionId":"T","message":{"content":"New"}}`)
	require.Equal(t, []map[string]any{{"cwd": "/a", "branch": "b\uFFFD", "model": "m"}, {"cwd": "/c"}, nil},
		[]map[string]any{captures[0].Meta, captures[1].Meta, captures[2].Meta})
	require.Equal(t, []string{"S", "S", "T"}, []string{captures[0].Session, captures[1].Session, captures[2].Session})
}

func TestClaudeCodeWithoutUUID(t *testing.T) {
	t.Parallel()

	in := `{"type":"user","message":{"content":"Hi"}}` + "\n" + `{"type":"assistant","message":{"content":"Yes"}}` + "\n"
	captures, sum := readText(t, Options{}, in+in)
	require.Equal(t, []string{"User: Hi\n\nAssistant: Yes"}, texts(captures))
	require.Equal(t, map[string]int{skipDuplicate: 2}, sum.Skips)
}

func TestClaudeCodeCopies(t *testing.T) {
	t.Parallel()

	short := claudeText("user", "u", `"Hi"`) + answerPart("1", "m", "Yes.")
	long := short + answerPart("2", "n", "And more.") + claudeText("user", "v", `"Why?"`)
	long = strings.ReplaceAll(long, `"S"`, `"T"`)
	want := map[string]string{"claude-code:u": "User: Hi\n\nAssistant: Yes.\nAnd more.", "claude-code:v": "User: Why?"}
	for _, names := range [][2]string{{"a", "b"}, {"b", "a"}} {
		dir := t.TempDir()
		write(t, dir, names[0], short)
		write(t, dir, names[1], long)
		captures, sum := readAll(t, Options{}, dir)
		last := map[string]string{}
		for _, c := range captures {
			require.True(t, c.Grows)
			last[c.ExternalID] = c.Text
		}
		require.Equal(t, want, last)
		require.Empty(t, sum.Warnings)
	}
}

func TestClaudeCodeLive(t *testing.T) {
	t.Parallel()

	before, _ := readAll(t, Options{}, "testdata/claude-code/live-truncated/input")
	after, _ := readAll(t, Options{}, "testdata/claude-code/live-truncated/complete")
	require.Len(t, after, len(before))
	require.Equal(t, before[0].Text, after[0].Text)
	require.Equal(t, before[1].ExternalID, after[1].ExternalID)
	require.Equal(t, append(before[1].TurnIDs, "claude-code:711679e6-a4a1-5e14-8f5f-0605db41b834"), after[1].TurnIDs)
	require.True(t, after[1].Complete)
}

func TestClaudeCodeSubagents(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	prompt := claudeText("user", "u", `"Hi"`)
	write(t, dir, "S/subagents/x.jsonl", prompt)
	agent := write(t, dir, "agent-1.jsonl", prompt)
	side := write(t, dir, "side.jsonl", claudeText("user", "u", `"Hi"`, `,"isSidechain":true`))
	captures, sum := readAll(t, Options{}, dir)
	require.Empty(t, captures)
	require.Empty(t, sum.Warnings)
	require.Equal(t, 0, sum.Exit())
	require.Equal(t, map[string]int{skipSubagent: 2, skipSidechain: 1}, sum.Skips)
	for _, f := range sum.Files {
		require.Equal(t, skipSubagent, f.Reason, f.Path)
	}

	_, sum = readAll(t, Options{}, agent, side)
	require.Equal(t, []Problem{{File: "agent-1.jsonl", Code: skipSubagent}, {File: filepath.Base(side), Code: skipSubagent}}, places(sum.Warnings))
	require.Equal(t, 0, sum.Exit())
}
