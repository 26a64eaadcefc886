//go:build unix

package e2e_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/internal/llmtest"
)

// modelSite is a site whose programs ask a server that the test controls, two
// requests at a time from each worker.
func modelSite(t *testing.T, server *llmtest.Server) *site {
	t.Helper()
	s := setup(t,
		"OPENAI_BASE_URL="+server.URL, "OPENAI_API_KEY="+"sk-"+"test", "BACKFILL_LLM_MODEL=test-model",
		"BACKFILL_LLM_PRICES=*=1/10", "BACKFILL_LLM_WORKERS=2",
	)
	s.backfill("migrate", "up") // registers the model
	return s
}

// reader remembers every paragraph, of captures that are no questions.
func reader() llmtest.Reply {
	return llmtest.If(func(r llmtest.Request) bool { return strings.Contains(r.Turn(), "Which of the two") },
		llmtest.Answer(`{"memories":[]}`), llmtest.Echo())
}

// shut has the server hold the requests that come from now on.
func shut(server *llmtest.Server) *llmtest.Gate {
	gate := llmtest.NewGate()
	server.Script(gate.Then(reader()))
	return gate
}

func enter(t *testing.T, gate *llmtest.Gate, n int) {
	t.Helper()
	for range n {
		select {
		case <-gate.Entered:
		case <-time.After(30 * time.Second):
			require.Fail(t, "no request came")
		}
	}
}

// The same day with a model: whatever the operator does, there is no call after a
// pause, never more calls than the cap, and none twice but those that were in flight
// when the workers were killed.
func TestModelSession(t *testing.T) {
	t.Parallel()
	const captures = 120
	file := turns(t, captures)
	calm := modelSite(t, llmtest.New(t, reader()))
	calm.backfill("import", file)
	calm.backfill("run", "--extractor", "llm", "--local")

	server := llmtest.New(t)
	s := modelSite(t, server)
	s.backfill("import", file)
	asked := func(n int) {
		t.Helper()
		got := len(server.Requests())
		require.Equal(t, n, got, "requests")
	}
	gate := shut(server)
	workers := s.workers(2)
	o := s.plan("--extractor", "llm", "--batch-size", "4")
	enter(t, gate, 4)
	o.verb("pause")
	require.Equal(t, "pausing", o.status().State)
	require.Regexp(t, "^pausing by ", o.status().Reason)
	s.tempt("llm")
	asked(4)
	gate.Open()
	o.rests("llm", "paused")
	asked(4)
	require.Equal(t, int64(4), o.status().Done, "what was answered is kept")

	gate = shut(server)
	o.verb("set", "concurrency=2")
	o.verb("resume")
	enter(t, gate, 2)
	s.tempt("llm")
	asked(6)
	for _, w := range workers {
		w.kill()
	}
	gate = shut(server)
	o.restart(2)
	enter(t, gate, 2)
	s.tempt("llm")
	asked(8)
	o.verb("cancel")
	gate.Open()
	o.rests("llm", "cancelled")
	asked(8)
	require.Equal(t, int64(6), o.status().Done)

	again := ask[planned](s, "run", "--extractor", "llm", "--wait")
	require.Equal(t, planned{Run: o.id + 1, State: "succeeded", Captures: captures - 6, Batches: again.Batches}, again)
	require.Equal(t, calm.digests(), s.digests())
	s.requireCounts()
	asked(captures + 2)
	require.LessOrEqual(t, server.Busiest(), 4)
}

// A run stops before it costs more than it may, in the middle of its batches, and
// goes on where it stopped when it may cost more.
func TestBudget(t *testing.T) {
	t.Parallel()
	const (
		captures = 120
		maxCost  = 0.05
	)
	server := llmtest.New(t, reader())
	s := modelSite(t, server)
	s.backfill("import", turns(t, captures))
	s.workers(2)
	code, _, stderr := s.run("run", "--extractor", "llm", "--batch-size", "30", "--max-cost", strconv.FormatFloat(maxCost, 'f', -1, 64), "--wait")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "run 1 has spent its budget")
	o := &operator{s, 1}
	s.await(20*time.Second, "select not exists (select from backfill.batch where state = 'leased')")
	status := o.status()
	require.Equal(t, "budget_exhausted", status.State)
	require.Equal(t, "max-cost is reached", status.Reason)
	require.LessOrEqual(t, *status.Cost, maxCost)
	require.Greater(t, *status.Cost, maxCost/2)
	asked := func() int { return len(server.Requests()) }
	done := asked()
	require.Less(t, done, captures)
	require.Equal(t, int64(done), status.Done)
	require.NotZero(t, query[int](s, "select count(*) from backfill.batch where due is not null and captures > backfill.size(ids)"), "no batch was left in the middle")
	s.exec("select backfill.sweep()")
	s.tempt("llm")
	require.Equal(t, done, asked())

	require.Contains(t, o.verb("set", "max-cost=100"), "max-cost $100.00")
	o.verb("resume")
	o.becomes("succeeded")
	require.Equal(t, captures, asked(), "nothing is paid twice")
	require.Equal(t, int64(captures), o.status().Done)
	require.InDelta(t, query[float64](s, "select sum(cost_microusd)::float8 / 1e6 from backfill.llm_call"), *o.status().Cost, 1e-9)
}
