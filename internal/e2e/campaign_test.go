//go:build unix

package e2e_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/heuristic"
	"github.com/justfortytwo/backfill/jobs"
	"github.com/justfortytwo/backfill/store"
)

// campaignSize names the number of captures of TestCampaign.
const campaignSize = "BACKFILL_CAMPAIGN"

// campaign measures a large backfill and what goes on beside it.
type campaign struct {
	*operator
	captures int
	worker   *program
	rows     []string
}

// TestCampaign backfills as many captures as BACKFILL_CAMPAIGN says and prints what
// that took, beside the goals. A goal that is missed fails it.
func TestCampaign(t *testing.T) {
	t.Parallel()
	if os.Getenv(campaignSize) == "" {
		t.Skip("takes long: " + campaignSize + " gives the number of captures")
	}
	captures, err := strconv.Atoi(os.Getenv(campaignSize))
	require.NoError(t, err)
	require.GreaterOrEqual(t, captures, 10_000)
	c := &campaign{operator: &operator{site: setup(t, "BACKFILL_LEASE=20s")}, captures: captures}
	t.Cleanup(func() {
		t.Logf("%d captures\n| what | measured | goal |\n|---|---|---|\n%s", captures, strings.Join(c.rows, "\n"))
	})
	c.load()
	c.planning()
	c.backfilling()
	c.gapFinder()
	c.smallBatches()
	c.claiming()
}

// row notes a figure. Where it misses its goal, the campaign goes on and fails.
func (c *campaign) row(what, measured, goal string, met bool) {
	c.Helper()
	c.rows = append(c.rows, fmt.Sprintf("| %s | %s | %s |", what, measured, cmp.Or(goal, "–")))
	c.Logf("%s: %s", what, measured)
	if !met {
		c.Errorf("%s: %s, the goal is %s", what, measured, goal)
	}
}

// times notes durations, with a goal for their median; 0 is none.
func (c *campaign) times(what string, took []time.Duration, p50 time.Duration) {
	c.Helper()
	slices.Sort(took)
	at := func(share float64) time.Duration { return took[int(share*float64(len(took)-1))] }
	goal := ""
	if p50 > 0 {
		goal = "p50 ≤ " + p50.String()
	}
	c.row(what, fmt.Sprintf("p50 %s, p99 %s, max %s of %d", short(at(.5)), short(at(.99)), short(at(1)), len(took)), goal, p50 == 0 || at(.5) <= p50)
}

