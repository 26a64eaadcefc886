//go:build unix

package e2e_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// planned, progress and story are what `run --json`, `status RUN --json` and
// `runs RUN --json` print.
type planned struct {
	Run      int64  `json:"run"`
	State    string `json:"state"`
	Captures int64  `json:"captures"`
	Batches  int64  `json:"batches"`
}

type progress struct {
	State    string           `json:"state"`
	Total    int64            `json:"total"`
	Done     int64            `json:"done"`
	Outcomes map[string]int64 `json:"outcomes"`
	Cost     *float64         `json:"cost"`
	Reason   string           `json:"reason"`
}

type story struct {
	Why    string `json:"why"`
	Events []struct {
		From   string `json:"from"`
		To     string `json:"to"`
		Reason string `json:"reason"`
	} `json:"events"`
}

// operator is somebody who steers one run.
type operator struct {
	*site
	id int64
}

// plan dry-runs a run, starts it, and requires that it takes just that.
func (s *site) plan(args ...string) *operator {
	s.Helper()
	dry := ask[planned](s, append([]string{"run", "--dry-run"}, args...)...)
	require.Zero(s, query[int](s, "select count(*) from backfill.run"))
	run := ask[planned](s, append([]string{"run"}, args...)...)
	require.Equal(s, planned{Run: run.Run, State: "running", Captures: dry.Captures, Batches: dry.Batches}, run)
	return &operator{s, run.Run}
}

func (o *operator) verb(verb string, args ...string) string {
	o.Helper()
	return o.backfill(append([]string{verb, strconv.FormatInt(o.id, 10)}, args...)...)
}

func (o *operator) status() progress {
	o.Helper()
	return ask[progress](o.site, "status", strconv.FormatInt(o.id, 10))
}

// becomes waits for a state.
func (o *operator) becomes(state string) {
	o.Helper()
	o.await(20*time.Second, "select state = $2 from backfill.run where id = $1", o.id, state)
}

// done is the number of captures with a result.
func (o *operator) done() int64 {
	o.Helper()
	return query[int64](o.site, "select count(*) from backfill.extraction where state = 'done'")
}

// claims is a number that rises with every claim.
func (o *operator) claims() int64 {
	o.Helper()
	return query[int64](o.site, "select sum(lease_no) from backfill.batch where run_id = $1", o.id)
}

// soon prints how long it took until what was asked for last was so. That it is two
// seconds at most is the campaign's to show, on a machine that does nothing else.
func (o *operator) soon(request, state string) {
	o.Helper()
	o.becomes(state)
	o.Logf("from %s to %s: %s", request, state, query[time.Duration](o.site, `
		select max(at) filter (where to_state = $3) - max(at) filter (where to_state = $2) from backfill.run_event where run_id = $1`,
		o.id, request, state))
}

// rests waits for a state in which nothing of the run may be begun, and requires
// that nothing is, whatever wakes the workers.
func (o *operator) rests(slot, state string) {
	o.Helper()
	o.becomes(state)
	claims, done := o.claims(), o.done()
	require.Zero(o, query[int](o.site, "select count(*) from backfill.batch where run_id = $1 and state = 'leased'", o.id))
	o.exec("select backfill.sweep()")
	for range 3 {
		o.tempt(slot)
	}
	require.Equal(o, claims, o.claims(), "a batch was claimed")
	require.Equal(o, done, o.done())
}

// busiest waits until something is true and returns how many batches of the run
// were leased at once meanwhile.
func (o *operator) busiest(until string, args ...any) (most int) {
	o.Helper()
	for end := time.Now().Add(time.Minute); ; {
		n := query[int](o.site, "select count(*) from backfill.batch where run_id = $1 and state = 'leased' and due > now()", o.id)
		if most = max(most, n); query[bool](o.site, until, args...) {
			return most
		}
		require.True(o, time.Now().Before(end), until)
	}
}

// restart starts as many workers anew as were killed, once the leases of those have
// run out.
func (o *operator) restart(n int) {
	o.Helper()
	o.await(lease+20*time.Second, "select not exists (select from backfill.batch where state = 'leased' and due > now())")
	o.workers(n)
}

