package jobs_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/extract/llm"
	"github.com/justfortytwo/backfill/heuristic"
	"github.com/justfortytwo/backfill/internal/llmtest"
	"github.com/justfortytwo/backfill/jobs"
	"github.com/justfortytwo/backfill/store"
)

// many inserts n captures that go to the model in a run, in batches as large as
// the slot's, and returns the run.
func (b *modelBundle) many(n int) (run int64) {
	b.Helper()
	ctx := context.Background()
	b.exec("update backfill.extractor set on_insert = false")
	b.exec("insert into backfill.intake (source, text) select 'test', $2 || g from generate_series(1, $1) g", n, said)
	b.exec("select backfill.register_extractor('llm', $1)", b.llm.Version())
	run, err := b.store.CreateRun(ctx, store.NewRun{Kind: store.KindRun, Extractor: 2, Reprocess: store.ReprocessMissing})
	require.NoError(b, err)
	require.NoError(b, b.store.Plan(ctx, run))
	return run
}

// requireRun waits until a run has come to this state, a moment after its last batch.
func (b *modelBundle) requireRun(run int64, state string) {
	b.Helper()
	b.await(10*time.Second, "select state = $2 from backfill.run where id = $1", run, state)
}

// A limit that is hit three times in a row costs time and no attempt.
func TestModelRateLimit(t *testing.T) {
	t.Parallel()
	busy := llmtest.Fail(http.StatusTooManyRequests, "rate_limit_exceeded", "Slow down.", "Retry-After-Ms", "50")
	b := setupModel(t, busy, busy, busy, llmtest.OK())
	b.start()
	b.insert(said)
	b.hurry(30 * time.Second)
	require.Equal(t, "done/staged/1", b.ledger())
	require.Equal(t, "retry_later×3 ok", b.classes())
	b.requireInvariants()
	b.requireClean()
}

// What an endpoint does not take is left out, and remembered for the next capture.
func TestModelLadder(t *testing.T) {
	t.Parallel()
	b := setupModel(t, llmtest.Named("no_json_schema"), llmtest.Named("no_json_object"), llmtest.OK())
	b.start()
	b.insert(said)
	b.idle(20 * time.Second)
	require.Equal(t, "done/staged/1", b.ledger())
	require.Equal(t, "degrade×2 ok", b.classes())
	b.insert(said + " Again.")
	b.idle(20 * time.Second)
	require.Equal(t, "degrade×2 ok×2", b.classes())
	require.Empty(t, b.server.Requests()[3].Format())
	b.requireClean()
}

// A key that is refused stops the queue for everybody after no more requests than
// there are workers, and a key that is accepted lets it go on.
func TestModelBadKey(t *testing.T) {
	t.Parallel()
	const good = llm.Key("sk-" + "good")
	b := setupModel(t, llmtest.If(func(r llmtest.Request) bool {
		return r.HTTP.Header.Get("Authorization") == "Bearer sk-"+"good"
	}, llmtest.OK(), llmtest.Named("auth")))
	run := b.many(1000)
	stop := b.start()
	b.await(20*time.Second, "select stopped_at is not null from backfill.extractor where id = 2")
	b.await(20*time.Second, "select paused_at is not null from river.river_queue where name = 'llm'")
	b.await(20*time.Second, "select not exists (select from backfill.batch where state = 'leased')")
	// Nothing asks again, whatever wakes the workers.
	b.exec("select backfill.sweep(), backfill.wake('llm')")
	b.await(20*time.Second, "select count(*) = 1000 from backfill.v_batch, generate_series(1, captures)")
	require.LessOrEqual(t, len(b.server.Requests()), b.cfg.Slots[0].Workers+1)
	require.Zero(t, query[int64](b.testBundle, "select count(*) from backfill.extraction"))
	all, err := b.store.Status(t.Context())
	require.NoError(t, err)
	require.Contains(t, *all[1].StopReason, "401")
	require.Contains(t, *all[1].StopFix, "OPENAI_API_KEY")
	b.requireClean()
	stop()

	b.llm.APIKey = good
	b.start()
	b.idle(4 * time.Minute) // a thousand, on a busy machine
	require.Equal(t, int64(1000), query[int64](b.testBundle, "select count(*) from backfill.extraction where outcome = 'staged' and attempts = 1"))
	b.requireRun(run, "succeeded")
	b.requireInvariants()
}

