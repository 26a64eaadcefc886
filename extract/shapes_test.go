package extract_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/extract"
)

// What the rows of testdata/parse.jsonl leave open. want holds the contents.
func TestParseShapes(t *testing.T) {
	t.Parallel()
	ok := extract.Report{Outcome: extract.OutcomeOK}
	salvaged := extract.Report{Outcome: extract.OutcomeOK, Salvaged: true}
	oneSkipped := extract.Report{Outcome: extract.OutcomeOK, Skipped: 1}
	invalid := extract.Report{Outcome: extract.OutcomeInvalidItems, Skipped: 1}
	nothing := extract.Report{Outcome: extract.OutcomeUnparseable}
	empty := extract.Report{Outcome: extract.OutcomeEmpty}
	for _, tc := range []struct {
		name, raw string
		want      []string
		rep       extract.Report
	}{
		{"typographic quotes", `[{“content”: “A “b” c”, “salience”: 0.7}]`, []string{"A “b” c"}, ok},
		{"bare keys", `{content: 'A', turn_id: 5, salience: .7,}`, []string{"A"}, ok},
		{"comma missing between items", `[{"content":"A","salience":0.7} {"content":"B","salience":0.5}]`, []string{"A", "B"}, ok},
		{"brace missing between items", `[{"content":"A","salience":0.7, {"content":"B","salience":0.5}]`, []string{"A", "B"}, ok},
		{"brace too many", `[{"content":"A","salience":0.9}}, {"content":"B","salience":0.7}]`, []string{"A", "B"}, ok},
		{"colon missing", `[{"content" "A","salience":0.4}, {"content":"B","salience":0.5}]`, []string{"B"}, oneSkipped},
		{"bare word as salience", `[{"content":"A","salience":high}, {"content":"B","salience":0.5}]`, []string{"B"}, oneSkipped},
		{"bare words as tags", `[{"content":"A","salience":1,"tags":[x, y]}, {"content":"B","salience":0.5}]`, []string{"B"}, oneSkipped},
		{"overflow", `[{"content":"A","salience":1e999}, {"content":"B","salience":0.5}]`, []string{"B"}, oneSkipped},
		{"quoted hash", `[{"content":"issue "#12" closed","salience":0.9}]`, []string{`issue "#12" closed`}, ok},
		{"quoted list", `[{"content":"reads "Dune", "Emma" and "It"","salience":0.3}]`, []string{`reads "Dune", "Emma" and "It"`}, ok},
		{"quoted braces", `[{"salience":0.4,"content":"uses {"a"} now"}]`, []string{`uses {"a"} now`}, ok},
		{"escaped throughout", `[{\"content\": \"A \\\"b\\\"\", \"salience\": 0.9}]`, []string{`A "b"`}, ok},
		{"in single quotes", `'[{"content":"A","salience":0.4}]'`, []string{"A"}, ok},
		{"array never closed", `[{"content":"A","salience":0.9}, {"content":"B","salience":0.8}` + "\n\nSee [1].", []string{"A", "B"}, salvaged},
		{"wrapper never closed", `{"memories":[{"content":"A","salience":0.9}` + "\n```\nBye", []string{"A"}, salvaged},
		{"cut inside a string of JSON", `{"memories":"[{\"content\":\"A\",\"salience\":0.4},{\"conte`, []string{"A"}, salvaged},
		{"cut under an unknown key", `{"drafts_":[{"content":"A","salience":0.4}],"mem`, nil, nothing},
		{"cut empty list", `{"memories": []`, nil, nothing},
		{"unknown wrapper key", `{"durable":[{"content":"A","salience":0.5}]}`, []string{"A"}, ok},
		{"one key for each kind", `{"decisions":[{"content":"A","salience":0.6}],"facts_":[{"content":"B","salience":0.5}]}`, []string{"A", "B"}, ok},
		{"known key beside others", `{"drafts_":[{"content":"A","salience":0.5}],"memories":[]}`, nil, empty},
		{"examples", `{"examples":[{"content":"A","salience":0.5}]}`, nil, nothing},
		{"by number", `{"1":{"content":"A","salience":0.5},"2":{"content":"B","salience":0.4}}`, []string{"A", "B"}, ok},
		{"numbered list", "1. {\"content\":\"A\",\"salience\":0.5}\n2. {\"content\":\"B\",\"salience\":0.4}", []string{"A", "B"}, ok},
		{"message with content parts", `{"content":[{"type":"text","text":"[{\"content\":\"A\",\"salience\":0.5}]"}]}`, []string{"A"}, ok},
		{"message that is no JSON", `{"role":"assistant","content":"Nothing to store."}`, nil, invalid},
		{"tool use", `{"type":"tool_use","input":{"memories":[{"content":"A","salience":0.4}]}}`, []string{"A"}, ok},
		{"empty arguments", `{"name":"save","arguments":"{\"memories\": []}"}`, nil, empty},
		{"no tool call", `{"tool_calls":[]}`, nil, nothing},
		{"renamed fields", `[{"fact":"A","importance":0.9}]`, nil, invalid},
		{"other case", `[{"Content":"A","Salience":0.9}]`, nil, invalid},
		{"error object", `{"error":{"message":"slow down","type":"rate_limit"}}`, nil, nothing},
		{"list of a list", "[[]]", nil, empty},
		{"lists too deep", "[[[[[[[[[[]]]]]]]]]]", nil, nothing},
		{"ellipsis only", "[...]", nil, nothing},
		{"check box", "- [ ] read the turn", nil, nothing},
		{"brackets of a word", "I cannot fill items[] here", nil, nothing},
		{"harmony channels", `<|channel|>analysis<|message|>[{"content":"A","salience":1}]<|end|><|start|>assistant<|channel|>final<|message|>[]`, nil, empty},
		{"nested reasoning", `<think>a<think>b</think>[{"content":"A","salience":1}]</think>[{"content":"B","salience":1}]`, []string{"B"}, ok},
		{"draft before a lone closing tag", `[{"content":"A","salience":1}]</think>[]`, nil, empty},
		{"impossible fraction", `[{"content":"A","salience":"0/0"}]`, nil, invalid},
		{"apostrophe in prose", `['tis noted. [{"content":"A","salience":0.5}]`, []string{"A"}, ok},
		{"brace missing after a string", `[{"salience":0.7,"content":"A", {"content":"B","salience":0.5}]`, []string{"A", "B"}, ok},
		{"object and prose on a line", `{"salience":0.9,"content":"A"} hope it helps`, []string{"A"}, ok},
		{"raw NUL", "[{\"content\":\"A\x00B\",\"salience\":0.9}]", []string{"AB"}, ok},
		{"fence mark in prose", "Use ``` fences.\n```json\n[{\"content\":\"A\",\"salience\":1}]\n```\nNot [{\"content\":\"B\",\"salience\":1}] here", []string{"A"}, ok},
		{"longer fence", "````json\n[{\"content\":\"A\",\"salience\":1}]\n````\nNot [{\"content\":\"B\",\"salience\":1}] here", []string{"A"}, ok},
		{"horizontal rule between", "[{\"content\":\"A\",\"salience\":1}]\n---\n[{\"content\":\"B\",\"salience\":1}]", []string{"A", "B"}, ok},
		{"empty after invalid", `[{"content":"","salience":1}] means no, so []`, nil, empty},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			cands, rep := extract.Parse(tc.raw, extract.Turn{}, extract.Options{})
			var got []string
			for _, c := range cands {
				got = append(got, c.Content)
			}
			require.Equal(t, tc.want, got)
			require.Equal(t, tc.rep, rep)
		})
	}
}

