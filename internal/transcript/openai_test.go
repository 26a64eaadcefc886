package transcript

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const openAIChat = `[{"role":"user","content":"Hi"},{"role":"assistant","content":"Yes."}]`

func TestOpenAIShapes(t *testing.T) {
	t.Parallel()

	want, _ := readText(t, Options{}, `{"messages":`+openAIChat+`}`)
	require.Equal(t, []string{"User: Hi\n\nAssistant: Yes."}, texts(want))
	for name, in := range map[string]string{
		"array":                   `[{"messages":` + openAIChat + `}]`,
		"a list":                  openAIChat,
		"a list a line":           openAIChat + "\n" + openAIChat + "\n",
		"a message a line":        `{"role":"user","content":"Hi"}` + "\n" + `{"role":"assistant","content":"Yes."}`,
		"a list over lines":       strings.ReplaceAll(openAIChat, "},", "},\n"),
		"empty ones":              `{"messages":[]}` + "\n" + `{"messages":` + openAIChat + `}`,
		"odd fields":              strings.ReplaceAll(`{"messages":`+openAIChat+`}`, `"role"`, `"refusal":{},"tool_calls":null,"role"`),
		"odd messages":            `{"messages":[null,7,` + openAIChat[1:] + `}`,
		"system":                  `{"messages":[{"role":"developer","content":"x"},` + openAIChat[1:] + `}`,
		"a list with odd members": `[{"role":"system","content":"x","n":{}},` + openAIChat[1:] + "\n[]\n",
	} {
		captures, sum := readText(t, Options{}, in)
		require.Equal(t, texts(want), texts(captures), name)
		require.Equal(t, want[0].ExternalID, captures[0].ExternalID, name)
		require.Empty(t, sum.Warnings, name)
	}
}

func TestOpenAIMessages(t *testing.T) {
	t.Parallel()

	tests := []struct{ name, message, want, skip string }{
		{"parts", `{"role":"user","content":[{"type":"text","text":"A"},{"type":"image_url"},{"type":"input_text","text":"B"}]}`, "User: A\nB", ""},
		{"tool call", `{"role":"assistant","content":null,"tool_calls":[{}]}`, "", skipToolCall},
		{"function call", `{"role":"assistant","content":"","function_call":{}}`, "", skipToolCall},
		{"tool call and text", `{"role":"assistant","content":"A","tool_calls":[{}]}`, "Assistant: A", ""},
		{"tool", `{"role":"tool","content":"A"}`, "", skipToolResult},
		{"function", `{"role":"function","content":"A"}`, "", skipToolResult},
		{"system", `{"role":"system","content":"A"}`, "", skipSystem},
		{"refusal", `{"role":"assistant","content":null,"refusal":"No"}`, "", skipRefusal},
		{"refusal part", `{"role":"assistant","content":[{"type":"refusal","refusal":"No"}]}`, "", skipRefusal},
		{"nothing", `{"role":"assistant","content":null}`, "", skipEmpty},
		{"weightless", `{"role":"assistant","content":"A","weight":0}`, "Assistant: A", ""},
		{"unknown", `{"role":"critic","content":"A"}`, "", skipNonMessage},
	}
	for _, tt := range tests {
		captures, sum := readText(t, Options{}, `{"id":7,"model":"m","messages":[`+tt.message+`]}`)
		if tt.want == "" {
			require.Empty(t, captures, tt.name)
			require.Equal(t, map[string]int{tt.skip: 1}, sum.Skips, tt.name)
			require.Equal(t, []string{"no_turns"}, codes(sum.Warnings), tt.name)
			continue
		}
		require.Equal(t, []string{tt.want}, texts(captures), tt.name)
		require.Equal(t, "7", captures[0].Session)
		require.Equal(t, map[string]any{"model": "m"}, captures[0].Meta)
		require.True(t, captures[0].Date.IsZero())
	}
}

func TestOpenAILegacy(t *testing.T) {
	t.Parallel()

	captures, sum := readText(t, Options{}, `{"prompt":"a","completion":"b"}`+"\n"+`{"messages":`+openAIChat+`}`)
	require.Len(t, captures, 1)
	require.Equal(t, []Problem{{File: "-", Code: "legacy_record", Line: 1}}, places(sum.Warnings))
}

func TestShareGPT(t *testing.T) {
	t.Parallel()

	const chat = `"conversations":[{"from":"system","value":"x"},{"from":"human","value":"Hi"},{"from":"gpt","value":"Yes."},{"from":"bot","value":"x"}]}`
	captures, sum := readText(t, Options{}, `[{"id":7,`+chat+`]`)
	require.Equal(t, []string{"sharegpt:7/1", "sharegpt:7/2"}, captures[0].TurnIDs)
	require.Equal(t, map[string]int{skipSystem: 1, skipNonMessage: 1}, sum.Skips)

	chained, _ := readText(t, Options{}, `{`+chat)
	other, _ := readText(t, Options{}, "{\"conversations\":[]}\n"+strings.NewReplacer("from", "role", "value", "content", "human", "user").Replace(`{`+chat))
	require.Equal(t, texts(captures), texts(chained))
	require.Regexp(t, `^sharegpt:[0-9a-f]{32}$`, chained[0].ExternalID)
	require.Equal(t, chained[0].TurnIDs, other[0].TurnIDs)
	require.NotEqual(t, chained[0].Session, other[0].Session)
}
