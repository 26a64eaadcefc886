package jobs_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/extract"
	"github.com/justfortytwo/backfill/heuristic"
	"github.com/justfortytwo/backfill/store"
)

// TestRunStates tries every change of state: the table below says which are
// allowed.
func TestRunStates(t *testing.T) {
	t.Parallel()
	allowed := map[string][]string{
		"planning":             {"running", "pausing", "cancelling", "budget_exhausted", "deadline_reached", "failed"},
		"running":              {"pausing", "cancelling", "succeeded", "finished_with_errors", "budget_exhausted", "deadline_reached", "failed"},
		"pausing":              {"paused", "running", "planning", "cancelling"},
		"paused":               {"running", "planning", "cancelling"},
		"budget_exhausted":     {"running", "planning", "cancelling"},
		"deadline_reached":     {"running", "planning", "cancelling"},
		"cancelling":           {"cancelled"},
		"cancelled":            nil,
		"succeeded":            {"cancelling"},
		"finished_with_errors": {"cancelling"},
		"failed":               nil,
	}
	b := setup(t)
	ctx := context.Background()
	for from, tos := range allowed {
		for to := range allowed {
			if from == to {
				continue
			}
			err := pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error {
				var id int64
				if err := tx.QueryRow(ctx, `insert into backfill.run (kind, extractor_id, reprocess, state) values ('run', 1, 'all', $1) returning id`, from).Scan(&id); err != nil {
					return err
				}
				_, err := tx.Exec(ctx, "update backfill.run set state = $2 where id = $1", id, to)
				return err
			})
			ok := false
			for _, a := range tos {
				ok = ok || a == to
			}
			if ok {
				require.NoError(t, err, "%s to %s", from, to)
				continue
			}
			require.ErrorContains(t, err, "it cannot become "+to, "%s to %s", from, to)
		}
	}
	require.Equal(t, query[int64](b, "select count(*) from backfill.run_edge"), query[int64](b, `
		select count(*) from backfill.run_event v join backfill.run_edge e
		on (v.from_state, v.to_state, v.reason, v.who) = (e.from_state, e.to_state, e.reason, session_user) and e.reason <> ''`))
}

// TestPause pauses, resumes and cancels a run while a worker has some of it in
// hand.
func TestPause(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec("update backfill.extractor set on_insert = false, batch_size = 1")
	b.insert("1", "2", "3", "4", "5", "6", "7", "8", "9")
	entered, gate := make(chan struct{}, 10), make(chan struct{})
	cfg := config(extractorFunc(func(t extract.Turn) []extract.Candidate {
		entered <- struct{}{}
		<-gate
		return whole(t)
	}))
	cfg.Workers = 2 // one drain for the run
	stop := b.start(cfg)
	id, err := b.store.CreateRun(context.Background(), store.NewRun{Kind: store.KindRun, Extractor: 1, Reprocess: store.ReprocessMissing})
	require.NoError(t, err)
	require.NoError(t, b.store.Plan(context.Background(), id))

	<-entered // two batches are claimed, one capture is in hand
	require.NoError(t, b.store.PauseRun(context.Background(), id, store.Change{Who: "me"}))
	require.Equal(t, int64(7), query[int64](b, "select count(*) from backfill.batch where due = 'infinity'"))
	require.Equal(t, "pausing", query[string](b, "select state from backfill.run"), "work is still in hand")
	close(gate)
	b.await(10*time.Second, "select state = 'paused' from backfill.run")
	done := query[int64](b, "select count(*) from backfill.extraction")
	require.LessOrEqual(t, done, int64(2))
	require.Equal(t, 9-done, query[int64](b, "select count(*) from backfill.batch where due = 'infinity' and state = 'pending'"))

	require.NoError(t, b.store.ResumeRun(context.Background(), id, store.Change{Who: "me"}))
	b.await(20*time.Second, "select state = 'succeeded' from backfill.run")
	b.requireInvariants()
	require.Equal(t, "me", query[string](b, "select who from backfill.run_event where to_state = 'pausing'"))
	var refused *store.RunStateError
	require.ErrorAs(t, b.store.PauseRun(context.Background(), id, store.Change{Who: "me"}), &refused)
	require.ErrorIs(t, b.store.CancelRun(context.Background(), 99, store.Change{Who: "me"}), store.ErrNoRun)
	require.Equal(t, []string{"running", "pausing", "paused", "running", "succeeded"},
		query[[]string](b, "select array_agg(to_state order by id) from backfill.run_event"))

	// Cancelled before anybody has planned it.
	stop()
	b.exec("update backfill.extraction set version = 'older'")
	id, err = b.store.CreateRun(context.Background(), store.NewRun{Kind: store.KindRun, Extractor: 1, Reprocess: store.ReprocessStale})
	require.NoError(t, err)
	require.NoError(t, b.store.CancelRun(context.Background(), id, store.Change{Who: "me"}))
	require.NoError(t, b.store.Plan(context.Background(), id), "a cancelled run is not planned any further")
	require.Equal(t, "cancelled", query[string](b, "select state from backfill.run where id = $1", id))
	require.Equal(t, int64(0), query[int64](b, "select count(*) from backfill.batch where run_id = $1", id))
}

