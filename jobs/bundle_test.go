package jobs_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/extract"
	"github.com/justfortytwo/backfill/heuristic"
	"github.com/justfortytwo/backfill/internal/pgtest"
	"github.com/justfortytwo/backfill/jobs"
	"github.com/justfortytwo/backfill/store"
)

// testBundle is a database and what a test does with it.
type testBundle struct {
	*testing.T
	pool  *pgxpool.Pool
	store *store.Store
}

func setup(t *testing.T) *testBundle {
	t.Helper()
	pool := pgtest.New(t)
	return &testBundle{T: t, pool: pool, store: store.New(pool)}
}

// extractorFunc is an extractor for tests.
type extractorFunc func(extract.Turn) []extract.Candidate

func (f extractorFunc) ExtractSalient(_ context.Context, t extract.Turn, _ extract.Options) ([]extract.Candidate, error) {
	return f(t), nil
}

// whole stages every capture as it is.
func whole(t extract.Turn) []extract.Candidate {
	return []extract.Candidate{{
		Content: t.Text, Salience: 0.5, Kind: "fact", Tags: []string{"fact"}, Evidence: t.Text, Entities: []string{"test"},
		Source: t.Source, Observed: t.Observed, Date: t.Date,
	}}
}

func heuristicSlot(e extract.SalienceExtractor) jobs.Slot {
	return jobs.Slot{ID: 1, Name: "heuristic", Version: heuristic.Version, Extractor: e}
}

// config is one that fails and recovers quickly.
func config(e extract.SalienceExtractor) jobs.Config {
	return jobs.Config{
		Slots:   []jobs.Slot{heuristicSlot(e)},
		Lease:   10 * time.Second,
		Backoff: func(int16) time.Duration { return 50 * time.Millisecond },
		Logger:  slog.New(slog.DiscardHandler),
	}
}

// start runs a client until the test ends, or until the returned function is
// called.
func (b *testBundle) start(cfg jobs.Config) (stop func()) {
	b.Helper()
	client, err := jobs.New(b.pool, cfg)
	require.NoError(b, err)
	require.NoError(b, client.Start(context.Background()))
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		defer cancel()
		require.NoError(b, client.Stop(ctx))
	}
	b.Cleanup(stop)
	return stop
}

func (b *testBundle) exec(sql string, args ...any) {
	b.Helper()
	_, err := b.pool.Exec(context.Background(), sql, args...)
	require.NoError(b, err)
}

// begin opens a transaction that does not outlive the test.
func (b *testBundle) begin() pgx.Tx {
	b.Helper()
	tx, err := b.pool.Begin(context.Background())
	require.NoError(b, err)
	b.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

func query[T any](b *testBundle, sql string, args ...any) T {
	b.Helper()
	rows, err := b.pool.Query(context.Background(), sql, args...)
	require.NoError(b, err)
	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	require.NoError(b, err)
	return v
}

// await polls the database until the query returns true.
func (b *testBundle) await(within time.Duration, sql string, args ...any) {
	b.Helper()
	require.Eventually(b, func() bool { return query[bool](b, sql, args...) }, within, 5*time.Millisecond, sql)
}

// idle waits until no batch is open and no retry is due.
func (b *testBundle) idle(within time.Duration) {
	b.Helper()
	b.await(within, `select not exists (select from backfill.batch where due is not null)
		and not exists (select from backfill.extraction where state in ('retry', 'queued'))`)
}

func (b *testBundle) insert(texts ...string) {
	b.Helper()
	b.exec(`insert into backfill.intake (source, text) select 'test', t from unnest($1::text[]) t`, texts)
}
