//go:build unix

package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/internal/pgtest"
)

// lease is how long work rests after a kill: short, and still long enough for a
// heartbeat on a busy machine.
const lease = 3 * time.Second

// site is a database and the programs that run on it.
type site struct {
	testing.TB
	pool *pgxpool.Pool
	bin  string
	// env is the whole environment of the programs.
	env []string
}

// setup gives a database whose captures wait for a run, with further variables for
// the programs.
func setup(tb testing.TB, env ...string) *site {
	tb.Helper()
	bin, err := build()
	require.NoError(tb, err)
	s := &site{TB: tb, pool: pgtest.New(tb), bin: bin}
	for _, v := range os.Environ() {
		if !ours.MatchString(v) {
			s.env = append(s.env, v)
		}
	}
	s.env = append(s.env, "DATABASE_URL="+s.pool.Config().ConnString(),
		"BACKFILL_HTTP_ADDR=off", "BACKFILL_NIGHTLY=off", "BACKFILL_LEASE="+lease.String(), "BACKFILL_WORKERS=3")
	s.env = append(s.env, env...)
	s.exec("update backfill.extractor set on_insert = false")
	return s
}

// ours are the variables that the programs read.
var ours = regexp.MustCompile(`^(BACKFILL_|OPENAI_|PG[A-Z]+=|DATABASE_URL=)`)

// run runs backfill to its end and returns its exit code.
func (s *site) run(args ...string) (code int, stdout, stderr string) {
	s.Helper()
	var out, errs bytes.Buffer
	cmd := s.command("backfill", args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		require.NoError(s, err)
	}
	require.NotContains(s, errs.String(), "goroutine ")
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// backfill runs a command that has to succeed and returns what it prints.
func (s *site) backfill(args ...string) string {
	s.Helper()
	code, stdout, stderr := s.run(args...)
	require.Zero(s, code, "backfill %s: %s", strings.Join(args, " "), stderr)
	return stdout
}

// ask runs a command with --json and decodes the one line it prints.
func ask[T any](s *site, args ...string) T {
	s.Helper()
	var v T
	out := s.backfill(append(args, "--json")...)
	require.NoError(s, json.Unmarshal([]byte(out), &v), "%s", out)
	return v
}

// program is one that goes on until it is told to stop.
type program struct {
	*site
	cmd *exec.Cmd
	out *output // stdout and stderr
	end chan error
}

// start starts a program, which does not outlive the test.
func (s *site) start(name string, args ...string) *program {
	s.Helper()
	p := &program{site: s, cmd: s.command(name, args...), out: &output{}, end: make(chan error, 1)}
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	require.NoError(s, p.cmd.Start())
	go func() { p.end <- p.cmd.Wait() }()
	s.Cleanup(p.kill)
	return p
}

func (s *site) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Env = s.env
	return cmd
}

// kill ends it as kill -9 does.
func (p *program) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	p.end <- <-p.end
}

// terminate ends it as a service manager does, and requires that it ends well.
func (p *program) terminate() {
	p.Helper()
	began := time.Now()
	require.NoError(p, p.cmd.Process.Signal(syscall.SIGTERM))
	p.ends(10 * time.Second)
	require.Less(p, time.Since(began), 10*time.Second)
}

// ends waits until it has ended by itself, with exit code 0.
func (p *program) ends(within time.Duration) {
	p.Helper()
	select {
	case err := <-p.end:
		p.end <- err
		require.NoError(p, err, "%s", p.out)
	case <-time.After(within):
		require.Fail(p, "it goes on", "%s", p.out)
	}
}

// says waits until it has printed something.
func (p *program) says(pattern string) {
	p.Helper()
	re := regexp.MustCompile(pattern)
	for until := time.Now().Add(45 * time.Second); !re.MatchString(p.out.String()); <-time.After(10 * time.Millisecond) {
		if time.Now().After(until) {
			require.Fail(p, "it does not say "+pattern, "%s", p.out)
		}
	}
}

// output is what a program prints.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

func (s *site) exec(sql string, args ...any) {
	s.Helper()
	_, err := s.pool.Exec(s.Context(), sql, args...)
	require.NoError(s, err)
}

func query[T any](s *site, sql string, args ...any) T {
	s.Helper()
	rows, err := s.pool.Query(s.Context(), sql, args...)
	require.NoError(s, err)
	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	require.NoError(s, err)
	return v
}

// await polls the database until the query returns true.
func (s *site) await(within time.Duration, sql string, args ...any) {
	s.Helper()
	for until := time.Now().Add(within); !query[bool](s, sql, args...); <-time.After(5 * time.Millisecond) {
		if time.Now().After(until) {
			require.Fail(s, "this never came true", fmt.Sprintln(sql, args))
		}
	}
}

// tempt wakes the workers of a slot and waits until one of them has looked for
// work.
func (s *site) tempt(slot string) {
	s.Helper()
	s.exec("select backfill.wake($1)", slot)
	s.await(20*time.Second, "select not exists (select from river.river_job where kind = 'drain' and queue = $1 and state = 'available')", slot)
}

// digests are hashes of everything that was extracted, by table, without times and
// numbers that depend on who did it when. A capture goes by its own id.
func (s *site) digests() map[string]string {
	s.Helper()
	out := map[string]string{}
	for table, sql := range map[string]string{
		"extraction": `
			select i.external_id, x.extractor_id, x.state, x.outcome, x.version, x.error, x.fallback, x.redactions,
			       x.handoff_due is not null, x.handed_upto, x.claimed_upto
			from backfill.extraction x left join backfill.intake i on i.id = x.capture_id`,
		"staging": `
			select i.external_id, s.extractor_id, s.ord, s.content, s.kind, s.salience, s.source, s.observed, s.date, s.tags, s.meta,
			       s.evidence, s.entities, s.fingerprint, s.version, s.fallback
			from backfill.staging s left join backfill.intake i on i.id = s.capture_id`,
		"entity": `
			select i.external_id, n.extractor_id, n.ord, n.entity
			from backfill.entity n left join backfill.intake i on i.id = n.capture_id`,
	} {
		out[table] = query[string](s, `
			select count(*) || ' rows, ' || coalesce(md5(string_agg(r::text, E'\n' order by r::text)), '') from (`+sql+`) r`)
	}
	return out
}

// requireCounts compares what v_status adds up with what the ledger holds.
func (s *site) requireCounts() {
	s.Helper()
	require.Empty(s, query[[]string](s, `
		select array(select s.extractor from backfill.v_status s join backfill.v_status_exact x using (extractor)
		where (s.staged, s.empty, s.skipped, s.dead, s.candidates) is distinct from (x.staged, x.empty, x.skipped, x.dead, x.candidates))`))
}
