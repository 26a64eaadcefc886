package transcript

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// claudeChat is a conversation of claude.ai's export with the messages in JSON.
func claudeChat(messages string, more ...string) string {
	s := `{"uuid":"c","name":"N","created_at":"2025-09-01T10:00:00Z","chat_messages":[` + messages + `]`
	for _, m := range more {
		s += m
	}
	return s + "}"
}

func TestClaudeAIMessages(t *testing.T) {
	t.Parallel()

	tests := []struct{ name, message, want, skip string }{
		{"blocks", `{"uuid":"m","sender":"human","text":"no","content":[{"type":"text","text":"A"},{"type":"thinking","text":"no"},{"type":"voice_note","text":"no"},{"type":"text","text":" B "}]}`, "User: A\nB", ""},
		{"text", `{"uuid":"m","sender":"human","text":"A","content":[]}`, "User: A", ""},
		{"text only", `{"uuid":"m","role":"human","text":"A"}`, "User: A", ""},
		{"content is a string", `{"uuid":"m","role":"user","content":"A"}`, "User: A", ""},
		{"assistant", `{"uuid":"m","role":"assistant","content":"A"}`, "Assistant: A", ""},
		{"placeholder for a tool", `{"uuid":"m","sender":"assistant","text":"This block is not supported","content":[{"type":"tool_use"}]}`, "", skipToolCall},
		{"attachment", `{"uuid":"m","sender":"human","text":"","attachments":[{"extracted_content":"A"}]}`, "", skipAttachment},
		{"attachment and text", `{"uuid":"m","sender":"human","text":"A","attachments":[{"extracted_content":"B"}]}`, "User: A", ""},
		{"file", `{"uuid":"m","sender":"human","text":"","files":[{"file_name":"p.jpg"}]}`, "", skipEmpty},
		{"another sender", `{"uuid":"m","sender":"narrator","text":"A"}`, "", skipNonMessage},
		{"null", `null`, "", skipNonMessage},
	}
	for _, tt := range tests {
		captures, sum := readText(t, Options{}, claudeChat(tt.message))
		if tt.want == "" {
			require.Empty(t, captures, tt.name)
			require.Equal(t, map[string]int{tt.skip: 1}, sum.Skips, tt.name)
			continue
		}
		require.Equal(t, []string{tt.want}, texts(captures), tt.name)
		require.Equal(t, "claude-ai:m", captures[0].ExternalID, tt.name)
		require.Equal(t, map[string]any{"title": "N"}, captures[0].Meta, tt.name)
		require.Equal(t, "c", captures[0].Session)
		require.Equal(t, time.Date(2025, 9, 1, 10, 0, 0, 0, time.UTC), captures[0].Date)
	}
}

func TestClaudeAIAttachments(t *testing.T) {
	t.Parallel()

	documents := `"attachments":[{"extracted_content":"B"},{"extracted_content":" "},{"extracted_content":"C\n"}]`
	captures, sum := readText(t, Options{Attachments: true}, claudeChat(`{"uuid":"m","sender":"human","text":"A",`+documents+`}`)+"\n"+claudeChat(`{"uuid":"n","sender":"human","text":"",`+documents+`}`))
	require.Equal(t, []string{"User: A\nB\nC", "User: B\nC"}, texts(captures))
	require.Empty(t, sum.Skips)
}

