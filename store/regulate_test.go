package store

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// set changes a setting as a psql user would.
func (b *testBundle) set(run int64, settings string) {
	b.Helper()
	b.exec("update backfill.run set settings = settings || $2::jsonb where id = $1", run, settings)
}

func (b *testBundle) planAll() int64 {
	b.Helper()
	run := b.createRun(ReprocessMissing)
	require.NoError(b, b.store.Plan(b.Context(), run))
	return run
}

// All workers together lease no more of a run's batches than its cap, which can be
// changed while it goes on.
func TestConcurrencyCap(t *testing.T) {
	t.Parallel()
	b := planned(t, 100)
	run := b.planAll()
	b.set(run, `{"concurrency": 3}`)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				_, err := b.store.Claim(context.Background(), Claim{
					Extractor: 1, Version: testVersion, MaxPrio: PrioRun, Limit: 10, Lease: time.Minute, Worker: "test",
				})
				require.NoError(t, err)
			}
		})
	}
	wg.Wait()
	leased := func() int64 {
		return query[int64](b, "select count(*) from backfill.batch where state = 'leased'")
	}
	require.LessOrEqual(t, leased(), int64(3))
	for range 3 {
		b.claim(10) // those that stood aside for each other find the rest
	}
	require.Equal(t, int64(3), leased())
	require.Empty(t, b.claim(10))

	b.set(run, `{"concurrency": 4}`)
	require.Len(t, b.claim(10), 1)
	require.Empty(t, b.claim(10))
	// A lease that ran out is nobody's.
	b.exec("update backfill.batch set due = now() - interval '1 second' where id = (select min(id) from backfill.batch where state = 'leased')")
	require.Len(t, b.claim(10), 1)
	require.Empty(t, b.claim(10))

	// Others are not held up by it.
	b.exec("insert into backfill.intake (source, text) select 'test', 'more ' || g from generate_series(1, 20) g")
	other := b.createRun(ReprocessMissing)
	require.NoError(t, b.store.Plan(t.Context(), other))
	require.Equal(t, other, *b.claim(10)[0].RunID)
	b.exec("update backfill.run set settings = '{}' where id = $1", run)
	require.Len(t, b.claim(10), 10)
}

// After its deadline nothing of a run is claimed, and the sweep says so; it goes on
// with another one.
func TestDeadline(t *testing.T) {
	t.Parallel()
	b := planned(t, 10)
	run := b.planAll()
	b.set(run, `{"deadline": "2020-01-01T06:00:00Z"}`)
	require.Empty(t, b.claim(10))
	_, err := b.store.Sweep(t.Context())
	require.NoError(t, err)
	require.Equal(t, "deadline_reached", b.run(run).State)

	b.set(run, `{"deadline": "2999-01-01T06:00:00Z"}`)
	require.NoError(t, b.store.ResumeRun(t.Context(), run, Change{Who: "me"}))
	require.Len(t, b.claim(10), 5)
	b.set(run, `{"deadline": "2020-01-01T06:00:00Z"}`)
	_, err = b.store.Sweep(t.Context())
	require.NoError(t, err)
	require.Equal(t, "deadline_reached", b.run(run).State, "what is in hand may be finished")
}

