package transcript

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestForeignFormats(t *testing.T) {
	t.Parallel()

	tests := []struct{ in, says string }{
		{`[{"type":"message","user":"U1","text":"hi","ts":"1700000000.000100"}]`, "Slack"},
		{`{"name":"Ann","type":"personal_chat","id":1,"messages":[{"id":1,"type":"message","text":"hi"}]}`, "Telegram"},
		{`{"guild":{},"channel":{},"messages":[{"id":"1","content":"hi","author":{}}]}`, "Discord"},
		{`[{"ID":1,"Timestamp":"2026-01-01","Contents":"hi","Attachments":""}]`, "Discord"},
		{`[{"id":"1","memory":"likes tea","hash":"x","user_id":"u"}]`, "memories"},
		{`{"memories":[{"memory":"likes tea"}]}`, "memories"},
		{`{"composerId":"1","conversation":[]}`, "Cursor"},
		{`{"info":{"id":"ses_1"},"messages":[{"info":{},"parts":[]}]}`, "opencode"},
		{"SQLite format 3\x00", "Cursor"},
		{`{"name":"x","version":"1.0.0"}`, "JSON lines"},
	}
	for _, tt := range tests {
		captures, sum := readText(t, Options{}, tt.in)
		require.Empty(t, captures, tt.in)
		require.Equal(t, []string{"unsupported_format"}, codes(sum.Errors), tt.in)
		require.Contains(t, sum.Errors[0].Detail, tt.says)
	}
}

func TestLoCoMoFlat(t *testing.T) {
	t.Parallel()

	captures, sum := readText(t, Options{}, `{"speaker_a":"A","speaker_b":"B","session_10":[{"speaker":"B","dia_id":"D10:1","text":"Later"}],
"session_2":[{"speaker":"A","dia_id":"D2:1","text":"Hi","blip_caption":"a dog"}],"session_2_date_time":"1:56 pm on 8 May, 2023","session_3":7,"events_session_2":{}}`)
	require.Equal(t, []string{"A: Hi", "B: Later"}, texts(captures))
	require.Equal(t, map[string]any{"caption": "a dog"}, captures[0].Meta)
	require.Nil(t, captures[1].Meta)
	require.True(t, captures[1].Date.IsZero())
	require.Equal(t, 13, captures[0].Date.Hour())
	require.Regexp(t, `^locomo:[0-9a-f]{32}/D2:1$`, captures[0].ExternalID)
	require.Empty(t, sum.Warnings)

	_, sum = readText(t, Options{}, `[{"sample_id":"1","conversation":7}]`)
	require.Equal(t, []string{"no_turns"}, codes(sum.Warnings))
}