// The probe comes by itself: an account that was topped up needs no restart.
func TestModelProbe(t *testing.T) {
	t.Parallel()
	b := setupModel(t, llmtest.Named("quota"))
	b.start()
	b.insert(said)
	b.await(20*time.Second, "select paused_at is not null from river.river_queue where name = 'llm'")
	before := len(b.server.Requests())
	// In vain at first.
	b.exec("update backfill.extractor set probe_at = now() where id = 2")
	b.await(20*time.Second, "select backfill.sweep() >= 0 and exists (select from river.river_job where kind = 'probe' and state = 'completed')")
	require.Len(t, b.server.Requests(), before+1)
	require.True(t, query[bool](b.testBundle, "select stopped_at is not null and probe_at > now() + interval '9 minutes' from backfill.extractor where id = 2"))

	b.server.Script(llmtest.OK())
	b.exec("update backfill.extractor set probe_at = now() where id = 2")
	b.exec("select backfill.sweep()")
	b.idle(20 * time.Second)
	require.Equal(t, "done/staged/1", b.ledger())
}

// A capture that is refused in a way that stops the queue, as by a firewall in front
// of the endpoint, does so once: after a probe has succeeded it fails by itself.
func TestModelOneCaptureDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	b := setupModel(t, llmtest.If(func(r llmtest.Request) bool { return strings.Contains(r.Turn(), "attack") },
		llmtest.Body(http.StatusForbidden, "<html>blocked</html>"), llmtest.OK()))
	b.start()
	b.insert("an attack", said, said+" Again.")
	b.await(20*time.Second, "select stopped_at is not null from backfill.extractor where id = 2")
	b.exec("update backfill.extractor set probe_at = now() where id = 2")
	b.hurry(30 * time.Second)
	require.Equal(t, []string{"dead/provider_error", "done/staged", "done/staged"}, query[[]string](b.testBundle,
		"select array_agg(concat_ws('/', state, outcome) order by capture_id) from backfill.extraction"))
	require.True(t, query[bool](b.testBundle, "select stopped_at is null from backfill.extractor where id = 2"))
	b.requireInvariants()
}

// A slot that another process has stopped is not asked for, in the middle of a batch.
func TestModelStoppedElsewhere(t *testing.T) {
	t.Parallel()
	gate := llmtest.NewGate()
	b := setupModel(t, gate.Then(llmtest.OK()))
	b.many(10) // one batch
	b.start()
	<-gate.Entered
	_, err := b.store.StopSlot(t.Context(), 2, 0, "llm: stop_queue (HTTP 401)", "set OPENAI_API_KEY")
	require.NoError(t, err)
	gate.Open()
	b.await(20*time.Second, "select exists (select from backfill.batch where state = 'pending') and exists (select from backfill.extraction where state = 'done')")
	b.exec("select backfill.sweep(), backfill.wake('llm')")
	require.Len(t, b.server.Requests(), 1)
	require.NoError(t, b.store.ReleaseSlot(t.Context(), 2))
	b.idle(30 * time.Second)
	require.Len(t, b.server.Requests(), 10)
}

// A turn that is too long for the model is split until it fits, and every part of
// it is stored once.
func TestModelOverflow(t *testing.T) {
	t.Parallel()
	b := setupModel(t, llmtest.Overflow(6000, llmtest.Echo()))
	b.start()
	paragraphs := make([]string, 30)
	for i := range paragraphs {
		paragraphs[i] = fmt.Sprintf("Paragraph %d: %s", i, strings.Repeat("word ", 150))
	}
	b.insert(strings.Join(paragraphs, "\n\n"))
	b.idle(30 * time.Second)
	require.Equal(t, "done/staged/1", b.ledger())
	require.Equal(t, int64(30), query[int64](b.testBundle, "select count(*) from backfill.staging"))
	require.Contains(t, b.classes(), "split_turn")
	b.requireInvariants()
}

