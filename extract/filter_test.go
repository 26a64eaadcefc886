package extract_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/extract"
)

func TestFilter(t *testing.T) {
	t.Parallel()
	turn := extract.Turn{Source: "owner", Observed: "stated", Date: "2026-06-01"}
	for _, tc := range []struct {
		name  string
		turn  extract.Turn
		opts  extract.Options
		in    []extract.Candidate
		wants []extract.Candidate
	}{
		{name: "nothing"},
		{
			name: "blank fields inherit, others stay",
			turn: turn,
			in: []extract.Candidate{
				{Content: "a", Salience: 0.5, Source: " \u200b", Date: "2025-01-01"},
				{Content: "b", Salience: 0.5, Source: "bob", Observed: "inferred"},
			},
			wants: []extract.Candidate{
				{Content: "a", Salience: 0.5, Source: "owner", Observed: "stated", Date: "2025-01-01"},
				{Content: "b", Salience: 0.5, Source: "bob", Observed: "inferred", Date: "2026-06-01"},
			},
		},
		{
			name:  "the default comes after the turn",
			turn:  turn,
			opts:  extract.Options{DefaultObserved: "inferred"},
			in:    []extract.Candidate{{Content: "a", Salience: 1}},
			wants: []extract.Candidate{{Content: "a", Salience: 1, Source: "owner", Observed: "stated", Date: "2026-06-01"}},
		},
		{
			name:  "the default is the last resort",
			turn:  extract.Turn{Observed: " ", Source: "\t"},
			opts:  extract.Options{DefaultObserved: "inferred"},
			in:    []extract.Candidate{{Content: "a", Salience: 1, Source: " "}},
			wants: []extract.Candidate{{Content: "a", Salience: 1, Observed: "inferred"}},
		},
		{
			name: "salience is clamped, NaN and blank contents go",
			in: []extract.Candidate{
				{Content: "nan", Salience: math.NaN()},
				{Content: "low", Salience: math.Inf(-1)},
				{Content: " \n\u2060", Salience: 0.9},
				{Content: "high", Salience: 7},
			},
			wants: []extract.Candidate{{Content: "high", Salience: 1}, {Content: "low", Salience: 0}},
		},
		{
			name: "the floor keeps what equals it",
			opts: extract.Options{MinSalience: 0.5},
			in: []extract.Candidate{
				{Content: "a", Salience: 0.49}, {Content: "b", Salience: 0.5}, {Content: "c", Salience: 0.51},
			},
			wants: []extract.Candidate{{Content: "c", Salience: 0.51}, {Content: "b", Salience: 0.5}},
		},
		{
			name: "the cap keeps the most salient, equals in order",
			opts: extract.Options{MaxCandidates: 3},
			in: []extract.Candidate{
				{Content: "a", Salience: 0.5},
				{Content: "b", Salience: 0.5},
				{Content: "c", Salience: 0.9},
				{Content: "d", Salience: 0.5},
			},
			wants: []extract.Candidate{
				{Content: "c", Salience: 0.9}, {Content: "a", Salience: 0.5}, {Content: "b", Salience: 0.5},
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := extract.Filter(tc.in, tc.turn, tc.opts)
			require.Equal(t, tc.wants, got)
			require.Equal(t, tc.wants, extract.Filter(got, tc.turn, tc.opts), "a second time")
		})
	}
}

func TestFilterKeepsOrderOfEquals(t *testing.T) {
	t.Parallel()
	cands := make([]extract.Candidate, 100)
	for i := range cands {
		cands[i] = extract.Candidate{Content: fmt.Sprint(i), Salience: float64(i%2) / 2}
	}
	for i, c := range extract.Filter(cands, extract.Turn{}, extract.Options{}) {
		require.Equal(t, fmt.Sprint((2*i+1)%100-i/50), c.Content)
	}
}

func TestFilterDoesNotAllocate(t *testing.T) { //nolint:paralleltest // AllocsPerRun forbids it
	cands := []extract.Candidate{{Content: "a", Salience: 0.1}, {Content: "b", Salience: 0.9}, {Content: "c", Salience: 2}}
	turn := extract.Turn{Source: "owner"}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		extract.Filter(cands, turn, extract.Options{MinSalience: 0.1, MaxCandidates: 3})
	}))
}
