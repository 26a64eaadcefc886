package jobs_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/extract/llm"
	"github.com/justfortytwo/backfill/heuristic"
	"github.com/justfortytwo/backfill/internal/llmtest"
	"github.com/justfortytwo/backfill/jobs"
)

// Canaries must come up nowhere but in captures and candidates. The key's is
// assembled so that nobody takes it for one.
const (
	turnCanary = "CANARY-in-the-turn"
	keyCanary  = llm.Key("sk-" + "CANARY-in-the-key")
)

// said is a turn that the heuristic finds a decision in, and the model a memory.
const said = "User: We decided that we ship on Fridays because support is fully staffed then. " + turnCanary

// modelBundle is a database whose captures go to a model that misbehaves to order.
type modelBundle struct {
	*testBundle
	server *llmtest.Server
	llm    llm.Config
	cfg    jobs.Config
	logs   *logBuffer
}

// logBuffer is what was logged.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// setupModel has new captures go to the model alone.
func setupModel(t *testing.T, script ...llmtest.Reply) *modelBundle {
	t.Helper()
	b := &modelBundle{testBundle: setup(t), server: llmtest.New(t, script...), logs: &logBuffer{}}
	b.llm = llm.Config{
		BaseURL: b.server.URL, APIKey: keyCanary, Model: "test-model", Timeout: time.Minute, Concurrency: 2,
		Prices: llm.Prices{"*": {Input: 1, CachedInput: 1, Output: 10}},
	}
	h, err := heuristic.New()
	require.NoError(t, err)
	b.cfg = config(nil)
	b.cfg.Logger = slog.New(slog.NewTextHandler(b.logs, nil))
	b.cfg.Outage = func(int32) time.Duration { return 20 * time.Millisecond }
	b.cfg.Slots = []jobs.Slot{{
		ID: 2, Name: "llm", Workers: 3, Fallback: h, FallbackName: "heuristic",
		Model: asking(&b.llm),
	}}
	b.exec("update backfill.extractor set on_insert = id = 2")
	return b
}

// asking is the Model of a slot, as cfg stands when the client is prepared.
func asking(cfg *llm.Config) func(llm.Budget) (*llm.Extractor, error) {
	return func(budget llm.Budget) (*llm.Extractor, error) {
		cfg := *cfg
		cfg.Budget = budget
		c, err := llm.New(cfg)
		if err != nil {
			return nil, err
		}
		return llm.NewExtractor(c), nil
	}
}

// start registers the model and starts a client.
func (b *modelBundle) start() (stop func()) {
	b.Helper()
	b.cfg.Slots[0].Version = b.llm.Version()
	b.exec("select backfill.register_extractor('llm', $1)", b.llm.Version())
	return b.testBundle.start(b.cfg)
}

// hurry is idle, without waiting for the periodic sweep.
func (b *modelBundle) hurry(within time.Duration) {
	b.Helper()
	b.await(within, `select backfill.sweep() >= 0 and not exists (select from backfill.batch where due is not null)
		and not exists (select from backfill.extraction where state in ('retry', 'queued'))`)
}

// ledger is the one ledger row as state/outcome/attempts, with the fallback if
// there was one; "none" if there is no row.
func (b *modelBundle) ledger() string {
	b.Helper()
	return query[string](b.testBundle, `
		select coalesce((select concat_ws('/', state, outcome, attempts, fallback) from backfill.extraction where extractor_id = 2), 'none')`)
}

// classes are those of the calls that were made, in order, such as "degrade×2 ok".
func (b *modelBundle) classes() string {
	b.Helper()
	return query[string](b.testBundle, `
		with steps as (
			select class, row_number() over (order by id) - row_number() over (partition by class order by id) as island, id from backfill.llm_call
		), islands as (
			select min(id) as first, class || case when count(*) > 1 then '×' || count(*) else '' end as part from steps group by class, island
		)
		select coalesce(string_agg(part, ' ' order by first), '') from islands`)
}

// requireClean looks for canaries wherever they must not be.
func (b *modelBundle) requireClean() {
	b.Helper()
	tables := query[[]string](b.testBundle, `
		select array_agg(format('%I.%I', schemaname, tablename)) from pg_tables
		where schemaname in ('river', 'backfill') and tablename not in ('intake', 'staging', 'entity')`)
	require.Greater(b, len(tables), 10)
	for _, table := range tables {
		require.Empty(b, query[string](b.testBundle, "select coalesce(string_agg(t::text, E'\n'), '') from "+table+" t where t::text like '%CANARY%'"), table)
	}
	require.NotContains(b, b.logs.String(), "CANARY")
}

