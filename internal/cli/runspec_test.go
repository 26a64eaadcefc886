package cli_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// dated has a capture for each of the first days of 2026, from the evening before at
// 23:30 UTC on.
func dated(t *testing.T, captures int) database {
	t.Helper()
	d := setup(t)
	d.exec("update backfill.extractor set on_insert = false")
	d.exec(`insert into backfill.intake (source, text, occurred_at)
		select case when g % 2 = 0 then 'even' else 'odd' end,
		    'We decided to use Postgres ' || g || ' instead of MongoDB because the reports need joins.',
		    timestamptz '2025-12-30T23:30:00Z' + g * interval '1 day' from generate_series(1, $1::integer) g`, captures)
	return d
}

// TestRunFilters: what is asked for on the command line is what is planned.
func TestRunFilters(t *testing.T) {
	t.Parallel()
	d := dated(t, 20)
	for _, tt := range []struct {
		stdin string
		args  []string
		want  []int64
	}{
		{args: []string{"--limit", "3"}, want: []int64{1, 2, 3}},
		{args: []string{"--limit", "3", "--order", "newest"}, want: []int64{18, 19, 20}},
		{args: []string{"--source", "odd", "--until", "2026-01-03T23:30:00Z"}, want: []int64{1, 3}},
		{args: []string{"--source", "odd", "--source", "even", "--until", "2025-12-31T23:30:01Z"}, want: []int64{1}},
		{args: []string{"--ids", "4, 5,4"}, want: []int64{4, 5}},
		{stdin: "7\n8,9\r\n\n", args: []string{"--ids", "-"}, want: []int64{7, 8, 9}},
		{args: []string{"--sample", "100%", "--ids", "20"}, want: []int64{20}},
		{args: []string{"--nightly"}, want: []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}},
	} {
		dry := d.cliWith(tt.stdin, append([]string{"run", "--dry-run", "--json"}, tt.args...)...).ok().object()
		requireKeys(t, dry, "captures", "batches", "bytes", "replaced", "kept", "tokens_in", "tokens_out", "cost", "minutes", "rough")
		require.Nil(t, dry["minutes"], "there was no run yet")
		require.InDelta(t, 0, dry["cost"], 0)
		run := d.cliWith(tt.stdin, append([]string{"run", "--json"}, tt.args...)...).ok().object()
		require.Equal(t, tt.want, query[[]int64](d, `
			select array_agg(c order by c) from backfill.batch, unnest(ids) r, generate_series(lower(r), upper(r) - 1) c where run_id = $1`, run["run"]), tt.args)
		require.InDelta(t, run["captures"], dry["captures"], 0)
		require.InDelta(t, run["batches"], dry["batches"], 0)
		d.exec("delete from backfill.batch")
	}
	require.Zero(t, d.cli("run", "--ids", "4,77,78").code)
	require.Equal(t, "2 of the ids are no captures: 77, 78\n", d.cli("run", "--ids", "4,77,78", "--dry-run").err)

	d.cliWith("1\n2,x\ny", "run", "--ids", "-").fails(2, `--ids: this is no number of a capture: line 2: "x", line 3: "y"`)
	d.cliWith("a b c d e f g", "run", "--ids", "-").fails(2, ", and 2 more")
	d.cli("run", "--extractor", "magic").fails(2, `there is no extractor "magic": use heuristic or llm`)
}

// A date is a day of the configured zone, from its beginning to its end.
func TestRunDates(t *testing.T) {
	t.Setenv("BACKFILL_TIME_ZONE", "Europe/Berlin") // an hour ahead: the first capture is of 1 January there
	d := dated(t, 5)
	for _, tt := range []struct {
		args []string
		want float64
	}{
		{[]string{"--since", "2026-01-01", "--until", "2026-01-01"}, 1},
		{[]string{"--until", "2026-01-03"}, 3},
		{[]string{"--since", "2026-01-02"}, 4},
		{[]string{"--until", "2025-12-31"}, 0},
	} {
		require.InDelta(t, tt.want, d.cli(append([]string{"run", "--dry-run", "--json"}, tt.args...)...).ok().object()["captures"], 0, tt.args)
	}
	require.Zero(t, d.cli("run", "--deadline", "06:00").code)
	deadline := query[time.Time](d, "select (settings->>'deadline')::timestamptz from backfill.run")
	require.Equal(t, "06:00", deadline.In(zone(t, "Europe/Berlin")).Format("15:04"))
	require.Positive(t, time.Until(deadline))
	require.LessOrEqual(t, time.Until(deadline), 25*time.Hour)
}

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	l, err := time.LoadLocation(name)
	require.NoError(t, err)
	return l
}

