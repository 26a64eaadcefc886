package jobs_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// listen returns a connection that hears of new candidates.
func (b *testBundle) listen() *pgx.Conn {
	b.Helper()
	conn, err := pgx.ConnectConfig(context.Background(), b.pool.Config().ConnConfig)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, conn.Close(context.Background())) })
	_, err = conn.Exec(context.Background(), "listen backfill_candidates")
	require.NoError(b, err)
	return conn
}

// hear waits for the next notification, or returns nil after a while.
func (b *testBundle) hear(conn *pgx.Conn, within time.Duration) *pgconn.Notification {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	n, err := conn.WaitForNotification(ctx)
	if ctx.Err() != nil {
		return nil
	}
	require.NoError(b, err)
	return n
}

// TestNotify: whoever listens hears of the last candidate, and not of each.
func TestNotify(t *testing.T) {
	t.Parallel()
	const captures = 50
	b := setup(t)
	conn := b.listen()
	stop := b.start(config(extractorFunc(whole)))
	b.insert(" ") // in which there is nothing
	b.idle(20 * time.Second)
	require.Nil(t, b.hear(conn, 300*time.Millisecond), "nothing was staged")

	// One of its own for each when it is quiet, and for one right behind as well.
	for i := range 4 {
		b.insert(fmt.Sprint("one by one ", i))
		require.NotNil(t, b.hear(conn, 5*time.Second))
	}

	// Fewer than there are commits when there are many.
	began := time.Now()
	for i := range captures {
		b.insert(fmt.Sprint("capture ", i))
		b.await(20*time.Second, "select exists (select from backfill.staging where content = $1)", fmt.Sprint("capture ", i))
	}
	heard := 0
	for b.hear(conn, 500*time.Millisecond) != nil {
		heard++
	}
	took := time.Since(began)
	require.NotZero(t, heard)
	// Every ten seconds one is the sweep's.
	require.LessOrEqual(t, heard, 2+int(took/(200*time.Millisecond))+int(took/(10*time.Second)), "within %s", took)

	// What was staged last is announced by Stop at the latest.
	b.insert("before the stop", "and another")
	require.NotNil(t, b.hear(conn, 5*time.Second))
	b.insert("at the stop")
	b.await(20*time.Second, "select exists (select from backfill.staging where content = 'at the stop')")
	stop()
	n := b.hear(conn, time.Second)
	require.NotNil(t, n)
	require.Equal(t, "heuristic", n.Payload)
}

// Whoever hears of candidates finds them: nothing is said before they are committed.
func TestNotifyAfterCommit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	conn := b.listen()
	lock := b.begin()
	_, err := lock.Exec(t.Context(), "lock table backfill.staging in exclusive mode")
	require.NoError(t, err)
	b.start(config(extractorFunc(whole)))
	b.insert("one")
	b.await(20*time.Second, `select exists (select from pg_stat_activity
		where datname = current_database() and wait_event_type = 'Lock' and query ilike 'copy "backfill"."staging"%')`)
	require.Nil(t, b.hear(conn, 500*time.Millisecond))
	require.NoError(t, lock.Rollback(t.Context()))
	require.NotNil(t, b.hear(conn, 5*time.Second))
	require.Equal(t, int64(1), query[int64](b, "select count(*) from backfill.claim_candidates('memory', 10)"))
}

// TestNotifyWaiting has candidates that nobody announced: those of a worker that
// vanished after its commit, and those of a consumer that vanished with its claim.
func TestNotifyWaiting(t *testing.T) {
	t.Parallel()
	b := setup(t)
	conn := b.listen()
	ctx := context.Background()
	require.NoError(t, b.store.NotifyWaiting(ctx))
	require.Nil(t, b.hear(conn, 100*time.Millisecond), "there is nothing to hand over")

	stop := b.start(config(extractorFunc(whole)))
	b.insert("one")
	b.idle(20 * time.Second)
	stop()                                          // and with it the sweep, which announces what waits
	for b.hear(conn, 500*time.Millisecond) != nil { //nolint:revive // the worker's own
	}
	require.NoError(t, b.store.NotifyWaiting(ctx))
	require.Equal(t, "heuristic", b.hear(conn, time.Second).Payload)
	b.exec("select backfill.claim_candidates('memory', 1, '1 hour')")
	require.NoError(t, b.store.NotifyWaiting(ctx))
	require.Nil(t, b.hear(conn, 100*time.Millisecond), "it is claimed")
	b.exec("update backfill.extraction set handoff_due = now()") // its lease has run out
	require.NoError(t, b.store.NotifyWaiting(ctx))
	require.NotNil(t, b.hear(conn, time.Second))
}
