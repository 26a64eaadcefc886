package transcript

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// sample is an export of n exchanges of about 1 KB as each format holds them.
type sample struct {
	head string
	// body is one exchange, of the number %[1]d, the question %[2]q and the answer
	// %[3]q; %[4]q is what a tool gave back.
	body, sep, tail string
}

var samples = map[string]sample{
	"native": {body: `{"id":"%[1]d","text":%[2]q,"source":"cli","date":"2026-01-05T10:00:00Z","meta":{"answer":%[3]q}}`, sep: "\n"},
	"claude-code": {sep: "\n", body: `{"type":"user","uuid":"u%[1]d","sessionId":"S","cwd":"/w","timestamp":"2026-01-05T10:00:00Z","message":{"role":"user","content":%[2]q}}
{"type":"assistant","uuid":"t%[1]d","sessionId":"S","timestamp":"2026-01-05T10:00:01Z","message":{"id":"m%[1]d","content":[{"type":"tool_use","id":"x","name":"Read","input":{"path":"a"}}]}}
{"type":"user","uuid":"r%[1]d","sessionId":"S","timestamp":"2026-01-05T10:00:02Z","message":{"role":"user","content":[{"type":"tool_result","content":%[4]q}]},"toolUseResult":{"stdout":%[4]q}}
{"type":"assistant","uuid":"a%[1]d","sessionId":"S","timestamp":"2026-01-05T10:00:03Z","message":{"id":"n%[1]d","content":[{"type":"text","text":%[3]q}]}}`},
	"chatgpt": {head: "[", sep: ",", tail: "]", body: `{"title":"T","create_time":1700000000.5,"conversation_id":"c%[1]d","current_node":"a","mapping":{
"r":{"id":"r","message":null,"parent":null,"children":["u"]},
"u":{"id":"u","message":{"id":"u","author":{"role":"user","metadata":{}},"create_time":1700000001.5,"content":{"content_type":"text","parts":[%[2]q]},"status":"finished_successfully","weight":1.0,"metadata":{},"recipient":"all"},"parent":"r","children":["t"]},
"t":{"id":"t","message":{"id":"t","author":{"role":"tool","name":"web","metadata":{}},"create_time":1700000002.5,"content":{"content_type":"text","parts":[%[4]q]},"metadata":{},"recipient":"all"},"parent":"u","children":["a"]},
"a":{"id":"a","message":{"id":"a","author":{"role":"assistant","metadata":{}},"create_time":1700000003.5,"content":{"content_type":"text","parts":[%[3]q]},"weight":1.0,"metadata":{"model_slug":"m"},"recipient":"all"},"parent":"t","children":[]}}}`},
	"claude-ai": {head: "[", sep: ",", tail: "]", body: `{"uuid":"c%[1]d","name":"N","created_at":"2025-09-01T10:00:00Z","chat_messages":[
{"uuid":"u%[1]d","sender":"human","text":%[2]q,"content":[{"type":"text","text":%[2]q}],"created_at":"2025-09-01T10:00:00Z","attachments":[],"files":[]},
{"uuid":"a%[1]d","sender":"assistant","text":%[3]q,"content":[{"type":"tool_result","content":%[4]q},{"type":"text","text":%[3]q}],"created_at":"2025-09-01T10:00:01Z","attachments":[],"files":[]}]}`},
	"codex": {head: codexHead, sep: "\n", body: `{"timestamp":"2026-02-03T10:00:01Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":%[2]q}]}}
{"timestamp":"2026-02-03T10:00:01Z","type":"event_msg","payload":{"type":"user_message","message":%[2]q}}
{"timestamp":"2026-02-03T10:00:02Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":%[4]q}}
{"timestamp":"2026-02-03T10:00:03Z","type":"event_msg","payload":{"type":"agent_message","message":%[3]q}}`},
	"gemini-cli": {head: geminiHead, sep: "\n", body: `{"id":"u%[1]d","timestamp":"2026-05-22T15:00:00Z","type":"user","content":[{"text":%[2]q}]}
{"id":"a%[1]d","timestamp":"2026-05-22T15:00:00Z","type":"gemini","content":%[3]q,"toolCalls":[{"result":%[4]q}]}`},
	"openai-messages": {sep: "\n", body: `{"id":"%[1]d","messages":[{"role":"user","content":%[2]q},{"role":"tool","content":%[4]q},{"role":"assistant","content":%[3]q}]}`},
	"sharegpt":        {head: "[", sep: ",\n", tail: "]", body: `{"id":"%[1]d","conversations":[{"from":"human","value":%[2]q},{"from":"tool","value":%[4]q},{"from":"gpt","value":%[3]q}]}`},
	"locomo":          {head: `{"speaker_a":"A","speaker_b":"B"`, tail: "}", body: `,"session_%[1]d":[{"speaker":"A","dia_id":"D%[1]d:1","text":%[2]q},{"speaker":"B","dia_id":"D%[1]d:2","text":%[3]q}]`},
	"plaintext":       {sep: "\n", body: "User: %[2]s\nAssistant: %[3]s\n%[4]s"},
}