// TestDryRun shows what would happen, and does nothing.
func TestDryRun(t *testing.T) {
	t.Parallel()
	d := dated(t, 3)
	require.Equal(t, "would take 3 captures in 1 batch, 237 bytes of text\ntime: unknown: there is no run to go by\n", d.cli("run", "--dry-run").ok().out)
	d.exec("insert into backfill.intake (source, text) values ('test', 'Good morning!')")
	shown := d.cli("run", "--limit", "1", "--order", "newest", "--print").ok().out
	require.Regexp(t, `^4 +empty\nwould take 1 capture in 1 batch`, shown)
	shown = d.cli("run", "--dry-run", "--limit", "2", "--print").ok().out
	require.Regexp(t, `^1 +decision +[01]\.\d\d  We decided to use Postgres 1 .*\n2 +decision +[01]\.\d\d  We decided to use Postgres 2 .*\nwould take 2 captures`, shown)
	lines := d.cli("run", "--limit", "2", "--print", "--json").ok().objects()
	require.Len(t, lines, 3)
	requireKeys(t, lines[0], "capture", "outcome", "candidates")
	require.Equal(t, "staged", lines[0]["outcome"])
	require.Contains(t, lines[0]["candidates"].([]any)[0].(map[string]any)["content"], "Postgres 1")
	require.Zero(t, query[int64](d, `select (select count(*) from backfill.run) + (select count(*) from backfill.batch)
		+ (select count(*) from backfill.extraction) + (select count(*) from backfill.staging)`))

	require.Contains(t, d.cli("run", "--local").ok().out, "succeeded")
	out := d.cli("run", "--dry-run", "--reprocess", "all").ok().out
	require.Contains(t, out, "would take 4 captures in 1 batch, 250 bytes of text\nwould replace 3 candidates; 0 more stay")
	require.Contains(t, out, "time: about 1 min at the pace of the last runs\n")
}

// Replacing what a model has said costs money: it is priced, and not done by
// accident.
func TestRunPrice(t *testing.T) {
	t.Parallel()
	d := dated(t, 3)
	d.exec("update backfill.extractor set version = null where id = 2")
	d.cli("run", "--extractor", "llm").fails(1, "the llm extractor has no version yet", "backfill migrate up")
	d.exec("update backfill.extractor set version = 'm/2' where id = 2")
	d.exec("insert into backfill.extraction (capture_id, extractor_id, version, state, outcome) values (1, 2, 'm/1', 'done', 'empty'), (2, 2, 'm/1', 'done', 'empty')")

	d.cli("run", "--extractor", "llm", "--reprocess", "stale").fails(1, "extracting 2 captures again replaces 0 candidates; its cost is unknown: add --yes")
	out := d.cli("run", "--extractor", "llm", "--reprocess", "stale", "--dry-run").ok().out
	require.Regexp(t, `tokens: roughly \d{4} in, 200 out: there is no call to go by, a run with --limit 20 makes some\ncost: unknown\n`, out)
	dry := d.cli("run", "--extractor", "llm", "--dry-run", "--json").ok().object()
	require.Equal(t, true, dry["rough"])
	require.Nil(t, dry["cost"])

	d.exec(`insert into backfill.llm_call (capture_id, class, prompt_tokens, completion_tokens, cost_microusd, prompt_version) values (1, 'ok', 900, 100, 250000, 'm/1')`)
	require.Contains(t, d.cli("run", "--extractor", "llm", "--dry-run").ok().out, "tokens: about 900 in, 100 out\ncost: unknown\n", "another model")
	d.exec("update backfill.llm_call set prompt_version = 'm/2'")
	d.cli("run", "--extractor", "llm", "--print", "--limit", "1").fails(1, "BACKFILL_LLM_MODEL is not set")
	d.cli("run", "--extractor", "llm", "--reprocess", "stale").fails(1, "its cost is about $0.50: add --yes")
	require.Contains(t, d.cli("run", "--extractor", "llm", "--dry-run").ok().out, "tokens: about 900 in, 100 out\ncost: about $0.25\n")
	require.Zero(t, query[int64](d, "select count(*) from backfill.run"))

	require.Zero(t, d.cli("run", "--extractor", "llm", "--reprocess", "stale", "--yes").code)
	require.Zero(t, d.cli("run", "--extractor", "llm").code, "what only adds is not asked about")
	require.Zero(t, d.cli("run", "--extractor", "llm", "--reprocess", "stale").code, "nor is nothing")
}

// Where no call of this version tells, the configured price does.
func TestRunConfiguredPrice(t *testing.T) {
	t.Setenv("BACKFILL_LLM_MODEL", "m")
	t.Setenv("BACKFILL_LLM_PRICES", "m=100/1000")
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
	d := dated(t, 3)
	d.exec("update backfill.extractor set version = 'm/2' where id = 2")
	d.exec("insert into backfill.llm_call (capture_id, class, prompt_tokens, completion_tokens) values (1, 'ok', 1000, 100)")
	require.Contains(t, d.cli("run", "--extractor", "llm", "--dry-run").ok().out, "tokens: about 3000 in, 300 out\ncost: about $0.60\n")
}