// An endpoint that fails again and again is left alone for half a minute.
func TestModelBreaker(t *testing.T) {
	t.Parallel()
	b := setupModel(t, llmtest.Named("e500"))
	b.many(100)
	b.start()
	b.await(20*time.Second, "select count(*) >= 5 from backfill.llm_call")
	at := time.Now()
	b.await(20*time.Second, "select not exists (select from backfill.batch where state = 'leased')")
	n := len(b.server.Requests())
	require.LessOrEqual(t, n, 5+2, "those that were on their way when it opened")
	b.server.Script(llmtest.OK())
	b.exec("update backfill.batch set due = now() where state = 'pending'")
	b.await(time.Minute, "select backfill.sweep() >= 0 and exists (select from backfill.llm_call where class = 'ok')")
	require.Greater(t, time.Since(at), 29*time.Second)
	b.idle(3 * time.Minute)
	require.Equal(t, int64(100), query[int64](b.testBundle, "select count(*) from backfill.extraction where outcome = 'staged' and attempts = 1"))
	b.requireInvariants()
}

// An answer that was cut keeps what is complete, and is asked for once more.
func TestModelCutAnswer(t *testing.T) {
	t.Parallel()
	cut := `{"memories":[{"content":"one","salience":0.9},{"content":"two","salience":0.8},{"content":"thr`
	b := setupModel(t, llmtest.Finish(cut, "length", 0), llmtest.Answer(`{"memories":[{"content":"two","salience":0.8},{"content":"three","salience":0.7}]}`))
	b.start()
	b.insert(said)
	b.idle(20 * time.Second)
	require.Equal(t, "done/staged/1", b.ledger())
	require.Equal(t, []string{"one", "two", "three"}, query[[]string](b.testBundle, "select array_agg(content order by ord) from backfill.staging"))
	require.Equal(t, "t f", query[string](b.testBundle, "select string_agg(case when salvaged then 't' else 'f' end, ' ' order by id) from backfill.llm_call"))
	require.Len(t, b.server.Requests(), 2)
}

// An answer that stays cut is stored as far as it goes, and says so.
func TestModelPartial(t *testing.T) {
	t.Parallel()
	b := setupModel(t, llmtest.Finish(`{"memories":[{"content":"one","salience":0.9},{"content":"tw`, "length", 0))
	b.start()
	b.insert(said)
	b.idle(20 * time.Second)
	require.Equal(t, "done/staged/1", b.ledger())
	require.Contains(t, query[string](b.testBundle, "select error from backfill.extraction"), "partial: llm: bad_output")
}

// A server that reads forty tokens of a long prompt has cut it.
func TestModelSilentTruncation(t *testing.T) {
	t.Parallel()
	b := setupModel(t, llmtest.If(func(r llmtest.Request) bool { return len(r.Turn()) > 4000 }, llmtest.Finish(llmtest.Memory, "stop", 40), llmtest.Echo()))
	b.start()
	b.insert(strings.Repeat("one two three four five six seven. ", 100) + "\n\n" + strings.Repeat("eight nine ten eleven twelve. ", 120))
	b.idle(20 * time.Second)
	require.Equal(t, "done/staged/1", b.ledger())
	require.Regexp(t, "^split_turn", b.classes())
	require.Equal(t, "prompt_truncated", query[string](b.testBundle, "select provider_code from backfill.llm_call order by id limit 1"))
	require.Greater(t, len(b.server.Requests()), 2)
}

// A pause is obeyed before the next call, however many captures the batches in
// work still have.
func TestModelPause(t *testing.T) {
	t.Parallel()
	gate := llmtest.NewGate()
	b := setupModel(t, gate.Then(llmtest.OK()))
	run := b.many(200)
	b.start()
	for range 2 { // as many as may be asked at once
		<-gate.Entered
	}
	require.NoError(t, b.store.PauseRun(t.Context(), run, store.Change{Who: "me"}))
	gate.Open()
	b.await(5*time.Second, "select state = 'paused' from backfill.run")
	n := len(b.server.Requests())
	require.LessOrEqual(t, n, b.cfg.Slots[0].Workers)
	b.exec("select backfill.sweep(), backfill.wake('llm')")
	require.Equal(t, int64(n), query[int64](b.testBundle, "select count(*) from backfill.extraction"), "what was answered is kept")
	require.NoError(t, b.store.ResumeRun(t.Context(), run, store.Change{Who: "me"}))
	b.idle(time.Minute)
	b.requireRun(run, "succeeded")
	require.Len(t, b.server.Requests(), 200, "nothing is asked twice")
	b.requireInvariants()
}

