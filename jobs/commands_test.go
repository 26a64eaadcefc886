package jobs_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/justfortytwo/backfill/extract"
	"github.com/justfortytwo/backfill/internal/pgtest"
	"github.com/justfortytwo/backfill/jobs"
	"github.com/justfortytwo/backfill/store"
)

// TestCommands gives random commands of operators, applications, workers that vanish
// and a memory service. The invariants hold after each; in the end every capture has
// its outcome, and the rows are those of a run that nobody disturbed.
//
// `make model` does more of it.
func TestCommands(t *testing.T) {
	t.Parallel()
	limit := flag.Lookup("rapid.checks")
	if limit.Value.String() == limit.DefValue {
		require.NoError(t, limit.Value.Set("15")) // a hundred take minutes
	}
	require.NoError(t, flag.Set("rapid.nofailfile", "true")) // the seed is enough
	pool, plain := pgtest.New(t), pgtest.New(t)
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t, pool)
		t.Repeat(map[string]func(*rapid.T){
			"":                m.check,
			"insert":          m.insert,
			"insert unheard":  m.insertUnheard,
			"update":          m.update,
			"delete":          m.delete,
			"lose a batch":    m.loseBatch,
			"drain":           m.drain,
			"drain disturbed": m.drainDisturbed,
			"drain stopped":   m.drainStopped,
			"vanish":          m.vanish,
			"break or mend":   func(*rapid.T) { m.broken = !m.broken },
			"sweep":           m.sweep,
			"run":             m.run,
			"create":          m.create,
			"plan":            m.plan,
			"pause":           m.pause,
			"resume":          m.resume,
			"cancel":          m.cancel,
			"undo":            m.undo,
			"retry":           m.retry,
			"exhaust":         m.exhaust,
			"reach deadline":  m.reachDeadline,
			"cap":             m.capped,
			"nightly":         m.nightly,
			"upgrade":         m.upgrade,
			"claim":           m.claim,
			"ack":             m.ack,
			"release":         m.release,
			"prune":           m.prune,
		})
		m.finish(newMachine(t, plain))
	})
}

// machine is the system under test, which works in single steps: nothing happens
// but by command.
type machine struct {
	t       *rapid.T
	pool    *pgxpool.Pool
	store   *store.Store
	version int
	// broken makes the extractor panic at some texts.
	broken bool
	// during is called once, with a capture in hand.
	during   func()
	captures []int64
	runs     []int64
	night    time.Time
	claims   []claimed
	// acked are candidates that a consumer has acknowledged, and what they said.
	acked map[int64]map[string]bool
	// undone are captures some of whose candidates an operator may have taken back;
	// where others were claimed, the ledger does not show it.
	undone []string
}

// claimed is what a consumer got.
type claimed struct {
	id    int64
	texts map[int64][]string // by capture
}

