package llm_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/extract"
	"github.com/justfortytwo/backfill/extract/llm"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	good := llm.Config{APIKey: keyCanary, Model: "m"}
	require.NoError(t, good.Validate())
	require.NoError(t, llm.Config{BaseURL: "http://localhost:11434/v1/", Model: "m"}.Validate(), "a local server needs no key")
	for _, tc := range []struct {
		change func(*llm.Config)
		names  string
	}{
		{func(c *llm.Config) { c.Model = " " }, "BACKFILL_LLM_MODEL"},
		{func(c *llm.Config) { c.APIKey = "" }, "OPENAI_API_KEY"},
		{func(c *llm.Config) { c.APIKey = keyCanary + "\n" }, "OPENAI_API_KEY"},
		{func(c *llm.Config) { c.BaseURL = "ftp://x" }, "OPENAI_BASE_URL"},
		{func(c *llm.Config) { c.BaseURL = "http://[" + keyCanary }, "OPENAI_BASE_URL"},
		{func(c *llm.Config) { c.BaseURL = "https://u:" + keyCanary + "@x/v1" }, "OPENAI_BASE_URL"},
		{func(c *llm.Config) { c.BaseURL = "https://x/v1?key=" + keyCanary }, "OPENAI_BASE_URL"},
		{func(c *llm.Config) { c.BaseURL = "https://x/v1/chat/completions" }, "OPENAI_BASE_URL"},
		{func(c *llm.Config) { c.BaseURL = "https://x.openai.azure.com" }, "OPENAI_API_VERSION"},
		{func(c *llm.Config) { c.Timeout = time.Millisecond }, "BACKFILL_LLM_TIMEOUT"},
		{func(c *llm.Config) { c.MaxOutput = 1 }, "BACKFILL_LLM_MAX_OUTPUT"},
		{func(c *llm.Config) { c.Temperature = 3 }, "BACKFILL_LLM_TEMPERATURE"},
		{func(c *llm.Config) { c.Concurrency = -1 }, "BACKFILL_LLM_WORKERS"},
		{func(c *llm.Config) { c.RequestsPerMinute = -1 }, "BACKFILL_LLM_RPM"},
		{func(c *llm.Config) { c.ChunkTokens = 10 }, "BACKFILL_LLM_CHUNK_TOKENS"},
	} {
		cfg := good
		tc.change(&cfg)
		err := cfg.Validate()
		require.ErrorContains(t, err, tc.names)
		requireClean(t, err)
		_, err = llm.New(cfg)
		require.Error(t, err)
	}
}

func TestKeyDoesNotPrint(t *testing.T) {
	t.Parallel()
	cfg := llm.Config{APIKey: keyCanary, Model: "m"}
	c, err := llm.New(cfg)
	require.NoError(t, err)
	requireClean(t, cfg, &cfg, c, struct{ C *llm.Client }{c}, llm.NewExtractor(c), cfg.APIKey)
	out, err := json.Marshal(cfg.APIKey)
	require.NoError(t, err)
	require.JSONEq(t, `"(set)"`, string(out))
	var k llm.Key
	require.NoError(t, k.UnmarshalText([]byte(" abc\n")))
	require.Equal(t, llm.Key("abc"), k)
	require.Equal(t, "(not set)", llm.Key("").String())
}