// A turn that takes many calls is not seen through when its run is to pause.
func TestModelPauseInMidTurn(t *testing.T) {
	t.Parallel()
	gate := llmtest.NewGate()
	b := setupModel(t, gate.Then(llmtest.Echo()))
	b.llm.ChunkTokens = 500
	b.many(0)
	b.exec("insert into backfill.intake (source, text) select 'test', string_agg('Paragraph ' || g || repeat(' word', 100), E'\n\n') from generate_series(1, 20) g")
	run, err := b.store.CreateRun(t.Context(), store.NewRun{Kind: store.KindRun, Extractor: 2, Reprocess: store.ReprocessMissing})
	require.NoError(t, err)
	require.NoError(t, b.store.Plan(t.Context(), run))
	b.start()
	<-gate.Entered
	require.NoError(t, b.store.PauseRun(t.Context(), run, store.Change{Who: "me"}))
	gate.Open()
	b.requireRun(run, "paused")
	require.Len(t, b.server.Requests(), 1)
	require.Equal(t, "none", b.ledger(), "the attempt is given back")
	require.Equal(t, "ok", b.classes(), "the call is on record")
	require.NoError(t, b.store.ResumeRun(t.Context(), run, store.Change{Who: "me"}))
	b.idle(30 * time.Second)
	require.Equal(t, "done/staged/1", b.ledger())
	b.requireInvariants()
}

// A stop gives back what is not begun, and cuts off what does not answer in time.
func TestModelStop(t *testing.T) {
	t.Parallel()
	gate := llmtest.NewGate()
	b := setupModel(t, gate.Then(llmtest.OK()))
	b.cfg.SoftStop = 100 * time.Millisecond
	b.many(50)
	stop := b.start()
	<-gate.Entered
	stop()
	require.Zero(t, query[int64](b.testBundle, "select count(*) from backfill.extraction"), "no attempt is counted")
	require.Equal(t, int64(0), query[int64](b.testBundle, "select max(attempts) from backfill.batch"))
	gate.Open()
	b.start()
	b.idle(time.Minute)
	require.Equal(t, int64(50), query[int64](b.testBundle, "select count(*) from backfill.extraction where outcome = 'staged' and attempts = 1"))
	b.requireInvariants()
}

// A run stops at its budget and goes on when that is raised.
func TestModelRunBudget(t *testing.T) {
	t.Parallel()
	gate := llmtest.NewGate()
	gate.Open()
	b := setupModel(t, gate.Then(llmtest.OK()))
	run := b.many(200)
	const maxCost = 0.10
	b.exec("update backfill.run set settings = settings || jsonb_build_object('max_cost', $1::numeric)", maxCost)
	b.start()
	b.await(30*time.Second, "select state = 'budget_exhausted' from backfill.run")
	b.await(10*time.Second, "select not exists (select from backfill.batch where state = 'leased')")
	spent := query[float64](b.testBundle, "select sum(cost_microusd)::float8 / 1e6 from backfill.llm_call")
	require.LessOrEqual(t, spent, maxCost)
	require.Greater(t, spent, maxCost-0.015, "all but what one call may cost")
	require.Equal(t, "max-cost is reached", query[string](b.testBundle, "select error from backfill.run"))
	done := query[int64](b.testBundle, "select count(*) from backfill.extraction")
	require.Equal(t, int64(len(b.server.Requests())), done)

	b.exec("update backfill.run set settings = settings || '{\"max_cost\": 100}'")
	require.NoError(t, b.store.ResumeRun(t.Context(), run, store.Change{Who: "me"}))
	b.idle(time.Minute)
	b.requireRun(run, "succeeded")
	require.Len(t, b.server.Requests(), 200, "nothing is paid twice")
	b.requireInvariants()
}