func newMachine(t *rapid.T, pool *pgxpool.Pool) *machine {
	m := &machine{
		t: t, pool: pool, store: store.New(pool), acked: map[int64]map[string]bool{},
		night: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	m.exec(`set session_replication_role = replica;
		truncate backfill.intake, backfill.batch, backfill.extraction, backfill.staging, backfill.entity, backfill.run,
		    backfill.run_event, backfill.llm_call, river.river_job restart identity cascade;
		alter sequence backfill.claim_seq restart;
		delete from backfill.extractor_version;
		update backfill.extractor set batch_size = 3;
		reset session_replication_role`)
	m.upgrade(t)
	return m
}

// extractSalient takes every part of a text for a candidate.
func (m *machine) extractSalient(t extract.Turn) []extract.Candidate {
	if during := m.during; during != nil {
		m.during = nil
		during()
	}
	if t.Text == "panic" || t.Text == "flaky" && m.broken {
		panic(t.Text)
	}
	var found []extract.Candidate
	for part := range strings.SplitSeq(t.Text, "|") {
		if part != "nothing" {
			found = append(found, extract.Candidate{Content: part, Salience: 0.5, Entities: []string{part, "colour"}})
		}
	}
	return found
}

func (m *machine) client() *jobs.Client {
	m.t.Helper()
	c, err := jobs.New(m.pool, jobs.Config{
		Slots:   []jobs.Slot{{ID: 1, Name: "heuristic", Version: fmt.Sprint(m.version), Extractor: extractorFunc(m.extractSalient)}},
		Workers: 2, Lease: time.Minute, MaxAttempts: 2, Backoff: func(int16) time.Duration { return 0 }, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(m.t, err)
	return c
}

func (m *machine) exec(sql string, args ...any) {
	m.t.Helper()
	mode := pgx.QueryExecModeCacheStatement
	if len(args) == 0 {
		mode = pgx.QueryExecModeSimpleProtocol // several statements
	}
	_, err := m.pool.Exec(context.Background(), sql, append([]any{mode}, args...)...)
	require.NoError(m.t, err, sql)
}

func (m *machine) strings(sql string, args ...any) []string {
	m.t.Helper()
	rows, err := m.pool.Query(context.Background(), sql, args...)
	require.NoError(m.t, err, sql)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(m.t, err, sql)
	return all
}

// moving are what must hold at any time, beside the invariants that do.
var moving = map[string]string{
	"a candidate that is known twice": `
		select k.capture_id::text from backfill.known_candidate k
		group by k.capture_id, k.extractor_id, k.fingerprint having count(*) > 1`,
	"an open batch of a run that has ended, beside those of its failures": `
		select b.id::text from backfill.batch b join backfill.run r on r.id = b.run_id
		where b.due is not null and r.finished_at is not null and not (r.state in ('succeeded', 'finished_with_errors') and b.prio = 1)`,
	"a batch in work though its run is at rest": `
		select b.id || ' ' || r.state from backfill.batch b join backfill.run r on r.id = b.run_id
		where b.state = 'leased' and b.due > now() and r.state in ('paused', 'cancelled')`,
	"a batch that may be worked though its run rests": `
		select b.id || ' ' || r.state from backfill.due_batch b join backfill.run r on r.id = b.run_id
		where r.state not in ('planning', 'running', 'succeeded', 'finished_with_errors')`,
	"a batch that is parked though its run goes on": `
		select b.id || ' ' || r.state from backfill.batch b left join backfill.run r on r.id = b.run_id
		where b.due = 'infinity' and coalesce(r.state in ('planning', 'running'), true)`,
	"a queued retry that no batch has": `
		select x.capture_id::text from backfill.extraction x
		where x.state = 'queued' and not exists (
			select from backfill.batch b where b.extractor_id = x.extractor_id and b.due is not null and b.ids @> x.capture_id)`,
}

func (m *machine) check(t *rapid.T) {
	var all []string
	for name, sql := range invariants {
		if name != "an open batch" && name != "a capture without a ledger row in an active slot" {
			all = append(all, fmt.Sprintf("select $n$%s: $n$ || q.v from (%s) q (v)", name, sql))
		}
	}
	for name, sql := range moving {
		all = append(all, fmt.Sprintf("select $n$%s: $n$ || q.v from (%s) q (v)", name, sql))
	}
	slices.Sort(all)
	require.Empty(t, m.strings(strings.Join(all, " union all ")))
}

// text is one that many others share parts with.
func text(t *rapid.T) string {
	if special := rapid.SampledFrom([]string{"", "", "", "", " ", "nothing", "panic", "flaky", "flaky"}).Draw(t, "special"); special != "" {
		return special
	}
	parts := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"red", "green", "blue", "cyan"}), 1, 3, rapid.ID).Draw(t, "parts")
	return strings.Join(parts, "|")
}

func (m *machine) insert(t *rapid.T) {
	texts := rapid.SliceOfN(rapid.Custom(text), 1, 5).Draw(t, "texts")
	m.exec("insert into backfill.intake (source, text) select 'test', u from unnest($1::text[]) u", texts)
	for range texts {
		m.captures = append(m.captures, int64(len(m.captures)+1))
	}
}

// insertUnheard inserts as logical replication does.
func (m *machine) insertUnheard(t *rapid.T) {
	m.exec("alter table backfill.intake disable trigger all")
	m.insert(t)
	m.exec("alter table backfill.intake enable trigger all")
}

// pick draws one of several, or skips the command if there is none.
func pick[V any](t *rapid.T, from []V) V {
	if len(from) == 0 {
		t.Skip("none")
	}
	return rapid.SampledFrom(from).Draw(t, "which")
}

func (m *machine) update(t *rapid.T) {
	m.exec("update backfill.intake set text = $2 where id = $1", pick(t, m.captures), text(t))
}

