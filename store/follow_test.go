package store

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A run of more batches than follow it in one step pauses at once, is worked again
// whole, and leaves nothing when it is cancelled.
func TestFollowInSteps(t *testing.T) {
	t.Parallel()
	const captures = 25_000
	b := planned(t, captures)
	ctx := t.Context()
	run, err := b.store.CreateRun(ctx, NewRun{Kind: KindRun, Extractor: 1, Reprocess: ReprocessMissing, Settings: Settings{BatchSize: 1}})
	require.NoError(t, err)
	require.NoError(t, b.store.Plan(ctx, run))
	parked := "select count(*) from backfill.batch where due = 'infinity'"

	b.exec("update backfill.run set state = 'pausing'")
	require.NoError(t, b.store.SettleRun(ctx, run))
	require.Equal(t, "paused", b.run(run).State)
	require.Zero(t, query[int64](b, parked), "the state alone decides")
	require.Empty(t, b.claim(10))
	require.Equal(t, []int64{captures, 0}, []int64{b.status().Held, b.status().Pending})
	_, err = b.store.Sweep(ctx)
	require.NoError(t, err)
	require.Equal(t, int64(10_000), query[int64](b, parked), "one step of a sweep")

	require.NoError(t, b.store.ResumeRun(ctx, run, Change{Who: "me"}))
	require.Zero(t, query[int64](b, parked))
	require.Equal(t, int64(captures), b.status().Pending)
	require.NoError(t, b.store.PauseRun(ctx, run, Change{Who: "me"}))
	require.Equal(t, int64(captures), query[int64](b, parked))
	require.NoError(t, b.store.PauseRun(ctx, run, Change{Who: "me"}), "it is paused already")

	require.NoError(t, b.store.CancelRun(ctx, run, Change{Who: "me"}))
	require.Equal(t, "cancelled", b.run(run).State)
	require.Zero(t, query[int64](b, "select count(*) from backfill.batch where due is not null"))
	require.Equal(t, []string{"me cancelling", "me cancelled"}, query[[]string](b, `
		select array_agg(who || ' ' || to_state order by id) from backfill.run_event where to_state like 'cancel%'`))
}

func (b *testBundle) status() Status {
	b.Helper()
	all, err := b.store.Status(b.Context())
	require.NoError(b, err)
	return all[0]
}

// Commands about a run, claims, heartbeats and results lock the same batches: none
// waits for the other in a circle, and no batch is claimed once the run is paused.
func TestFollowConcurrently(t *testing.T) {
	t.Parallel()
	b := planned(t, 4000)
	run := b.planAll()
	b.exec("update backfill.extractor set batch_size = 1")
	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error, 16)
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				batches, err := b.store.Claim(t.Context(), Claim{
					Extractor: 1, Version: testVersion, MaxPrio: PrioRun, Limit: 64, Lease: time.Minute, Worker: fmt.Sprint(worker),
				})
				var leases []Lease
				for _, batch := range slices.Backward(batches) { // against the order of locks
					leases = append(leases, batch.Lease)
				}
				beat := make(chan error)
				go func() { beat <- b.store.Extend(t.Context(), leases, time.Minute) }()
				if err == nil {
					err = b.store.Return(t.Context(), leases)
				}
				for _, err := range []error{err, <-beat} {
					if err != nil {
						errs <- err
						return
					}
				}
			}
		})
	}
	for range 15 {
		require.NoError(t, b.store.PauseRun(t.Context(), run, Change{Who: "me"}))
		require.Eventually(t, func() bool {
			require.NoError(t, b.store.SettleRun(t.Context(), run))
			return b.run(run).State == "paused"
		}, 20*time.Second, time.Millisecond)
		require.Zero(t, query[int64](b, "select count(*) from backfill.batch where state = 'leased'"), "claimed after it was paused")
		require.NoError(t, b.store.ResumeRun(t.Context(), run, Change{Who: "me"}))
	}
	cancel()
	wg.Wait()
	select {
	case err := <-errs:
		require.NoError(t, err)
	default:
	}
	require.Equal(t, int64(4000), b.run(run).Total)
}