// A batch that is worked capture by capture is given back when its run is paused.
func TestPauseSingleStep(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	b.exec("update backfill.extractor set on_insert = false")
	b.insert("1", "2", "3", "4", "5", "6", "7", "8", "9")
	id, err := b.store.CreateRun(ctx, store.NewRun{Kind: store.KindRun, Extractor: 1, Reprocess: store.ReprocessMissing})
	require.NoError(t, err)
	require.NoError(t, b.store.Plan(ctx, id))
	b.exec("update backfill.batch set attempts = 1") // its last claim came to nothing
	entered, gate := make(chan struct{}, 10), make(chan struct{})
	b.start(config(extractorFunc(func(t extract.Turn) []extract.Candidate {
		entered <- struct{}{}
		<-gate
		return whole(t)
	})))
	<-entered
	require.NoError(t, b.store.PauseRun(ctx, id, store.Change{Who: "me"}))
	close(gate)
	b.await(10*time.Second, "select state = 'paused' from backfill.run")
	require.Equal(t, int64(1), query[int64](b, "select count(*) from backfill.extraction"), "the one in hand")
	require.NoError(t, b.store.ResumeRun(ctx, id, store.Change{Who: "me"}))
	b.await(20*time.Second, "select state = 'succeeded' from backfill.run")
	b.requireInvariants()
}

// A capped run is worked by as many drains as its cap lets, without a sweep having
// to call each of them.
func TestCapIsUsed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	var inHand atomic.Int32
	var alone, crowd atomic.Bool
	pair := make(chan struct{})
	met := sync.OnceFunc(func() { close(pair) })
	cfg := config(extractorFunc(func(turn extract.Turn) []extract.Candidate {
		defer inHand.Add(-1)
		switch n := inHand.Add(1); {
		case n > 2:
			crowd.Store(true)
		case n == 2:
			met()
		}
		select {
		case <-pair:
		case <-time.After(5 * time.Second):
			alone.Store(true)
		}
		return whole(turn)
	}))
	cfg.Workers = 5
	b.start(cfg)
	b.await(20*time.Second, "select exists (select from river.river_job where kind = 'sweep' and state = 'completed')")
	b.exec("update backfill.extractor set on_insert = false")
	b.insert(slices.Repeat([]string{"one of many"}, 10)...)
	run, err := b.store.CreateRun(ctx, store.NewRun{
		Kind: store.KindRun, Extractor: 1, Reprocess: store.ReprocessMissing, Settings: store.Settings{Concurrency: 2, BatchSize: 1},
	})
	require.NoError(t, err)
	require.NoError(t, b.store.Plan(ctx, run))
	b.await(30*time.Second, "select state = 'succeeded' from backfill.run where id = $1", run)
	require.False(t, alone.Load(), "nobody joined in")
	require.False(t, crowd.Load(), "more than the cap")
}