func TestPrices(t *testing.T) {
	t.Parallel()
	var p llm.Prices
	require.NoError(t, p.UnmarshalText([]byte("gpt-5-mini=0.25/0.025/2, qwen3:8b=0/0,")))
	require.Equal(t, llm.Prices{"gpt-5-mini": {0.25, 0.025, 2}, "qwen3:8b": {}}, p)
	for _, tc := range []struct {
		model string
		usage extract.Usage
		want  *int64
	}{
		{"gpt-5-mini", extract.Usage{PromptTokens: new(1000), CachedTokens: new(400), CompletionTokens: new(10)}, new(int64(180))},
		{"gpt-5-mini", extract.Usage{PromptTokens: new(1000), CompletionTokens: new(10)}, new(int64(270))},
		{"gpt-5-mini", extract.Usage{PromptTokens: new(1000)}, nil},
		{"gpt-5-mini", extract.Usage{}, nil},
		{"qwen3:8b", extract.Usage{PromptTokens: new(1000), CompletionTokens: new(10)}, new(int64(0))},
		{"other", extract.Usage{PromptTokens: new(1000), CompletionTokens: new(10)}, nil},
	} {
		require.Equal(t, tc.want, p.Cost(tc.model, tc.usage))
	}
	for _, bad := range []string{"m", "m=1", "m=a/b", "=1/2", "m=1/2/3/4", "m=-1/2", "m=NaN/1", "m=Inf/1"} {
		require.ErrorContains(t, p.UnmarshalText([]byte(bad)), "input/output", bad)
	}
	require.NoError(t, p.UnmarshalText([]byte("*=1/1")))
	require.Equal(t, new(int64(2)), p.Cost("any", extract.Usage{PromptTokens: new(1), CompletionTokens: new(1)}))
}

func TestWait(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		status int
		want   time.Duration
		header []string
	}{
		{429, 0, nil},
		{503, 2500 * time.Millisecond, []string{"Retry-After", "2.5"}},
		{503, 0, []string{"Retry-After", "-3"}},
		{503, 0, []string{"Retry-After", "NaN"}},
		{503, 0, []string{"Retry-After", "soon"}},
		{429, 100 * time.Millisecond, []string{"Retry-After-Ms", "100", "Retry-After", "9"}},
		// By the endpoint's clock, which may differ from ours.
		{429, time.Minute, []string{"Retry-After", "Fri, 01 May 2020 08:01:00 GMT", "Date", "Fri, 01 May 2020 08:00:00 GMT"}},
		{429, time.Minute, []string{"Retry-After", "Fri, 01 May 2026 12:01:00 GMT"}},
		{429, 90 * time.Second, []string{"X-Ratelimit-Reset-Requests", "1s", "X-Ratelimit-Reset-Tokens", "1m30s"}},
		{429, time.Second, []string{"X-Ratelimit-Reset-Requests", "1s", "X-Ratelimit-Reset-Tokens", "1m30s", "X-Ratelimit-Remaining-Tokens", "12"}},
		{429, 0, []string{"X-Ratelimit-Reset-Tokens", "-1", "X-Ratelimit-Reset-Requests", "0"}},
		{429, 10 * time.Second, []string{"X-Ratelimit-Reset", "1777636810000"}},
		{429, 10 * time.Second, []string{"X-Ratelimit-Reset", "1777636810"}},
		{500, 0, []string{"X-Ratelimit-Reset-Tokens", "1m"}},
		{429, 30 * time.Minute, []string{"X-Ratelimit-Reset-Tokens", "48h"}},
	} {
		h := http.Header{}
		for i := 0; i+1 < len(tc.header); i += 2 {
			h.Set(tc.header[i], tc.header[i+1])
		}
		require.Equal(t, tc.want, llm.Wait(tc.status, h, now).Round(time.Millisecond), "%v", tc.header)
	}
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	require.EqualError(t, &llm.Error{Kind: llm.BadOutput}, "llm: bad_output")
	require.EqualError(t, &llm.Error{Kind: llm.RetryLater, Status: 429, Code: "rate_limit_exceeded", RetryAfter: 7 * time.Second, RequestID: "r"},
		"llm: retry_later (HTTP 429, rate_limit_exceeded, retry after 7s)")
	require.Empty(t, llm.KindOf(http.ErrAbortHandler))
	for _, e := range []*llm.Error{
		{Status: 401},
		{Status: 403},
		{Status: 402},
		{Status: 429, Code: "insufficient_quota"},
		{Status: 404},
		{Code: llm.CodeRedirect},
		{Code: llm.CodeHTML},
		{Code: llm.CodeTLS},
		{Code: llm.CodeURL},
		{Code: llm.CodeModel},
		{Code: llm.CodeGuard},
		{},
	} {
		e.Kind = llm.StopQueue
		require.NotEmpty(t, e.Fix())
		e.Kind = llm.RetryLater
		require.Empty(t, e.Fix())
	}
}
