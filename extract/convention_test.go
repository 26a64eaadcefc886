package extract_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/extract"
)

// TestOutputConvention holds the salience contract's "Output convention" to the
// letter, sentence by sentence.
func TestOutputConvention(t *testing.T) {
	t.Parallel()
	owner := extract.Turn{Text: "the deploy script lives at scripts/deploy.sh; we ship on Fridays", Source: "owner", Observed: "stated"}
	for _, tt := range []struct {
		name, answer string
		turn         extract.Turn
		opts         extract.Options
		want         string
	}{
		{
			name:   "a JSON array of candidate objects: the example",
			answer: `[{ "content": "the owner ships on Fridays", "salience": 0.9, "observed": "stated" }]`,
			want:   `[{"content":"the owner ships on Fridays","salience":0.9,"observed":"stated"}]`,
		},
		{
			name:   "content must not be empty",
			answer: `[{"salience":0.9},{"content":"","salience":0.9},{"content":"  ","salience":0.9},{"content":"kept","salience":0.5}]`,
			want:   `[{"content":"kept","salience":0.5}]`,
		},
		{
			name:   "salience is needed",
			answer: `[{"content":"none"},{"content":"null","salience":null},{"content":"kept","salience":0}]`,
			want:   `[{"content":"kept","salience":0}]`,
		},
		{
			name: "source, observed, date, tags and meta are optional and kept",
			answer: `[{"content":"a","salience":0.5,"source":"s","observed":"inferred","date":"2026-01-31","tags":["x","y"],"meta":{"k":1}},
				{"content":"b","salience":0.4}]`,
			want: `[{"content":"a","salience":0.5,"source":"s","observed":"inferred","date":"2026-01-31","tags":["x","y"],"meta":{"k":1}},
				{"content":"b","salience":0.4}]`,
		},
		{
			name:   "the array is extracted from prose",
			answer: `Sure! Here is what I would keep: [{"content":"a","salience":0.5}] Let me know.`,
			want:   `[{"content":"a","salience":0.5}]`,
		},
		{
			name:   "the array is extracted from a fence",
			answer: "```json\n[{\"content\":\"a\",\"salience\":0.5}]\n```",
			want:   `[{"content":"a","salience":0.5}]`,
		},
		{
			name:   "malformed items are skipped",
			answer: `[42, "text", null, {"content":7,"salience":0.5}, {"content":"a","salience":"loud"}, {"content":"kept","salience":0.5}]`,
			want:   `[{"content":"kept","salience":0.5}]`,
		},
		{
			name:   "salience is clamped to [0, 1]",
			answer: `[{"content":"over","salience":1.5},{"content":"under","salience":-2}]`,
			want:   `[{"content":"over","salience":1},{"content":"under","salience":0}]`,
		},
		{name: "unparseable output yields nothing", answer: `I found no JSON to write.`, want: `[]`},
		{name: "so does half of an object", answer: `[{"content":"half","sal`, want: `[]`},
		{name: "so does nothing at all", answer: "", want: `[]`},
		{
			name:   "candidates inherit source, observed and date where the model leaves them blank",
			answer: `[{"content":"a","salience":0.5,"observed":"","date":null},{"content":"b","salience":0.4,"source":"model"}]`,
			turn:   extract.Turn{Text: "t", Source: "owner", Observed: "stated", Date: "2026-02-01"},
			want: `[{"content":"a","salience":0.5,"source":"owner","observed":"stated","date":"2026-02-01"},
				{"content":"b","salience":0.4,"source":"model","observed":"stated","date":"2026-02-01"}]`,
		},
		{
			name:   "DefaultObserved is the final fallback",
			answer: `[{"content":"a","salience":0.5},{"content":"b","salience":0.4,"observed":"stated"}]`,
			opts:   extract.Options{DefaultObserved: "inferred"},
			want:   `[{"content":"a","salience":0.5,"observed":"inferred"},{"content":"b","salience":0.4,"observed":"stated"}]`,
		},
		{
			name:   "and only that: the turn's own comes first",
			answer: `[{"content":"a","salience":0.5}]`,
			turn:   owner, opts: extract.Options{DefaultObserved: "inferred"},
			want: `[{"content":"a","salience":0.5,"source":"owner","observed":"stated"}]`,
		},
		{
			name:   "MinSalience drops what is below it",
			answer: `[{"content":"low","salience":0.49},{"content":"at","salience":0.5}]`,
			opts:   extract.Options{MinSalience: 0.5},
			want:   `[{"content":"at","salience":0.5}]`,
		},
		{
			name:   "MaxCandidates caps the sorted output",
			answer: `[{"content":"c","salience":0.1},{"content":"a","salience":0.9},{"content":"b","salience":0.5}]`,
			opts:   extract.Options{MaxCandidates: 2},
			want:   `[{"content":"a","salience":0.9},{"content":"b","salience":0.5}]`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			turn := tt.turn
			if turn.Text == "" {
				turn.Text = "a turn"
			}
			got, err := extract.New(answering(tt.answer)).ExtractSalient(t.Context(), turn, tt.opts)
			require.NoError(t, err, "never an error over an answer")
			if got == nil {
				got = []extract.Candidate{}
			}
			text, err := json.Marshal(got)
			require.NoError(t, err)
			require.JSONEq(t, tt.want, string(text))
		})
	}
}