// What one process has its hands full of is shared with the next, without a sweep:
// a call that reaches the busy one is passed on.
func TestProcessesShareARun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	b.exec("update backfill.extractor set on_insert = false, batch_size = 1")
	gate := make(chan struct{})
	var in [2]atomic.Bool
	for i := range in {
		cfg := config(extractorFunc(func(turn extract.Turn) []extract.Candidate {
			in[i].Store(true)
			<-gate
			return whole(turn)
		}))
		cfg.Workers, cfg.Name = 2, strconv.Itoa(i)
		b.start(cfg)
	}
	t.Cleanup(func() { close(gate) })
	b.await(20*time.Second, "select exists (select from river.river_job where kind = 'sweep' and state = 'completed')")
	b.insert(slices.Repeat([]string{"one of many"}, 100)...)
	run, err := b.store.CreateRun(ctx, store.NewRun{Kind: store.KindRun, Extractor: 1, Reprocess: store.ReprocessMissing})
	require.NoError(t, err)
	require.NoError(t, b.store.Plan(ctx, run))
	require.Eventually(t, func() bool { return in[0].Load() && in[1].Load() }, 8*time.Second, 10*time.Millisecond)
}

func TestUndo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := context.Background()
	b.exec("update backfill.extractor set on_insert = false")
	b.insert("one", "two", " ")
	b.start(config(extractorFunc(whole)))
	run := b.run(store.ReprocessMissing)
	b.exec("select count(*) from backfill.claim_candidates('memory', 1)")
	undone, err := b.store.Undo(ctx, run.ID, "me")
	require.NoError(t, err)
	require.Equal(t, store.TakenBack{Captures: 1, Candidates: 1, Kept: 1}, undone)
	require.Equal(t, []string{"staged", "undone", "skipped"}, query[[]string](b, "select array_agg(outcome order by capture_id) from backfill.extraction"))
	b.requireInvariants()
	require.Zero(t, b.run(store.ReprocessMissing).Total, "what was undone is not missing")

	again, err := b.store.Undo(ctx, run.ID, "me")
	require.NoError(t, err)
	require.Equal(t, store.TakenBack{Kept: 1}, again)
	b.requireInvariants()
}

func TestRetry(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := context.Background()
	broken := true
	cfg := config(extractorFunc(func(t extract.Turn) []extract.Candidate {
		if broken {
			panic("broken")
		}
		return whole(t)
	}))
	cfg.MaxAttempts = 1
	stop := b.start(cfg)
	b.insert("one", "two", "three")
	b.await(20*time.Second, "select count(*) = 3 from backfill.extraction where state = 'dead'")
	stop()
	broken = false
	n, err := b.store.Retry(ctx, "me", store.RetryFilter{Outcome: store.Crashed})
	require.NoError(t, err)
	require.Zero(t, n)
	n, err = b.store.Retry(ctx, "me", store.RetryFilter{Outcome: store.Panic, IDs: []int64{2, 3}})
	require.NoError(t, err)
	require.Equal(t, int64(2), n)
	b.start(cfg)
	b.idle(20 * time.Second)
	require.Equal(t, []string{"panic", "staged", "staged"}, query[[]string](b, "select array_agg(outcome order by capture_id) from backfill.extraction"))
	b.requireInvariants()
}