// A database that is not well holds backfills, and nothing else.
func TestRegulate(t *testing.T) {
	t.Parallel()
	b := planned(t, 10)
	run := b.planAll()
	b.exec(`insert into backfill.batch (extractor_id, version, prio, captures, ids)
		values (1, $1, 0, 1, '{[1,1]}'), (1, $1, 1, 1, '{[2,2]}')`, testVersion)
	ctx := t.Context()
	hold := func(th Thresholds) string {
		reason, err := b.store.Regulate(ctx, th)
		require.NoError(t, err)
		blocked, err := b.store.Blocked(ctx, run)
		require.NoError(t, err)
		require.False(t, blocked.Working)
		if reason == "" {
			require.Nil(t, blocked.Hold)
		} else {
			require.Equal(t, reason, *blocked.Hold)
		}
		return reason
	}
	require.Empty(t, hold(Thresholds{Transaction: time.Hour, ReplicaLag: time.Second, Autovacuum: true, SQL: "select false"}))
	require.Contains(t, hold(Thresholds{SQL: "select count(*) = 10 from backfill.intake"}), "BACKFILL_HOLD_SQL")
	require.Equal(t, PrioLive, b.claim(10)[0].Prio)
	require.Equal(t, PrioRetry, b.claim(10)[0].Prio)
	require.Empty(t, b.claim(10))

	tx, err := b.pool.Begin(ctx)
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	require.Contains(t, hold(Thresholds{Transaction: time.Nanosecond}), "a transaction is open")
	require.Empty(t, b.claim(10))
	require.NoError(t, tx.Rollback(ctx))
	b.exec("update backfill.hold set seen_at = now() - interval '2 minutes'")
	require.Len(t, b.claim(1), 1, "whoever held it is gone")
	require.NotEmpty(t, func() string { r, _ := b.store.Regulate(ctx, Thresholds{SQL: "select true"}); return r }())
	_, err = b.store.Regulate(ctx, Thresholds{})
	require.NoError(t, err)
	require.Empty(t, b.claim(10), "whoever looks at nothing releases nothing")
	_, err = b.store.Regulate(ctx, Thresholds{SQL: "select false"})
	require.NoError(t, err)
	require.Len(t, b.claim(10), 4)
}

// A vacuum of one of our tables holds, and so does a replica that is behind. There is
// no replica here: a view stands in front of the server's.
func TestRegulateVacuumAndLag(t *testing.T) {
	t.Parallel()
	b := planned(t, 5000)
	ctx := t.Context()
	slow := make(chan error, 1)
	conn, err := b.pool.Acquire(ctx)
	require.NoError(t, err)
	t.Cleanup(conn.Release)
	b.exec("delete from backfill.intake where id % 2 = 0")
	_, err = conn.Exec(ctx, "set vacuum_cost_delay = 50; set vacuum_cost_limit = 1; set vacuum_cost_page_hit = 10")
	require.NoError(t, err)
	vacuum, stop := context.WithCancel(ctx)
	go func() {
		_, err := conn.Exec(vacuum, "vacuum (freeze, disable_page_skipping) backfill.intake")
		slow <- err
	}()
	require.Eventually(t, func() bool {
		reason, err := b.store.Regulate(ctx, Thresholds{Autovacuum: true})
		require.NoError(t, err)
		return reason == "vacuum of intake"
	}, 20*time.Second, 10*time.Millisecond)
	reason, err := b.store.Regulate(ctx, Thresholds{Transaction: time.Hour, ReplicaLag: time.Nanosecond})
	require.NoError(t, err)
	require.Empty(t, reason)
	stop()
	require.Error(t, <-slow)

	b.exec("create schema shadow")
	b.exec("create view shadow.pg_stat_replication as select interval '12 seconds' as replay_lag union all select null")
	cfg := b.pool.Config()
	cfg.ConnConfig.RuntimeParams["search_path"] = "shadow, pg_catalog"
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	for lag, want := range map[time.Duration]string{10 * time.Second: "replica lag 12s", time.Minute: "", 0: ""} {
		reason, err := New(pool).Regulate(ctx, Thresholds{ReplicaLag: lag, Transaction: time.Hour})
		require.NoError(t, err)
		require.Equal(t, want, reason, lag)
	}
}

// A statement of the operator's that fails, or writes, holds nothing and is told.
func TestRegulateBadSQL(t *testing.T) {
	t.Parallel()
	b := planned(t, 2)
	for _, sql := range []string{"select", "select 'secret'::integer", "delete from backfill.intake returning true", "select pg_sleep(60)::text = ''"} {
		reason, err := b.store.Regulate(t.Context(), Thresholds{SQL: sql})
		require.ErrorContains(t, err, "BACKFILL_HOLD_SQL", sql)
		require.NotContains(t, err.Error(), "secret")
		require.Empty(t, reason)
	}
	require.Equal(t, int64(2), query[int64](b, "select count(*) from backfill.intake"))
}