func (m *machine) delete(t *rapid.T) {
	m.exec("delete from backfill.intake where id = $1", pick(t, m.captures))
}

// loseBatch loses one that nothing has come of yet; its captures are missing then.
func (m *machine) loseBatch(*rapid.T) {
	m.exec(`delete from backfill.batch where id = (
		select min(b.id) from backfill.batch b where b.state = 'pending' and b.outcomes = '{}' and b.mode = 'missing'
		and not exists (select from backfill.extraction x where x.extractor_id = b.extractor_id and b.ids @> x.capture_id))`)
}

// hurry lets the time pass that was to pass.
func (m *machine) hurry() {
	m.t.Helper()
	m.exec("update backfill.batch set due = now() where due > now() and due < 'infinity' and state = 'pending'")
}

func (m *machine) work(stopping <-chan struct{}) {
	m.t.Helper()
	require.NoError(m.t, m.client().Drain(context.Background(), "heuristic", stopping))
}

func (m *machine) drain(*rapid.T) {
	m.hurry()
	m.work(nil)
}

// drainDisturbed has something happen while a capture is in hand.
func (m *machine) drainDisturbed(t *rapid.T) {
	m.hurry()
	what := rapid.SampledFrom([]string{"update", "delete", "insert", "claim", "ack", "pause", "cancel", "undo", "take over", "upgrade", "prune", "retry"}).Draw(t, "what")
	m.during = func() {
		switch what {
		case "take over":
			m.exec("update backfill.batch set due = now() where state = 'leased'")
			m.work(nil)
		case "update":
			if len(m.captures) > 0 {
				m.update(t)
			}
		case "delete":
			if len(m.captures) > 0 {
				m.delete(t)
			}
		case "insert":
			m.insert(t)
		case "claim":
			m.claim(t)
		case "ack":
			if len(m.claims) > 0 {
				m.ack(t)
			}
		case "pause", "cancel", "undo":
			if len(m.runs) > 0 {
				map[string]func(*rapid.T){"pause": m.pause, "cancel": m.cancel, "undo": m.undo}[what](t)
			}
		case "upgrade":
			m.upgrade(t)
		case "prune":
			m.prune(t)
		case "retry":
			m.retry(t)
		}
	}
	m.work(nil)
	m.during = nil
}

// drainStopped is told to stop while a capture is in hand.
func (m *machine) drainStopped(*rapid.T) {
	m.hurry()
	stopping := make(chan struct{})
	m.during = func() { close(stopping) }
	m.work(stopping)
	m.during = nil
}

// vanish claims batches for a worker that is never heard of again.
func (m *machine) vanish(t *rapid.T) {
	m.hurry()
	batches, err := m.store.Claim(context.Background(), store.Claim{
		Extractor: 1, Version: fmt.Sprint(m.version), MaxPrio: store.PrioRun, Limit: 2, Lease: time.Millisecond, Worker: "vanished",
	})
	require.NoError(t, err)
	if len(batches) > 0 && rapid.Bool().Draw(t, "one by one") {
		require.NoError(t, m.store.StepInto(context.Background(), batches[0].Lease, batches[0].IDs[0], time.Millisecond))
	}
}

func (m *machine) sweep(t *rapid.T) {
	_, err := m.store.Sweep(context.Background())
	require.NoError(t, err)
}

func (m *machine) create(t *rapid.T) {
	mode := rapid.SampledFrom([]store.Reprocess{store.ReprocessMissing, store.ReprocessFailed, store.ReprocessStale, store.ReprocessAll}).Draw(t, "mode")
	id, err := m.store.CreateRun(context.Background(), store.NewRun{Kind: store.KindRun, Extractor: 1, Reprocess: mode})
	require.NoError(t, err)
	m.runs = append(m.runs, id)
}

func (m *machine) run(t *rapid.T) {
	m.create(t)
	require.NoError(t, m.store.Plan(context.Background(), m.runs[len(m.runs)-1]))
}

func (m *machine) plan(t *rapid.T) {
	require.NoError(t, m.store.Plan(context.Background(), pick(t, m.runs)))
}

// change asks a run for something that it may refuse.
func (m *machine) change(t *rapid.T, to func(context.Context, int64, store.Change) error) {
	how := store.Change{Who: "operator", Force: rapid.Bool().Draw(t, "force")}
	if err := to(context.Background(), pick(t, m.runs), how); !errors.As(err, new(*store.RunStateError)) {
		require.NoError(t, err)
	}
}