func TestClaudeAIBranches(t *testing.T) {
	t.Parallel()

	msg := func(id, parent, at, text string) string {
		sender := "human"
		if id > "m" {
			sender = "assistant"
		}
		return `{"uuid":"` + id + `","sender":"` + sender + `","text":"` + text + `","created_at":"2025-09-01T10:0` + at + `:00Z"` + parent + `}`
	}
	under := func(id string) string { return `,"parent_message_uuid":"` + id + `"` }
	const root = `,"parent_message_uuid":null`
	regenerated := msg("a", root, "1", "Hi") + "," + msg("x", under("a"), "2", "Old") + "," + msg("y", under("a"), "3", "New")
	tests := []struct{ name, in, want string }{
		{"newest answer", claudeChat(regenerated), "User: Hi\n\nAssistant: New"},
		{"newest first", claudeChat(msg("a", root, "1", "Hi") + "," + msg("y", under("a"), "3", "New") + "," + msg("x", under("a"), "2", "Old")), "User: Hi\n\nAssistant: New"},
		{"marked", claudeChat(regenerated, `,"current_leaf_message_uuid":"x"`), "User: Hi\n\nAssistant: Old"},
		{"edited question", claudeChat(msg("a", under("0"), "1", "Hi") + "," + msg("x", under("a"), "2", "Old") + "," + msg("b", under("0"), "3", "Hello") + "," + msg("y", under("b"), "4", "New")), "User: Hello\n\nAssistant: New"},
		{"not everywhere", claudeChat(msg("a", "", "1", "Hi") + "," + msg("x", under("a"), "2", "Old") + "," + msg("y", under("a"), "3", "New")), "User: Hi\n\nAssistant: Old\nNew"},
		{"nowhere linked", claudeChat(msg("a", root, "1", "Hi") + "," + msg("x", root, "2", "Yes")), "User: Hi\n\nAssistant: Yes"},
		{"circle", claudeChat(msg("a", under("x"), "1", "Hi") + "," + msg("x", under("a"), "2", "Yes")), "User: Hi\n\nAssistant: Yes"},
	}
	for _, tt := range tests {
		captures, _ := readText(t, Options{}, tt.in)
		require.Equal(t, []string{tt.want}, texts(captures), tt.name)
	}

	// A link that is broken costs a warning, and not what came before it.
	captures, sum := readText(t, Options{}, claudeChat(msg("a", root, "1", "Hi")+","+msg("x", under("a"), "2", "Yes")+","+
		msg("b", under("gone"), "3", "Why?")+","+msg("y", under("b"), "4", "So.")))
	require.Equal(t, []string{"User: Hi\n\nAssistant: Yes", "User: Why?\n\nAssistant: So."}, texts(captures))
	require.Equal(t, []string{"broken_parent"}, codes(sum.Warnings))

	// So does a date that is none.
	captures, sum = readText(t, Options{}, claudeChat(msg("a", root, "1", "Hi")+","+msg("x", under("a"), "2", "Old")+","+msg("y", under("a"), "x", "New")))
	require.Equal(t, []string{"User: Hi\n\nAssistant: New"}, texts(captures))
	require.Equal(t, []string{"bad_date"}, codes(sum.Warnings))
	require.Equal(t, map[string]int{skipBranch: 1}, sum.Skips)

	// The tree says what follows what, whatever stands where.
	captures, sum = readText(t, Options{}, claudeChat(msg("y", under("b"), "4", "So.")+","+msg("b", under("x"), "3", "Why?")+","+
		msg("x", under("a"), "2", "Yes")+","+msg("a", under(noParent), "1", "Hi")))
	require.Equal(t, []string{"User: Hi\n\nAssistant: Yes", "User: Why?\n\nAssistant: So."}, texts(captures))
	require.Empty(t, sum.Warnings)
}

func TestClaudeAIIDs(t *testing.T) {
	t.Parallel()

	captures, sum := readText(t, Options{}, "["+claudeChat(`{"sender":"human","text":""},{"sender":"human","text":"A"},{"sender":"assistant","text":"B"}`)+
		`,{"name":"x","chat_messages":[{"sender":"human","text":"C"}]}, null, `+claudeChat("")+"]")
	require.Equal(t, []string{"claude-ai:c#1", "claude-ai:c#2"}, captures[0].TurnIDs)
	require.Equal(t, "User: C", captures[1].Text)
	require.Equal(t, map[string]int{skipEmpty: 1, skipNonObject: 1, skipEmptyConversation: 1}, sum.Skips)
}
