package llm_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/extract"
	"github.com/justfortytwo/backfill/extract/llm"
	"github.com/justfortytwo/backfill/internal/llmtest"
)

var request = extract.Request{System: extract.SystemPrompt, Prompt: "Turn: we ship on Fridays. " + turnCanary}

// client returns a client of s.
func client(t *testing.T, s *llmtest.Server, change ...func(*llm.Config)) *llm.Client {
	t.Helper()
	cfg := llm.Config{BaseURL: s.URL, APIKey: keyCanary, Model: "test-model", Timeout: time.Minute}
	for _, c := range change {
		c(&cfg)
	}
	c, err := llm.New(cfg)
	require.NoError(t, err)
	return c
}

func requireClean(t *testing.T, values ...any) {
	t.Helper()
	for _, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			text := fmt.Sprintf(verb, v)
			require.NotContains(t, text, turnCanary)
			require.NotContains(t, text, keyCanary)
			require.NotContains(t, text, llmtest.Canary)
		}
	}
}

func TestScenarios(t *testing.T) {
	t.Parallel()
	scenarios, err := llmtest.Scenarios()
	require.NoError(t, err)
	require.Len(t, scenarios, 55)
	for _, sc := range scenarios {
		t.Run(sc.Name, func(t *testing.T) {
			t.Parallel()
			server := llmtest.New(t, sc.Reply)
			c := client(t, server, func(cfg *llm.Config) {
				if sc.Azure {
					cfg.BaseURL, cfg.AzureAPIVersion = server.Host, "2024-10-21"
				}
				if sc.Model != "" {
					cfg.Model = sc.Model
				}
				if sc.Name == "hang" || sc.Name == "drip" {
					cfg.Timeout = time.Second
				}
			})
			got, calls, err := c.Calls(t.Context(), request)
			requireClean(t, err, calls, c)

			class := "ok"
			var e *llm.Error
			if errors.As(err, &e) {
				class = string(e.Kind)
			} else {
				require.NoError(t, err)
				require.JSONEq(t, llmtest.Memory, got.Text)
			}
			if sc.Class == string(llm.Degrade) {
				require.Equal(t, sc.Class, calls[0].Class)
				require.NoError(t, err, "it gets by without what was refused")
				return
			}
			require.Equal(t, sc.Class, class)
			if e != nil {
				requireWait(t, sc.Wait, e.RetryAfter)
				require.Equal(t, e.Kind == llm.StopQueue, e.Fix() != "")
			}
			require.Empty(t, server.Elsewhere.Requests(), "no redirect is followed")
			if sc.Name == "local_model_reject" {
				require.Empty(t, server.Requests())
				return
			}
			require.Len(t, server.Requests(), 1, "nothing is retried here")
			require.Len(t, calls, 1)
			require.Equal(t, class, calls[0].Class)
		})
	}
}

func requireWait(t *testing.T, want string, got time.Duration) {
	t.Helper()
	low, high, ranged := strings.Cut(want, "-")
	if want == "" {
		low = "0s"
	}
	if !ranged {
		high = low
	}
	from, err := time.ParseDuration(low)
	require.NoError(t, err)
	to, err := time.ParseDuration(high)
	require.NoError(t, err)
	require.GreaterOrEqual(t, got, from)
	require.LessOrEqual(t, got, to)
}

func TestRecord(t *testing.T) {
	t.Parallel()
	server := llmtest.New(t)
	c := client(t, server, func(cfg *llm.Config) { cfg.Prices = llm.Prices{"test-model": {Input: 2, Output: 8}} })
	got, calls, err := c.Calls(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, "req-1", got.RequestID)
	require.Equal(t, "test-model-2026-01-01", got.Model)
	require.Equal(t, extract.FinishStop, got.Finish)
	require.Equal(t, 3, *got.Usage.ReasoningTokens)
	require.Equal(t, 0, *got.Usage.CachedTokens, "known to be none")
	call := calls[0]
	require.Equal(t, int64(2**got.Usage.PromptTokens+8**got.Usage.CompletionTokens), *call.CostMicroUSD)
	require.False(t, call.Estimated)
	require.Equal(t, strings.TrimPrefix(server.URL, "http://"), call.Endpoint)
	require.Equal(t, http.StatusOK, call.Status)

	// Without usage and price nothing is known, which is not the same as nothing.
	server.Script(llmtest.Named("ok_gzip"))
	_, calls, err = client(t, server).Calls(t.Context(), request)
	require.NoError(t, err)
	require.Nil(t, calls[0].Usage.PromptTokens)
	require.Nil(t, calls[0].CostMicroUSD)
	require.True(t, calls[0].Estimated)
}

