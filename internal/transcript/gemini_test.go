package transcript

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const geminiHead = `{"sessionId":"S","projectHash":"p","startTime":"2026-05-22T14:59:00Z"}` + "\n"

func geminiText(id, kind, text string) string {
	return fmt.Sprintf(`{"id":%q,"timestamp":"2026-05-22T15:00:00Z","type":%q,"content":%q}`, id, kind, text)
}

func TestGeminiCLI(t *testing.T) {
	t.Parallel()

	hi, yes := geminiText("1", "user", "Hi")+"\n", geminiText("2", "gemini", "Yes.")+"\n"
	tests := []struct {
		name, in string
		want     []string
		skips    map[string]int
	}{
		{"lines", geminiHead + hi + yes, []string{"User: Hi\n\nAssistant: Yes."}, map[string]int{}},
		{"batch", geminiHead + hi + `{"$set":{"messages":[` + geminiText("1", "user", "Hi!") + `,` + geminiText("2", "gemini", "Yes.") + `]}}`, []string{"User: Hi!\n\nAssistant: Yes."}, map[string]int{skipSnapshot: 1}},
		{"batch of something else", geminiHead + hi + `{"$set":{"lastUpdated":"x"}}`, []string{"User: Hi"}, map[string]int{}},
		{"written again", geminiHead + hi + geminiText("2", "gemini", "Y") + "\n" + yes, []string{"User: Hi\n\nAssistant: Yes."}, map[string]int{skipSnapshot: 1}},
		{"written again shorter", geminiHead + hi + geminiText("2", "gemini", "Yes. No.") + "\n" + yes, []string{"User: Hi\n\nAssistant: Yes."}, map[string]int{skipSnapshot: 1}},
		{"rewound", geminiHead + hi + yes + geminiText("3", "user", "More") + "\n" + `{"$rewindTo":"2"}` + "\n" + geminiText("2", "gemini", "No."), []string{"User: Hi\n\nAssistant: No."}, map[string]int{skipRewound: 2}},
		{"rewound to nowhere", geminiHead + hi + `{"$rewindTo":"9"}` + "\n" + yes, []string{"User: Hi\n\nAssistant: Yes."}, map[string]int{}},
		{"before the header", yes + geminiHead + hi, []string{"User: Hi"}, map[string]int{skipNonMessage: 1}},
		{"header again", geminiHead + hi + geminiHead + yes, []string{"User: Hi\n\nAssistant: Yes."}, map[string]int{}},
		{"another session", geminiHead + hi + `{"sessionId":"T","projectHash":"p"}` + "\n" + yes, []string{"User: Hi", "Assistant: Yes."}, map[string]int{}},
		{"other records", geminiHead + hi + geminiText("3", "info", "x") + "\n" + `{"type":"message_update","id":"1","content":"x"}`, []string{"User: Hi"}, map[string]int{skipMetaLine: 2}},
		{"injected", geminiHead + geminiText("0", "user", "<session_context>\nx") + "\n" + hi, []string{"User: Hi"}, map[string]int{skipInjected: 1}},
		{"one object", `{"sessionId":"S","messages":[` + geminiText("1", "user", "Hi") + `,null,` + geminiText("2", "gemini", "Yes.") + `]}`, []string{"User: Hi\n\nAssistant: Yes."}, map[string]int{skipMetaLine: 1}},
		{"parts", geminiHead + `{"id":"1","type":"user","content":[{"text":"A "},{"inlineData":{}},{"text":"no","thought":true},"B"]}` + "\n", []string{"User: A\nB"}, map[string]int{}},
		{"one part", geminiHead + `{"id":"1","type":"user","content":{"text":"A"}}` + "\n", []string{"User: A"}, map[string]int{}},
		{"tool calls", geminiHead + hi + `{"id":"2","type":"gemini","content":"","toolCalls":[]}`, []string{"User: Hi"}, map[string]int{skipToolCall: 1}},
		{"no ids", geminiHead + `{"type":"user","content":"A"}` + "\n" + `{"type":"gemini","content":"B"}` + "\n", []string{"User: A\n\nAssistant: B"}, map[string]int{}},
	}
	for _, tt := range tests {
		captures, sum := readText(t, Options{}, tt.in)
		require.Equal(t, tt.want, texts(captures), tt.name)
		require.Equal(t, tt.skips, sum.Skips, tt.name)
		require.Equal(t, "S", captures[0].Session, tt.name)
		require.Empty(t, sum.Warnings, tt.name)
	}

	// Dates are not carried on: records may stand in any order.
	captures, _ := readText(t, Options{}, geminiHead+hi+yes+`{"id":"3","type":"user","content":"A","model":"m"}`)
	require.Equal(t, "gemini-cli:3", captures[1].ExternalID)
	require.True(t, captures[1].Date.IsZero())
	require.Equal(t, map[string]any{"model": "m"}, captures[1].Meta)

	captures, sum := readText(t, Options{}, `{"sessionId":"S","projectHash":"p","kind":"subagent"}`+"\n"+hi)
	require.Empty(t, captures)
	require.Equal(t, map[string]int{skipSubagent: 1}, sum.Skips)
}

// TestGeminiLong: a session that is larger than what is held comes out whole.
func TestGeminiLong(t *testing.T) {
	t.Parallel()

	text := strings.Repeat("x", 1<<20)
	var in strings.Builder
	in.WriteString(geminiHead)
	for i := range 24 {
		in.WriteString(geminiText(strconv.Itoa(i), []string{"user", "gemini"}[i%2], strconv.Itoa(i)+text) + "\n")
	}
	captures, sum := readText(t, Options{}, in.String()+`{"$rewindTo":"22"}`)
	require.Len(t, captures, 11)
	for i, c := range captures {
		require.Equal(t, []string{fmt.Sprintf("gemini-cli:%d", 2*i), fmt.Sprintf("gemini-cli:%d", 2*i+1)}, c.TurnIDs)
	}
	require.Equal(t, map[string]int{skipRewound: 2}, sum.Skips)
}
