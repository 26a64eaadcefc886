package cli_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/internal/llmtest"
)

// setModel points the environment to a model, and returns a secret that must not
// come up in any output.
func setModel(t *testing.T, server *llmtest.Server) (key string) {
	t.Helper()
	key = "sk-" + "CANARY-in-the-key"
	t.Setenv("OPENAI_BASE_URL", server.URL)
	t.Setenv("OPENAI_API_KEY", key)
	t.Setenv("BACKFILL_LLM_MODEL", "test-model")
	t.Setenv("BACKFILL_LLM_PRICES", "*=1/10")
	return key
}

func TestExtractWithModel(t *testing.T) { //nolint:paralleltest // sets the environment
	server := llmtest.New(t)
	setModel(t, server)
	r := backfill(t, "We ship on Fridays.", "extract", "--extractor", "llm").ok()
	require.Equal(t, "decision   0.90  The team ships on Fridays\n", r.out)

	// What the model refuses is named; the other lines are worked.
	server.Script(llmtest.If(func(r llmtest.Request) bool { return strings.Contains(r.Turn(), "secret plan") }, llmtest.Named("refusal"), llmtest.OK()))
	r = backfill(t, strings.Join([]string{decision, `{"id":"r","text":"the secret plan"}`, preference}, "\n"), "extract", "--extractor", "llm", "--jsonl")
	require.Equal(t, 3, r.code, r.err)
	require.Len(t, r.objects(), 2)
	require.Equal(t, "error: -:2: llm: fail_capture (HTTP 200, refusal", strings.SplitAfter(r.err, "refusal")[0])
	require.NotContains(t, r.err, "secret plan")
}

// An answer that cannot be read is asked for again, and so is an endpoint that asks
// for a moment.
func TestExtractWithModelAsksAgain(t *testing.T) { //nolint:paralleltest // sets the environment
	server := llmtest.New(t, llmtest.Named("blank_content"), llmtest.Named("rate_ms"), llmtest.OK())
	setModel(t, server)
	require.Contains(t, backfill(t, "We ship on Fridays.", "extract", "--extractor", "llm").ok().out, "The team ships")
	require.Len(t, server.Requests(), 3)
}

func TestExtractWithoutModel(t *testing.T) {
	backfill(t, "text", "extract", "--extractor", "gpt").fails(2, "use heuristic or llm")
	t.Setenv("BACKFILL_LLM_MODEL", "")
	backfill(t, "text", "extract", "--extractor", "llm").fails(1, "BACKFILL_LLM_MODEL")
	server := llmtest.New(t, llmtest.Named("auth"))
	key := setModel(t, server)
	r := backfill(t, "text", "extract", "--extractor", "llm")
	r.fails(1, "401", "OPENAI_API_KEY")
	require.NotContains(t, r.err, key)
	require.NotContains(t, r.err, llmtest.Canary)
	t.Setenv("OPENAI_BASE_URL", "ftp://nowhere")
	backfill(t, "text", "extract", "--extractor", "llm").fails(1, "OPENAI_BASE_URL")
}

// The doctor asks the model, and cost says what calls came to.
func TestDoctorAndCost(t *testing.T) { //nolint:paralleltest // sets the environment
	d := setup(t)
	server := llmtest.New(t, llmtest.Named("no_temperature"), llmtest.OK())
	key := setModel(t, server)
	d.cli("migrate", "up").ok()
	r := d.cli("doctor")
	require.Regexp(t, `(?m)^ok +model +test-model at \S+ \(as test-model-2026-01-01\) answered in \d+ms; takes json_schema, max_tokens$`, r.out)
	require.Contains(t, r.out, "llm test-model/")

	server.Script(llmtest.Named("auth"))
	d.exec("update backfill.extractor set stopped_at = now(), stop_reason = 'llm: stop_queue (HTTP 401)', stop_fix = 'set OPENAI_API_KEY' where id = 2")
	r = d.cli("doctor")
	require.Equal(t, 1, r.code)
	require.Regexp(t, `(?m)^error +model +test-model at \S+: llm: stop_queue \(HTTP 401, invalid_api_key`, r.out)
	require.Regexp(t, `(?m)^error +queue +llm is stopped since .*HTTP 401`, r.out)
	require.Contains(t, r.out, "OPENAI_API_KEY")
	require.NotContains(t, r.out+r.err, key)
	require.Contains(t, d.cli("status").ok().out, "llm is stopped since")
	require.Equal(t, "set OPENAI_API_KEY", d.cli("status", "--json").ok().objects()[1]["stop_fix"])

	r = d.cli("cost")
	require.Zero(t, r.code)
	require.Contains(t, r.err, "no calls")
	d.exec(`insert into backfill.llm_call (capture_id, endpoint, model_requested, class, prompt_tokens, completion_tokens, cost_microusd)
		values (1, 'e', 'm', 'ok', 100, 10, 1500), (2, 'e', 'm', 'retry_later', 0, null, null)`)
	require.Regexp(t, `(?m)^\d{4}-\d\d-\d\d +m +e +2 +1 +100 +10 +\$0.0015 \+ 1 call of unknown cost$`, d.cli("cost").ok().out)
	o := d.cli("cost", "--json").ok().object()
	requireKeys(t, o, "day", "endpoint", "model", "calls", "failed", "prompt_tokens", "completion_tokens", "cost", "calls_without_cost")
	require.InDelta(t, 0.0015, o["cost"], 1e-9)
	d.cli("cost", "--days", "0").fails(2, "--days")
}

