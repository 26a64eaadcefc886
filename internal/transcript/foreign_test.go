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
		{`{"chats":{"about":"x","list":[{"name":"Ann","messages":[]}]}}`, "Telegram"},
		{`[{"type":"message","subtype":"me_message","text":"hi","ts":"1700000000.000100"}]`, "Slack"},
		{`[{"ID":1,"Timestamp":"2026-01-01","Contents":"hi","Attachments":""}]`, "Discord"},
		{`[{"id":"1","memory":"likes tea","hash":"x","user_id":"u"}]`, "memories"},
		{`{"memories":[{"memory":"likes tea"}]}`, "memories"},
		{`{"results":[{"id":"1","memory":"likes tea"}]}`, "memories"},
		{`{"composerId":"1","conversation":[]}`, "Cursor"},
		{`{"tabs":[{"bubbles":[{"type":"user","text":"hi"}]}]}`, "Cursor"},
		{`{"bubbleId":"1","type":1,"text":"hi"}`, "Cursor"},
		{`{"info":{"id":"ses_1"},"messages":[{"info":{},"parts":[]}]}`, "opencode"},
		{`{"id":"prt_1","sessionID":"ses_1","messageID":"msg_1","type":"text","text":"hi"}`, "opencode"},
		{`{"id":"msg_1","sessionID":"ses_1","role":"user","time":{}}`, "opencode"},
		{`{"id":"ses_1","projectID":"p","directory":"/w","title":"T"}`, "opencode"},
		{"SQLite format 3\x00", "Cursor"},
		{"id,text,date\n1,\"hi, there\",2026-01-31\n", "CSV"},
		{"role;content\nuser;User: hi\n", "CSV"},
		{"ID\tTimestamp\n1\tx\n", "CSV"},
		{"Dear Ann,\nthanks, and goodbye\n", "JSON lines"},
		{"role,content\nuser\n", "JSON lines"},
		{"12/31/23, 10:10\u202fPM - Messages are encrypted.\n12/31/23, 10:11\u202fPM - Ann: Hi\n", "WhatsApp"},
		{`{"name":"x","version":"1.0.0"}`, "JSON lines"},
	}
	for _, tt := range tests {
		captures, sum := readText(t, Options{}, tt.in)
		require.Empty(t, captures, tt.in)
		require.Equal(t, []string{"unsupported_format"}, codes(sum.Errors), tt.in)
		require.Contains(t, sum.Errors[0].Detail, tt.says)
	}
}

// TestForeignKeys: a turn may have names of fields that others have, too.
func TestForeignKeys(t *testing.T) {
	t.Parallel()

	for _, in := range []string{
		`{"text":"hi","type":"memory"}`, `{"text":"hi","memory":7}`, `{"text":"hi","ts":1700000000}`, `{"text":"hi","sessionID":"s","messageID":"m"}`,
		`{"text":"hi","results":[1]}`, `{"text":"hi","chats":["x"],"tabs":null}`,
	} {
		captures, _ := readText(t, Options{}, in)
		require.Equal(t, []string{"hi"}, texts(captures), in)
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