func (s *site) workers(n int) []*program {
	s.Helper()
	all := make([]*program, n)
	for i := range all {
		all[i] = s.start("worker")
	}
	return all
}

// An operator's day with a backfill of the heuristic: it is priced, started,
// paused, slowed down, survives the death of all its workers, is given up and begun
// anew. What comes out is what an undisturbed run gives.
func TestSession(t *testing.T) {
	t.Parallel()
	const captures = 20_000
	file := turns(t, captures)
	calm := setup(t)
	calm.backfill("import", file)
	calm.backfill("run", "--local")

	s := setup(t)
	require.Regexp(t, `20000 new, 0 changed, 0 unchanged`, s.backfill("import", file))
	workers := s.workers(2)
	o := s.plan("--batch-size", "10", "--reason", "the first year")
	require.Equal(t, int64(captures), o.status().Total)

	o.await(time.Minute, "select count(*) > 500 from backfill.extraction")
	o.verb("pause")
	o.soon("pausing", "paused")
	o.rests("heuristic", "paused")
	done := o.done()
	require.Less(t, done, int64(captures), "it was in the middle of it")
	status := o.status()
	require.Equal(t, progress{State: "paused", Total: captures, Done: done, Outcomes: status.Outcomes, Reason: status.Reason}, status)
	require.Regexp(t, `^paused by \S+`, status.Reason)
	require.Equal(t, done, status.Outcomes["staged"]+status.Outcomes["empty"]+status.Outcomes["skipped"])
	require.Regexp(t, fmt.Sprintf(`^run %d  paused  %d/%d \(.*— paused by \S+`, o.id, done, captures), o.verb("status"))

	require.Regexp(t, "concurrency 2", o.verb("set", "concurrency=2"))
	o.verb("resume")
	require.Equal(t, 2, o.busiest("select count(*) > $1 from backfill.extraction", done+1000))

	// Nobody can write, so whatever is killed now has work in hand.
	lock, err := s.pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = lock.Exec(t.Context(), "lock table backfill.staging in share mode")
	require.NoError(t, err)
	s.await(20*time.Second, "select count(*) = 2 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query ilike 'copy%staging%'")
	for _, w := range workers {
		w.kill()
	}
	require.NoError(t, lock.Rollback(t.Context()))
	require.Equal(t, 2, query[int](s, "select count(*) from backfill.batch where state = 'leased'"))
	done = o.done()
	require.Equal(t, done, o.status().Done)

	o.restart(2)
	require.Equal(t, 2, o.busiest("select count(*) > $1 from backfill.extraction", done+500))
	o.verb("cancel")
	o.soon("cancelling", "cancelled")
	o.rests("heuristic", "cancelled")
	done = o.done()
	require.Less(t, done, int64(captures), "it was in the middle of it")
	require.Equal(t, done, o.status().Done)
	require.Equal(t, done, query[int64](s, "select count(*) from backfill.extraction"), "what was not begun has no result")
	code, _, stderr := s.run("resume", strconv.FormatInt(o.id, 10))
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "run 1 is cancelled")

	again := ask[planned](s, "run", "--wait")
	require.Equal(t, planned{Run: o.id + 1, State: "succeeded", Captures: captures - done, Batches: again.Batches}, again)
	require.Equal(t, calm.digests(), s.digests())
	require.Equal(t, int64(captures), o.done())
	s.requireCounts()
	require.Zero(t, ask[planned](s, "run", "--dry-run").Captures)

	told := ask[story](s, "runs", strconv.FormatInt(o.id, 10))
	require.Equal(t, "the first year", told.Why)
	states := make([]string, len(told.Events))
	for i, e := range told.Events {
		states[i] = e.To
		if e.From == e.To {
			require.Equal(t, "concurrency: none → 2", e.Reason)
		}
	}
	require.Equal(t, []string{"running", "pausing", "paused", "paused", "running", "cancelling", "cancelled"}, states)
}
