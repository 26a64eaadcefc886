//go:build unix

package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// SIGTERM to the real program in the middle of much work: it ends in time, gives
// back what it has not done together with the attempt, and the next start does
// the rest.
func TestSIGTERM(t *testing.T) {
	t.Parallel()
	const captures = 50_000
	s := setup(t)
	s.exec("update backfill.extractor set on_insert = true where name = 'heuristic'")
	s.exec(`
		insert into backfill.intake (source, text)
		select 'test', 'We decided to use Postgres ' || g || ' instead of MongoDB because the reports need joins.'
		from generate_series(1, $1::integer) g`, captures)
	require.Equal(t, captures/1000, query[int](s, "select count(*) from backfill.batch where due is not null"))

	w := s.start("worker")
	s.await(20*time.Second, "select exists (select from backfill.extraction)")
	w.terminate()
	require.Contains(t, w.out.String(), `"msg":"stopped"`)
	done := query[int](s, "select count(*) from backfill.extraction")
	require.Less(t, done, captures, "it was in the middle of it")
	require.Zero(t, query[int](s, "select count(*) from backfill.batch where state = 'leased'"))
	require.Zero(t, query[int](s, "select count(*) from backfill.batch where due is not null and attempts > 0"), "an attempt was burnt")
	require.Equal(t, captures-done, query[int](s, "select sum(backfill.size(ids))::integer from backfill.batch where due is not null"))

	w = s.start("worker")
	s.await(30*time.Second, "select not exists (select from backfill.batch where due is not null)")
	w.terminate()
	for _, table := range []string{
		"backfill.extraction where state = 'done' and outcome = 'staged' and attempts = 1",
		"(select distinct capture_id from backfill.staging where ord = 1) s",
	} {
		require.Equal(t, captures, query[int](s, "select count(*) from "+table), table)
	}
	require.Zero(t, query[int](s, "select count(*) from backfill.batch where state <> 'done'"))
}