func (m *machine) pause(t *rapid.T)  { m.change(t, m.store.PauseRun) }
func (m *machine) resume(t *rapid.T) { m.change(t, m.store.ResumeRun) }
func (m *machine) cancel(t *rapid.T) { m.change(t, m.store.CancelRun) }

// set changes the settings of a run, unless nothing more is done for it.
func (m *machine) set(run int64, change func(*store.Settings)) {
	m.t.Helper()
	if _, err := m.store.Set(context.Background(), run, "operator", change); !errors.Is(err, store.ErrRunEnded) {
		require.NoError(m.t, err)
	}
}

func (m *machine) exhaust(t *rapid.T) {
	run := pick(t, m.runs)
	m.set(run, func(s *store.Settings) { s.MaxCost = 1 })
	require.NoError(t, m.store.ExhaustRun(context.Background(), run, store.MaxCostReached))
}

func (m *machine) reachDeadline(t *rapid.T) {
	m.set(pick(t, m.runs), func(s *store.Settings) { s.Deadline = time.Now().Add(-time.Hour) })
}

func (m *machine) capped(t *rapid.T) {
	n := rapid.IntRange(0, 2).Draw(t, "concurrency")
	m.set(pick(t, m.runs), func(s *store.Settings) { s.Concurrency = n })
}

func (m *machine) undo(t *rapid.T) {
	run := pick(t, m.runs)
	if _, err := m.store.Undo(context.Background(), run, "operator"); !errors.As(err, new(*store.RunStateError)) {
		require.NoError(t, err)
		m.undone = append(m.undone, m.strings("select capture_id::text from backfill.extraction where run_id = $1", run)...)
	}
}

func (m *machine) retry(t *rapid.T) {
	_, err := m.store.Retry(context.Background(), "operator", store.RetryFilter{Outcome: rapid.SampledFrom([]store.Outcome{"", store.Panic, store.Crashed}).Draw(t, "outcome")})
	require.NoError(t, err)
}

func (m *machine) nightly(t *rapid.T) {
	m.night = m.night.AddDate(0, 0, rapid.IntRange(0, 1).Draw(t, "days"))
	require.NoError(t, jobs.Nightly(context.Background(), m.store, m.night))
}

// upgrade installs a new version of the extractor, workers included.
func (m *machine) upgrade(*rapid.T) {
	m.version++
	m.exec("select backfill.register_extractor('heuristic', $1)", fmt.Sprint(m.version))
}

// claim is a consumer's: it must not get what was acknowledged before, nor anything
// that says the same.
func (m *machine) claim(t *rapid.T) {
	lease := rapid.SampledFrom([]string{"0 seconds", "1 hour"}).Draw(t, "lease")
	rows, err := m.pool.Query(context.Background(), "select claim, capture_id, content from backfill.claim_candidates('memory', $1, $2::interval)",
		rapid.IntRange(1, 4).Draw(t, "max"), lease)
	require.NoError(t, err)
	c := claimed{texts: map[int64][]string{}}
	var capture int64
	var content string
	_, err = pgx.ForEachRow(rows, []any{&c.id, &capture, &content}, func() error {
		require.False(t, m.acked[capture][content], "capture %d: %q was acknowledged before", capture, content)
		c.texts[capture] = append(c.texts[capture], content)
		return nil
	})
	require.NoError(t, err)
	if c.id != 0 {
		m.claims = append(m.claims, c)
	}
}

// ack is refused if the claim has moved on.
func (m *machine) ack(t *rapid.T) {
	c := pick(t, m.claims)
	captures := slices.Sorted(maps.Keys(c.texts))
	if rapid.Bool().Draw(t, "one alone") {
		captures = captures[:1]
	}
	_, err := m.pool.Exec(context.Background(), "select backfill.ack_candidates($1, $2)", c.id, captures)
	if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) && refused.Code == "55000" {
		return
	}
	require.NoError(t, err)
	for _, capture := range captures {
		for _, content := range c.texts[capture] {
			if m.acked[capture] == nil {
				m.acked[capture] = map[string]bool{}
			}
			m.acked[capture][content] = true
		}
	}
}

func (m *machine) release(t *rapid.T) {
	m.exec("select backfill.release($1)", pick(t, m.claims).id)
}

