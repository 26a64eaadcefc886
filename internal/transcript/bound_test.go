package transcript

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWorkIsLinear compares one conversation of many messages with as many
// conversations of one: a pass over the whole record for each message takes hundreds
// of times as long.
func TestWorkIsLinear(t *testing.T) {
	t.Parallel()

	const messages = 4000
	role := func(i int, names ...string) string { return names[i%len(names)] }
	tests := []struct {
		name, head string
		message    func(i int) string
		between    string
		tail       string
	}{
		{
			"claude-ai", `{"uuid":"c%d","name":"N","model":"m","chat_messages":[`,
			func(i int) string {
				return fmt.Sprintf(`{"uuid":"m%d","sender":%q,"text":"t"}`, i, role(i, "human", "assistant"))
			}, ",", "]}\n",
		},
		{
			"chatgpt", `{"conversation_id":"c%d","title":"T","mapping":{`,
			func(i int) string {
				return fmt.Sprintf(`"n%d":{"parent":"n%d","message":{"author":{"role":%q},"content":{"content_type":"text","parts":["t"]}}}`, i, i-1, role(i, "user", "assistant"))
			}, ",", "}}\n",
		},
		{
			"openai-messages", `{"id":"c%d","model":"m","messages":[`,
			func(i int) string { return fmt.Sprintf(`{"role":%q,"content":"t%d"}`, role(i, "user", "assistant"), i) }, ",", "]}\n",
		},
		{
			"sharegpt", `{"id":"c%d","conversations":[`,
			func(i int) string { return fmt.Sprintf(`{"from":%q,"value":"t%d"}`, role(i, "human", "gpt"), i) }, ",", "]}\n",
		},
		{
			"gemini-cli", `{"sessionId":"c%d","messages":[`,
			func(i int) string {
				return fmt.Sprintf(`{"id":"m%d","type":%q,"content":"t"}`, i, role(i, "user", "gemini"))
			}, ",", "]}\n",
		},
		{
			"locomo", `{"sample_id":"c%d","conversation":{"session_1":[`,
			func(i int) string { return fmt.Sprintf(`{"dia_id":"m%d","speaker":"Ann","text":"t"}`, i) }, ",", "]}}\n",
		},
		{
			"claude-code", `{"type":"user","uuid":"u%d","sessionId":"s","message":{"role":"user","content":"t"}}` + "\n",
			func(i int) string {
				return fmt.Sprintf(`{"type":"assistant","uuid":"m%d","sessionId":"s","message":{"id":"m","content":[{"type":"text","text":"t%d"}]}}`, i, i)
			}, "\n", "\n",
		},
	}
	for _, tt := range tests {
		input := func(size int) string {
			var b strings.Builder
			for i := range messages {
				switch {
				case i%size > 0:
					b.WriteString(tt.between)
				case i > 0:
					b.WriteString(tt.tail)
				}
				if i%size == 0 {
					fmt.Fprintf(&b, tt.head, i)
				}
				b.WriteString(tt.message(i))
			}
			return b.String() + tt.tail
		}
		fastest := func(text string) time.Duration {
			best := time.Hour
			for range 3 {
				start := time.Now()
				captures, _ := readText(t, Options{}, text)
				best = min(best, time.Since(start))
				require.NotEmpty(t, captures, tt.name)
				require.Equal(t, tt.name, captures[0].Source)
			}
			return best
		}
		one, many := fastest(input(messages)), fastest(input(1))
		t.Logf("%s: %s, %s", tt.name, one, many)
		require.Less(t, one, 30*many, tt.name)
	}
}

