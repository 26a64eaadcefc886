package store

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/justfortytwo/backfill/internal/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.M{M: m}) }

// testBundle is a database and what a test does with it.
type testBundle struct {
	*testing.T

	pool  *pgxpool.Pool
	store *Store
}

func setup(t *testing.T) *testBundle {
	t.Helper()
	pool := pgtest.New(t)
	return &testBundle{T: t, pool: pool, store: New(pool)}
}

func (b *testBundle) exec(sql string, args ...any) {
	b.Helper()
	_, err := b.pool.Exec(b.Context(), sql, args...)
	require.NoError(b, err)
}

func query[T any](b *testBundle, sql string, args ...any) T {
	b.Helper()
	rows, err := b.pool.Query(b.Context(), sql, args...)
	require.NoError(b, err)
	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	require.NoError(b, err)
	return v
}