// short is a duration to three digits or so.
func short(d time.Duration) string {
	switch {
	case d > time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d > 10*time.Millisecond:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(10 * time.Microsecond).String()
}

// load puts the captures into intake, as a history that nothing is queued for.
func (c *campaign) load() {
	const chunk = 50_000
	began := time.Now()
	for from := 0; from < c.captures; from += chunk {
		_, err := c.pool.CopyFrom(c.Context(), pgx.Identifier{"backfill", "intake"}, []string{"source", "text"},
			pgx.CopyFromSlice(min(chunk, c.captures-from), func(i int) ([]any, error) { return []any{"desk", turn(from + i)}, nil }))
		require.NoError(c, err)
	}
	c.exec("vacuum analyze backfill.intake")
	c.Logf("loaded in %s", short(time.Since(began)))
}

// measured runs backfill and returns how long it took and the most memory it had,
// in bytes.
func (c *campaign) measured(args ...string) (took time.Duration, memory int64) {
	c.Helper()
	cmd := c.command("backfill", args...)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	require.NoError(c, err, "%s", out)
	return time.Since(began), mostMemory(cmd)
}

// mostMemory is the peak resident size of a program that has ended, in bytes.
func mostMemory(cmd *exec.Cmd) int64 {
	most := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
	if runtime.GOOS == "darwin" { // which counts bytes, others kilobytes
		return most
	}
	return most << 10
}

// planning dry-runs and plans the run. No worker helps.
func (c *campaign) planning() {
	_, little := c.measured("run", "--dry-run", "--limit", strconv.Itoa(c.captures/100))
	took, memory := c.measured("run", "--dry-run")
	c.row("`run --dry-run`", fmt.Sprintf("%s, %d MB", short(took), memory>>20), "", true)
	took, memory = c.measured("run")
	c.id = 1
	c.row("`run`: planning", short(took), "", true)
	c.row("`run`: memory, with all captures and with 1 %", fmt.Sprintf("%d MB, %d MB", memory>>20, little>>20), "≤ 15 MB more", memory-little <= 15<<20)
	require.Equal(c, c.captures, query[int](c.site, "select total from backfill.v_run"))
}

// backfilling works the run with one worker, pauses it halfway, and looks at the
// status and inserts live turns meanwhile.
func (c *campaign) backfilling() {
	c.exec("update backfill.extractor set on_insert = true where name = 'heuristic'")
	c.worker = c.start("worker")
	began := time.Now()
	var rested time.Duration
	var live, views, statuses []time.Duration
	for i := 0; !query[bool](c.site, "select finished_at is not null from backfill.run"); i++ {
		require.Less(c, time.Since(began), 20*time.Minute)
		live = append(live, c.live(i))
		if i%10 == 0 {
			views = append(views, took(func() { c.exec("select * from backfill.v_status") }))
			statuses = append(statuses, took(func() { c.backfill("status") }))
		}
		if rested == 0 && query[bool](c.site, "select 2 * done > total from backfill.v_run where run = 1") {
			rested = c.pauseAndResume()
		}
		<-time.After(50 * time.Millisecond) // turns come at their own pace
	}
	running := time.Since(began) - rested
	require.Positive(c, rested)
	require.Equal(c, "succeeded", query[string](c.site, "select state from backfill.run"))
	c.worker.terminate()
	c.row("drain, one worker", fmt.Sprintf("%.0f captures/s", float64(c.captures)/running.Seconds()), "", true)
	memory := mostMemory(c.worker.cmd)
	c.row("worker: memory", fmt.Sprintf("%d MB", memory>>20), "≤ 100 MB", memory <= 100<<20)
	c.times("a live turn meanwhile: INSERT to candidate", live, 150*time.Millisecond)
	c.times("`select * from backfill.v_status` meanwhile", views, 100*time.Millisecond)
	c.times("`backfill status` meanwhile, on two busy cores", statuses, 0)
	for i := range statuses {
		statuses[i] = took(func() { c.backfill("status") })
	}
	c.times("`backfill status` afterwards", statuses, 100*time.Millisecond)
}

func took(do func()) time.Duration {
	began := time.Now()
	do()
	return time.Since(began)
}

// live inserts a turn and waits for its candidate.
func (c *campaign) live(n int) time.Duration {
	return took(func() {
		id := query[int64](c.site, "insert into backfill.intake (source, text) values ('live', $1) returning id",
			fmt.Sprintf("We decided to use Postgres %d instead of MongoDB because the reports need joins.", n))
		c.await(time.Minute, "select exists (select from backfill.staging where capture_id = $1)", id)
	})
}

// pauseAndResume returns how long the run rested.
func (c *campaign) pauseAndResume() time.Duration {
	began := time.Now()
	pause := took(func() {
		c.verb("pause")
		c.await(20*time.Second, "select state = 'paused' from backfill.run")
	})
	c.row("pause halfway: until nothing is in work", short(pause), "≤ 2s", pause <= 2*time.Second)
	claims := c.claims()
	c.exec("select backfill.sweep()")
	c.tempt("heuristic")
	require.Equal(c, claims, c.claims(), "a batch was claimed")
	c.verb("resume")
	return time.Since(began)
}

// gapFinder plans a nightly over the full ledger, of which a few captures were
// missed, and prints how the database went about it.
func (c *campaign) gapFinder() {
	const missed = 1000
	c.exec("update backfill.extractor set on_insert = false")
	c.exec("insert into backfill.intake (source, text) select 'missed', 'text ' || g from generate_series(1, $1) g", missed)
	// Not every VACUUM marks every page: an analyze may still look at older rows, and
	// this server commits before its log is written.
	// What the catalog says before a VACUUM may be of the time before the insert.
	for until, marked := time.Now().Add(time.Minute), false; !marked; {
		require.True(c, time.Now().Before(until), "pages stay unmarked")
		c.exec("checkpoint")
		c.exec("vacuum analyze backfill.intake, backfill.extraction")
		marked = query[bool](c.site, `
			select bool_and(relallvisible = relpages) from pg_class where oid in ('backfill.intake'::regclass, 'backfill.extraction'::regclass)`)
	}
	pool, plans := c.explaining()
	st := store.New(pool)
	run, err := st.CreateRun(c.Context(), jobs.NightlyRun(1, time.Now()))
	require.NoError(c, err)
	found := took(func() { require.NoError(c, st.Plan(c.Context(), run)) })
	require.Equal(c, missed, query[int](c.site, "select total from backfill.v_run where run = $1", run))

	steps := plans()
	require.Len(c, steps, c.captures/50_000+1)
	_, plan, _ := strings.Cut(steps[0], "from picked\n")
	c.Logf("the planner's statement, in the first of %d steps:\n%s", len(steps), plan)
	fetches := 0
	for _, plan := range steps {
		require.Regexp(c, `Anti Join`, plan)
		require.Regexp(c, `Index Only Scan using intake_pkey`, plan)
		require.Regexp(c, `Index Only Scan using extraction_pkey`, plan)
		require.NotRegexp(c, `Seq Scan on (intake|extraction)`, plan)
		for _, m := range regexp.MustCompile(`Heap Fetches: (\d+)`).FindAllStringSubmatch(plan, -1) {
			n, err := strconv.Atoi(m[1])
			require.NoError(c, err)
			fetches += n
		}
	}
	c.row(fmt.Sprintf("gap finder: %d of all captures, after VACUUM", missed), fmt.Sprintf("%s, index only, %d heap fetches", short(found), fetches),
		"0 heap fetches", fetches == 0)
	require.NoError(c, st.CancelRun(c.Context(), run, store.Change{Who: "test"}))
}

// explaining is a pool whose statements are explained as they run; plans returns
// those that pick captures.
func (c *campaign) explaining() (pool *pgxpool.Pool, plans func() []string) {
	cfg := c.pool.Config()
	maps.Copy(cfg.ConnConfig.RuntimeParams, map[string]string{
		"session_preload_libraries": "auto_explain", "auto_explain.log_min_duration": "0", "auto_explain.log_analyze": "on",
		"auto_explain.log_buffers": "on", "client_min_messages": "log",
	})
	var mu sync.Mutex
	var all []string
	cfg.ConnConfig.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		mu.Lock()
		defer mu.Unlock()
		if strings.Contains(n.Message, "CTE picked") {
			all = append(all, n.Message)
		}
	}
	pool, err := pgxpool.NewWithConfig(c.Context(), cfg)
	require.NoError(c, err)
	c.Cleanup(pool.Close)
	return pool, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

// smallBatches looks at, pauses, resumes and cancels a run in as many batches as one
// that asks a model has.
func (c *campaign) smallBatches() {
	const size = 16
	c.backfill("run", "--reprocess", "all", "--batch-size", strconv.Itoa(size))
	run := query[int64](c.site, "select max(id) from backfill.run")
	batches := query[int](c.site, "select batches from backfill.v_run where run = $1", run)
	c.exec("vacuum analyze backfill.batch")
	id := strconv.FormatInt(run, 10)
	look := func(args ...string) {
		all := make([]time.Duration, 10)
		for i := range all {
			all[i] = took(func() { c.backfill(args...) })
		}
		c.times(fmt.Sprintf("`%s`, %d open batches", strings.Join(append([]string{"backfill"}, args...), " "), batches), all, 0)
	}
	look("status")
	look("status", id)
	look("runs")
	verb := func(name, state string) {
		began := time.Now()
		whole := make(chan time.Duration, 1)
		go func() { whole <- took(func() { c.backfill(name, id) }) }()
		c.await(time.Minute, "select state = $2 from backfill.run where id = $1", run, state)
		reached := time.Since(began)
		all := <-whole
		c.row(fmt.Sprintf("`backfill %s RUN`, %d open batches: until it is %s, and the command", name, batches, state),
			short(reached)+", "+short(all), "≤ 2s until then", reached <= 2*time.Second || name == "cancel")
	}
	verb("pause", "paused")
	require.Empty(c, c.claimOnce(1), "it is paused")
	verb("resume", "running")
	require.NotEmpty(c, c.claimOnce(1))
	verb("cancel", "cancelling")
	c.exec("update backfill.batch set due = now() where state = 'leased'")
	c.await(time.Minute, "select backfill.sweep() >= 0 and (select state = 'cancelled' from backfill.run where id = $1)", run)
}

// claimOnce claims for a worker that does nothing more.
func (c *campaign) claimOnce(limit int) []store.Batch {
	c.Helper()
	claimed, err := store.New(c.pool).Claim(c.Context(), store.Claim{
		Extractor: 1, Version: heuristic.Version, MaxPrio: store.PrioRun, Limit: limit, Lease: time.Minute, Worker: "test",
	})
	require.NoError(c, err)
	return claimed
}

// claiming claims what is left of fifty runs, one of them paused, when of each
// thousand batches all but one are closed.
func (c *campaign) claiming() {
	c.exec(`insert into backfill.run (kind, extractor_id, reprocess, state, planned_at, finished_at)
		select 'run', 1, 'missing', case g when 1 then 'running' when 2 then 'paused' else 'succeeded' end, now(), case when g > 2 then now() end
		from generate_series(1, 50) g`)
	c.exec(`
		with r as (select array_agg(id order by id) as ids from (select id from backfill.run order by id desc limit 50) r)
		insert into backfill.batch (extractor_id, version, prio, run_id, state, due, finished_at, captures, ids, staged, outcomes)
		select 1, $1, 2, r.ids[1 + case when g % 1000 = 0 then (g / 1000 % 10 = 0)::integer else g % 50 end],
		       case when g % 1000 = 0 then 'pending' else 'done' end,
		       case when g % 10000 = 0 then 'infinity' when g % 1000 = 0 then now() end,
		       case when g % 1000 > 0 then now() - interval '1 hour' end,
		       1, case when g % 1000 = 0 then int8multirange(int8range(g, g, '[]')) else '{}' end, (g % 1000 > 0)::integer,
		       case when g % 1000 = 0 then '{}' else '{"staged": 1}' end::jsonb
		from generate_series(1, $2::bigint) g, r`, heuristic.Version, c.captures)
	c.exec("vacuum analyze backfill.batch")
	var claims []time.Duration
	for {
		var claimed []store.Batch
		took := took(func() { claimed = c.claimOnce(2) })
		if claims = append(claims, took); len(claimed) == 0 {
			break
		}
	}
	require.Len(c, claims, (c.captures/1000-c.captures/10_000+1)/2+1, "all that is not paused, and an empty one")
	c.times(fmt.Sprintf("claim, %d closed batches, 50 runs, one paused", c.captures), claims, 2*time.Millisecond)
	status := func(when string) {
		views := make([]time.Duration, 10)
		for i := range views {
			views[i] = took(func() { c.exec("select * from backfill.v_status") })
		}
		c.times("`select * from backfill.v_status`, "+when, views, 0)
	}
	status(fmt.Sprintf("%d closed batches", c.captures))
	folding := took(func() { require.NoError(c, store.New(c.pool).Fold(c.Context())) })
	c.row("the sweep sums them up", short(folding), "", true)
	c.exec("vacuum backfill.batch")
	status("after that, in a file of empty pages")
}
