package heuristic

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/extract"
)

func TestNewRefusesCeilingUnderFloor(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, MinFactChars - 1} {
		_, err := New(WithClassifyMaxChars(n))
		require.ErrorContains(t, err, "floor of 20")
		require.ErrorContains(t, err, "MinFactChars")
	}
	for _, n := range []int{-1, 0, MinFactChars, ClassifyMaxChars, 4000} {
		_, err := New(WithClassifyMaxChars(n))
		require.NoError(t, err)
	}
}

func extracted(t *testing.T, turn extract.Turn, o extract.Options, opts ...Option) []extract.Candidate {
	t.Helper()
	e, err := New(opts...)
	require.NoError(t, err)
	cs, err := e.ExtractSalient(context.Background(), turn, o)
	require.NoError(t, err)
	return cs
}

func TestExtractSalient(t *testing.T) {
	t.Parallel()
	turn := extract.Turn{
		Text:   "We decided to use Postgres instead of MySQL in Lisbon.",
		Source: "owner", Date: "8 May, 2023", Meta: map[string]any{"k": "v"},
	}
	cs := extracted(t, turn, extract.Options{})
	require.Equal(t, []extract.Candidate{{
		Content: turn.Text, Salience: cs[0].Salience, Source: "owner", Observed: "stated", Date: "8 May, 2023",
		Tags: []string{"decision"}, Meta: turn.Meta, Kind: "decision", Evidence: turn.Text,
		Entities: []string{"postgres", "mysql", "lisbon"},
	}}, cs)

	cs[0].Meta["k"] = "changed"
	require.Equal(t, "v", turn.Meta["k"], "a candidate owns its meta")
}

func TestExtractSalientClassifiesWhole(t *testing.T) {
	t.Parallel()
	turn := extract.Turn{Text: "There was an outage. The culprit was found."}
	cs := extracted(t, turn, extract.Options{})
	require.Len(t, cs, 1, "a lone marker in each sentence, two in the whole")
	require.Equal(t, turn.Text, cs[0].Content)
	require.Equal(t, "problem", cs[0].Kind)
	require.Empty(t, extracted(t, turn, extract.Options{}, WithClassifyMaxChars(0)), "no whole-write classification")
	require.Empty(t, extracted(t, turn, extract.Options{}, WithClassifyMaxChars(40)), "over the ceiling")

	turn.Text = "We decided to use Postgres instead of MySQL. We agreed on it with Ola in May."
	require.Len(t, extracted(t, turn, extract.Options{}), 2, "each sentence a memory")
	turn.Text = "Perhaps it rains. We decided to use Postgres instead of MySQL."
	cs = extracted(t, turn, extract.Options{})
	require.Len(t, cs, 1)
	require.Equal(t, "We decided to use Postgres instead of MySQL.", cs[0].Content)
}

func TestExtractSalientObserved(t *testing.T) {
	t.Parallel()
	const (
		free       = "We decided to use Postgres instead of MySQL."
		transcript = "User: We decided to use Rust instead of Go.\n\nAssistant: The root cause of the outage was a bug in the cache."
	)
	tests := []struct {
		name, text, turn, def string
		want                  []string
	}{
		{"free-form", free, "", "", []string{"stated"}},
		{"free-form, default", free, "", "inferred", []string{"inferred"}},
		{"free-form, own", free, "stated", "inferred", []string{"stated"}},
		{"free-form, inferred", free, "inferred", "stated", []string{"inferred"}},
		{"transcript", transcript, "", "", []string{"stated", "inferred"}},
		{"transcript, default", transcript, "", "inferred", []string{"stated", "inferred"}},
		{"transcript, stated", transcript, "stated", "", []string{"stated", "inferred"}},
		{"transcript, inferred", transcript, "inferred", "", []string{"inferred", "inferred"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cs := extracted(t, extract.Turn{Text: tt.text, Observed: tt.turn}, extract.Options{DefaultObserved: tt.def})
			byKind := map[string]string{}
			for _, c := range cs {
				byKind[c.Kind] = c.Observed
			}
			got := []string{byKind["decision"]}
			if o, ok := byKind["problem"]; ok {
				got = append(got, o)
			}
			require.Equal(t, tt.want, got)
		})
	}
}

func TestExtractSalientOptions(t *testing.T) {
	t.Parallel()
	turn := extract.Turn{Text: "The outage was caused by a wet cable.\n\nWe decided to use Postgres 16 instead of MySQL because of joins.\n\nMaybe it rains."}
	all := extracted(t, turn, extract.Options{})
	require.Len(t, all, 2)
	require.Greater(t, all[0].Salience, all[1].Salience, "most salient first")
	require.Len(t, extracted(t, turn, extract.Options{MaxCandidates: 1}), 1)
	require.Len(t, extracted(t, turn, extract.Options{MinSalience: all[0].Salience}), 1)
	require.Empty(t, extracted(t, extract.Turn{Text: "hello there"}, extract.Options{}))
}

func TestExtractSalientEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	e, err := New()
	require.NoError(t, err)
	_, err = e.ExtractSalient(ctx, extract.Turn{Text: "We decided to use Postgres."}, extract.Options{})
	require.ErrorIs(t, err, context.Canceled)
}
