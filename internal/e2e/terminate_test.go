//go:build unix

package daemon_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/internal/pgtest"
)

// SIGTERM to the real program in the middle of much work: it ends in time, gives
// back what it has not done together with the attempt, and the next start does
// the rest.
func TestSIGTERM(t *testing.T) {
	t.Parallel()
	const captures = 50_000
	pool := pgtest.New(t)
	value := func(sql string) int {
		t.Helper()
		rows, err := pool.Query(t.Context(), sql)
		require.NoError(t, err)
		n, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
		require.NoError(t, err)
		return n
	}
	_, err := pool.Exec(t.Context(), `
		insert into backfill.intake (source, text)
		select 'test', 'We decided to use Postgres ' || g || ' instead of MongoDB because the reports need joins.'
		from generate_series(1, $1::integer) g`, captures)
	require.NoError(t, err)
	require.Equal(t, captures/1000, value("select count(*) from backfill.batch where due is not null"))

	program := filepath.Join(t.TempDir(), "worker")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../cmd/worker").CombinedOutput()
	require.NoError(t, err, "%s", out)
	launch := func() (terminate func()) {
		var log bytes.Buffer
		cmd := exec.CommandContext(t.Context(), program)
		cmd.Env = append(os.Environ(), "DATABASE_URL="+urlOf(pool), "BACKFILL_HTTP_ADDR=off")
		cmd.Stderr = &log
		require.NoError(t, cmd.Start())
		return func() {
			t.Helper()
			began := time.Now()
			require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
			require.NoError(t, cmd.Wait(), "%s", &log)
			require.Less(t, time.Since(began), 10*time.Second)
			require.Contains(t, log.String(), `"msg":"stopped"`)
		}
	}

	terminate := launch()
	require.Eventually(t, func() bool { return value("select count(*) from (select from backfill.extraction limit 1) x") > 0 },
		20*time.Second, time.Millisecond)
	terminate()
	done := value("select count(*) from backfill.extraction")
	require.Less(t, done, captures, "it was in the middle of it")
	require.Zero(t, value("select count(*) from backfill.batch where state = 'leased'"))
	require.Zero(t, value("select count(*) from backfill.batch where due is not null and attempts > 0"), "an attempt was burnt")
	require.Equal(t, captures-done, value("select sum(backfill.size(ids))::integer from backfill.batch where due is not null"))

	terminate = launch()
	require.Eventually(t, func() bool { return value("select count(*) from backfill.batch where due is not null") == 0 },
		30*time.Second, 20*time.Millisecond)
	terminate()
	for _, table := range []string{
		"backfill.extraction where state = 'done' and outcome = 'staged' and attempts = 1",
		"(select distinct capture_id from backfill.staging where ord = 1) s",
	} {
		require.Equal(t, captures, value("select count(*) from "+table), table)
	}
	require.Zero(t, value("select count(*) from backfill.batch where state <> 'done'"))
}
