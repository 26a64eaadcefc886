package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/extract"
	"github.com/justfortytwo/backfill/heuristic"
	"github.com/justfortytwo/backfill/internal/cli"
	"github.com/justfortytwo/backfill/jobs"
)

func (d database) insert(n int) {
	d.Helper()
	d.exec(`insert into backfill.intake (source, text)
		select 'test', 'We decided to use Postgres ' || g || ' instead of MongoDB because the reports need joins.' from generate_series(1, $1::integer) g`, n)
}

// worker works the database until the test ends.
func (d database) worker(e extract.SalienceExtractor) {
	d.Helper()
	client, err := jobs.New(d.pool, jobs.Config{
		Slots:  []jobs.Slot{{ID: 1, Name: "heuristic", Version: heuristic.Version, Extractor: e}},
		Logger: slog.New(slog.DiscardHandler), Workers: 2,
	})
	require.NoError(d, err)
	require.NoError(d, client.Start(context.Background()))
	d.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		defer cancel()
		require.NoError(d, client.Stop(ctx))
	})
}

// A run that the workers do.
func TestRunWait(t *testing.T) {
	t.Parallel()
	d := setup(t)
	h, err := heuristic.New()
	require.NoError(t, err)
	d.worker(h)
	d.insert(1500)

	require.Regexp(t, `^run \d+: 1500 captures in 2 batches\nrun \d+: succeeded: 1500 staged, 1500 candidates\n$`,
		d.cli("run", "--wait", "--reprocess", "all").ok().out)
	r := d.cli("run", "--wait", "--reprocess", "all", "--json").ok()
	end := r.objects()[len(r.objects())-1]
	require.Equal(t, "succeeded", end["state"])
	require.Equal(t, map[string]any{"staged": 1500.0}, end["outcomes"])
	require.InDelta(t, 1500, end["captures"], 0)
	require.Contains(t, end, "cost")
	require.Equal(t, int64(1500), query[int64](d, "select count(*) from backfill.staging"))

	// A capture is left to the workers unless asked otherwise.
	d.exec("delete from backfill.extraction where capture_id <= 10; delete from backfill.staging where capture_id <= 10")
	planned := d.cli("run", "--json").ok().object()
	requireKeys(t, planned, "run", "state", "batches", "captures")
	require.InDelta(t, 10, planned["captures"], 0)
	require.InDelta(t, 1, planned["batches"], 0)
}

// interruptingWriter interrupts the command at its first word.
type interruptingWriter struct {
	bytes.Buffer

	interrupt context.CancelFunc
}

func (w *interruptingWriter) Write(p []byte) (int, error) {
	w.interrupt()
	return w.Buffer.Write(p)
}

// Ctrl-C ends the waiting or the local work, not the run: nothing is lost, and
// nothing is held.
func TestRunInterrupted(t *testing.T) {
	t.Parallel()
	d := setup(t)
	d.exec("update backfill.extractor set on_insert = false")
	d.insert(10_000)
	for _, how := range []string{"--wait", "--local"} {
		ctx, cancel := context.WithCancel(t.Context())
		out := &interruptingWriter{interrupt: cancel}
		var errs bytes.Buffer
		began := time.Now()
		code := cli.Run(ctx, []string{"--database-url", d.url, "run", how}, strings.NewReader(""), out, &errs)
		cancel()
		require.Equal(t, 1, code, how)
		require.Equal(t, "backfill: interrupted\n", errs.String(), how)
		require.Equal(t, 1, strings.Count(out.String(), "\n"), out)
		require.Less(t, time.Since(began), 15*time.Second, how)
		require.Zero(t, query[int64](d, "select count(*) from backfill.batch where state = 'leased' or due is not null and attempts > 0"), how)
		require.Equal(t, int64(1), query[int64](d, "select count(*) from backfill.run where state = 'running'"), how)
	}
	require.Zero(t, d.cli("run", "--local").code)
	require.Equal(t, int64(10_000), query[int64](d, "select count(*) from backfill.extraction where state = 'done'"))
	require.Zero(t, query[int64](d, "select count(*) from backfill.batch where due is not null"))
}

