package transcript

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	codexHead = `{"timestamp":"2026-02-03T10:00:00Z","type":"session_meta","payload":{"id":"S","timestamp":"2026-02-03T09:00:00Z","cwd":"/w","git":{"branch":"b"}}}` + "\n"
	codexAsk  = `{"timestamp":"2026-02-03T10:00:01Z","type":"event_msg","payload":{"type":"user_message","message":"Hi"}}` + "\n"
)

func codexText(role, text string) string {
	return fmt.Sprintf(`{"type":"response_item","payload":{"type":"message","role":%q,"content":[{"type":"input_text","text":%q}]}}`, role, text) + "\n"
}

func TestCodexDialects(t *testing.T) {
	t.Parallel()

	completed := func(kind, block, text string) string {
		return fmt.Sprintf(`{"type":"event_msg","payload":{"type":"item_completed","item":{"type":%q,"content":[{"type":%q,"text":%q}]}}}`, kind, block, text) + "\n"
	}
	agent := func(text string) string {
		return fmt.Sprintf(`{"type":"event_msg","payload":{"type":"agent_message","message":%q}}`, text) + "\n"
	}
	tests := []struct {
		name, in string
		want     []string
		ids      []string
	}{
		{
			"events", codexHead + codexText("user", "Hi") + codexAsk + codexText("assistant", "Yes.") + agent("Yes."),
			[]string{"User: Hi\n\nAssistant: Yes."},
			[]string{"codex:S:L3", "codex:S:L5"},
		},
		{
			"completed items", codexHead + codexText("user", "Hi") + completed("UserMessage", "text", "Hi") + completed("Reasoning", "text", "hm") +
				completed("AgentMessage", "Text", "Look.") + completed("AgentMessage", "Text", "Yes.") + codexText("assistant", "Yes."),
			[]string{"User: Hi\n\nAssistant: Look.\nYes."},
			[]string{"codex:S:L3", "codex:S:L5"},
		},
		{
			"both kinds of events", codexHead + codexAsk + completed("UserMessage", "text", "Hi") + completed("AgentMessage", "Text", "Yes.") + agent("Yes.") + agent("Yes."),
			[]string{"User: Hi\n\nAssistant: " + strings.Join([]string{"Yes.", "Yes."}, "\n")},
			[]string{"codex:S:L2", "codex:S:L4"},
		},
		{
			"items", codexHead + codexText("developer", "Sandbox") + codexText("user", "Hi") + codexText("assistant", "Yes."),
			[]string{"User: Hi\n\nAssistant: Yes."},
			[]string{"codex:S:L3", "codex:S:L4"},
		},
		{
			"events for one role", codexHead + codexText("user", "Hi") + codexAsk + codexText("assistant", "Yes."),
			[]string{"User: Hi\n\nAssistant: Yes."},
			[]string{"codex:S:L3", "codex:S:L4"},
		},
		{
			"blank events do not count", codexHead + codexText("user", "Hi") + `{"type":"event_msg","payload":{"type":"user_message","message":" "}}` + "\n",
			[]string{"User: Hi"},
			[]string{"codex:S:L2"},
		},
		{
			"bare lines", `{"id":"S","timestamp":"2026-02-03T09:00:00Z","instructions":null,"git":{"branch":"b"}}` + "\n" +
				`{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>x</environment_context>"}]}` + "\n" +
				`{"record_type":"state"}` + "\n" + `{"type":"reasoning","summary":[]}` + "\n" +
				`{"type":"message","id":null,"role":"user","content":[{"type":"input_text","text":"Hi"}]}` + "\n" +
				`{"type":"function_call","name":"x"}` + "\n" + `{"type":"function_call_output","output":"x"}` + "\n" +
				`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Yes."}]}` + "\n",
			[]string{"User: Hi\n\nAssistant: Yes."},
			[]string{"codex:S:L5", "codex:S:L8"},
		},
	}
	for _, tt := range tests {
		captures, sum := readText(t, Options{}, tt.in)
		require.Equal(t, tt.want, texts(captures), tt.name)
		require.Equal(t, tt.ids, captures[0].TurnIDs, tt.name)
		require.Equal(t, "S", captures[0].Session, tt.name)
		require.Equal(t, "b", captures[0].Meta["branch"], tt.name)
		require.False(t, captures[0].Date.IsZero(), tt.name)
		require.Empty(t, sum.Warnings, tt.name)
	}
}