// A run is not paused before a claim that began earlier has said what it took.
func TestPauseDuringClaim(t *testing.T) {
	t.Parallel()
	b := planned(t, 4)
	ctx := t.Context()
	run := b.planAll()
	tx, err := b.pool.Begin(ctx)
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	for _, step := range []struct {
		sql  string
		args []any
	}{
		{lockClaims, []any{1, PrioRun}},
		{"select set_config('backfill.capped', '{}', true)", nil},
		{claim, []any{1, PrioRun, testVersion, 1, time.Minute, "test"}},
	} {
		_, err := tx.Exec(ctx, step.sql, step.args...)
		require.NoError(t, err)
	}
	paused := make(chan error)
	go func() { paused <- b.store.PauseRun(ctx, run, Change{Who: "me"}) }()
	require.Eventually(t, func() bool {
		return query[bool](b, "select exists (select from pg_locks where locktype = 'advisory' and not granted)")
	}, 20*time.Second, 10*time.Millisecond)
	require.NoError(t, tx.Commit(ctx))
	require.NoError(t, <-paused)
	require.Equal(t, "pausing", b.run(run).State)
}

// Failures stay their run's: they are tried again when it has ended, but not when it
// was cancelled.
func TestRetriesOfARun(t *testing.T) {
	t.Parallel()
	b := planned(t, 4)
	ctx := t.Context()
	fail := func(batches []Batch) {
		for _, batch := range batches {
			w := Work{Lease: batch.Lease, RunID: batch.RunID}
			for _, id := range batch.IDs {
				w.Results = append(w.Results, Result{
					CaptureID: id, Outcome: ProviderError, Retry: true, Hash: query[string](b, "select content_hash from backfill.intake where id = $1", id),
				})
			}
			_, err := b.store.Write(ctx, Write{
				Extractor: 1, Version: testVersion, Works: []Work{w}, MaxAttempts: 5, Backoff: func(int16) time.Duration { return 0 },
			})
			require.NoError(t, err)
		}
	}
	sweep := func() {
		_, err := b.store.Sweep(ctx)
		require.NoError(t, err)
	}
	run := b.planAll()
	fail(b.claim(10))
	require.NoError(t, b.store.SettleRun(ctx, run))
	require.Equal(t, "finished_with_errors", b.run(run).State)
	b.set(run, `{"deadline": "2020-01-01T00:00:00Z"}`)
	sweep()
	again := b.claim(10)
	require.Len(t, again, 2)
	require.Equal(t, []any{PrioRetry, run}, []any{again[0].Prio, *again[0].RunID})
	require.Equal(t, int64(4), b.run(run).Total, "they are no further captures")
	fail(again)
	sweep()
	require.Equal(t, "finished_with_errors", b.run(run).State)

	// Whoever takes them up in a run of his own can cancel that.
	n, err := b.store.Retry(ctx, "me", RetryFilter{RunID: run})
	require.NoError(t, err)
	require.Zero(t, n, "they are queued")
	fail(b.claim(10))
	second, err := b.store.CreateRun(ctx, NewRun{Kind: KindRun, Extractor: 1, Reprocess: ReprocessFailed})
	require.NoError(t, err)
	b.exec("update backfill.extraction set state = 'dead', next_attempt_at = null")
	require.NoError(t, b.store.Plan(ctx, second))
	claimed := b.claim(1)
	require.Equal(t, second, *claimed[0].RunID)
	require.NoError(t, b.store.CancelRun(ctx, second, Change{Who: "me"}))
	require.Equal(t, "cancelling", b.run(second).State)
	fail(claimed)
	require.Equal(t, int64(2), query[int64](b, "select count(*) from backfill.extraction where state = 'retry'"))
	sweep()
	require.Equal(t, "cancelled", b.run(second).State)
	require.Equal(t, int64(4), query[int64](b, "select count(*) from backfill.extraction where state = 'dead'"))
	require.Empty(t, b.claim(10))

	n, err = b.store.Retry(ctx, "me", RetryFilter{RunID: second})
	require.NoError(t, err)
	require.Equal(t, int64(2), n)
	require.Nil(t, b.claim(10)[0].RunID, "a run that was cancelled gets nothing more")
	require.Equal(t, "me: 2 of its failures are tried again, outside of it", query[string](b, `
		select who || ': ' || reason from backfill.run_event where run_id = $1 order by id desc limit 1`, second))
}