func TestLadderIsRemembered(t *testing.T) {
	t.Parallel()
	noSchema := llmtest.Named("no_json_schema")
	server := llmtest.New(t, llmtest.If(func(r llmtest.Request) bool { return r.Format() == "json_object" },
		llmtest.Fail(400, "", "response_format is not supported"), noSchema))
	c := client(t, server)
	formats := func() (out []string) {
		for _, r := range server.Requests() {
			out = append(out, r.Format())
		}
		return out
	}
	_, err := c.Complete(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, []string{"json_schema", "json_object", ""}, formats())
	_, err = c.Complete(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, []string{"json_schema", "json_object", "", ""}, formats())
	require.Empty(t, c.Shape().Format)
}

func TestLadderTriesTheOtherTokenField(t *testing.T) {
	t.Parallel()
	server := llmtest.New(t, llmtest.Named("no_max_tokens"))
	c := client(t, server)
	_, err := c.Complete(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, "max_completion_tokens", c.Shape().TokenField)

	server = llmtest.New(t, llmtest.Named("no_max_completion"))
	c = client(t, server, func(cfg *llm.Config) { cfg.Model = "gateway/gpt-5-mini" })
	_, err = c.Complete(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, "max_tokens", c.Shape().TokenField)
}

// Two requests that are refused for the same feature take one step, not two.
func TestLadderTakesOneStepAtOnce(t *testing.T) {
	t.Parallel()
	gate := llmtest.NewGate()
	server := llmtest.New(t, llmtest.If(func(r llmtest.Request) bool { return r.Format() == "json_schema" },
		gate.Then(llmtest.Named("no_json_schema")), llmtest.OK()))
	c := client(t, server)
	errs := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := c.Complete(t.Context(), request)
			errs <- err
		}()
	}
	<-gate.Entered
	<-gate.Entered
	gate.Open()
	require.NoError(t, <-errs)
	require.NoError(t, <-errs)
	require.Equal(t, "json_object", c.Shape().Format)
	require.Equal(t, 2, server.Busiest())
}

func TestEndpointSaysWhetherToRetry(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status int
		should string
		kind   llm.Kind
	}{
		{400, "true", llm.RetryLater},
		{401, "true", llm.StopQueue},
		{503, "false", llm.StopQueue},
		{400, "false", llm.FailCapture},
	} {
		server := llmtest.New(t, llmtest.Fail(tc.status, "", "no", "X-Should-Retry", tc.should))
		_, err := client(t, server).Complete(t.Context(), request)
		require.Equal(t, tc.kind, llm.KindOf(err), "%d %s", tc.status, tc.should)
	}
}

func TestBodyIsBounded(t *testing.T) {
	t.Parallel()
	server := llmtest.New(t, llmtest.Flood())
	_, err := client(t, server, func(cfg *llm.Config) { cfg.Timeout = time.Hour }).Complete(t.Context(), request)
	var e *llm.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, llm.CodeTooLarge, e.Code)
}

func TestNothingLeftToDrop(t *testing.T) {
	t.Parallel()
	server := llmtest.New(t, llmtest.Fail(400, "", "response_format is not supported"))
	_, err := client(t, server).Complete(t.Context(), request)
	require.Equal(t, llm.StopQueue, llm.KindOf(err))
	require.Len(t, server.Requests(), 3)
}

func TestRequest(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		change func(*llm.Config)
		want   map[string]any
		absent []string
	}{
		{"plain", func(*llm.Config) {}, map[string]any{"max_tokens": 1024.0}, []string{"max_completion_tokens", "reasoning_effort", "chat_template_kwargs"}},
		{
			"reasoning", func(c *llm.Config) { c.Model = "o4-mini" },
			map[string]any{"max_completion_tokens": 4096.0, "reasoning_effort": "low"},
			[]string{"max_tokens", "temperature"},
		},
		{
			"thinking off", func(c *llm.Config) { c.NoThinking, c.MaxOutput = true, 300 },
			map[string]any{"max_tokens": 300.0, "chat_template_kwargs": map[string]any{"enable_thinking": false}},
			nil,
		},
		{"warm", func(c *llm.Config) { c.Temperature = 0.5 }, map[string]any{"temperature": 0.5}, nil},
	} {
		server := llmtest.New(t)
		_, err := client(t, server, tc.change).Complete(t.Context(), request)
		require.NoError(t, err)
		r := server.Requests()[0]
		for field, want := range tc.want {
			require.Equal(t, want, r.Body[field], tc.name)
		}
		for _, field := range tc.absent {
			require.False(t, r.Has(field), "%s: %s", tc.name, field)
		}
		require.Equal(t, "Bearer "+keyCanary, r.HTTP.Header.Get("Authorization"))
	}
	// A temperature of 0 is sent, as good as 0.
	server := llmtest.New(t)
	_, err := client(t, server).Complete(t.Context(), request)
	require.NoError(t, err)
	require.InDelta(t, 0, server.Requests()[0].Body["temperature"], 1e-6)
}