// export is a sample of n exchanges.
func export(name string, n int) string {
	const question, answer = "Which of the two boats do we take to the island, and when? ", "The blue one at nine, since the white one is in the yard until Monday. "
	s := samples[name]
	var b strings.Builder
	b.WriteString(s.head)
	for i := range n {
		if i > 0 {
			b.WriteString(s.sep)
		}
		fmt.Fprintf(&b, s.body, i, fmt.Sprint("No. ", i, ": ")+strings.Repeat(question, 3), strings.Repeat(answer, 5), strings.Repeat("row of a tool's answer\n", 15))
	}
	b.WriteString(s.tail)
	return b.String()
}

func TestSamples(t *testing.T) {
	t.Parallel()

	for _, name := range Formats() {
		captures, sum := readText(t, Options{}, export(name, 3))
		require.Equal(t, name, sum.Files[0].Format)
		require.Contains(t, []int{3, 6}, len(captures), name) // 6 where a turn is a capture
		require.Empty(t, sum.Warnings, name)
	}
}

func BenchmarkFormats(b *testing.B) {
	for _, name := range Formats() {
		b.Run(name, func(b *testing.B) {
			in := export(name, 4000)
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				_, err := Read(b.Context(), []string{stdinPath}, Options{Stdin: strings.NewReader(in)}, func(Capture) error { return nil })
				require.NoError(b, err)
			}
		})
	}
}

// BenchmarkLargeExport reads 1 GB of ChatGPT conversations of 20 exchanges each and
// reports the peak of the process's memory: go test -run - -bench Large -benchtime 1x.
func BenchmarkLargeExport(b *testing.B) {
	const size = 1_000_000_000
	b.SetBytes(size)
	for b.Loop() {
		r, w := io.Pipe()
		go func() { w.CloseWithError(writeLarge(w, size)) }()
		var captures int
		sum, err := Read(b.Context(), []string{stdinPath}, Options{Stdin: r}, func(Capture) error {
			captures++
			return nil
		})
		require.NoError(b, err)
		require.Equal(b, 0, sum.Exit())
		b.ReportMetric(float64(captures), "captures")
	}
	b.ReportMetric(peakRSS(b), "MB-RSS")
}

func writeLarge(w io.Writer, size int) error {
	text := strings.Repeat("The boat leaves at nine, and the yard opens on Monday. ", 12)
	out := bufio.NewWriterSize(w, 1<<20)
	sep := "["
	for n, written := 0, 0; written < size; n++ {
		nodes := []string{"0 - user Begin"}
		for i := 1; i < 40; i++ {
			nodes = append(nodes, fmt.Sprintf("%d %d %s %d %s", i, i-1, []string{RoleUser, RoleAssistant}[i%2], i, text))
		}
		conversation := chat(fmt.Sprint("c", n), "39", nodes...)
		written += len(conversation)
		if _, err := out.WriteString(sep + conversation); err != nil {
			return err
		}
		sep = ","
	}
	if _, err := out.WriteString("]"); err != nil {
		return err
	}
	return out.Flush()
}

// peakRSS is the most memory the process has held so far, in MB.
func peakRSS(b *testing.B) float64 {
	b.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skip("no /proc")
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	kb, err := strconv.ParseFloat(strings.Fields(after)[0], 64)
	require.NoError(b, err)
	return kb * 1024 / 1e6
}

// fuzzFormat feeds a format with what it might meet. Seeds are the format's sample
// and its cases.
func fuzzFormat(f *testing.F, name string, seeds ...string) {
	f.Helper()
	f.Add(export(name, 2))
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		for _, o := range []Options{{}, {Format: name}} {
			o.MaxText, o.MaxRecord, o.MaxUnpacked = 1<<10, 1<<12, 1<<20
			captures, sum := readText(t, o, in)
			for _, c := range captures {
				checkCapture(t, c)
				size := 2 * o.MaxText // parts of an answer are joined by a byte
				for _, turn := range c.Turns {
					size += len(turn.Speaker) + len("Assistant: \n\n")
				}
				require.LessOrEqual(t, len(c.Text), size)
			}
			// Nothing in, nothing out, and nothing said never happens.
			require.True(t, len(captures)+len(sum.Warnings)+len(sum.Errors) > 0 || sum.Files[0].Reason != "")
			again, _ := readText(t, o, in)
			require.Equal(t, captures, again)
		}
	})
}

