package heuristic

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

var seeds = []string{
	"", " ", "\x00", "\xff\xfe", "…", "`", "```", "|", "| a |", "- ", "> ", "User:", "User: \n\nAssistant: ", "a'", "'s", "’s", "C++", "a.b.c",
	"We decided to use Postgres instead of MySQL because of the joins.",
	"User: I prefer tea over coffee.\n\nAssistant: The root cause was Björk’s cache.",
	"田中さんは東京でSiemensに勤めています。", "To run it, first stop it, then start it. (Really?!)",
}

func checkResults(t *testing.T, text string, rs []Result) {
	t.Helper()
	require.LessOrEqual(t, len(rs), MaxPerExchange)
	for _, r := range rs {
		require.Contains(t, text, r.Evidence)
		require.NotEmpty(t, strings.TrimSpace(r.Content))
		require.GreaterOrEqual(t, utf8.RuneCountInString(r.Evidence), MinFactChars)
		require.GreaterOrEqual(t, r.Confidence, MinConfidence)
		require.LessOrEqual(t, r.Confidence, 1.0)
		if utf8.ValidString(text) {
			require.True(t, utf8.ValidString(r.Content) && utf8.ValidString(r.Evidence))
		}
	}
}

func checkEntities(t *testing.T, text string, es []string) {
	t.Helper()
	require.LessOrEqual(t, len(es), MaxEntities)
	seen := map[string]bool{}
	for _, e := range es {
		require.NotEmpty(t, strings.TrimSpace(e))
		require.False(t, seen[e], "twice")
		seen[e] = true
		if utf8.ValidString(text) {
			require.True(t, utf8.ValidString(e))
		}
		if !strings.ContainsRune(text, 0) {
			require.NotContains(t, e, "\x00")
		}
	}
}

func FuzzTyped(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		checkResults(t, text, Typed(text))
		if k, ok := Classify(text); ok {
			require.NotEmpty(t, k)
			n := utf8.RuneCountInString(strings.TrimSpace(text))
			require.True(t, n >= MinFactChars && n <= ClassifyMaxChars)
		}
	})
}

func FuzzEntities(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		checkEntities(t, text, Entities(text))
	})
}

// What a pass holds does not grow with the text.
func TestHugeInputMemory(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("We decided to use Postgres. Anna went home, and Oriane pushed it! ", 150_000)
	d := pass(text, memories|verdicts|names)
	defer d.release()
	require.Len(t, d.typed(), MaxPerExchange)
	require.Equal(t, []string{"postgres", "anna", "oriane"}, d.entities())
	require.LessOrEqual(t, cap(d.tokens), 2*maxSentence)
	require.LessOrEqual(t, cap(d.index.names), 2*(MaxEntities+maxWaiting))
}

// The work is linear: ten megabytes of one thing take seconds, where quadratic
// work would take hours. The bound is loose for a busy machine.
func TestHugeInputs(t *testing.T) {
	t.Parallel()
	const size = 10_000_000
	for unit, n := range map[string]int{
		"a": size, "あ": size, "\xff": size, "`": size, "|": size, "\"": size, "\n": size, ".": size,
		"A ": size / 10, "A.": size / 10, "to ": size / 10, "if ": size / 10, "- a\n": size / 10, "User: a\n\n": size / 10,
		"maybe; we decided; ": size / 10, "We decided to use Postgres. ": size / 10, "Anna, ": size / 10, "(": size / 10, "/": size / 10, "'": size / 10,
	} {
		text := strings.Repeat(unit, n/len(unit))
		start := time.Now()
		checkResults(t, text, Typed(text))
		checkEntities(t, text, Entities(text))
		Classify(text)
		require.Less(t, time.Since(start), time.Minute, "%q", unit)
	}
}