// TestCrowdedRecord: a record of many small elements, which would take a hundred times
// its size, is left out, first or later, and the file is read to its end.
func TestCrowdedRecord(t *testing.T) {
	t.Parallel()

	many := strings.Repeat(`{},`, maxElements/2) + `{}`
	tests := []struct{ name, crowded, good string }{
		{"claude-ai", `{"uuid":"c","chat_messages":[` + many + `]}`, claudeChat(`{"uuid":"m","sender":"human","text":"A"}`)},
		{"claude-code", `{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":[` + many + `]}}`, `{"type":"user","uuid":"v","sessionId":"s","message":{"role":"user","content":"A"}}`},
		{"chatgpt", `{"conversation_id":"c","title":"T","mapping":{` + strings.ReplaceAll(many, "{}", `"":{}`) + `}}`, `{"conversation_id":"d","title":"T","mapping":{"n":{"message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["A"]}}}}}`},
		{"openai-messages", `{"messages":[` + many + `]}`, `{"messages":[{"role":"user","content":"A"}]}`},
		{"native", `{"text":"B","meta":[` + many + `]}`, `{"text":"User: A"}`},
	}
	for _, tt := range tests {
		captures, sum := readText(t, Options{}, tt.crowded+"\n"+tt.good+"\n"+tt.crowded+"\n")
		require.Equal(t, []string{"User: A"}, texts(captures), tt.name)
		require.Equal(t, tt.name, captures[0].Source)
		require.Equal(t, []Problem{{File: "-", Code: "record_too_long", Line: 1}, {File: "-", Code: "record_too_long", Line: 3}}, places(sum.Warnings), tt.name)
		require.Empty(t, sum.Errors, tt.name)
	}
}

func TestCrowded(t *testing.T) {
	t.Parallel()

	for in, want := range map[string]bool{
		"[" + strings.Repeat("1,", maxElements-1) + "1]":   false,
		"[" + strings.Repeat("1,", maxElements) + "1]":     true,
		"[" + strings.Repeat("[[", maxElements/2) + "1]":   true,
		`["` + strings.Repeat(`,{[\"`, maxElements) + `"]`: false,
		strings.Repeat("a, ", maxElements+1):               false, // text
	} {
		require.Equal(t, want, crowded([]byte(in)), "%.20s", in)
	}
}

// TestDroppedRecordEndsExchange: what stands on both sides of a record over the cap
// does not become one exchange.
func TestDroppedRecordEndsExchange(t *testing.T) {
	t.Parallel()

	const user, answer = "user", "assistant"
	formats := []struct {
		name string
		turn func(i int, role, text string) string
		head string
	}{
		{"claude-code", func(i int, role, text string) string {
			return fmt.Sprintf(`{"type":%q,"uuid":"u%d","sessionId":"s","message":{"role":%q,"content":%q}}`, role, i, role, text)
		}, ""},
		{"openai-messages", func(_ int, role, text string) string { return fmt.Sprintf(`{"role":%q,"content":%q}`, role, text) }, ""},
		{"codex", func(_ int, role, text string) string {
			return fmt.Sprintf(`{"type":"response_item","payload":{"type":"message","role":%q,"content":[{"type":"input_text","text":%q}]}}`, role, text)
		}, `{"type":"session_meta","payload":{"id":"s"}}` + "\n"},
		{"gemini-cli", func(i int, role, text string) string {
			return fmt.Sprintf(`{"id":"m%d","type":%q,"content":%q}`, i, map[string]string{user: user, answer: "gemini"}[role], text)
		}, `{"sessionId":"s","startTime":"2026-01-01T00:00:00Z"}` + "\n"},
	}
	tests := []struct {
		name string
		long int
		want []string
	}{
		{"none", -1, []string{"User: A\n\nAssistant: B", "User: C\n\nAssistant: D"}},
		{"a prompt", 2, []string{"User: A\n\nAssistant: B", "Assistant: D"}},
		{"an answer", 1, []string{"User: A", "User: C\n\nAssistant: D"}},
	}
	for _, f := range formats {
		for _, tt := range tests {
			// Over the cap for a record, then over that for a text.
			for _, o := range []Options{{MaxRecord: 1000}, {MaxText: 1000}} {
				text := f.head
				for i, role := range []string{user, answer, user, answer} {
					content := string(rune('A' + i))
					if i == tt.long {
						content = strings.Repeat("x", 1001)
					}
					text += f.turn(i, role, content) + "\n"
				}
				captures, sum := readText(t, o, text)
				require.Equal(t, tt.want, texts(captures), "%s: %s %+v", f.name, tt.name, o)
				require.Equal(t, f.name, captures[0].Source)
				require.Len(t, sum.Warnings, min(1, tt.long+1))
			}
		}
	}
}