func TestDialects(t *testing.T) {
	t.Parallel()
	for _, d := range llmtest.Dialects() {
		t.Run(d.Name, func(t *testing.T) {
			t.Parallel()
			server := llmtest.New(t, d.Reply)
			c := client(t, server, func(cfg *llm.Config) {
				cfg.Model = d.Model
				switch d.Name {
				case "Azure":
					cfg.BaseURL, cfg.AzureAPIVersion = server.Host, "2024-10-21"
				case "Ollama":
					cfg.APIKey = ""
					cfg.ReasoningEffort = "none"
				case "vLLM", "llama.cpp":
					cfg.APIKey, cfg.NoThinking = "", true
				}
			})
			for range 2 {
				got, err := c.Complete(t.Context(), request)
				require.NoError(t, err)
				require.JSONEq(t, llmtest.Memory, got.Text)
			}
			sent := len(server.Requests())
			_, err := c.Complete(t.Context(), request)
			require.NoError(t, err)
			require.Len(t, server.Requests(), sent+1, "what was learnt is kept")
			p, err := c.Probe(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.Shape(), p.Shape)
		})
	}
}

func TestRateLimitThenOK(t *testing.T) {
	t.Parallel()
	busy := llmtest.Fail(429, "rate_limit_exceeded", "slow down")
	server := llmtest.New(t, busy, busy, busy, llmtest.OK())
	c := client(t, server)
	for range 3 {
		_, err := c.Complete(t.Context(), request)
		require.Equal(t, llm.RetryLater, llm.KindOf(err))
	}
	_, err := c.Complete(t.Context(), request)
	require.NoError(t, err)
}

func TestEndpointIsLeftAloneAsLongAsItAsks(t *testing.T) {
	t.Parallel()
	server := llmtest.New(t, llmtest.Fail(429, "rate_limit_exceeded", "slow down", "Retry-After", "60"), llmtest.OK())
	c := client(t, server)
	_, err := c.Complete(t.Context(), request)
	require.Equal(t, llm.RetryLater, llm.KindOf(err))
	for range 100 {
		_, calls, err := c.Calls(t.Context(), request)
		var e *llm.Error
		require.ErrorAs(t, err, &e)
		require.True(t, e.Wait())
		require.Equal(t, llm.CodeHeld, e.Code)
		require.Equal(t, http.StatusTooManyRequests, e.Status, "whoever waits knows for what")
		require.Greater(t, e.RetryAfter, 50*time.Second)
		require.Regexp(t, `retry after (1m0|59(\.\d)?)s\)$`, e.Error())
		require.Empty(t, calls)
	}
	require.Len(t, server.Requests(), 1)
}

func TestBreaker(t *testing.T) {
	t.Parallel()
	server := llmtest.New(t, llmtest.Named("e500"))
	c := client(t, server)
	for range 20 {
		_, err := c.Complete(t.Context(), request)
		require.Equal(t, llm.RetryLater, llm.KindOf(err))
	}
	require.Len(t, server.Requests(), 5)
	_, err := c.Complete(t.Context(), request)
	var e *llm.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, llm.CodeBreakerOpen, e.Code)
	require.True(t, e.Wait())
	require.LessOrEqual(t, e.RetryAfter, 30*time.Second)
	require.Greater(t, e.RetryAfter, 20*time.Second)
}

func TestBreakerIgnoresBadCaptures(t *testing.T) {
	t.Parallel()
	server := llmtest.New(t, llmtest.Named("azure_filter"))
	c := client(t, server)
	for range 15 {
		_, err := c.Complete(t.Context(), request)
		require.Equal(t, llm.FailCapture, llm.KindOf(err))
	}
	require.Len(t, server.Requests(), 15)
}

