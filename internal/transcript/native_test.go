package transcript

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNativeTurn(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("i", 600)
	tests := []struct {
		name, in string
		want     Capture
		warnings []string
	}{
		{
			name: "all fields",
			in:   `{"id":"a","text":" hi\n there ","source":"cli","observed":"stated","date":"2026-01-05","meta":{"n":{"a":[1,2.5]},"session":"s1"}}`,
			want: Capture{
				ExternalID: "native:a", Source: "cli", Observed: "stated", Date: day(2026, 1, 5), Text: "hi\n there", Session: "s1",
				Meta: map[string]any{"n": map[string]any{"a": []any{1.0, 2.5}}, "session": "s1"},
			},
		},
		{
			name: "unknown fields join meta, whose own keys win",
			in:   `{"id":1,"text":"x","project":"p","k":"top","session_id":7,"gone":null,"meta":{"k":"own"}}`,
			want: Capture{
				ExternalID: "native:1", Source: "native", Text: "x", Session: "7",
				Meta: map[string]any{"project": "p", "k": "own", "session_id": 7.0},
			},
		},
		{
			name: "escaped names, and the last of each",
			in:   `{"id":"a","text":"first","\u0074ext":"x","p":1,"p":null,"meta":7,"meta":{"k":1,"k":[true,null,{"v":1e400}],"\ud800":0}}`,
			want: Capture{
				ExternalID: "native:a", Source: "native", Text: "x",
				Meta: map[string]any{"k": []any{true, nil, map[string]any{"v": "1e400"}}, "\uFFFD": 0.0},
			},
		},
		{
			name: "external_id after a blank id",
			in:   `{"id":" ","external_id":12345678901234567890,"text":"x"}`,
			want: Capture{ExternalID: "native:12345678901234567890", Source: "native", Text: "x"},
		},
		{
			name: "id in meta",
			in:   `{"id":null,"text":"x","meta":{"external_id":"m"}}`,
			want: Capture{ExternalID: "native:m", Source: "native", Text: "x", Meta: map[string]any{"external_id": "m"}},
		},
		{
			name: "NUL and lone surrogates everywhere",
			in:   `{"id":"\u0000i","text":"\ud800t","source":"s\u0000","meta":{"k\u0000":"\udfffv\u0000 "}}`,
			want: Capture{ExternalID: "native:\uFFFDi", Source: "s\uFFFD", Text: "\uFFFDt", Meta: map[string]any{"k\uFFFD": "\uFFFDv\uFFFD "}},
		},
		{
			name: "an id over 512 bytes is hashed with its format",
			in:   `{"id":"` + long + `","text":"x"}`,
			// printf 'native:%0600d' 0 | tr 0 i | sha256sum
			want: Capture{ExternalID: "native:sha256:7a52ab450d65f5f440c810eb710cb4b9deaf90ca48af5b4ded6f285bf7f3650b", Source: "native", Text: "x"},
		},
		{
			name:     "ids that are neither strings nor numbers",
			in:       `{"id":{},"external_id":["e"],"text":"x","meta":{"external_id":"m"}}`,
			want:     Capture{ExternalID: "native:m", Source: "native", Text: "x", Meta: map[string]any{"external_id": "m"}},
			warnings: []string{"bad_field", "bad_field"},
		},
		{
			name:     "meta beyond the cap",
			in:       `{"id":"a","text":"x","meta":{"a":"` + strings.Repeat("z", 8<<20) + `"}}`,
			want:     Capture{ExternalID: "native:a", Source: "native", Text: "x"},
			warnings: []string{"bad_meta"},
		},
		{
			name:     "labels that are no strings",
			in:       `{"id":"a","text":"x","source":1,"observed":["stated"]}`,
			want:     Capture{ExternalID: "native:a", Source: "native", Text: "x"},
			warnings: []string{"bad_field", "bad_field"},
		},
		{
			name:     "meta nested beyond what Postgres parses",
			in:       `{"id":"a","text":"x","meta":{"a":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}}`,
			want:     Capture{ExternalID: "native:a", Source: "native", Text: "x"},
			warnings: []string{"bad_meta"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			captures, sum := readText(t, Options{}, tt.in)
			require.Len(t, captures, 1)
			tt.want.TurnIDs = []string{tt.want.ExternalID}
			tt.want.Turns = []Turn{{ExternalID: tt.want.ExternalID, Role: RoleTurn, Text: tt.want.Text, Date: tt.want.Date}}
			tt.want.Complete, tt.want.File, tt.want.Line = true, "-", 1
			require.Equal(t, tt.want, captures[0])
			require.Equal(t, tt.warnings, codes(sum.Warnings))
		})
	}
}

func TestNativeLastOfAnIDWins(t *testing.T) {
	t.Parallel()

	captures, sum := readText(t, Options{}, `{"id":"a","text":"one"}
{"id":"a","text":"two"}
{"id":"a","text":"two"}
{"id":"a","text":"one","source":"other"}
{"id":"a","text":"one"}`)
	texts := make([]string, 0, len(captures))
	for _, c := range captures {
		texts = append(texts, c.Source+" "+c.Text)
	}
	require.Equal(t, []string{"native one", "native two", "other one", "native one"}, texts)
	require.Equal(t, map[string]int{"replaced": 2, "duplicate": 1}, sum.Skips)
}

func TestNativeBadRecords(t *testing.T) {
	t.Parallel()

	captures, sum := readText(t, Options{}, `{"id":"a","text":"x"}
7
null
[{"text":"in a list"}]
{"text":["x"]}
{"text":" \n"}
{"text":"two"} {"text":"values"}
{"text":"y","date":0,"meta":["m"]}`)
	require.Len(t, captures, 2)
	require.Equal(t, "y", captures[1].Text)
	require.Nil(t, captures[1].Meta)
	require.Equal(t, []string{"bad_record", "bad_record", "bad_record", "bad_record", "bad_record", "bad_json", "bad_date", "bad_meta"}, codes(sum.Warnings))
}

func TestNativeLeavesSlackAlone(t *testing.T) {
	t.Parallel()

	captures, sum := readText(t, Options{}, `[{"type":"message","user":"U1","text":"hi","ts":"1700000000.000100"}]`)
	require.Empty(t, captures)
	require.Equal(t, []string{"unsupported_format"}, codes(sum.Errors))
}

func FuzzNative(f *testing.F) {
	fuzzFormat(f, "native",
		`{"id":"a","text":"x","date":1741064767,"meta":{"k":[1e400,"\u0000"]}}`,
		"{\"text\":\"a\xb0\"}\n{\"text\":\"b",
		`[{"text":"a"},{"text":"b" "c"},null,7,]`,
		"{\n\"text\": \"a\"\n}\n{\"text\":\"b\"}",
		"\xff\xfe{\x00}\x00", "[2026-01-01] Ann: hi", "\x1f\x8b\x08", "PK\x05\x06",
	)
}

// readText reads in as standard input.
func readText(t *testing.T, o Options, in string) ([]Capture, Summary) {
	t.Helper()
	o.Stdin = strings.NewReader(in)
	return readAll(t, o, stdinPath)
}

func codes(problems []Problem) []string {
	var out []string //nolint:prealloc // nil without problems
	for _, p := range problems {
		out = append(out, p.Code)
	}
	return out
}

func day(year int, month time.Month, d int) time.Time {
	return time.Date(year, month, d, 0, 0, 0, 0, time.UTC)
}
