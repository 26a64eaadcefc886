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

// short is a reach that makes many steps of few captures: ten batches of two.
var short = reach{look: 40, take: 20}

// A planner that dies between two steps is taken up by the next: every capture
// is planned, none twice, in the run's order.
func TestPlanResumes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		captures int
		order    Order
		limit    int64
	}{
		"a part of a step":        {captures: 91, order: Oldest},
		"whole steps":             {captures: 80, order: Oldest},
		"newest first":            {captures: 91, order: Newest},
		"the first ones":          {captures: 91, order: Oldest, limit: 45},
		"the last ones":           {captures: 91, order: Newest, limit: 45},
		"as many as in two steps": {captures: 91, order: Newest, limit: 40},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := planned(t, tt.captures)
			run, err := b.store.CreateRun(t.Context(), NewRun{
				Kind: KindRun, Extractor: 1, Reprocess: ReprocessMissing, Order: tt.order, Filter: Filter{Limit: tt.limit},
			})
			require.NoError(t, err)

			more, err := b.store.planStep(t.Context(), run, short)
			require.NoError(t, err)
			require.True(t, more)
			require.Equal(t, int64(10), b.run(run).Batches)
			require.Equal(t, "planning", b.run(run).State, "not done yet")

			for steps := 0; more; steps++ {
				more, err = b.store.planStep(t.Context(), run, short)
				require.NoError(t, err)
				require.Less(t, steps, 100, "it begins again and again")
			}
			got := b.run(run)
			require.Equal(t, "running", got.State)
			want := int64(tt.captures)
			if tt.limit > 0 {
				want = tt.limit
			}
			require.Equal(t, want, got.Total)
			require.Equal(t, (want+1)/2, got.Batches)
			require.Equal(t, want, query[int64](b, "select backfill.size(range_agg(ids)) from backfill.batch"), "none twice")
			if tt.limit > 0 && tt.order == Newest {
				require.Equal(t, int64(tt.captures)-want+1, query[int64](b, "select min(lower(ids)) from backfill.batch"))
			}

			// What is claimed first is what comes first.
			var claimed []int64
			for _, c := range b.claim(1000) {
				claimed = append(claimed, c.IDs...)
			}
			require.Len(t, claimed, int(want))
			inOrder := query[bool](b, `select coalesce(bool_and(case $1 when 'newest' then lower(ids) < before else lower(ids) > before end), true)
				from (select ids, lag(lower(ids)) over (order by due, id) as before from backfill.batch) b where before is not null`, tt.order)
			require.True(t, inOrder)

			require.NoError(t, b.store.Plan(t.Context(), run))
			require.Equal(t, got.Batches, b.run(run).Batches, "a run that is planned stays as it is")

			// Another run finds all of it in open batches.
			second := b.createRun(ReprocessMissing)
			require.NoError(t, b.store.Plan(t.Context(), second))
			require.Equal(t, int64(tt.captures)-want, b.run(second).Total)
		})
	}
}

// The planner stops where its run was paused, and a paused run is left alone.
func TestPlanPaused(t *testing.T) {
	t.Parallel()
	b := planned(t, 40)
	run := b.createRun(ReprocessMissing)
	_, err := b.store.planStep(t.Context(), run, short)
	require.NoError(t, err)
	require.Len(t, b.claim(1), 1, "work begins while it is planned")

	b.exec("update backfill.run set state = 'pausing' where id = $1", run)
	b.exec("update backfill.run set state = 'paused' where id = $1", run)
	require.NoError(t, b.store.Plan(t.Context(), run))
	require.Equal(t, "paused", b.run(run).State)
	require.Equal(t, int64(10), b.run(run).Batches)

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
	require.Equal(t, []string{"plan"}, query[[]string](b, "select array_agg(kind) from river.river_job"), "the workers are to go on planning")
	_, err = b.store.Sweep(t.Context())
	require.NoError(t, err)
	require.Len(t, b.claim(10), 9)
	require.NoError(t, b.store.Plan(t.Context(), run))
	require.Equal(t, int64(40), b.run(run).Total)
}

// Planners of one run take turns.
func TestPlanTogether(t *testing.T) {
	t.Parallel()
	b := planned(t, 200)
	run := b.createRun(ReprocessMissing)
	errs := make(chan error, 4)
	for range cap(errs) {
		go func() {
			for {
				more, err := b.store.planStep(b.Context(), run, short)
				if err != nil || !more {
					errs <- err
					return
				}
			}
		}()
	}
	for range cap(errs) {
		require.NoError(t, <-errs)
	}
	require.Equal(t, "running", b.run(run).State)
	require.Equal(t, int64(200), b.run(run).Total)
	require.Equal(t, int64(100), b.run(run).Batches)
	require.Equal(t, int64(200), query[int64](b, "select backfill.size(range_agg(ids)) from backfill.batch"))
}

// Whoever inserts a run, in psql for instance, has it planned.
func TestPlanIsAnnounced(t *testing.T) {
	t.Parallel()
	b := planned(t, 3)
	b.exec("insert into backfill.run (kind, extractor_id, reprocess) values ('run', 1, 'missing')")
	require.Equal(t, []string{"plan, available"}, query[[]string](b, "select array_agg(kind || ', ' || state) from river.river_job where queue = kind"))
	runs, err := b.store.PlanningRuns(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int64{1}, runs)

	// What nobody could plan has failed, and says why.
	b.exec(`insert into backfill.run (kind, extractor_id, reprocess, filter) values ('run', 1, 'missing', '{"since": 5}')`)
	require.ErrorContains(t, b.store.Plan(t.Context(), 2), "its filter cannot be read")
	require.Contains(t, *b.run(2).Error, "its filter cannot be read")
	require.Equal(t, "failed", b.run(2).State)
	b.exec(`insert into backfill.run (kind, extractor_id, reprocess) values ('run', 2, 'missing')`)
	require.ErrorContains(t, b.store.Plan(t.Context(), 3), "the llm extractor has no version yet")
	require.Equal(t, "failed", b.run(3).State)
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