func TestGuard(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bad_request_unknown", "float_usage"} {
		server := llmtest.New(t, llmtest.Named(name))
		c := client(t, server)
		kinds := map[llm.Kind]int{}
		for range 20 {
			_, err := c.Complete(t.Context(), request)
			kinds[llm.KindOf(err)]++
		}
		if name == "float_usage" {
			require.Zero(t, kinds[llm.StopQueue], "the breaker is faster")
			continue
		}
		require.Equal(t, map[llm.Kind]int{llm.FailCapture: 19, llm.StopQueue: 1}, kinds)
	}
	// Over half of fifty.
	server := llmtest.New(t)
	c := client(t, server)
	stopped := false
	for i := range 60 {
		server.Script(llmtest.OK())
		if i%3 != 0 {
			server.Script(llmtest.Named("refusal"))
		}
		_, err := c.Complete(t.Context(), request)
		if llm.KindOf(err) == llm.StopQueue {
			require.GreaterOrEqual(t, i, 49)
			stopped = true
		}
	}
	require.True(t, stopped)
}

func TestRateLimits(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*llm.Config){
		"requests": func(c *llm.Config) { c.RequestsPerMinute = 6 },
		"tokens":   func(c *llm.Config) { c.TokensPerMinute = 4 * 2200 },
	} {
		server := llmtest.New(t)
		c := client(t, server, change)
		_, err := c.Complete(t.Context(), request)
		require.NoError(t, err, name)
		_, err = c.Complete(t.Context(), request)
		var e *llm.Error
		require.ErrorAs(t, err, &e, name)
		require.Equal(t, llm.CodeRateLimited, e.Code)
		require.True(t, e.Wait())
		require.Greater(t, e.RetryAfter, 5*time.Second)
		_, err = c.Complete(t.Context(), request)
		var again *llm.Error
		require.ErrorAs(t, err, &again)
		require.LessOrEqual(t, again.RetryAfter, e.RetryAfter, "%s: who did not go has not used anything up", name)
		require.Len(t, server.Requests(), 1)
	}
}

// ledger is a budget in memory.
type ledger struct {
	mu             sync.Mutex
	left, reserved int64
	settled        []llm.Spend
}

func (l *ledger) Reserve(_ context.Context, est llm.Spend) (func(llm.Spend), error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reserved+est.Tokens > l.left {
		return nil, llm.BudgetSpent(time.Hour)
	}
	l.reserved += est.Tokens
	return func(used llm.Spend) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.reserved -= est.Tokens
		l.left -= used.Tokens
		l.settled = append(l.settled, used)
	}, nil
}

func TestBudget(t *testing.T) {
	t.Parallel()
	server := llmtest.New(t, llmtest.OK(), llmtest.Named("e500"), llmtest.Named("ok_gzip"), llmtest.Hang())
	budget := &ledger{left: 1 << 20}
	c := client(t, server, func(cfg *llm.Config) { cfg.Budget, cfg.Timeout = budget, 2*time.Second })
	for range 4 {
		_, _ = c.Complete(t.Context(), request)
	}
	require.Len(t, budget.settled, 4)
	r := server.Requests()[0]
	require.Equal(t, int64(len(r.Prompt())/4+500+len(llmtest.Memory)/4+1), budget.settled[0].Tokens, "what the endpoint says")
	require.Zero(t, budget.settled[1].Tokens, "nothing is charged for an error")
	prompt := int64(llm.Estimate(request.System) + llm.Estimate(request.Prompt))
	require.Equal(t, prompt+int64(llm.Estimate(llmtest.Memory)), budget.settled[2].Tokens, "an estimate where it does not say")
	require.Equal(t, prompt, budget.settled[3].Tokens, "a request that we gave up on was read")
	require.Zero(t, budget.reserved)

	budget.left = 100
	_, err := c.Complete(t.Context(), request)
	var e *llm.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, llm.CodeBudget, e.Code)
	require.Equal(t, 30*time.Minute, e.RetryAfter)
	require.Len(t, server.Requests(), 4)
}

func TestCancelledIsNotAFailure(t *testing.T) {
	t.Parallel()
	gate := llmtest.NewGate()
	server := llmtest.New(t, gate.Then(llmtest.OK()))
	c := client(t, server)
	for range 10 {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-gate.Entered
			cancel()
		}()
		_, err := c.Complete(ctx, request)
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, llm.KindOf(err))
		requireClean(t, err)
	}
	gate.Open()
	_, err := c.Complete(t.Context(), request)
	require.NoError(t, err, "the breaker has not counted any of it")

	// Nor does it count as a success between failures.
	server.Script(llmtest.Named("e500"))
	for range 4 {
		_, err = c.Complete(t.Context(), request)
		require.Equal(t, llm.RetryLater, llm.KindOf(err))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Complete(ctx, request)
	require.ErrorIs(t, err, context.Canceled)
	_, err = c.Complete(t.Context(), request)
	require.Equal(t, llm.RetryLater, llm.KindOf(err))
	_, err = c.Complete(t.Context(), request)
	require.ErrorContains(t, err, llm.CodeBreakerOpen)
}