// A run with failed captures says so by exit code 3, and they can be found.
func TestRunFails(t *testing.T) {
	t.Parallel()
	d := setup(t)
	d.exec("update backfill.extractor set on_insert = false")
	d.insert(5)
	d.exec("insert into backfill.intake (source, text) values ('test', repeat('long text ', 900000))") // 9 MB

	r := d.cli("run", "--local")
	require.Equal(t, 3, r.code, r.err)
	require.Contains(t, r.out, "run 1: 6 captures in 1 batch\n")
	require.Contains(t, r.out, "\nrun 1: finished_with_errors: 5 staged, 1 too_long, 5 candidates\n")
	require.Equal(t, "some captures failed: `backfill failures` says why\n", r.err)
	require.Regexp(t, `(?m)^1 +heuristic +too_long +dead +6 `, d.cli("failures").ok().out)
	group := d.cli("failures", "--json").ok().object()
	requireKeys(t, group, "extractor", "outcome", "state", "error", "captures", "example")
	require.Equal(t, "too_long", group["outcome"])
	require.InDelta(t, 6, group["example"], 0)
	require.Regexp(t, `dead, too_long \(attempt 1, `, d.cli("show", "6").out)
	require.Contains(t, d.cli("doctor").out, "backfill run --reprocess failed tries again")

	d.exec("update backfill.intake set text = 'short' where id = 6")
	d.exec("delete from backfill.batch where due is not null") // of the update
	require.Contains(t, d.cli("run", "--local", "--reprocess", "failed").ok().out, "run 2: succeeded: 1 empty, 0 candidates\n")
	require.Contains(t, d.cli("run", "--local", "--reprocess", "failed").ok().out, "run 3: succeeded: nothing done, 0 candidates\n")
}

// What is due every night is done once, whoever asks first.
func TestRunNightly(t *testing.T) {
	t.Parallel()
	d := setup(t)
	d.exec("update backfill.extractor set on_insert = false where id = 1")
	d.insert(3)
	require.Contains(t, d.cli("run", "--nightly", "--local").ok().out, "run 1: succeeded: 3 staged")
	r := d.cli("run", "--nightly", "--local")
	require.Zero(t, r.code)
	require.Equal(t, "this night's run was started already: it is run 1, with the settings it has\n", r.err)
	require.Contains(t, r.out, "run 1: succeeded: 3 staged")
	require.Equal(t, int64(1), query[int64](d, "select count(*) from backfill.run"))
}

// A scheduler that asks for a night that is in work already waits for its end.
func TestRunNightlyWaits(t *testing.T) {
	t.Parallel()
	d := setup(t)
	d.exec("update backfill.extractor set on_insert = false where id = 1")
	d.insert(3)
	require.Contains(t, d.cli("run", "--nightly").ok().out, "run 1: 3 captures in 1 batch")
	ended := make(chan result)
	go func() { ended <- d.cli("run", "--nightly", "--wait") }()
	select {
	case r := <-ended:
		require.Fail(t, "it did not wait", r.out)
	case <-time.After(500 * time.Millisecond):
	}
	h, err := heuristic.New()
	require.NoError(t, err)
	d.worker(h)
	r := <-ended
	require.Zero(t, r.code, r.err)
	require.Contains(t, r.out, "run 1: succeeded: 3 staged")
}

// A night takes every extractor that it looks after, and keeps the reason given.
func TestRunNightlyAllExtractors(t *testing.T) {
	t.Parallel()
	d := setup(t)
	d.exec("update backfill.extractor set on_insert = false, active_from = 'epoch', version = coalesce(version, 'm1')")
	d.insert(3)
	require.Equal(t, "run 1: 3 captures in 1 batch\nrun 2: 3 captures in 1 batch\n", d.cli("run", "--nightly", "--reason", "from cron").ok().out)
	require.Equal(t, []string{"heuristic from cron", "llm from cron"}, query[[]string](d, "select array_agg(extractor || ' ' || why order by run) from backfill.v_run"))
	require.Contains(t, d.cli("run", "--nightly", "--extractor", "llm").err, "it is run 2")
}

// Whoever waits for a run is told what it waits for, and gets his prompt back when it
// is paused.
func TestRunWaitsForAWorker(t *testing.T) {
	t.Parallel()
	d := setup(t)
	d.exec("update backfill.extractor set on_insert = false")
	d.insert(3)
	said, stderr := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Run(t.Context(), []string{"--database-url", d.url, "run", "--wait"}, strings.NewReader(""), io.Discard, stderr)
		_ = stderr.Close() // it cannot fail
	}()
	lines := bufio.NewScanner(said)
	for more := true; more && lines.Text() != "run 1: waiting for a worker: none has been seen"; more = lines.Scan() {
		require.NotContains(t, lines.Text(), "paused")
	}
	d.cli("pause", "1").ok()
	var rest []string
	for lines.Scan() {
		rest = append(rest, lines.Text())
	}
	require.Equal(t, 1, <-ended)
	require.Equal(t, "backfill: run 1 is paused: `backfill resume 1` lets it go on", rest[len(rest)-1])
	require.NotContains(t, strings.Join(rest, "\n"), "waiting for a worker", "it was said")
}