// A run with more failures than it may have fails, from fifty results on; what is
// left of it is not worked, and found by a later run.
func TestMaxErrorRate(t *testing.T) {
	t.Parallel()
	b := planned(t, 200)
	run := b.planAll()
	b.set(run, `{"max_error_rate": 0.2}`)
	work := func(n int, outcome Outcome) {
		for range n {
			batch := b.claim(1)[0]
			w := Work{Lease: batch.Lease, RunID: batch.RunID}
			for _, id := range batch.IDs {
				w.Results = append(w.Results, Result{
					CaptureID: id, Outcome: outcome, Hash: query[string](b, "select content_hash from backfill.intake where id = $1", id),
				})
			}
			_, err := b.store.Write(t.Context(), Write{Extractor: 1, Version: testVersion, Works: []Work{w}, MaxAttempts: 1})
			require.NoError(t, err)
			require.NoError(t, b.store.SettleRun(t.Context(), run))
		}
	}
	work(10, Panic) // all of twenty
	require.Equal(t, "running", b.run(run).State, "too few to tell")
	work(14, Empty)
	held := b.claim(1)[0]
	require.Equal(t, "running", b.run(run).State)
	work(1, Empty) // 20 of 50
	require.Equal(t, "failed", b.run(run).State)
	require.Equal(t, "20 of 50 results were failures: over max-error-rate", *b.run(run).Error)
	require.Empty(t, b.claim(10))

	// What was in hand is not left open, whether its worker comes back or not.
	b.exec("update backfill.batch set due = now() - interval '1 second' where id = $1", held.BatchID)
	_, err := b.store.Sweep(t.Context())
	require.NoError(t, err)
	require.Zero(t, query[int64](b, "select count(*) from backfill.batch where due is not null"))
	again := b.planAll()
	require.Equal(t, int64(150), b.run(again).Total)
}

// A batch of an outdated version, from an insert that was under way while the new
// one was registered, follows; one that an old worker has in hand is left to it.
func TestSweepMovesBatchesOn(t *testing.T) {
	t.Parallel()
	b := planned(t, 6)
	b.planAll()
	held := b.claim(1)[0]
	b.exec("update backfill.extractor set version = 'test-2' where id = 1")
	_, err := b.store.Sweep(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"test-1 leased", "test-2 pending"}, query[[]string](b, `
		select array_agg(distinct version || ' ' || state order by version || ' ' || state) from backfill.batch`))
	b.exec("update backfill.batch set due = now() - interval '1 second' where id = $1", held.BatchID)
	_, err = b.store.Sweep(t.Context())
	require.NoError(t, err)
	require.Empty(t, query[[]string](b, "select array_agg(version) filter (where version <> 'test-2') from backfill.batch"))
}

// A run says why it stands still as soon as one of its batches was put off, though
// others are due: a worker that waits for an endpoint leaves them alone.
func TestBlockedByAPause(t *testing.T) {
	t.Parallel()
	b := planned(t, 10)
	run := b.planAll()
	blocked := func() Blocked {
		got, err := b.store.Blocked(t.Context(), run)
		require.NoError(t, err)
		return got
	}
	require.Nil(t, blocked().Error)
	batch := b.claim(1)[0]
	require.True(t, blocked().Working)
	require.NoError(t, b.store.Postpone(t.Context(), []Lease{batch.Lease}, 41*time.Second, "llm: retry_later (HTTP 429)", true))
	got := blocked()
	require.False(t, got.Working)
	require.Equal(t, "llm: retry_later (HTTP 429)", *got.Error)
	require.Greater(t, *got.Again, 30*time.Second)
}

// A capture that stops the slot again although it was released is itself the reason,
// unless it was answered in between.
func TestStopSlotAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	stop := func(capture int64) bool {
		again, err := b.store.StopSlot(t.Context(), 2, capture, "llm: stop_queue (HTTP 401)", "set OPENAI_API_KEY")
		require.NoError(t, err)
		return again
	}
	require.False(t, stop(7))
	require.False(t, stop(7), "it is stopped still")
	require.NoError(t, b.store.ReleaseSlot(t.Context(), 2))
	require.True(t, stop(7))
	require.False(t, stop(8), "another one")
	require.NoError(t, b.store.ReleaseSlot(t.Context(), 2))
	b.exec("insert into backfill.llm_call (capture_id, class, started_at) values (8, 'ok', now() + interval '1 second')")
	require.False(t, stop(8), "it was answered meanwhile")
}