func (m *machine) prune(t *rapid.T) {
	age := time.Duration(rapid.IntRange(-1, 1).Draw(t, "hours")) * time.Hour
	would, err := m.store.Prunable(context.Background(), age)
	require.NoError(t, err)
	done, err := m.store.Prune(context.Background(), age)
	require.NoError(t, err)
	require.Equal(t, would.Candidates, done.Candidates)
}

// finish brings everything to its end, and compares it with a system in which
// nothing ever happened but an insert.
func (m *machine) finish(plain *machine) {
	t, ctx := m.t, context.Background()
	m.broken = false
	for _, run := range m.runs {
		m.set(run, func(s *store.Settings) { *s = store.Settings{} })
		if err := m.store.ResumeRun(ctx, run, store.Change{Who: "operator"}); !errors.As(err, new(*store.RunStateError)) {
			require.NoError(t, err)
		}
		require.NoError(t, m.store.Plan(ctx, run))
	}
	m.exec("update backfill.batch set due = now() where state = 'leased'")
	m.settle()
	m.night = m.night.AddDate(0, 0, 1)
	require.NoError(t, jobs.Nightly(ctx, m.store, m.night))
	m.settle()
	_, err := m.store.Retry(ctx, "operator", store.RetryFilter{})
	require.NoError(t, err)
	m.settle()
	m.check(t)
	for _, name := range []string{"an open batch", "a capture without a ledger row in an active slot"} {
		require.Empty(t, m.strings(invariants[name]), name)
	}
	require.Empty(t, m.strings("select id || ' ' || state from backfill.run where finished_at is null"))
	require.Empty(t, m.strings("select capture_id || ' ' || state || ' ' || outcome from backfill.extraction where state not in ('done', 'deleted') and outcome <> 'panic'"))

	// The same captures under the same ids, worked at one go.
	rows, err := m.pool.Query(ctx, "select id, text from backfill.intake order by id")
	require.NoError(t, err)
	var id int64
	var text string
	_, err = pgx.ForEachRow(rows, []any{&id, &text}, func() error {
		plain.exec("insert into backfill.intake (id, source, text) values ($1, 'test', $2)", id, text)
		return nil
	})
	require.NoError(t, err)
	plain.settle()
	// What an operator has taken back is gone, and what a memory has is numbered
	// otherwise.
	touched := m.strings("select capture_id::text from backfill.extraction where outcome = 'undone' or claimed_upto > 0")
	require.Equal(t, plain.rows(touched), m.rows(touched))
	// It has everything all the same.
	known := "select k.capture_id || ' ' || k.fingerprint from backfill.known_candidate k join backfill.extraction x using (capture_id, extractor_id) where x.outcome = 'staged' order by 1"
	missing := slices.DeleteFunc(plain.strings(known), func(row string) bool {
		capture, _, _ := strings.Cut(row, " ")
		return slices.Contains(m.undone, capture)
	})
	for _, row := range m.strings(known) {
		missing = slices.DeleteFunc(missing, func(r string) bool { return r == row })
	}
	require.Empty(t, missing)
}

// settle works until there is nothing to do.
func (m *machine) settle() {
	m.t.Helper()
	for range 20 {
		m.sweep(m.t)
		m.drain(m.t)
		if len(m.strings("select id::text from backfill.batch where due is not null union all select capture_id::text from backfill.extraction where state in ('retry', 'queued')")) == 0 {
			m.sweep(m.t) // ends runs
			return
		}
	}
	m.t.Fatalf("still open: %v", m.strings("select b::text from backfill.batch b where due is not null union all select x::text from backfill.extraction x where state in ('retry', 'queued')"))
}

// rows are all that extraction has produced, but for some captures.
func (m *machine) rows(but []string) []string {
	m.t.Helper()
	return m.strings(`
		select concat_ws(' ', 'ledger', x.capture_id, x.state, x.outcome) from backfill.extraction x
		where x.state <> 'deleted' and x.extractor_id = 1 and x.capture_id::text <> all ($1)
		union all
		select concat_ws(' ', 'candidate', s.capture_id, s.ord, s.content, s.fingerprint, s.entities, s.salience) from backfill.staging s
		where s.capture_id::text <> all ($1)
		union all
		select concat_ws(' ', 'entity', n.capture_id, n.ord, n.entity) from backfill.entity n where n.capture_id::text <> all ($1)
		order by 1`, but)
}
