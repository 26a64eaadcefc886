package extract_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/extract"
)

// hostile are the units and tails of texts that cost much to read.
var hostile = []struct{ name, head, unit, tail string }{
	{"brackets", "", "[", ""},
	{"braces", "", "{", ""},
	{"spaced brackets", "", "[ ", ""},
	{"arrays with a number", "", "[1,", ""},
	{"closed arrays", "", "[1]", ""},
	{"objects", "", `{"a":`, ""},
	{"objects in arrays", "", `[{"a":`, ""},
	{"items in meta", "", `{"content":"a","salience":1,"meta":`, ""},
	{"items in lists", "", `[{"content":"a","salience":1},`, ""},
	{"broken items", "[", `{"content":"a" 1},`, ""},
	{"unclosed broken items", "", `{"content":"a" 1 `, ""},
	{"quotes", "", `"`, ""},
	{"quotes in an array", "[", `"`, ""},
	{"quoted arrays", "", `["`, ""},
	{"single quotes", "", `['`, ""},
	{"curly quotes", "[", "“", ""},
	{"inner quotes", `[{"content":"`, `" x`, `"}]`},
	{"commas and quotes", `[{"content":"`, `", `, `"}]`},
	{"keys", `[{"content":"`, `"content":`, `"}]`},
	{"empty keys", "{", `"":`, ""},
	{"backslashes", "", `\`, ""},
	{"backslashes in a string", `["`, `\`, ""},
	{"escaped quotes", "", `\"`, ""},
	{"escaped brackets", "", `[\"`, ""},
	{"unicode escapes", `["`, `\ud83d`, ""},
	{"entities", "", "&quot;", ""},
	{"entity brackets", "", "[{&quot;", ""},
	{"numbers", "[", "NaN,", ""},
	{"numbers of prose", "", "[NaN x", ""},
	{"long number", "[", "1", ""},
	{"long word", "[", "a", ""},
	{"comments", "[", "/*", ""},
	{"comments after quotes", `[{"content":"`, `"/* `, ""},
	{"line comments", `["`, `"//`, ""},
	{"hashes", `["`, `" # `, ""},
	{"spaces", "[", " ", ""},
	{"spaces after quotes", `[{"a":"`, `"      `, ""},
	{"commas", "[", ",", ""},
	{"dots", "[", ".", ""},
	{"colons", "{", ":", ""},
	{"stray closers", "[[],", "}", ""},
	{"fences", "", "```a", ""},
	{"backticks", "", "`", ""},
	{"reasoning", "", "<think>", ""},
	{"reasoning, closed", "", "</think>", ""},
	{"angles", "", "<", ""},
	{"digits", "", "1", ""},
	{"check boxes", "", "- [ ] ", ""},
	{"empty lists", "", "[] x ", ""},
	{"items", "[", `{"content":"a","salience":1},`, "]"},
	{"wrappers", "{", `"memories":[],`, "}"},
	{"strings in strings", `["`, `[\"`, `"]`},
	{"zero width", "", "\u200b[", ""},
	{"invalid bytes", "[", "\xff", ""},
}

// The work grows with the length of the text, not faster.
func TestParseStepsAreLinear(t *testing.T) {
	t.Parallel()
	const size, times = 32 << 10, 4
	for _, h := range hostile {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			text := func(size int) string { return h.head + strings.Repeat(h.unit, size/len(h.unit)) + h.tail }
			_, one, _ := extract.ParseSteps(text(size))
			_, many, limit := extract.ParseSteps(text(times * size))
			require.LessOrEqual(t, many, (times+1)*one+4096)
			require.LessOrEqual(t, many, limit+size)
		})
	}
}

// Of a huge text only the beginning costs anything.
func TestParseHugeTexts(t *testing.T) {
	t.Parallel()
	const size = 10 << 20
	for _, unit := range []string{"[", "{", `"`, `\`, `{"a":`, `["`, "[[[1],", "NaN", "[NaN,", "&quot;", "[{&quot;", "```\n[", "<think"} {
		t.Run(unit, func(t *testing.T) {
			t.Parallel()
			raw := strings.Repeat(unit, size/len(unit))
			outcome, taken, limit := extract.ParseSteps(raw)
			require.Less(t, limit, size*5, "only the beginning is read")
			require.LessOrEqual(t, taken, limit)
			require.Equal(t, extract.OutcomeUnparseable, outcome)
		})
	}
}

func TestParseReadsFourMebibytes(t *testing.T) {
	t.Parallel()
	const limit = 4 << 20
	answer := `{"content":"Ines keeps bees","salience":0.7}`
	for _, tc := range []struct{ before, want int }{{limit - len(answer), 1}, {limit - len(answer) + 1, 0}} {
		got, _ := extract.Parse(strings.Repeat("x", tc.before)+answer, extract.Turn{}, extract.Options{})
		require.Len(t, got, tc.want)
	}
}

func TestParseKeepsThousandItems(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("[")
	for i := range 1500 {
		fmt.Fprintf(&b, `{"content":"fact %d","salience":0.5},{"content":"fact %d","salience":0.5},`, i, i)
	}
	b.WriteString("]")
	got, rep := extract.Parse(b.String(), extract.Turn{}, extract.Options{})
	require.Len(t, got, 1000)
	require.Equal(t, extract.Report{Outcome: extract.OutcomeOK, Duplicates: 1000, Skipped: 1000}, rep)
}

// A bracketed value of more than 131,072 values is cut there: memory is bounded.
func TestParseCountsValues(t *testing.T) {
	t.Parallel()
	item := `{"content":"Ines keeps bees","salience":0.7}`
	for _, tc := range []struct{ numbers, want int }{{1000, 2}, {1 << 17, 1}} {
		got, _ := extract.Parse("["+item+","+strings.Repeat("1,", tc.numbers)+strings.ReplaceAll(item, "bees", "hens")+"]",
			extract.Turn{}, extract.Options{})
		require.Len(t, got, tc.want)
	}
}

// A nesting of 64 is read. One deeper costs the item and not its neighbours.
func TestParseNesting(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ depth, want int }{{62, 2}, {63, 1}, {5000, 1}} {
		deep := strings.Repeat(`{"a":`, tc.depth) + "1" + strings.Repeat("}", tc.depth)
		got, rep := extract.Parse(`[{"content":"deep","salience":0.9,"meta":`+deep+`},{"content":"flat","salience":0.5}]`,
			extract.Turn{}, extract.Options{})
		require.Len(t, got, tc.want, tc.depth)
		require.Equal(t, 2-tc.want, rep.Skipped)
	}
}

// Brackets before an answer do not hide it, however many they are.
func TestParseSeesBehindOpenBrackets(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"[", "[ ", "[1,"} {
		for n := range 200 {
			raw := strings.Repeat(unit, n) + `{"content":"Ines keeps bees","salience":0.7,"tags":["bees"]}`
			got, _ := extract.Parse(raw, extract.Turn{}, extract.Options{})
			require.Len(t, got, 1, "%d times %q", n, unit)
		}
	}
}
