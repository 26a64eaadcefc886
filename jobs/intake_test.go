package jobs_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// TestLatency prints how long it takes from INSERT to candidate on an idle system,
// which is why it does not run beside others.
func TestLatency(t *testing.T) { //nolint:paralleltest // see above
	b := setup(t)
	b.start(config(extractorFunc(whole)))
	b.insert("warm up")
	b.idle(20 * time.Second)
	took := make([]time.Duration, 0, 50)
	for i := range 50 {
		began := time.Now()
		text := fmt.Sprint("capture ", i)
		b.insert(text)
		for !query[bool](b, "select exists (select from backfill.staging s join backfill.entity n using (capture_id, extractor_id, ord) where s.content = $1)", text) { //nolint:revive // polls
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	t.Logf("INSERT to candidate: p50 %s, p90 %s, max %s", took[25], took[45], took[49])
	// By polling alone it would be 125 ms.
	require.Less(t, took[25], 100*time.Millisecond, "p50")
}

// TestOpenTransaction holds an inserting transaction open: nobody else waits.
func TestOpenTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := context.Background()
	b.insert("waiting") // its drain job is available, for the transaction to pin
	tx := b.begin()
	_, err := tx.Exec(ctx, "insert into backfill.intake (source, text) values ('test', 'slow')")
	require.NoError(t, err)
	b.start(config(extractorFunc(whole)))
	deadline := time.After(10 * time.Second)
	for i := 0; ; i++ {
		text := fmt.Sprint("quick ", i)
		began := time.Now()
		b.insert(text)
		require.Less(t, time.Since(began), 5*time.Second, "an insert waited for the open transaction")
		b.await(5*time.Second, "select exists (select from backfill.staging where content = $1)", text)
		select {
		case <-deadline:
		default:
			continue
		}
		break
	}
	require.Equal(t, int64(1), query[int64](b, "select count(*) from backfill.staging where content = 'waiting'"))
	require.Equal(t, int64(0), query[int64](b, "select count(*) from backfill.staging where content = 'slow'"))
	require.NoError(t, tx.Commit(ctx))
	b.idle(20 * time.Second)
	b.requireInvariants()
}

// TestRiverLocked locks River's table: inserts are not held up, and found by the
// sweep afterwards.
func TestRiverLocked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := context.Background()
	tx := b.begin()
	_, err := tx.Exec(ctx, "lock table river.river_job in access exclusive mode")
	require.NoError(t, err)
	began := time.Now()
	within, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err = b.pool.Exec(within, "insert into backfill.intake (source, text) values ('test', 'locked')")
	require.NoError(t, err, "an insert waited for River's lock")
	t.Logf("INSERT beside a locked river_job: %s", time.Since(began))
	require.NoError(t, tx.Commit(ctx))
	require.Equal(t, int64(0), query[int64](b, "select count(*) from river.river_job"))
	b.start(config(extractorFunc(whole))) // it sweeps as it starts
	b.idle(20 * time.Second)
	b.requireInvariants()
	require.Equal(t, int64(1), query[int64](b, "select count(*) from backfill.staging"))
}

// TestRiverGone drops River's schema altogether: a broken queue fails nobody's
// insert.
func TestRiverGone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec("drop schema river cascade")
	b.insert("still stored")
	require.Equal(t, int64(1), query[int64](b, "select count(*) from backfill.batch where due is not null"))
}

func TestIsolationLevels(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(config(extractorFunc(whole)))
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		err := pgx.BeginTxFunc(context.Background(), b.pool, pgx.TxOptions{IsoLevel: level}, func(tx pgx.Tx) error {
			_, err := tx.Exec(context.Background(), "insert into backfill.intake (source, text) values ('test', $1)", string(level))
			return err
		})
		require.NoError(t, err)
	}
	b.idle(20 * time.Second)
	b.requireInvariants()
	require.Equal(t, int64(2), query[int64](b, "select count(*) from backfill.staging"))
}

func TestIntakeRefuses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(config(extractorFunc(whole)))
	b.insert("one")
	b.idle(20 * time.Second)
	for sql, state := range map[string]string{
		"truncate backfill.intake":                                                  "2BP01",
		"update backfill.intake set id = id + 1":                                    "0A000",
		`insert into backfill.intake (source, text) values ('x', E'a\x00')`:         "22021",
		`insert into backfill.intake (source, text) values ('x', E'a\xc3')`:         "22021",
		"insert into backfill.intake (source, text) values ('', 'no source')":       "23514",
		"insert into backfill.intake (source, text, meta) values ('x', 'y', '[1]')": "23514",
		"select backfill.claim_candidates('memory', -1)":                            "22023",
		"select backfill.claim_candidates(null)":                                    "22023",
	} {
		_, err := b.pool.Exec(context.Background(), sql)
		require.ErrorContains(t, err, state, sql)
	}
	b.exec("delete from backfill.intake")
	b.exec("truncate backfill.intake") // nothing depends on it any more
}
