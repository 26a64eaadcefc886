package heuristic

import (
	"bufio"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// lifted scores a turn with the gate lifted: by its markers and, at 30 runes to
// one more, by what it says of the speaker alone.
func lifted(text string) float64 {
	d := pass(text, memories|verdicts)
	defer d.release()
	sum := &d.whole.sum
	markers := sum.support.count()
	for k := range kinds {
		markers += sum.cues[k] + sum.weak[k]
	}
	runes := 0
	for _, s := range sentences.FindAllString(text, -1) {
		var c class
		for w := range strings.FieldsSeq(strings.ReplaceAll(strings.ToLower(s), "’", "'")) {
			c |= classOf([]byte(strings.Trim(w, `.,;:!"()`)))
		}
		if !strings.HasSuffix(s, "?") && c&(first|own) != 0 && c&second == 0 {
			runes += utf8.RuneCountInString(s)
		}
	}
	return float64(min(markers, 5)-d.whole.idle) + float64(runes)/30
}

var sentences = regexp.MustCompile(`[^.!?\s][^.!?]*[.!?]*`)

// TestCurve prints what the evidence can tell of a turn at any threshold, over the
// turns of locomo_durable_turns.jsonl in $EVAL_DATA. The extractor itself has one
// threshold, which asks for precision.
func TestCurve(t *testing.T) {
	t.Parallel()
	f, err := os.Open(filepath.Join(os.Getenv("EVAL_DATA"), "locomo_durable_turns.jsonl"))
	if os.Getenv("EVAL_DATA") == "" || os.IsNotExist(err) {
		t.Skip("no locomo_durable_turns.jsonl: set EVAL_DATA to the folder of the development sets")
	}
	require.NoError(t, err)
	defer f.Close()
	type turn struct {
		score   float64
		durable bool
	}
	var turns []turn
	durable := 0.0
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var r row
		require.NoError(t, json.Unmarshal(sc.Bytes(), &r))
		turns = append(turns, turn{lifted(r.Text), r.Durable})
		if r.Durable {
			durable++
		}
	}
	slices.SortFunc(turns, func(a, b turn) int { return cmp.Compare(b.score, a.score) })
	best, step := 0.0, 8.0
	var s score
	for i, u := range turns {
		if i > 0 && u.score != turns[i-1].score {
			best = max(best, s.f1())
			for ; step > u.score; step -= 0.5 {
				t.Logf("score >= %.1f: P %.3f R %.3f F1 %.3f", step, s.precision(), s.recall(), s.f1())
			}
		}
		if u.durable {
			s.hit++
		} else {
			s.wrong++
		}
		s.missed = durable - s.hit
	}
	t.Logf("best F1 %.3f", best)
	require.GreaterOrEqual(t, best, .68)
}
