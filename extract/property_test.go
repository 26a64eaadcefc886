package extract_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/justfortytwo/backfill/extract"
)

// layouts are the ways in which models hand over valid items, given as JSON.
var layouts = map[string]func(items []string) string{
	"array":     list,
	"wrapper":   func(s []string) string { return `{"memories": ` + list(s) + `}` },
	"deeper":    func(s []string) string { return `{"data": {"facts": ` + list(s) + `}, "status": "ok"}` },
	"fence":     func(s []string) string { return "Here:\n```json\n" + list(s) + "\n```\nThat is [all]." },
	"prose":     func(s []string) string { return "I found [2] facts, {see}:\n\n" + list(s) + "\n\nSource: [1], {x}." },
	"reasoning": func(s []string) string { return "<think>A draft: [{\"a\": 1}] it's\n</think>\n" + list(s) },
	"lines":     func(s []string) string { return strings.Join(s, "\n") },
	"bullets":   func(s []string) string { return "- " + strings.Join(s, "\n- ") },
	"pretty":    func(s []string) string { return indent(list(s)) },
	"string":    func(s []string) string { return quote(list(s)) },
	"twice":     func(s []string) string { return quote(quote(list(s))) },
	"inString":  func(s []string) string { return `{"memories": ` + quote(list(s)) + `}` },
	"toolCall": func(s []string) string {
		return `{"name": "save", "arguments": ` + quote(`{"items": `+list(s)+`}`) + `}`
	},
	"completion": func(s []string) string {
		return `{"choices": [{"message": {"role": "assistant", "content": ` + quote(list(s)) + `}}]}`
	},
}

func list(items []string) string { return "[" + strings.Join(items, ",") + "]" }

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func indent(s string) string {
	b, err := json.MarshalIndent(json.RawMessage(s), "", "  ")
	if err != nil {
		panic(err)
	}
	return string(b)
}

// nasty holds what a content must survive: JSON, markup and halves of them.
var nasty = []string{
	`{"content": "planted", "salience": 1}`, `[{'content': 'planted', 'salience': 1}]`, `"content": "x"`,
	`\"`, `\`, `"`, `'`, `,`, `]`, `}`, `[`, `{`, ":", "</think>", "<think>", "```json\n", "```", "&quot;", "# no", "// no", "/*",
	"“", "”", "…", "...", "\n", "\t", "\u0007", "é", "🐝", "\u200d", "NaN", "null", "word", " ", "0.9", "},{", `"}]`,
}

func content() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(rapid.SampledFrom(nasty), 0, 8).Draw(t, "parts")
		return "fact " + strings.Join(parts, "") + " " + rapid.StringMatching(`[a-z]{1,6}`).Draw(t, "end")
	})
}

// memories draws a list of candidates with distinct contents.
func memories() *rapid.Generator[[]extract.Candidate] {
	one := rapid.Custom(func(t *rapid.T) extract.Candidate {
		c := extract.Candidate{
			Content:  content().Draw(t, "content"),
			Salience: float64(rapid.IntRange(0, 100).Draw(t, "salience")) / 100,
			Evidence: rapid.SampledFrom([]string{"", "a quote"}).Draw(t, "evidence"),
			Tags:     rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"fact", "a]b", `c"d`, "e}f,"}), 0, 3, rapid.ID[string]).Draw(t, "tags"),
		}
		if rapid.Bool().Draw(t, "meta") {
			c.Meta = map[string]any{"items": []any{map[string]any{"content": "hidden", "salience": 1.0}}, `k"`: content().Draw(t, "value")}
		}
		return c
	})
	return rapid.SliceOfNDistinct(one, 1, 4, func(c extract.Candidate) string { return c.Content })
}

// encode returns the items as JSON, one by one.
func encode(t require.TestingT, cands []extract.Candidate) []string {
	items := make([]string, len(cands))
	for i, c := range cands {
		b, err := json.Marshal(c)
		require.NoError(t, err)
		items[i] = string(b)
	}
	return items
}

// Valid JSON is read as encoding/json reads it, whatever a content holds.
func TestParseReadsValidAnswersExactly(t *testing.T) {
	t.Parallel()
	for name, layout := range layouts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				want := memories().Draw(t, "memories")
				raw := layout(encode(t, want))
				got, rep := extract.Parse(raw, extract.Turn{}, extract.Options{})
				want = extract.Filter(want, extract.Turn{}, extract.Options{})
				require.JSONEq(t, list(encode(t, want)), list(encode(t, got)), raw)
				require.Equal(t, extract.Report{Outcome: extract.OutcomeOK}, rep)
			})
		})
	}
}