// Failures that an ended run left behind can be given up; there is nothing else to
// cancel of it.
func TestCancelEndedRun(t *testing.T) {
	t.Parallel()
	b := planned(t, 4)
	ctx := t.Context()
	run := b.planAll()
	b.exec("update backfill.batch set state = 'done', due = null, ids = '{}'")
	require.NoError(t, b.store.SettleRun(ctx, run))
	var refused *RunStateError
	require.ErrorAs(t, b.store.CancelRun(ctx, run, Change{Who: "me"}), &refused)
	b.exec(`insert into backfill.extraction (capture_id, extractor_id, version, state, outcome, next_attempt_at, run_id)
		select g, 1, 'v', 'retry', 'panic', case g when 1 then now() - interval '1 minute' else now() + interval '1 hour' end, $1 from generate_series(1, 3) g`, run)
	_, err := b.store.Sweep(ctx)
	require.NoError(t, err)
	waiting, err := b.store.Waiting(ctx, run)
	require.NoError(t, err)
	require.Equal(t, int64(3), waiting)
	_, err = b.store.Undo(ctx, run, "me")
	require.ErrorAs(t, err, &refused, "they may stage something yet")

	// One of them is in hand: that is seen through, and nothing more is begun.
	claimed := b.claim(1)
	require.NoError(t, b.store.CancelRun(ctx, run, Change{Who: "me"}))
	require.Equal(t, "cancelling", b.run(run).State)
	require.ErrorIs(t, b.store.MayGoOn(ctx, claimed[0].Lease), ErrHalted)
	require.NoError(t, b.store.Return(ctx, []Lease{claimed[0].Lease}))
	require.NoError(t, b.store.SettleRun(ctx, run))
	require.Equal(t, "cancelled", b.run(run).State)
	_, err = b.store.Sweep(ctx)
	require.NoError(t, err)
	require.Equal(t, int64(3), query[int64](b, "select count(*) from backfill.extraction where state = 'dead' and outcome = 'panic'"))
	require.Empty(t, b.claim(10))
	_, err = b.store.Undo(ctx, run, "me")
	require.NoError(t, err)
}

// A capture that a worker had in hand as it vanished may have been paid for: that is on
// record also when its run is cancelled before anybody else takes it up.
func TestCancelRecordsLostCalls(t *testing.T) {
	t.Parallel()
	b := planned(t, 4)
	ctx := t.Context()
	b.exec("update backfill.extractor set name = case id when 1 then 'was heuristic' else 'was llm' end")
	b.exec("update backfill.extractor set name = 'llm' where id = 1")
	run := b.planAll()
	batch := b.claim(1)[0]
	require.NoError(t, b.store.StepInto(ctx, batch.Lease, batch.IDs[0], time.Minute))
	require.NoError(t, b.store.CancelRun(ctx, run, Change{Who: "me", Force: true}))
	require.Equal(t, "cancelled", b.run(run).State)
	require.Equal(t, []string{"1 lost"}, query[[]string](b, "select array_agg(capture_id || ' ' || class) from backfill.llm_call where run_id = $1", run))
}

// Failures of a run that rests are not tried again before it goes on.
func TestRetriesRestWithTheirRun(t *testing.T) {
	t.Parallel()
	b := planned(t, 4)
	ctx := t.Context()
	run := b.planAll()
	b.exec(`insert into backfill.extraction (capture_id, extractor_id, version, state, outcome, next_attempt_at, run_id)
		select g, 1, 'v', 'retry', 'panic', now(), $1 from generate_series(1, 2) g`, run)
	require.NoError(t, b.store.PauseRun(ctx, run, Change{Who: "me"}))
	for range 2 { // the second parks what the first has queued
		swept, err := b.store.Sweep(ctx)
		require.NoError(t, err)
		require.LessOrEqual(t, swept, int64(2))
		require.Empty(t, b.claim(10))
		due, err := b.store.AnyDue(ctx, 1, testVersion, PrioRun)
		require.NoError(t, err)
		require.False(t, due)
	}
	require.Equal(t, int64(6), b.status().Held)
	require.NoError(t, b.store.ResumeRun(ctx, run, Change{Who: "me"}))
	require.Equal(t, PrioRetry, b.claim(10)[0].Prio)
}