func TestCodexInjected(t *testing.T) {
	t.Parallel()

	for _, text := range []string{
		"<environment_context>\nx</environment_context>", "# AGENTS.md instructions for /w\nx", "<user_instructions>x</user_instructions>", " <user_shell_command>x",
		"<turn_aborted>x", "<recommended_plugins>x", `<hook_prompt run="1">x`,
	} {
		captures, sum := readText(t, Options{}, codexHead+codexText("user", text)+codexText("user", "Hi"))
		require.Equal(t, []string{"User: Hi"}, texts(captures), text)
		require.Equal(t, 1, sum.Skips[skipInjected], text)
	}

	// Beside the prompt in one message; and where the user or the assistant writes it.
	captures, _ := readText(t, Options{}, codexHead+`{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>x"},{"type":"input_text","text":"Hi"}]}}`+"\n"+
		codexText("assistant", "<turn_aborted> is a tag"))
	require.Equal(t, []string{"User: Hi\n\nAssistant: <turn_aborted> is a tag"}, texts(captures))
	captures, _ = readText(t, Options{}, codexHead+`{"type":"event_msg","payload":{"type":"user_message","message":"<turn_aborted> why?"}}`)
	require.Equal(t, []string{"User: <turn_aborted> why?"}, texts(captures))
	captures, _ = readText(t, Options{}, codexHead+codexAsk+`{"type":"event_msg","payload":{"type":"user_message","kind":"environment_context","message":"x"}}`)
	require.Equal(t, []string{"User: Hi"}, texts(captures))
}

func TestCodexDates(t *testing.T) {
	t.Parallel()

	undated := codexText("user", "Hi")
	captures, _ := readText(t, Options{}, codexHead+undated)
	require.Equal(t, time.Date(2026, 2, 3, 9, 0, 0, 0, time.UTC), captures[0].Date)

	captures, _ = readText(t, Options{}, codexHead+`{"timestamp":"2026-02-03T10:00:05Z","type":"turn_context","payload":{"model":"m"}}`+"\n"+undated)
	require.Equal(t, time.Date(2026, 2, 3, 10, 0, 5, 0, time.UTC), captures[0].Date)
	require.Equal(t, map[string]any{"cwd": "/w", "branch": "b", "model": "m"}, captures[0].Meta)
}

func TestCodexForks(t *testing.T) {
	t.Parallel()

	const child, older, newer = "019c2000-0000-7000-8000-000000000001", "019c1fff-ffff-7fff-8fff-ffffffffffff", "019c2000-0000-7aaa-8000-000000000000"
	head := `{"type":"session_meta","payload":{"id":"%s","forked_from_id":"P"}}` + "\n" + `{"type":"session_meta","payload":{"id":"P"}}` + "\n"
	turn := func(id string) string {
		return `{"type":"turn_context","payload":{"turn_id":"` + id + `"}}` + "\n"
	}
	own := codexText("user", "Own")
	tests := []struct {
		name, in string
		want     []string
	}{
		{"fork", fmt.Sprintf(head, child) + codexAsk + turn(older) + codexAsk + turn(newer) + own, []string{"User: Own"}},
		{"a turn without an id ends nothing", fmt.Sprintf(head, child) + turn("x") + codexAsk + turn(newer) + own, []string{"User: Own"}},
		{"nothing of its own", fmt.Sprintf(head, child) + turn(older) + codexAsk, nil},
		{"an id without a time", fmt.Sprintf(head, "abc") + codexAsk, []string{"User: Hi"}},
		{"no fork", codexHead + codexAsk + turn(older), []string{"User: Hi"}},
	}
	for _, tt := range tests {
		captures, _ := readText(t, Options{}, tt.in)
		require.Equal(t, tt.want, texts(captures), tt.name)
		for _, c := range captures {
			require.NotEqual(t, "P", c.Session, tt.name)
		}
	}
}

func TestCodexSubagents(t *testing.T) {
	t.Parallel()

	for _, more := range []string{`"source":{"subagent":"review"}`, `"thread_source":"subagent"`} {
		captures, sum := readText(t, Options{}, `{"type":"session_meta","payload":{"id":"S",`+more+`}}`+"\n"+codexAsk)
		require.Empty(t, captures)
		require.Equal(t, []string{skipSubagent}, codes(sum.Warnings))
		require.Equal(t, 1, sum.Skips[skipSubagent])
	}
	captures, _ := readText(t, Options{}, `{"type":"session_meta","payload":{"id":"S","source":"cli","thread_source":"user"}}`+"\n"+codexAsk)
	require.Len(t, captures, 1)
}

func TestCodexWithoutHeader(t *testing.T) {
	t.Parallel()

	captures, _ := readText(t, Options{}, codexAsk+codexText("assistant", "Yes."))
	again, _ := readText(t, Options{}, codexAsk+codexText("assistant", "Yes.")+codexAsk)
	require.Equal(t, captures[0].ExternalID, again[0].ExternalID)
	require.Regexp(t, `^codex:[0-9a-f]{32}$`, captures[0].ExternalID)
}

func TestCodexLongSession(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("x", heldBytes/4)
	in := codexHead
	for range 3 {
		in += codexText("user", long) + `{"type":"event_msg","payload":{"type":"user_message","message":"` + long + `"}}` + "\n" +
			`{"type":"event_msg","payload":{"type":"agent_message","message":"Yes."}}` + "\n"
	}
	captures, _ := readText(t, Options{}, in)
	require.Len(t, captures, 3)
	for _, c := range captures {
		require.Len(t, c.Turns, 2)
	}
}