// An answer that is cut anywhere never yields a memory the whole does not hold.
func TestParsePrefixesInventNothing(t *testing.T) {
	t.Parallel()
	for name, layout := range layouts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				cands := memories().Draw(t, "memories")
				whole := layout(encode(t, cands))
				known := map[string]float64{}
				for _, c := range cands {
					known[c.Content] = c.Salience
				}
				at := rapid.IntRange(0, len(whole)).Draw(t, "cut")
				got, _ := extract.Parse(whole[:at], extract.Turn{}, extract.Options{})
				// Running out of steps is a cut, too.
				got = append(got, extract.ParseWithin(whole, rapid.IntRange(0, 3*len(whole)).Draw(t, "steps"))...)
				for _, c := range got {
					require.Contains(t, known, c.Content, whole[:at])
					require.InDelta(t, known[c.Content], c.Salience, 0, whole[:at])
				}
			})
		})
	}
}

// Every prefix of one hard answer, in every layout.
func TestParseEveryPrefix(t *testing.T) {
	t.Parallel()
	cands := []extract.Candidate{
		{Content: `He wrote [{"content": "planted", "salience": 1}] in chat`, Salience: 0.95, Tags: []string{"fact", "x"}},
		{Content: "```json [{'content': 'planted', 'salience': 1}] </think> &quot;", Salience: 0.5},
		{Content: `Ends in \`, Salience: 0.25, Meta: map[string]any{"items": []any{map[string]any{"content": "hidden", "salience": 1}}}},
		{Content: "caf\u00e9 🐝, it's", Salience: 0.125, Date: "2026-06-01"},
	}
	known := map[string]float64{}
	for _, c := range cands {
		known[c.Content] = c.Salience
	}
	for name, layout := range layouts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := layout(encode(t, cands))
			most := 0
			for at := range len(whole) + 1 {
				got, rep := extract.Parse(whole[:at], extract.Turn{}, extract.Options{})
				for _, c := range got {
					require.Contains(t, known, c.Content, whole[:at])
					require.InDelta(t, known[c.Content], c.Salience, 0, whole[:at])
				}
				require.GreaterOrEqual(t, len(got), most, "a longer prefix lost items: %s", whole[:at])
				require.Equal(t, len(got) > 0, rep.Outcome == extract.OutcomeOK)
				most = len(got)
			}
			require.Len(t, cands, most)
		})
	}
}

// tokens are the words of answers, of prose and of every repair.
var tokens = append([]string{
	`{"content": "Ines keeps bees", "salience": 0.7}`, `{"memories": [`, `"content"`, `"salience"`, "'content'", "content:",
	`"tags": [`, `"meta": {`, `"date":`, "0.7", "-1", "1e999", "80%", "8/10", ".5", "None", "True", "Infinity", "\x00", "\\u0000",
	"\\ud83d", "\xff", "\\", "“content”", "[]", "[[", "]]", "{{", "- ", "1. ", "<thinking>", "</thinking>", "[THINK]", "<|channel|>final",
	"~~~", "&amp;", `{\"content\": \"x\", \"salience\": 1}`, `"type": "object"`, `"properties": {`, "\ufeff", "\u00a0", "->",
}, nasty...)

func checkSound(t require.TestingT, raw string) {
	got, rep := extract.Parse(raw, extract.Turn{}, extract.Options{})
	require.Equal(t, len(got) > 0, rep.Outcome == extract.OutcomeOK)
	require.LessOrEqual(t, len(got), 1000)
	for i, c := range got {
		require.NotEmpty(t, strings.TrimSpace(c.Content))
		require.True(t, c.Salience >= 0 && c.Salience <= 1, "salience %v", c.Salience)
		require.True(t, i == 0 || got[i-1].Salience >= c.Salience, "not sorted")
		encoded, err := json.Marshal(c)
		require.NoError(t, err)
		require.NotContains(t, strings.ReplaceAll(string(encoded), `\\`, ""), `\u0000`)
		for _, s := range append([]string{c.Content, c.Source, c.Observed, c.Date, c.Evidence}, c.Tags...) {
			require.True(t, utf8.ValidString(s))
		}
	}
}

func TestParseTokenSoup(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		soup := strings.Join(rapid.SliceOfN(rapid.SampledFrom(tokens), 0, 60).Draw(t, "soup"), "")
		checkSound(t, soup)
		extract.ParseWithin(soup, rapid.IntRange(0, 2*len(soup)).Draw(t, "steps"))
	})
}

func FuzzParse(f *testing.F) {
	for _, row := range parseRows(f) {
		if row.Raw != nil {
			f.Add(*row.Raw)
		}
	}
	for _, token := range tokens {
		f.Add(token)
	}
	f.Fuzz(func(t *testing.T, raw string) { checkSound(t, raw) })
}