// Whoever takes a large run back does so in steps; a run that is at work is refused.
func TestUndoInSteps(t *testing.T) {
	t.Parallel()
	b := planned(t, 4)
	ctx := t.Context()
	run := b.planAll()
	other := b.createRun(ReprocessMissing)
	for _, state := range []string{"planning", "cancelling"} {
		b.exec("update backfill.run set state = $1 where id = $2 and state <> $1", state, other)
		var refused *RunStateError
		_, err := b.store.Undo(ctx, other, "me")
		require.ErrorAs(t, err, &refused)
	}
	for _, state := range []string{"running", "pausing"} {
		b.exec("update backfill.run set state = $1 where id = $2 and state <> $1", state, run)
		var refused *RunStateError
		_, err := b.store.Undo(ctx, run, "me")
		require.ErrorAs(t, err, &refused)
		require.ErrorContains(t, err, "`backfill pause 1`")
	}
	b.exec("update backfill.run set state = 'running' where id = $1", run)
	b.exec("delete from backfill.batch")
	require.NoError(t, b.store.SettleRun(ctx, run))
	const captures = undoCaptures + 1
	b.exec(`insert into backfill.extraction (capture_id, extractor_id, version, state, outcome, run_id, claimed_upto, handed_upto, handoff_due)
		select g, 1, 'v', 'done', 'staged', $1, handed as claimed, handed, case when handed = 0 then now() end from (select g, (g % 100 = 0)::integer as handed from generate_series(1, $2::integer) g) g`, run, captures)
	b.exec(`insert into backfill.staging (capture_id, extractor_id, ord, salience, fingerprint, content, version)
		select g, 1, 1, 0.5, md5(g::text)::uuid, 'fact', 'v' from generate_series(1, $1::integer) g`, captures)
	b.exec(`insert into backfill.batch (extractor_id, version, prio, state, due, finished_at, captures, ids, staged, candidates)
		values (1, 'v', 2, 'done', null, now(), $1, '{}', $1, $1)`, captures)
	u, err := b.store.Undo(ctx, run, "me")
	require.NoError(t, err)
	require.Equal(t, TakenBack{Captures: captures - 100, Candidates: captures - 100, Kept: 100}, u)
	require.Equal(t, int64(100), query[int64](b, "select count(*) from backfill.staging"))
	b.requireCounts()
	require.Equal(t, []string{"me: undone: 9900 candidates of 9900 captures taken back, 100 kept", "me: undone: 1 candidates of 1 captures taken back, 0 kept"},
		query[[]string](b, "select array_agg(who || ': ' || reason order by id) from backfill.run_event where reason like 'undone%'"))
}

// Many failures are queued in steps, each of which is on record with its run.
func TestRetryInSteps(t *testing.T) {
	t.Parallel()
	b := planned(t, 1)
	run := b.createRun(ReprocessFailed)
	require.NoError(t, b.store.Plan(t.Context(), run))
	require.Equal(t, "succeeded", b.run(run).State)
	const captures = 2*retryCaptures + 1
	b.exec("update backfill.extractor set batch_size = 1000")
	b.exec(`insert into backfill.extraction (capture_id, extractor_id, version, state, outcome, run_id)
		select g, 1, 'v', 'dead', 'panic', case when g % 2 = 0 then $1::bigint end from generate_series(1, $2::integer) g`, run, captures)
	n, err := b.store.Retry(t.Context(), "me", RetryFilter{Outcome: Crashed})
	require.NoError(t, err)
	require.Zero(t, n)
	n, err = b.store.Retry(t.Context(), "me", RetryFilter{})
	require.NoError(t, err)
	require.Equal(t, int64(captures), n)
	require.Equal(t, int64(captures), query[int64](b, "select backfill.size(range_agg(ids)) from backfill.batch where due <= now() and prio = 1"))
	require.Equal(t, []string{"5000 of its failures are tried again", "5000 of its failures are tried again"}, query[[]string](b, `
		select array_agg(reason) from backfill.run_event where from_state = to_state`))
}