func checkCapture(t *testing.T, c Capture) {
	t.Helper()
	require.Equal(t, Clean(c.Text), c.Text)
	require.NotEmpty(t, c.Text)
	require.NotEmpty(t, c.Turns)
	require.Contains(t, c.TurnIDs, c.ExternalID)
	for _, turn := range c.Turns {
		require.NotEmpty(t, turn.Text)
		require.Contains(t, c.Text, turn.Text)
		require.LessOrEqual(t, len(turn.ExternalID), maxID)
		require.Contains(t, []string{RoleUser, RoleAssistant, RoleOther, RoleTurn}, turn.Role)
		require.Less(t, turn.Date.Year(), 10_000)
	}
	require.Positive(t, c.Line)
	line, err := c.MarshalJSON()
	require.NoError(t, err)
	require.True(t, utf8.Valid(line))
	require.NotContains(t, string(line), `\u0000`)
}

func FuzzClaudeCode(f *testing.F) {
	fuzzFormat(f, "claude-code", claudeText("user", "u", `"<system-reminder>x</system-reminder>\nHi\u0000"`)+answerPart("1", "m", "On")+answerPart("2", "m", "One."),
		`{"type":"attachment","sessionId":"S","attachment":{"type":"queued_command","prompt":["a",{"type":"text","text":"b"}]}}`)
}

func FuzzChatGPT(f *testing.F) {
	fuzzFormat(f, "chatgpt", chat("c", "", "u a user Hi", "a u assistant Yes"), "["+chat("c", "u", `u - user x|,"content":{"content_type":"multimodal_text","parts":[{},"x",7]}`)+`,null,"x"`)
}

func FuzzClaudeAI(f *testing.F) {
	fuzzFormat(f, "claude-ai", claudeChat(`{"uuid":"a","parent_message_uuid":"b","sender":"human","text":"x"},{"uuid":"b","parent_message_uuid":"a","role":"assistant","content":"\ud800"}`))
}

func FuzzCodex(f *testing.F) {
	fuzzFormat(f, "codex", codexHead+codexAsk+codexText("assistant", "Yes."),
		`{"type":"session_meta","payload":{"id":"019c2000-0000-7000-8000-000000000001","forked_from_id":"P"}}`+"\n"+`{"type":"turn_context","payload":{"turn_id":"019c2000-0000-7000-8000-000000000001"}}`+"\n"+codexText("user", "Hi"),
		`{"id":"S","timestamp":"2026-02-03T09:00:00Z","instructions":null}`+"\n"+`{"type":"message","role":"user","content":"Hi"}`)
}

func FuzzGeminiCLI(f *testing.F) {
	fuzzFormat(f, "gemini-cli", geminiHead+geminiText("1", "user", "Hi")+"\n"+`{"$rewindTo":"1"}`+"\n"+`{"$set":{"messages":[{"id":"","type":"gemini","content":[{"text":"x"}]}]}}`)
}

func FuzzOpenAI(f *testing.F) {
	fuzzFormat(f, "openai-messages", openAIChat, openAIChat+"\n[]\n7\n", `{"role":"user","content":["x",{}]}`, `{"prompt":"","completion":""}`)
}

func FuzzShareGPT(f *testing.F) {
	fuzzFormat(f, "sharegpt", `[{"id":1e400,"conversations":[{"from":"human","value":7},{"role":"gpt","content":"x"}]}]`)
}

func FuzzLoCoMo(f *testing.F) {
	fuzzFormat(f, "locomo", `[{"sample_id":"1","conversation":{"session_1":[{"speaker":"\u0000","text":"x"}],"session_99999999999999999999":[]}}]`)
}

func FuzzPlainText(f *testing.F) {
	fuzzFormat(f, "plaintext", "**User**: Hi\r\n```\nA: x\n[10:22] A: b\n", "[2024-05-01 10:22] Ann: Hi\n[10:23] Bo: \xff\x00", "12/31/23, 10:10 PM - Ann: Hi", "Ann: a b c\nBo: a b c\nAnn: d\nBo: d")
}