// A failure that a run left behind stays on its account and under its limit.
func TestModelRetriesOfAnEndedRun(t *testing.T) {
	t.Parallel()
	for name, maxCost := range map[string]string{"within the limit": "100", "over it": "0.0001"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupModel(t, llmtest.Answer("no JSON at all"))
			b.cfg.Backoff = func(int16) time.Duration { return time.Hour }
			run := b.many(1)
			b.start()
			b.requireRun(run, "finished_with_errors")
			require.Equal(t, "retry/unparseable/1", b.ledger())
			b.server.Script(llmtest.OK())
			b.exec("update backfill.run set settings = jsonb_build_object('max_cost', $1::numeric)", maxCost)
			b.exec("update backfill.extraction set next_attempt_at = now()")
			b.hurry(20 * time.Second)
			if name == "over it" {
				require.Equal(t, "dead/unparseable/1", b.ledger())
				require.Equal(t, "max-cost is reached", query[string](b.testBundle, "select error from backfill.extraction"))
				require.Len(t, b.server.Requests(), 1)
				return
			}
			require.Equal(t, "done/staged/2", b.ledger())
			require.Equal(t, "bad_output ok", b.classes())
			require.True(t, query[bool](b.testBundle, `select r.cost = (select sum(cost_microusd) from backfill.llm_call) / 1e6 and r.state = 'finished_with_errors'
				from backfill.v_run r`))
			undone, err := b.store.Undo(t.Context(), run, "me")
			require.NoError(t, err)
			require.Equal(t, int64(1), undone.Candidates)
		})
	}
}

// A limit that is set later counts what was spent before it.
func TestModelBudgetIsBookedFromTheStart(t *testing.T) {
	t.Parallel()
	b := setupModel(t)
	run := b.many(60)
	gate := llmtest.NewGate()
	b.server.Script(append(slices.Repeat([]llmtest.Reply{llmtest.OK()}, 40), gate.Then(llmtest.OK()))...)
	b.start()
	<-gate.Entered
	b.exec(`update backfill.run set settings = '{"max_cost": 0.06}'`)
	gate.Open()
	b.requireRun(run, "budget_exhausted")
	b.await(10*time.Second, "select not exists (select from backfill.batch where state = 'leased')")
	require.LessOrEqual(t, query[float64](b.testBundle, "select sum(cost_microusd)::float8 / 1e6 from backfill.llm_call"), 0.06+0.01, "but for the calls under way")
	require.Equal(t, query[int64](b.testBundle, "select sum(cost_microusd)::bigint from backfill.llm_call"),
		query[int64](b.testBundle, "select microusd from backfill.budget where scope like 'run %'"))
}

// Without a price, a limit on costs cannot be kept to: no call is made.
func TestModelBudgetWithoutPrice(t *testing.T) {
	t.Parallel()
	b := setupModel(t)
	b.llm.Prices = nil
	run := b.many(10)
	b.exec(`update backfill.run set settings = '{"max_cost": 5}'`)
	b.start()
	b.requireRun(run, "budget_exhausted")
	require.Contains(t, query[string](b.testBundle, "select error from backfill.run"), "BACKFILL_LLM_PRICES")
	require.Empty(t, b.server.Requests())
}

// A day's limit holds for all processes together, and costs no capture.
func TestModelDailyBudget(t *testing.T) {
	t.Parallel()
	b := setupModel(t)
	tokens := int64(20_000)
	b.cfg.Slots[0].Daily.Tokens = &tokens
	b.many(200)
	b.start()
	b.start() // a second process
	b.await(30*time.Second, "select exists (select from backfill.batch where error like '%budget_spent%')")
	b.await(10*time.Second, "select not exists (select from backfill.batch where state = 'leased')")
	used := query[int64](b.testBundle, "select sum(prompt_tokens + completion_tokens) from backfill.llm_call")
	require.LessOrEqual(t, used, tokens)
	require.Equal(t, []int64{used, 0}, query[[]int64](b.testBundle, "select array[tokens, reserved_tokens] from backfill.budget where scope like 'day %'"), "all is settled")
	require.Empty(t, query[string](b.testBundle, "select coalesce(string_agg(outcome, ' '), '') from backfill.extraction where outcome <> 'staged'"))
	b.requireClean()
}

// What the heuristic has staged for a capture is not staged a second time when it
// stands in for the model.
func TestModelFallbackStagesNothingTwice(t *testing.T) {
	t.Parallel()
	b := setupModel(t, llmtest.Named("refusal"))
	h, err := heuristic.New()
	require.NoError(t, err)
	b.exec("update backfill.extractor set on_insert = id = 1")
	stop := b.testBundle.start(config(h))
	b.insert(said)
	b.idle(20 * time.Second)
	stop()
	require.Equal(t, int64(1), query[int64](b.testBundle, "select count(*) from backfill.staging"))
	run := b.many(0)
	b.start()
	b.await(20*time.Second, "select finished_at is not null from backfill.run where id = $1", run)
	require.Equal(t, "dead/refused/1/heuristic", b.ledger())
	require.Equal(t, int64(1), query[int64](b.testBundle, "select count(*) from backfill.staging"))
	b.requireRun(run, "finished_with_errors")
	b.requireInvariants()

	// A later try that succeeds takes the fallback's place.
	b.server.Script(llmtest.OK())
	n, err := b.store.Retry(t.Context(), "me", store.RetryFilter{Outcome: store.Refused})
	require.NoError(t, err)
	require.Equal(t, int64(1), n)
	b.idle(20 * time.Second)
	require.Equal(t, "done/staged/1", b.ledger())
	b.requireInvariants()
}