// A run that would stop at once is not resumed, and the error says what to change.
func TestResumeRefused(t *testing.T) {
	t.Parallel()
	b := planned(t, 4)
	ctx := t.Context()
	run := b.planAll()
	refused := func(fix string) {
		t.Helper()
		var e *RunStateError
		err := b.store.ResumeRun(ctx, run, Change{Who: "me"})
		require.ErrorAs(t, err, &e)
		require.ErrorContains(t, err, fix)
	}
	b.set(run, `{"deadline": "2020-01-01T00:00:00Z"}`)
	_, err := b.store.Sweep(ctx)
	require.NoError(t, err)
	require.Equal(t, "deadline_reached", b.run(run).State)
	refused("`backfill set 1 deadline=…`")
	b.set(run, `{"max_cost": 0.01, "deadline": "2999-01-01T00:00:00Z"}`)
	require.NoError(t, b.store.ResumeRun(ctx, run, Change{Who: "me"}))

	require.NoError(t, b.store.ExhaustRun(ctx, run, MaxCostReached))
	refused("`backfill set 1 max-cost=…`")
	b.set(run, `{"max_cost": 0.01, "concurrency": 2}`)
	refused("`backfill set 1 max-cost=…`")
	b.set(run, `{"max_cost": 0.02}`)
	require.NoError(t, b.store.ResumeRun(ctx, run, Change{Who: "me"}))
	require.NoError(t, b.store.ResumeRun(ctx, run, Change{Who: "me"}), "it goes on already")
	require.Nil(t, b.run(run).Error, "what stopped it before")
	require.NoError(t, b.store.ExhaustRun(ctx, run, "the model has no price"))
	require.NoError(t, b.store.ResumeRun(ctx, run, Change{Who: "me"}), "that is mended elsewhere")
	b.exec("update backfill.run set state = 'budget_exhausted'")
	require.NoError(t, b.store.ResumeRun(ctx, run, Change{Who: "me"}), "by whoever had his reason")

	_, err = b.pool.Exec(ctx, "update backfill.run set state = 'succeeded'")
	require.ErrorContains(t, err, "has open batches")
}

// What workers leave behind is summed up while the run goes on: the latest minutes,
// open batches and small remainders stay.
func TestFoldOfARun(t *testing.T) {
	t.Parallel()
	b := planned(t, 6)
	run := b.planAll()
	ended := func(n int, state, ago string) {
		b.exec(`insert into backfill.batch (extractor_id, version, prio, run_id, state, due, started_at, finished_at, captures, ids, staged, empty, candidates, found, outcomes)
			select 1, 'v', 2, $2, $3, null, now() - interval '1 hour', now() - $4::interval, 2, case $3 when 'done' then '{}' else '{[1,2]}'::int8multirange end, 1, 1, 1, 1, '{"staged": 1, "empty": 1}'
			from generate_series(1, $1::integer)`, n, run, state, ago)
	}
	ended(1500, "done", "3 minutes")
	b.exec("update backfill.batch set started_at = started_at - interval '1 day' where id = (select min(id) from backfill.batch where state = 'done')")
	began := "select min(started_at) from backfill.batch"
	first := query[time.Time](b, began)
	ended(1500, "done", "1 minute")
	ended(999, "dead", "3 minutes")
	before, status := b.run(run), b.status()
	for range 2 {
		require.NoError(t, b.store.Fold(t.Context()))
		require.Equal(t, int64(1+1500+999+3), query[int64](b, "select count(*) from backfill.batch"))
		after := b.status()
		after.OldestPending = status.OldestPending
		require.Equal(t, status, after)
		require.Equal(t, before, b.run(run))
		require.Equal(t, first, query[time.Time](b, began), "the pace of the last runs goes by it")
	}
	require.Len(t, b.claim(10), 3)
}