// TestForce takes a run away from a worker that does not answer. Should it come back,
// it writes nothing.
func TestForce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := context.Background()
	b.exec("update backfill.extractor set on_insert = false, batch_size = 1")
	b.insert("1", "2", "3")
	id, err := b.store.CreateRun(ctx, store.NewRun{Kind: store.KindRun, Extractor: 1, Reprocess: store.ReprocessMissing})
	require.NoError(t, err)
	require.NoError(t, b.store.Plan(ctx, id))
	gone, err := b.store.Claim(ctx, store.Claim{Extractor: 1, Version: heuristic.Version, MaxPrio: store.PrioRun, Limit: 1, Lease: time.Hour, Worker: "gone"})
	require.NoError(t, err)
	require.Len(t, gone, 1)
	state := func() string { return query[string](b, "select state from backfill.run") }

	require.NoError(t, b.store.PauseRun(ctx, id, store.Change{Who: "me"}))
	require.Equal(t, "pausing", state(), "its lease has an hour to go")
	require.NoError(t, b.store.PauseRun(ctx, id, store.Change{Who: "boss", Force: true}))
	require.Equal(t, "paused", state())
	require.Equal(t, []string{"me running → pausing", "boss leases were taken from gone", "boss pausing → paused"}, query[[]string](b, `
		select array_agg(who || ' ' || case when from_state = to_state then reason else from_state || ' → ' || to_state end order by id)
		from backfill.run_event where who <> current_user`))
	require.Equal(t, int64(3), query[int64](b, "select count(*) from backfill.batch where state = 'pending' and due = 'infinity'"))

	written, err := b.store.Write(ctx, store.Write{
		Extractor: 1, Version: heuristic.Version, MaxAttempts: 5, Backoff: func(int16) time.Duration { return 0 },
		Works: []store.Work{{Lease: gone[0].Lease, RunID: &id, Results: []store.Result{{CaptureID: gone[0].IDs[0], Outcome: store.Empty}}}},
	})
	require.NoError(t, err)
	require.Equal(t, []int64{gone[0].BatchID}, written.Lost)

	require.NoError(t, b.store.ResumeRun(ctx, id, store.Change{Who: "me"}))
	again, err := b.store.Claim(ctx, store.Claim{Extractor: 1, Version: heuristic.Version, MaxPrio: store.PrioRun, Limit: 3, Lease: time.Hour, Worker: "gone too"})
	require.NoError(t, err)
	require.Len(t, again, 3)
	require.Equal(t, int32(2), again[0].Attempts, "the attempt counts: the capture may be why the worker is gone")
	require.NoError(t, b.store.CancelRun(ctx, id, store.Change{Who: "me", Force: true}))
	require.Equal(t, "cancelled", state())
	require.Zero(t, query[int64](b, "select count(*) from backfill.batch where due is not null"))
	require.Zero(t, query[int64](b, "select count(*) from backfill.extraction"), "what was not done is missing again")
}

// TestRetryOfAFinishedRun: what a run left behind is put to work by its number.
func TestRetryOfAFinishedRun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := context.Background()
	b.exec("update backfill.extractor set on_insert = false")
	b.insert("good", "bad", "worse")
	var healed atomic.Bool
	cfg := config(extractorFunc(func(t extract.Turn) []extract.Candidate {
		if t.Text != "good" && !healed.Load() {
			panic(t.Text)
		}
		return whole(t)
	}))
	cfg.Backoff = func(int16) time.Duration { return time.Hour }
	b.start(cfg)
	run := b.run(store.ReprocessMissing)
	require.Equal(t, "finished_with_errors", run.State)
	groups, err := b.store.FailureGroups(ctx)
	require.NoError(t, err)
	require.Len(t, groups, 1)
	require.Equal(t, []any{store.Panic, "retry", int64(2), int64(2)}, []any{groups[0].Outcome, groups[0].State, groups[0].Captures, groups[0].Example})

	healed.Store(true)
	n, err := b.store.Retry(ctx, "me", store.RetryFilter{RunID: run.ID + 1})
	require.NoError(t, err)
	require.Zero(t, n)
	n, err = b.store.Retry(ctx, "me", store.RetryFilter{RunID: run.ID})
	require.NoError(t, err)
	require.Equal(t, int64(2), n)
	b.idle(20 * time.Second)
	require.Equal(t, int64(3), query[int64](b, "select count(*) from backfill.extraction where outcome = 'staged'"))
	require.Equal(t, "finished_with_errors", query[string](b, "select state from backfill.run"), "it has ended")
	b.requireInvariants()
}