// A backfill with a worse day does not cost good memories.
func TestModelFailureToReplace(t *testing.T) {
	t.Parallel()
	b := setupModel(t, llmtest.OK())
	b.start()
	b.insert(said)
	b.idle(20 * time.Second)
	require.Equal(t, "done/staged/1", b.ledger())
	b.server.Script(llmtest.Answer("I would rather not."))
	run, err := b.store.CreateRun(t.Context(), store.NewRun{Kind: store.KindRun, Extractor: 2, Reprocess: store.ReprocessAll})
	require.NoError(t, err)
	require.NoError(t, b.store.Plan(t.Context(), run))
	b.idle(20 * time.Second)
	require.Equal(t, "done/staged/1", b.ledger())
	require.Contains(t, query[string](b.testBundle, "select error from backfill.extraction"), "not replaced: unparseable")
	require.Equal(t, "The team ships on Fridays", query[string](b.testBundle, "select content from backfill.staging"))
	b.requireRun(run, "finished_with_errors")
	require.Len(t, b.server.Requests(), 4, "three attempts")
	b.requireInvariants()
}

// An update while the model is thinking: the answer to the old text is dropped.
func TestModelChangedMeanwhile(t *testing.T) {
	t.Parallel()
	gate := llmtest.NewGate()
	b := setupModel(t, gate.Then(llmtest.Echo()))
	b.many(1)
	b.start()
	<-gate.Entered
	b.exec("update backfill.intake set text = 'The new text.'")
	gate.Open()
	b.idle(30 * time.Second)
	require.Equal(t, "{}", query[string](b.testBundle, "select outcomes::text from backfill.batch where mode = 'missing'"), "the answer to the old text counts for nothing")
	require.Equal(t, "The new text.", query[string](b.testBundle, "select string_agg(content, '|') from backfill.staging"))
	b.requireInvariants()
}

// A worker that is killed between the answer and the commit: the next one finds
// the capture in hand, the call that may have been paid is on record, and nothing
// is stored twice.
func TestModelKill(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := setupModel(t)
	lock := b.begin()
	b.server.Script(func(w http.ResponseWriter, r llmtest.Request) {
		// The attempt is committed by now. Its result will not be.
		var id int64
		if err := lock.QueryRow(ctx, "select id from backfill.batch where state = 'leased' for update").Scan(&id); err != nil {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		llmtest.OK()(w, r)
	}, llmtest.OK())
	b.exec("select backfill.register_extractor('llm', $1)", b.llm.Version())
	b.insert(said)
	p := &process{T: t, url: b.pool.Config().ConnString(), model: b.server.URL}
	p.start()
	t.Cleanup(p.kill)
	b.await(20*time.Second, `select exists (select from pg_stat_activity
		where datname = current_database() and wait_event_type = 'Lock' and query like 'select id, now() from (%')`)
	p.kill()
	require.NoError(t, lock.Rollback(ctx))
	require.Zero(t, query[int64](b.testBundle, "select count(*) from backfill.staging"))
	p.start()
	b.idle(30 * time.Second)
	require.Equal(t, "done/staged/2", b.ledger())
	require.Equal(t, "lost ok", b.classes())
	require.Equal(t, int64(1), query[int64](b.testBundle, "select count(*) from backfill.staging"))
	b.requireInvariants()
}

// modelProcess is the slot of a worker process that asks the model at url.
func modelProcess(url string) jobs.Slot {
	cfg := llm.Config{BaseURL: url, APIKey: keyCanary, Model: "test-model", Timeout: time.Minute, Concurrency: 2}
	return jobs.Slot{ID: 2, Name: "llm", Version: cfg.Version(), Model: asking(&cfg)}
}
