package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSet(t *testing.T) {
	t.Parallel()
	b := planned(t, 5)
	ctx := t.Context()
	run, err := b.store.CreateRun(ctx, NewRun{Kind: KindRun, Extractor: 1, Reprocess: ReprocessMissing, Settings: Settings{BatchSize: 3, MaxCost: 5}})
	require.NoError(t, err)
	deadline := time.Date(2026, 3, 1, 5, 0, 0, 0, time.UTC)
	set, err := b.store.Set(ctx, run, "me", func(s *Settings) { s.Concurrency, s.MaxCost, s.Deadline, s.BatchSize = 2, 0, deadline, 4 })
	require.NoError(t, err)
	want := Settings{Concurrency: 2, BatchSize: 4, Deadline: deadline}
	require.Equal(t, want, set)
	require.Equal(t, want, b.run(run).Settings)
	require.True(t, query[bool](b, "select (settings->>'deadline')::timestamptz = $2 from backfill.run where id = $1", run, deadline))

	_, err = b.store.Set(ctx, run, "me", func(*Settings) {})
	require.NoError(t, err)
	events, err := b.store.Events(ctx, run)
	require.NoError(t, err)
	require.Len(t, events, 1, "no change, no event")
	require.Equal(t, "batch-size: 3 → 4, concurrency: none → 2, deadline: none → 2026-03-01T05:00:00Z, max-cost: 5 → none", events[0].Reason)
	require.Equal(t, []string{"me", "planning", "planning"}, []string{events[0].Who, events[0].From, events[0].To})

	// The planner obeys the size; then it is too late for it.
	require.NoError(t, b.store.Plan(ctx, run))
	require.Equal(t, []int32{4, 1}, query[[]int32](b, "select array_agg(captures order by id) from backfill.batch"))
	_, err = b.store.Set(ctx, run, "me", func(s *Settings) { s.BatchSize = 1 })
	require.ErrorIs(t, err, ErrPlanned)
	for _, wrong := range []Settings{{Concurrency: -1}, {Concurrency: 1001}, {BatchSize: 10_001}, {MaxCost: -1}, {MaxErrorRate: 1.5}} {
		_, err = b.store.Set(ctx, run, "me", func(s *Settings) { *s = wrong })
		require.ErrorContains(t, err, ": use ")
		_, err = b.store.CreateRun(ctx, NewRun{Kind: KindRun, Extractor: 1, Reprocess: ReprocessMissing, Settings: wrong})
		require.ErrorContains(t, err, ": use ")
	}
	// Nor can anybody else make a run unreadable.
	for _, wrong := range []string{`{"concurrency": "x"}`, `{"concurrency": 0}`, `{"batch_size": 1.5e9}`, `{"deadline": "soon"}`, `{"max_cost": -1}`, `{"max_error_rate": 2}`, `{"else": 1}`, `[]`} {
		_, err = b.pool.Exec(ctx, "update backfill.run set settings = $1", wrong)
		require.True(t, IsDataError(err) || sqlState(err) == "42501", "%s: %v", wrong, err)
	}
	b.exec("update backfill.batch set state = 'done', due = null, ids = '{}'")
	require.NoError(t, b.store.SettleRun(ctx, run))
	_, err = b.store.Set(ctx, run, "me", func(s *Settings) { s.Concurrency = 1 })
	require.NoError(t, err, "it holds for failures that are tried again")
	b.exec("insert into backfill.intake (source, text) values ('test', 'one more')")
	run = b.planAll()
	require.NoError(t, b.store.CancelRun(ctx, run, Change{Who: "me"}))
	_, err = b.store.Set(ctx, run, "me", func(s *Settings) { s.Concurrency = 1 })
	require.ErrorIs(t, err, ErrRunEnded)
	_, err = b.store.Set(ctx, 99, "me", func(*Settings) {})
	require.ErrorIs(t, err, ErrNoRun)
}

func TestExtractor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec("update backfill.extractor set version = null where id = 2")
	h, err := b.store.Extractor(t.Context(), "heuristic")
	require.NoError(t, err)
	require.Equal(t, int16(1), h.ID)
	require.Equal(t, 1000, h.BatchSize)
	_, err = b.store.Extractor(t.Context(), "llm")
	require.EqualError(t, err, "the llm extractor has no version yet: configure it, then `backfill migrate up` registers it")
	_, err = b.store.Extractor(t.Context(), "gpt")
	require.EqualError(t, err, `there is no extractor "gpt": use heuristic or llm`)
}
