package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const testVersion = "test-1"

// planned is a database with captures that nothing is queued for, two to a batch.
func planned(t *testing.T, captures int) *testBundle {
	t.Helper()
	b := setup(t)
	b.exec("update backfill.extractor set on_insert = false, batch_size = 2, version = $1 where id = 1", testVersion)
	b.exec("insert into backfill.intake (source, text) select 'test', 'text ' || g from generate_series(1, $1::integer) g", captures)
	require.Zero(t, query[int64](b, "select count(*) from backfill.batch"))
	return b
}

func (b *testBundle) createRun(mode Reprocess) int64 {
	b.Helper()
	run, err := b.store.CreateRun(b.Context(), NewRun{Kind: KindRun, Extractor: 1, Reprocess: mode})
	require.NoError(b, err)
	return run
}

func (b *testBundle) run(id int64) Run {
	b.Helper()
	run, err := b.store.Run(b.Context(), id)
	require.NoError(b, err)
	return run
}

func (b *testBundle) claim(limit int) []Batch {
	b.Helper()
	batches, err := b.store.Claim(b.Context(), Claim{
		Extractor: 1, Version: testVersion, MaxPrio: PrioRun, Limit: limit, Lease: time.Minute, Worker: "test",
	})
	require.NoError(b, err)
	return batches
}

// A planner that dies between two chunks is taken up by the next: every capture
// is planned, none twice.
func TestPlanResumes(t *testing.T) {
	t.Parallel()
	const chunk = 2 * planBatches
	for name, captures := range map[string]int{"a part of a chunk": 2*chunk + 51, "whole chunks": 3 * chunk} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := planned(t, captures)
			run := b.createRun(ReprocessMissing)
			require.Equal(t, "planning", b.run(run).State)

			more, err := b.store.planChunk(t.Context(), run)
			require.NoError(t, err)
			require.True(t, more)
			require.Equal(t, int64(planBatches), b.run(run).Batches)
			require.Equal(t, "planning", b.run(run).State, "not done yet")

			require.NoError(t, b.store.Plan(t.Context(), run))
			got := b.run(run)
			require.Equal(t, "running", got.State)
			require.Equal(t, int64(captures), got.Total)
			require.Equal(t, int64((captures+1)/2), got.Batches)
			require.True(t, query[bool](b, `
				select sum(backfill.size(ids)) = $1::bigint and backfill.size(range_agg(ids)) = $1::bigint from backfill.batch`, captures),
				"every capture, none twice")
			require.LessOrEqual(t, query[int64](b, "select max(captures) from backfill.batch"), int64(2))

			require.NoError(t, b.store.Plan(t.Context(), run))
			require.Equal(t, got.Batches, b.run(run).Batches, "a run that is planned stays as it is")

			// Another run finds all of it in open batches.
			second := b.createRun(ReprocessMissing)
			require.NoError(t, b.store.Plan(t.Context(), second))
			require.Equal(t, "succeeded", b.run(second).State)
			require.Zero(t, b.run(second).Total)
		})
	}
}

// The planner stops where its run was paused, and a paused run is left alone.
func TestPlanPaused(t *testing.T) {
	t.Parallel()
	const chunk = 2 * planBatches
	b := planned(t, 2*chunk)
	run := b.createRun(ReprocessMissing)
	_, err := b.store.planChunk(t.Context(), run)
	require.NoError(t, err)
	require.Len(t, b.claim(1), 1, "work begins while it is planned")

	b.exec("update backfill.run set state = 'pausing' where id = $1", run)
	b.exec("update backfill.run set state = 'paused' where id = $1", run)
	require.NoError(t, b.store.Plan(t.Context(), run))
	require.Equal(t, "paused", b.run(run).State)
	require.Equal(t, int64(planBatches), b.run(run).Batches)

	require.Empty(t, b.claim(10))
	due, err := b.store.AnyDue(t.Context(), 1, testVersion, PrioRun)
	require.NoError(t, err)
	require.False(t, due, "nor does the re-check of an empty claim see it")
	n, err := b.store.Unfinished(t.Context(), 1, testVersion)
	require.NoError(t, err)
	require.Equal(t, int64(2), n, "only what is leased is waited for")
	b.exec("delete from river.river_job")
	_, err = b.store.Sweep(t.Context())
	require.NoError(t, err)
	require.Zero(t, query[int64](b, "select count(*) from river.river_job"), "nor does the sweep wake anybody for it")

	b.exec("update backfill.run set state = 'planning' where id = $1", run)
	require.Len(t, b.claim(10), 10)
}

func TestPlanSelects(t *testing.T) {
	t.Parallel()
	b := planned(t, 6)
	// 1 and 2 done, 2 by an older version, 3 dead, 4 waiting for a retry, 5 and 6 missing.
	b.exec(`insert into backfill.extraction (capture_id, extractor_id, version, state, outcome, next_attempt_at) values
		(1, 1, $1, 'done', 'empty', null), (2, 1, 'older', 'done', 'empty', null),
		(3, 1, $1, 'dead', 'panic', null), (4, 1, $1, 'retry', 'panic', now() + interval '1 hour')`, testVersion)
	for _, tt := range []struct {
		mode    Reprocess
		want    []int64
		replace bool
	}{
		{ReprocessMissing, []int64{5, 6}, false},
		{ReprocessFailed, []int64{3}, false},
		{ReprocessStale, []int64{2}, true},
		{ReprocessAll, []int64{1, 2, 3, 4, 5, 6}, true},
	} {
		run := b.createRun(tt.mode)
		require.NoError(t, b.store.Plan(t.Context(), run))
		require.Equal(t, tt.want, query[[]int64](b, `
			select array_agg(c order by c) from backfill.batch, unnest(ids) r, generate_series(lower(r), upper(r) - 1) c
			where run_id = $1`, run), tt.mode)
		require.Equal(t, tt.replace, query[bool](b, "select bool_and(mode = 'replace') from backfill.batch where run_id = $1", run), tt.mode)
		b.exec("delete from backfill.batch")
	}
	_, err := b.store.Run(t.Context(), 999)
	require.ErrorIs(t, err, ErrNoRun)
}

// The nightly of one night exists once, whoever creates it.
func TestCreateRunOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	nightly := NewRun{Kind: KindNightly, Extractor: 1, Reprocess: ReprocessMissing, LocalDate: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}
	_, err := b.store.CreateRun(t.Context(), nightly)
	require.NoError(t, err)
	_, err = b.store.CreateRun(t.Context(), nightly)
	require.ErrorIs(t, err, ErrRunExists)
	nightly.Extractor = 2
	_, err = b.store.CreateRun(t.Context(), nightly)
	require.NoError(t, err, "another slot has its own")
	b.createRun(ReprocessAll)
	b.createRun(ReprocessAll)
}