func TestSilentTruncation(t *testing.T) {
	t.Parallel()
	server := llmtest.New(t, llmtest.Finish(llmtest.Memory, "stop", 40))
	c := client(t, server)
	long := extract.Request{System: extract.SystemPrompt, Prompt: strings.Repeat("We ship on Fridays, said Ines. ", 400)}
	got, err := c.Complete(t.Context(), long)
	var e *llm.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, llm.SplitTurn, e.Kind)
	require.Equal(t, llm.CodeTruncated, e.Code)
	require.JSONEq(t, llmtest.Memory, got.Text)

	long.Prompt = strings.Repeat(" ", 1<<20)
	_, err = c.Complete(t.Context(), extract.Request{System: "s", Prompt: long.Prompt + "x"})
	require.NoError(t, err, "white space is hardly any tokens")
}

func TestAfterStopQueueNobodyAsks(t *testing.T) {
	t.Parallel()
	server := llmtest.New(t, llmtest.Named("auth"))
	c := client(t, server)
	_, err := c.Complete(t.Context(), request)
	require.Equal(t, llm.StopQueue, llm.KindOf(err))
	for range 1000 {
		_, err = c.Complete(t.Context(), request)
		var e *llm.Error
		require.ErrorAs(t, err, &e)
		require.True(t, e.Wait())
	}
	require.Len(t, server.Requests(), 1)

	_, err = c.Probe(t.Context())
	require.Equal(t, llm.StopQueue, llm.KindOf(err))
	server.Script(llmtest.OK())
	_, err = c.Probe(t.Context())
	require.NoError(t, err)
	_, err = c.Complete(t.Context(), request)
	require.NoError(t, err)
}

func TestRedirectKeepsTheKey(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"redirect_302", "redirect_307_azure"} {
		server := llmtest.New(t, llmtest.Named(status))
		_, err := client(t, server).Complete(t.Context(), request)
		require.Equal(t, llm.StopQueue, llm.KindOf(err))
		require.Empty(t, server.Elsewhere.Requests())
	}
}

func TestUntrustedCodes(t *testing.T) {
	t.Parallel()
	for _, code := range []string{keyCanary, "key " + keyCanary, "two words", strings.Repeat("x", 200)} {
		server := llmtest.New(t, llmtest.Body(401, fmt.Sprintf(`{"error":{"message":"m","code":%q}}`, code), "X-Request-ID", code))
		_, calls, err := client(t, server).Calls(t.Context(), request)
		requireClean(t, err, calls)
		var e *llm.Error
		require.ErrorAs(t, err, &e)
		require.Empty(t, e.Code)
		require.Empty(t, e.RequestID)
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		url  string
		kind llm.Kind
		code string
	}{
		{"http://127.0.0.1:1/v1", llm.RetryLater, llm.CodeNetwork},
		{"http://no-such-host.invalid/v1", llm.RetryLater, llm.CodeNetwork},
		{"https://" + strings.TrimPrefix(llmtest.New(t).Host, "http://") + "/v1", llm.StopQueue, llm.CodeTLS},
	} {
		c, err := llm.New(llm.Config{BaseURL: tc.url, APIKey: keyCanary, Model: "m", Timeout: 5 * time.Second})
		require.NoError(t, err)
		_, err = c.Complete(t.Context(), request)
		var e *llm.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, tc.kind, e.Kind, tc.url)
		require.Equal(t, tc.code, e.Code)
		requireClean(t, err)
	}
}

func TestBlankPromptIsNotSent(t *testing.T) {
	t.Parallel()
	server := llmtest.New(t)
	_, err := client(t, server).Complete(t.Context(), extract.Request{System: "s", Prompt: " \n"})
	require.Equal(t, llm.FailCapture, llm.KindOf(err))
	require.Empty(t, server.Requests())
}

func TestProbe(t *testing.T) {
	t.Parallel()
	server := llmtest.New(t, llmtest.Named("auth"))
	c := client(t, server)
	_, err := c.Probe(t.Context())
	require.Equal(t, llm.StopQueue, llm.KindOf(err))
	server.Script(llmtest.Answer("hello"))
	p, err := c.Probe(t.Context())
	require.NoError(t, err)
	require.Equal(t, "test-model-2026-01-01", p.Returned)
	require.Equal(t, "json_schema", p.Shape.Format)
	require.Positive(t, p.Latency)
}