// TestModelScenarios has the endpoint misbehave in one way at a time.
func TestModelScenarios(t *testing.T) {
	t.Parallel()
	scenarios, err := llmtest.Scenarios()
	require.NoError(t, err)
	require.Len(t, scenarios, 55)
	for _, sc := range scenarios {
		t.Run(sc.Class+"/"+sc.Name, func(t *testing.T) {
			t.Parallel()
			b := setupModel(t, sc.Reply)
			if sc.Azure {
				b.llm.BaseURL, b.llm.AzureAPIVersion = b.server.Host, "2024-10-21"
			}
			if sc.Model != "" {
				b.llm.Model = sc.Model
			}
			if sc.Name == "hang" || sc.Name == "drip" {
				b.llm.Timeout = time.Second
			}
			stop := b.start()
			b.insert(said)
			switch sc.Class {
			case "ok", "degrade":
				b.idle(20 * time.Second)
				require.Equal(t, "done/staged/1", b.ledger())
				if sc.Class == "ok" {
					require.Equal(t, "ok", b.classes())
				} else {
					require.Regexp(t, `^degrade(×\d)? ok$`, b.classes())
				}
			case "retry_later":
				b.retriesLater(stop, sc)
			case "stop_queue":
				b.stops(stop, sc)
			case "fail_capture", "split_turn":
				b.idle(20 * time.Second)
				outcome := map[string]string{
					"moderated_403": "refused", "azure_filter": "refused", "filter_finish": "refused", "refusal": "refused",
					"bad_request_unknown": "provider_error",
				}[sc.Name]
				if sc.Class == "split_turn" {
					outcome = "too_long" // for a turn that cannot be split
				}
				require.Equal(t, "dead/"+outcome+"/1/heuristic", b.ledger())
				require.Equal(t, sc.Class, b.classes())
				require.Equal(t, "heuristic", query[string](b.testBundle, "select fallback from backfill.staging"))
			case "bad_output":
				b.hurry(20 * time.Second)
				outcome := "unparseable"
				if sc.Name == "reasoning_only" {
					outcome = "truncated"
				}
				require.Equal(t, "dead/"+outcome+"/3/heuristic", b.ledger())
				require.Equal(t, "bad_output×3", b.classes())
				require.Len(t, b.server.Requests(), 3)
			default:
				t.Fatalf("class %s is not known", sc.Class)
			}
			require.Empty(t, b.server.Elsewhere.Requests(), "no redirect is followed")
			b.requireInvariants()
			b.requireClean()
		})
	}
}

// retriesLater expects the capture to wait as long as the endpoint asks, without a
// trace in the ledger, and to be staged once it answers.
func (b *modelBundle) retriesLater(stop func(), sc llmtest.Scenario) {
	b.Helper()
	b.await(20*time.Second, "select exists (select from backfill.batch where state = 'pending' and error is not null)")
	stop()
	require.Contains(b, query[string](b.testBundle, "select error from backfill.batch"), "llm: retry_later")
	low, high, ranged := strings.Cut(sc.Wait, "-")
	if low != "" {
		if !ranged {
			high = low
		}
		least, err := time.ParseDuration(low)
		require.NoError(b, err)
		most, err := time.ParseDuration(high)
		require.NoError(b, err)
		waits := query[time.Duration](b.testBundle, "select b.due - c.started_at from backfill.batch b, backfill.llm_call c")
		require.Greater(b, waits, least)
		require.Less(b, waits, most+30*time.Second, "from when the call began, on a busy machine")
	}
	require.Equal(b, "none", b.ledger(), "the attempt is given back")
	n := len(b.server.Requests())
	require.Regexp(b, `^retry_later(×\d+)?$`, b.classes())
	if sc.Wait != "" {
		require.Equal(b, 1, n, "no request before its time")
	}

	b.server.Script(llmtest.OK())
	b.exec("update backfill.batch set due = now()")
	b.start()
	b.idle(20 * time.Second)
	require.Equal(b, "done/staged/1", b.ledger())
}

// stops expects the queue to be stopped for everybody, and to go on after a worker
// was started with what was wrong put right.
func (b *modelBundle) stops(stop func(), sc llmtest.Scenario) {
	b.Helper()
	b.await(20*time.Second, "select stopped_at is not null from backfill.extractor where id = 2")
	b.await(20*time.Second, "select paused_at is not null from river.river_queue where name = 'llm'")
	b.await(20*time.Second, "select exists (select from backfill.batch where state = 'pending' and error is not null)")
	stop()
	require.Contains(b, query[string](b.testBundle, "select stop_reason from backfill.extractor where id = 2"), "llm: stop_queue")
	require.NotEmpty(b, query[string](b.testBundle, "select stop_fix from backfill.extractor where id = 2"))
	require.Equal(b, "none", b.ledger(), "the attempt is given back")
	require.LessOrEqual(b, len(b.server.Requests()), 1)

	b.server.Script(llmtest.OK())
	b.llm.Model = "test-model"
	b.start()
	b.idle(20 * time.Second)
	require.Equal(b, "done/staged/1", b.ledger())
	require.Equal(b, "released", query[string](b.testBundle, `
		select case when stopped_at is null and stop_reason is null and q.paused_at is null then 'released' else 'stopped' end
		from backfill.extractor join river.river_queue q using (name) where id = 2`))
	require.Contains(b, b.logs.String(), "the queue is stopped", fmt.Sprint(sc.Name))
}