func TestParseFields(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, fields, want string }{
		{"fraction", `"salience":"4 / 5"`, `{"content":"A","salience":0.8}`},
		{"bare fraction", `"salience":8/10`, `{"content":"A","salience":0.8}`},
		{"percent", `"salience":"70 %"`, `{"content":"A","salience":0.7}`},
		{"evidence", `"salience":1,"evidence":" we A "`, `{"content":"A","salience":1,"evidence":"we A"}`},
		{"quote", `"salience":1,"evidence":"","quote":"we A"`, `{"content":"A","salience":1,"evidence":"we A"}`},
		{"other keys", `"salience":1,"supersedes":4,"kind":"fact","entities":["A"]`, `{"content":"A","salience":1}`},
		{"month", `"salience":1,"date":"2026-06"`, `{"content":"A","salience":1,"date":"2026-06"}`},
		{"local time", `"salience":1,"date":"2026-06-01 09:30"`, `{"content":"A","salience":1,"date":"2026-06-01 09:30"}`},
		{"bare date", `"salience":1,"date":2026-06-01`, `{"content":"A","salience":1}`},
		{"no leap year", `"salience":1,"date":"2026-02-29"`, `{"content":"A","salience":1}`},
		{"tags", `"salience":1,"tags":"x, y,,x "`, `{"content":"A","salience":1,"tags":["x","y"]}`},
		{"mixed tags", `"salience":1,"tags":["x",1,null,["y"],"x"]`, `{"content":"A","salience":1,"tags":["x"]}`},
		{"wrong types", `"salience":1,"tags":{"a":1},"meta":["a"],"source":5,"observed":true`, `{"content":"A","salience":1}`},
		{"meta", `"salience":1,"meta":{"n":NaN,"a\u0000b":"c\u0000d","t":True}`, `{"content":"A","salience":1,"meta":{"n":null,"ab":"cd","t":true}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, _ := extract.Parse(`[{"content":"A",`+tc.fields+`}]`, extract.Turn{}, extract.Options{})
			require.JSONEq(t, "["+tc.want+"]", marshalList(t, got))
		})
	}
}

func TestParseMetaOverlaysTurn(t *testing.T) {
	t.Parallel()
	turn := extract.Turn{Meta: map[string]any{"a": 1, "b": 2}}
	got, _ := extract.Parse(`[{"content":"A","salience":1,"meta":{"b":3}},{"content":"B","salience":0.5}]`, turn, extract.Options{})
	require.JSONEq(t, `[{"content":"A","salience":1,"meta":{"a":1,"b":3}},{"content":"B","salience":0.5,"meta":{"a":1,"b":2}}]`,
		marshalList(t, got))
	got[1].Meta["c"] = 4
	require.Equal(t, map[string]any{"a": 1, "b": 2}, turn.Meta, "candidates hold copies")
}