// TestSet changes a run, and its story says so.
func TestSet(t *testing.T) {
	t.Parallel()
	d := dated(t, 3)
	d.cli("run", "--max-cost", "5", "--max-error-rate", "5%", "--batch-size", "2", "--concurrency", "3", "--reason", "check\x1b", "--source", "odd").ok()
	require.Equal(t, int64(2), query[int64](d, "select captures from backfill.batch"))
	require.Equal(t, "run 1: concurrency 2, batch-size 2, max-error-rate 5%\n", d.cli("set", "1", "concurrency=2", "max-cost=none").ok().out)
	set := d.cli("set", "1", "deadline=2999-01-01T00:00:00Z", "max-error-rate=0.5", "--json").ok().object()
	require.Equal(t, map[string]any{"run": 1.0, "settings": map[string]any{
		"concurrency": 2.0, "batch_size": 2.0, "deadline": "2999-01-01T00:00:00Z", "max_error_rate": 0.5,
	}}, set)
	d.cli("set", "1", "batch-size=1").fails(1, "run 1: it is planned already")
	d.cli("set", "9", "concurrency=1").fails(1, "there is no such run")
	d.cli("set", "one", "concurrency=1").fails(2, "not the number of a run")

	story := d.cli("runs", "1").ok().out
	requirePlain(t, story)
	for _, s := range []string{
		"run 1  running  heuristic missing, oldest first  0/2  nothing done\n", ": check", `filter: {"sources": ["odd"]}`,
		"settings: concurrency 2, batch-size 2, deadline 2999-01-01 00:00:00Z, max-error-rate 50%\n",
		"planning → running: every capture is in a batch\n", "concurrency: 3 → 2, max-cost: 5 → none\n",
	} {
		require.Contains(t, story, s)
	}
	run := d.cli("runs", "1", "--json").ok().object()
	require.Len(t, run["events"], 3)
	require.Equal(t, map[string]any{"sources": []any{"odd"}}, run["filter"])

	require.Equal(t, "run 1: cancelled, 0 of 2 done\n", d.cli("cancel", "1").ok().out)
	d.cli("set", "1", "concurrency=1").fails(1, "run 1: it has ended")
	require.Regexp(t, `(?m)^1 +run +heuristic +missing +cancelled`, d.cli("runs").ok().out)
}

// Waiting ends where a run stops, and the exit status says that it did not finish.
func TestRunStops(t *testing.T) {
	t.Parallel()
	for state, says := range map[string]string{
		"budget_exhausted": "run 1 has spent its budget: `backfill set 1 max-cost=…`",
		"deadline_reached": "run 1 has reached its deadline: `backfill set 1 deadline=…`",
		"failed":           "run 1 failed: too much went wrong",
		"cancelling":       "run 1 was cancelled",
	} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			d := dated(t, 3)
			ended := make(chan result)
			go func() { ended <- d.cli("run", "--wait") }()
			require.Eventually(t, func() bool {
				return query[bool](d, "select exists (select from backfill.run where state = 'running')")
			}, 20*time.Second, 10*time.Millisecond)
			d.exec("update backfill.run set state = $1, error = case $1 when 'failed' then 'too much went wrong' end", state)
			d.exec("select backfill.sweep()")
			r := <-ended
			require.Equal(t, 1, r.code, r.err)
			require.Contains(t, r.err, says)
		})
	}
}

// TestForce: see the test of the same name in package jobs.
func TestForce(t *testing.T) {
	t.Parallel()
	d := dated(t, 3)
	d.cli("run").ok()
	d.exec("update backfill.batch set state = 'leased', due = now() + interval '1 hour', worker = 'gone', lease_no = 1")
	require.Equal(t, "run 1: pausing, 0 of 3 done\n", d.cli("pause", "1").ok().out)
	require.Equal(t, "run 1: paused, 0 of 3 done\n", d.cli("pause", "1", "--force").ok().out)
	require.Contains(t, d.cli("runs", "1").ok().out, "leases were taken from gone\n")
	require.Equal(t, "run 1: running, 0 of 3 done\n", d.cli("resume", "1").ok().out)
	d.exec("update backfill.batch set state = 'leased', due = now() + interval '1 hour'")
	require.Equal(t, "run 1: cancelled, 0 of 3 done\n", d.cli("cancel", "1", "--force").ok().out)
}

// TestRetryIDs takes the ids as run does.
func TestRetryIDs(t *testing.T) {
	t.Parallel()
	d := dated(t, 3)
	d.exec(`insert into backfill.extraction (capture_id, extractor_id, version, state, outcome, error)
		select id, 1, 'v', 'dead', case id when 1 then 'panic' else 'crashed' end, 'e' || id % 2 from backfill.intake`)
	failures := d.cli("failures").ok().out
	for _, s := range []string{"1 +heuristic +panic +dead +1 +e1", "1 +heuristic +crashed +dead +2 +e0", "1 +heuristic +crashed +dead +3 +e1"} {
		require.Regexp(t, "(?m)^"+s+"$", failures)
	}
	require.Equal(t, "1 capture queued\n", d.cliWith("2\n", "retry", "--ids", "-").ok().out)
	require.Equal(t, "1 capture queued\n", d.cli("retry", "--outcome", "panic").ok().out)
	require.Equal(t, "0 captures queued\n", d.cli("retry", "--outcome", "panic", "--ids", "2,3").ok().out)
	require.Equal(t, []int64{1, 2}, query[[]int64](d, "select array_agg(capture_id order by capture_id) from backfill.extraction where state = 'queued'"))
}
