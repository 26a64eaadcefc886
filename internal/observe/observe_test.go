package observe_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/justfortytwo/backfill/internal/observe"
	"github.com/justfortytwo/backfill/internal/pgtest"
	"github.com/justfortytwo/backfill/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.M{M: m}) }

func TestMount(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	_, err := pool.Exec(t.Context(), `
		with run as (
		    insert into backfill.run (kind, extractor_id, reprocess, state) values ('run', 1, 'all', 'paused') returning id
		)
		insert into backfill.batch (extractor_id, prio, version, run_id, due, state, ids, captures, staged, empty, skipped, candidates, created_at)
		select 1, 0, 'v', null::bigint, null::timestamptz, 'done', '{}'::int8multirange, 10, 5, 3, 2, 8, now() union all
		select 1, 0, 'v', null, now(), 'pending', '{[1,4]}', 4, 0, 0, 0, 0, now() - interval '1 hour' union all
		select 1, 0, 'v', null, now(), 'leased', '{[5,7]}', 3, 0, 0, 0, 0, now() union all
		select 1, 2, 'v', id, 'infinity', 'pending', '{[8,9]}', 2, 0, 0, 0, 0, now() from run`)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `
		insert into backfill.extraction (capture_id, extractor_id, version, state, outcome) values
			(20, 1, 'v', 'retry', 'panic'), (21, 1, 'v', 'queued', 'panic'), (22, 1, 'v', 'dead', 'panic')`)
	require.NoError(t, err)

	// One that nobody was told of.
	for _, sql := range []string{
		"update backfill.extractor set version = 'v' where id = 1", "alter table backfill.intake disable trigger all",
		"insert into backfill.intake (id, source, text, created_at) values (99, 'test', 'text', now() - interval '3 days')",
	} {
		_, err = pool.Exec(t.Context(), sql)
		require.NoError(t, err)
	}

	mux := http.NewServeMux()
	observe.Mount(mux, store.New(pool))
	get := func(path string) (int, string) {
		t.Helper()
		res := httptest.NewRecorder()
		mux.ServeHTTP(res, httptest.NewRequest(http.MethodGet, path, nil))
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return res.Code, string(body)
	}

	code, body := get("/healthz")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "ok\n", body)

	_, err = store.New(pool).StopSlot(t.Context(), 2, 0, "llm: stop_queue (HTTP 401)", "set OPENAI_API_KEY")
	require.NoError(t, err)
	code, body = get("/metrics")
	require.Equal(t, http.StatusOK, code)
	for _, line := range []string{
		`# TYPE backfill_captures gauge`,
		`backfill_captures{extractor="heuristic",state="staged"} 5`,
		`backfill_captures{extractor="heuristic",state="empty"} 3`,
		`backfill_captures{extractor="heuristic",state="skipped"} 2`,
		`backfill_captures{extractor="heuristic",state="undone"} 0`,
		`backfill_captures{extractor="heuristic",state="pending"} 4`,
		`backfill_captures{extractor="heuristic",state="leased"} 3`,
		`backfill_captures{extractor="heuristic",state="held"} 2`,
		`backfill_captures{extractor="heuristic",state="retry"} 1`,
		`backfill_captures{extractor="heuristic",state="dead"} 1`,
		`backfill_captures{extractor="llm",state="pending"} 0`,
		`backfill_candidates{extractor="heuristic"} 8`,
		`backfill_oldest_pending_seconds{extractor="llm"} 0`,
		`backfill_stopped{extractor="heuristic"} 0`,
		`backfill_stopped{extractor="llm"} 1`,
		`backfill_database_up 1`,
		`# TYPE go_goroutines gauge`,
	} {
		require.Contains(t, body, line+"\n")
	}
	require.Regexp(t, `(?m)^backfill_oldest_unprocessed_seconds 2592\d\d`, body)
	require.Regexp(t, `(?m)^backfill_oldest_pending_seconds\{extractor="heuristic"\} 36\d\d`, body)

	for _, path := range []string{"/healthz", "/metrics"} {
		res := httptest.NewRecorder()
		mux.ServeHTTP(res, httptest.NewRequest(http.MethodPost, path, nil))
		require.Equal(t, http.StatusMethodNotAllowed, res.Code, path)
	}

	// Without a database a scrape still answers, and says so.
	pool.Close()
	code, body = get("/healthz")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Contains(t, body, "database does not answer")
	code, body = get("/metrics")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, "backfill_database_up 0\n")
	require.NotContains(t, body, "backfill_captures{")
}

func TestHealthNotMigrated(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	observe.Mount(mux, store.New(pgtest.Empty(t)))
	res := httptest.NewRecorder()
	mux.ServeHTTP(res, httptest.NewRequest(http.MethodGet, "/healthz", nil))
	require.Equal(t, http.StatusServiceUnavailable, res.Code)
}
