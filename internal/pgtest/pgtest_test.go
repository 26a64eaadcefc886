package pgtest_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/justfortytwo/backfill/internal/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.M{M: m}) }

const countIntake = "select count(*) from backfill.intake"

func scalar[T any](t *testing.T, pool *pgxpool.Pool, sql string, args ...any) T {
	t.Helper()
	rows, err := pool.Query(t.Context(), sql, args...)
	require.NoError(t, err)
	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	require.NoError(t, err)
	return v
}

func TestNew(t *testing.T) {
	t.Parallel()
	a, b := pgtest.New(t), pgtest.New(t)
	_, err := a.Exec(t.Context(), "insert into backfill.intake (source, text) values ('test', 'hello')")
	require.NoError(t, err)
	require.Equal(t, 1, scalar[int](t, a, countIntake))
	require.Equal(t, 0, scalar[int](t, b, countIntake), "each test has a database of its own")
	require.Equal(t, "off", scalar[string](t, a, "show jit"))
	require.Equal(t, t.Name(), scalar[string](t, a, "show application_name"))
}

func TestURL(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), pgtest.URL(t))
	require.NoError(t, err)
	defer conn.Close(context.Background())
	var n int
	require.NoError(t, conn.QueryRow(t.Context(), countIntake).Scan(&n))
	require.Zero(t, n)
}

func TestEmpty(t *testing.T) {
	t.Parallel()
	require.Equal(t, 0, scalar[int](t, pgtest.Empty(t), "select count(*) from pg_namespace where nspname in ('backfill', 'river')"))
}

// A database goes with its test even while somebody is connected to it.
func TestDrop(t *testing.T) { //nolint:tparallel // its inner test has to end first
	t.Parallel()
	var name string
	watcher := pgtest.Empty(t)
	t.Run("owner", func(t *testing.T) {
		conn, err := pgx.Connect(t.Context(), pgtest.URL(t))
		require.NoError(t, err)
		name = conn.Config().Database
		require.True(t, exists(t, watcher, name))
	})
	require.False(t, exists(t, watcher, name))
}

func exists(t *testing.T, pool *pgxpool.Pool, database string) bool {
	t.Helper()
	return scalar[bool](t, pool, "select exists (select from pg_database where datname = $1)", database)
}

func TestConcurrently(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { pgtest.URL(t) })
	}
	wg.Wait()
}

// With a server given, the tests of this package leave nothing on it.
func TestGivenServer(t *testing.T) {
	t.Parallel()
	const given = "BACKFILL_TEST_DATABASE_URL"
	if os.Getenv(given) != "" {
		t.Skip("is the test of this test")
	}
	watcher := pgtest.Empty(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^(TestNew|TestEmpty)$", "-test.v")
	cmd.Env = append(os.Environ(), given+"="+watcher.Config().ConnString())
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: TestNew")

	ours := watcher.Config().ConnConfig.Database
	ours = ours[:strings.LastIndex(ours, "_")]
	require.Equal(t, 0, scalar[int](t, watcher,
		"select count(*) from pg_database where starts_with(datname, 'backfill_test_') and not starts_with(datname, $1)", ours))
}

// BenchmarkURL is what a test pays for its database, without the drop.
func BenchmarkURL(b *testing.B) {
	for b.Loop() {
		pgtest.URL(b)
	}
}
