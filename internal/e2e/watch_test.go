//go:build unix

package e2e_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/internal/llmtest"
)

// watch follows a run on a terminal of its own.
func (o *operator) watch() *program {
	o.Helper()
	return o.start("backfill", "status", "--watch", "1")
}

// begin imports a few captures and starts run 1 over them.
func (s *site) begin(extractor string) *operator {
	s.Helper()
	s.backfill("import", turns(s, 20))
	return s.plan("--extractor", extractor)
}

// Whoever watches a run reads why it does not move, and sees it end.
func TestWatch(t *testing.T) {
	t.Parallel()
	const within = 45 * time.Second

	t.Run("NoWorker", func(t *testing.T) {
		t.Parallel()
		s := setup(t)
		o := s.begin("heuristic")
		w := o.watch()
		w.says(`run 1  running  0/20 \(0\.0%\)  nothing done  — waiting for a worker: none has been seen\n`)
		worker := s.start("worker")
		w.ends(within)
		require.Regexp(t, `run 1  succeeded  20/20 \(100\.0%\)  [0-9]+ empty, [0-9]+ staged\n$`, w.out)

		worker.terminate()
		s.exec("update river.river_job set attempted_at = attempted_at - interval '3 minutes', created_at = created_at - interval '3 minutes'")
		s.backfill("run", "--reprocess", "all")
		require.Regexp(t, `waiting for a worker: none seen for 3m[0-9]+s\n`, s.backfill("status", "2"))
	})

	t.Run("RateLimit", func(t *testing.T) {
		t.Parallel()
		s := modelSite(t, llmtest.New(t, llmtest.Fail(http.StatusTooManyRequests, "rate_limit_exceeded", "Slow down.", "Retry-After", "41")))
		o := s.begin("llm")
		s.start("worker")
		w := o.watch()
		w.says(`run 1  running  0/20 .*  — llm: retry_later \(HTTP 429, .*\); again in (41|40|39|38)s\n`)
		w.terminate()
	})

	t.Run("Held", func(t *testing.T) {
		t.Parallel()
		s := setup(t, "BACKFILL_HOLD_SQL=select exists (select from public.busy)")
		s.exec("create table public.busy as select 1 as one")
		s.start("worker")
		s.await(within, "select exists (select from backfill.hold)")
		o := s.begin("heuristic")
		w := o.watch()
		w.says(`run 1  running  0/20 .*  — held: BACKFILL_HOLD_SQL says so\n`)
		s.exec("delete from public.busy")
		w.ends(within)
		require.Regexp(t, `run 1  succeeded  20/20 `, w.out)
	})

	t.Run("RefusedKey", func(t *testing.T) {
		t.Parallel()
		s := modelSite(t, llmtest.New(t, llmtest.Named("auth")))
		o := s.begin("llm")
		s.start("worker")
		w := o.watch()
		w.says(`run 1  running  0/20 .*  — llm is stopped: .*HTTP 401.* → the endpoint refuses the key: set OPENAI_API_KEY to a valid one\n`)
		w.terminate()
		require.Contains(t, s.backfill("status"), "llm is stopped since")
	})
}