// A run that has come some way says all the same that no worker is there any more.
func TestStatusStandstill(t *testing.T) {
	t.Parallel()
	d := setup(t)
	d.exec("update backfill.extractor set on_insert = false, batch_size = 1")
	d.insert(3)
	d.cli("run").ok()
	d.exec(`update backfill.batch set state = 'done', due = null, ids = '{}', finished_at = now() - interval '10 seconds', outcomes = '{"staged": 1}' where id <> 3`)
	d.exec("insert into backfill.llm_call (capture_id, run_id, class, cost_microusd) values (1, 1, 'ok', 12300)")
	d.exec("update river.river_job set attempted_at = now() - interval '20 seconds'")
	d.exec("update backfill.run set created_at = now() - interval '1 hour'")
	require.Regexp(t, `^run 1  running  2/3 \(66.7%\)  0.033\d?/s  ETA (29|30|31)s  2 staged  \$0.0123\n$`, d.cli("status", "1").ok().out)
	d.exec("update river.river_job set attempted_at = now() - interval '50 seconds'")
	require.Regexp(t, `2 staged  \$0.0123  — waiting for a worker: none seen for 5\ds\n$`, d.cli("status", "1").ok().out)
	d.exec("update river.river_job set attempted_at = now()")
	d.exec("update backfill.batch set finished_at = now() - interval '10 minutes', due = due - interval '10 minutes'")
	require.Contains(t, d.cli("status", "1").ok().out, "— no worker has taken any of it for 10m")
	require.Contains(t, d.cli("runs").ok().out, "$0.0123")
	require.Contains(t, d.cli("runs", "1").ok().out, "cost: $0.0123\n")
}

// Time left is nobody's guess below one per cent, and a run at rest has no pace.
func TestStatusGuessesNothing(t *testing.T) {
	t.Parallel()
	d := setup(t)
	d.exec("update backfill.extractor set on_insert = false")
	d.exec("insert into backfill.intake (source, text) select 'test', 'text' from generate_series(1, 201)")
	d.cli("run", "--batch-size", "1").ok()
	finish := `update backfill.batch set state = 'done', due = null, ids = '{}', finished_at = now(), outcomes = '{"empty": 1}' where id <= $1`
	d.exec(finish, 2)
	status := func() map[string]any { return d.cli("status", "1", "--json").ok().object() }
	require.Nil(t, status()["eta_seconds"])
	require.Positive(t, status()["rate"])
	d.exec(finish, 3)
	require.NotNil(t, status()["eta_seconds"])
	d.exec("update backfill.batch set state = 'leased', due = now() + interval '1 hour', worker = 'far-7' where id in (4, 5)")
	d.cli("pause", "1").ok()
	s := status()
	require.Equal(t, []any{0.0, nil}, []any{s["rate"], s["eta_seconds"]})
	require.Regexp(t, "^pausing by [^:]+: 2 batches in work at far-7, for (1h0m0s|59m5\\ds) at most; `backfill pause 1 --force` does not wait$", s["reason"])
	d.exec("update backfill.batch set due = now() where state = 'leased'")
	d.exec("delete from river.river_job")
	require.Contains(t, status()["reason"], ": no worker is there to complete it; `backfill pause 1` does")
	require.Contains(t, d.cli("pause", "1").ok().out, "run 1: paused")
	d.cli("cancel", "1").ok()
	require.Regexp(t, "^cancelled by ", status()["reason"])
}

// Without a worker the status says what it is waiting for.
func TestStatusStalled(t *testing.T) {
	t.Parallel()
	d := setup(t)
	d.exec("update backfill.extractor set on_insert = false")
	d.insert(3)
	d.cli("run").ok()
	require.Contains(t, d.cli("status", "1").ok().out, "0/3 (0.0%)  nothing done  — waiting for a worker: none has been seen")
	status := d.cli("status", "1", "--json").ok().object()
	require.Equal(t, "running", status["state"])
	require.Contains(t, status["reason"], "waiting for a worker")
	require.Equal(t, map[string]any{}, status["outcomes"])
	require.Contains(t, d.cli("doctor").out, "start one: worker")

	d.exec("update backfill.run set state = 'pausing'")
	d.exec("update backfill.run set state = 'paused'")
	require.Equal(t, "paused by "+query[string](d, "select session_user::text"), d.cli("status", "1", "--json").ok().object()["reason"])

	// --watch ends with the interrupt, and well.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &interruptingWriter{interrupt: cancel}
	require.Zero(t, cli.Run(ctx, []string{"--database-url", d.url, "status", "--watch"}, strings.NewReader(""), out, io.Discard))
	require.Contains(t, out.String(), "heuristic")
}