// A run that asks the model, from its price to its cost.
func TestRunWithModel(t *testing.T) { //nolint:paralleltest // sets the environment
	d := setup(t)
	server := llmtest.New(t)
	setModel(t, server)
	d.cli("migrate", "up").ok()
	d.cli("import", file(t, "turns.jsonl", decision, preference, smallTalk)).ok()
	d.cli("run", "--local")

	require.Regexp(t, `would take 3 captures in 1 batch, .*
tokens: roughly \d+ in, 300 out: .*
cost: under \$0\.01
time: unknown`, d.cli("run", "--extractor", "llm", "--dry-run").ok().out)
	require.Empty(t, server.Requests())
	require.Regexp(t, `(?m)^1 +decision +0\.45  The team ships on Fridays$`, d.cli("run", "--extractor", "llm", "--print", "--limit", "1").ok().out)
	require.Len(t, server.Requests(), 1)
	require.Zero(t, query[int64](d, "select count(*) from backfill.extraction where extractor_id = 2"))

	r := d.cli("run", "--extractor", "llm", "--local")
	require.Zero(t, r.code, r.err)
	require.Contains(t, r.out, "succeeded: 3 staged, 3 candidates")
	require.Len(t, server.Requests(), 4)
	run := d.cli("runs", "--json").ok().objects()[0]
	require.Greater(t, run["cost"], 0.0)
	require.Regexp(t, `tokens: about \d+ in, \d+ out\ncost: under \$0\.01`, d.cli("run", "--extractor", "llm", "--reprocess", "all", "--dry-run").ok().out)
	d.cli("run", "--extractor", "llm", "--reprocess", "all", "--local").fails(1, "3 captures again replaces 3 candidates", "--yes")
	require.Zero(t, d.cli("run", "--extractor", "llm", "--reprocess", "all", "--local", "--yes").code)
	require.Len(t, server.Requests(), 7)
}

// A run that cannot go on ends with the reason, and whoever looks finds it.
func TestRunWithModelThatCannotGoOn(t *testing.T) {
	d := setup(t)
	server := llmtest.New(t, llmtest.Named("auth"))
	setModel(t, server)
	d.cli("migrate", "up").ok()
	d.cli("import", file(t, "turns.jsonl", decision, preference, smallTalk)).ok()
	r := d.cli("run", "--extractor", "llm", "--local")
	require.Equal(t, 1, r.code, r.err)
	require.Regexp(t, `run 1 is not finished, 0 of 3 done: llm is stopped: .*HTTP 401.*OPENAI_API_KEY`, r.err)
	t.Setenv("BACKFILL_LLM_MODEL", "")
	require.Regexp(t, `(?m)^error +queue +llm is stopped since`, d.cli("doctor").out, "whatever the environment of who asks")
	t.Setenv("BACKFILL_LLM_MODEL", "test-model")

	// At its budget.
	server.Script(llmtest.OK())
	d.cli("cancel", "1").ok()
	d.exec("update backfill.extractor set stopped_at = null, stop_reason = null, stop_fix = null, probe_at = null, batch_size = 1 where id = 2")
	d.exec("update river.river_queue set paused_at = null")
	r = d.cli("run", "--extractor", "llm", "--local", "--max-cost", "0.000001")
	require.Equal(t, 1, r.code, r.err)
	require.Contains(t, r.err, "run 2 has spent its budget")
	require.Contains(t, d.cli("status", "2").ok().out, "max-cost is reached")
	require.Regexp(t, `(?m)^warning +bounds +1 run at its budget`, d.cli("doctor").out)
	r = d.cli("run", "--extractor", "llm")
	require.Zero(t, r.code)
	require.Contains(t, r.err, "3 captures held by runs that rest")
	require.Equal(t, int64(1), query[int64](d, "select count(*) from backfill.llm_call"), "no call but the one that found the key refused")

	// What a limit cannot be kept to is not begun.
	d.cli("run", "--extractor", "llm", "--max-cost", "1", "--print", "--limit", "1").fails(1, "--max-cost cannot bound it")
	t.Setenv("BACKFILL_LLM_PRICES", "")
	d.cli("run", "--extractor", "llm", "--max-cost", "1").fails(1, "BACKFILL_LLM_PRICES")
	t.Setenv("BACKFILL_LLM_DAILY_TOKENS", "100")
	d.cli("status").fails(1, "BACKFILL_LLM_DAILY_TOKENS is 100: one request may take")
}
