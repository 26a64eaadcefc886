package llm

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/justfortytwo/backfill/extract"
)

// DefaultBaseURL is OpenAI's.
const DefaultBaseURL = "https://api.openai.com/v1"

// Config of a [Client]. Only Model is required, and APIKey where the endpoint
// asks for one.
type Config struct {
	// BaseURL is the endpoint without /chat/completions; for Azure it is the
	// resource's. Default [DefaultBaseURL]. Env OPENAI_BASE_URL.
	BaseURL string
	// APIKey is sent as a bearer token, or as Azure's api-key. Default none, for
	// local servers. Env OPENAI_API_KEY.
	APIKey Key
	// Model is the model to ask for; for Azure it is the deployment. Env
	// BACKFILL_LLM_MODEL.
	Model string
	// AzureAPIVersion, such as 2024-10-21, selects Azure's URLs and key header.
	// Default none: not Azure. Env OPENAI_API_VERSION.
	AzureAPIVersion string

	// Timeout bounds one request, answer included. Default 1 minute, or 3 minutes
	// where BaseURL is on this host or a private network. Env BACKFILL_LLM_TIMEOUT.
	Timeout time.Duration
	// MaxOutput caps an answer, in tokens. Default 1,024, or 4,096 for models that
	// reason, whose thoughts count. Env BACKFILL_LLM_MAX_OUTPUT.
	MaxOutput int
	// Temperature of sampling. Default 0. Not sent to models that refuse it. Env
	// BACKFILL_LLM_TEMPERATURE.
	Temperature float32
	// ReasoningEffort is sent as it is. Default "low" for OpenAI's reasoning
	// models, else nothing. Env BACKFILL_LLM_REASONING_EFFORT.
	ReasoningEffort string
	// NoThinking asks the chat template of vLLM and llama.cpp to leave thoughts
	// out. Default false: not sent. Env BACKFILL_LLM_NO_THINKING.
	NoThinking bool
	// SystemPrompt replaces [extract.SystemPrompt], the default.
	SystemPrompt string

	// Concurrency is how many requests are made at once at most. Default 4. Env
	// BACKFILL_LLM_WORKERS.
	Concurrency int
	// RequestsPerMinute and TokensPerMinute are limits of this process. Tokens
	// are estimated before a request: a third of its bytes and the cap of the
	// answer. Default 0: no limit. Env BACKFILL_LLM_RPM and BACKFILL_LLM_TPM.
	RequestsPerMinute, TokensPerMinute float64
	// Prices are what Model costs. Default none: costs are unknown. Env
	// BACKFILL_LLM_PRICES.
	Prices Prices
	// Budget is asked before every request. Default nil: no budget.
	Budget Budget

	// ChunkTokens is the longest piece of a turn that is sent at once, estimated
	// as a third of its bytes. Default 3,000. Env BACKFILL_LLM_CHUNK_TOKENS.
	ChunkTokens int
	// RedactContacts also takes e-mail addresses and phone numbers out of turns.
	// Default false. Env BACKFILL_REDACT_CONTACTS.
	RedactContacts bool

	// now is the clock, in tests.
	now func() time.Time
}

// Budget is a spending limit that all processes share.
type Budget interface {
	// Reserve sets est aside before a request. It fails with [BudgetSpent] if
	// that is more than what is left; any other error is returned as it is.
	//
	// settle is called once after the request, with what it cost, even if ctx has
	// ended. It cannot fail a request that is already paid: what it cannot write
	// stays reserved.
	Reserve(ctx context.Context, est Spend) (settle func(used Spend), err error)
}

// Spend is an amount of tokens, prompt and answer together, and of money.
type Spend struct {
	Tokens int64
	// MicroUSD is in millionths of a dollar; nil is unknown.
	MicroUSD *int64
}

// BudgetSpent is the error of a [Budget] that has nothing left. resume is how long
// until it has again.
func BudgetSpent(resume time.Duration) *Error {
	return &Error{Kind: RetryLater, Code: CodeBudget, RetryAfter: min(max(resume, 0), maxWait)}
}

// Key is an API key. It prints as whether it is set.
type Key string

// String implements [fmt.Stringer].
func (k Key) String() string {
	if k == "" {
		return "(not set)"
	}
	return "(set)"
}

// GoString implements [fmt.GoStringer].
func (k Key) GoString() string { return k.String() }

// MarshalText implements [encoding.TextMarshaler].
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. White space around a key,
// such as the newline of the file it came from, is no part of it.
func (k *Key) UnmarshalText(text []byte) error {
	*k = Key(strings.TrimSpace(string(text)))
	return nil
}

// Validate names the variable of the first setting that is wrong, and the fix.
func (c Config) Validate() error {
	c = c.withDefaults()
	u, err := c.base()
	switch {
	case err != nil:
		return err
	case strings.TrimSpace(c.Model) == "":
		return errors.New("BACKFILL_LLM_MODEL is not set: name the model to ask, such as gpt-5-mini or qwen3:8b")
	case c.APIKey == "" && (c.BaseURL == DefaultBaseURL || c.AzureAPIVersion != ""):
		return errors.New("OPENAI_API_KEY is not set: set it, or set OPENAI_BASE_URL to a server that needs no key")
	case strings.IndexFunc(string(c.APIKey), func(r rune) bool { return r <= ' ' || r >= 0x7f }) >= 0:
		return errors.New("OPENAI_API_KEY holds a blank or a control character: set it to the key alone")
	case isAzure(u) && c.AzureAPIVersion == "" && !strings.Contains(u.Path, "/openai/v1"):
		return errors.New("OPENAI_API_VERSION is not set: Azure needs it, such as 2024-10-21; or let OPENAI_BASE_URL end in /openai/v1")
	case c.Timeout < time.Second:
		return fmt.Errorf("BACKFILL_LLM_TIMEOUT is %s: use at least 1s", c.Timeout)
	case c.MaxOutput < 64:
		return fmt.Errorf("BACKFILL_LLM_MAX_OUTPUT is %d: use at least 64 tokens", c.MaxOutput)
	case c.Temperature < 0 || c.Temperature > 2:
		return fmt.Errorf("BACKFILL_LLM_TEMPERATURE is %v: use a number from 0 to 2", c.Temperature)
	case c.Concurrency < 1:
		return fmt.Errorf("BACKFILL_LLM_WORKERS is %d: use at least 1", c.Concurrency)
	case c.RequestsPerMinute < 0 || c.TokensPerMinute < 0:
		return errors.New("BACKFILL_LLM_RPM and BACKFILL_LLM_TPM must not be negative: use 0 for no limit")
	case c.ChunkTokens < minChunkTokens:
		return fmt.Errorf("BACKFILL_LLM_CHUNK_TOKENS is %d: use at least %d", c.ChunkTokens, minChunkTokens)
	}
	return nil
}

// Version names what an extractor of this configuration does, for the ledger: the
// model, and the policy it is given. Timeouts, prices and limits are no part of it.
func (c Config) Version() string {
	c = c.withDefaults()
	sum := sha256.Sum256(append([]byte(c.SystemPrompt), extract.Schema()...))
	return c.Model + "/" + hex.EncodeToString(sum[:4])
}

// Requests is how many requests are made at once at most.
func (c Config) Requests() int { return c.withDefaults().Concurrency }

// Largest is how many tokens one request may take, as they are estimated.
func (c Config) Largest() int64 {
	c = c.withDefaults()
	return int64(c.ChunkTokens + c.MaxOutput + estimate(c.SystemPrompt))
}

// Unpriced reports whether nothing is known of what Model costs.
func (c Config) Unpriced() bool {
	none := 0
	return c.Prices.Cost(c.Model, extract.Usage{PromptTokens: &none, CompletionTokens: &none}) == nil
}

// Rough estimates the tokens of prompts and answers for so many turns with so many
// bytes of text together, before there is any call to go by: four bytes a token for
// prompt, schema and text, and 100 tokens an answer (225 answers recorded from a
// model had 67 on average, to turns of 185 bytes and without evidence).
func (c Config) Rough(turns, bytes int64) (prompt, answer int64) {
	const frame = 200 // bytes around a turn
	each := int64(len(c.withDefaults().SystemPrompt) + len(extract.Schema()) + frame)
	return (turns*each + bytes) / 4, turns * 100
}

// base parses BaseURL. Its errors do not quote it: it may hold a password.
func (c Config) base() (*url.URL, error) {
	u, err := url.Parse(c.BaseURL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, errors.New("OPENAI_BASE_URL is not an http or https address: use one such as " + DefaultBaseURL)
	case u.User != nil:
		return nil, errors.New("OPENAI_BASE_URL holds a user: put the key into OPENAI_API_KEY")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("OPENAI_BASE_URL holds a query: leave it out; Azure's version goes into OPENAI_API_VERSION")
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/chat/completions"):
		return nil, errors.New("OPENAI_BASE_URL ends in /chat/completions: leave that out")
	}
	return u, nil
}

func (c Config) withDefaults() Config {
	c.BaseURL = strings.TrimRight(cmp.Or(strings.TrimSpace(c.BaseURL), DefaultBaseURL), "/")
	c.SystemPrompt = cmp.Or(c.SystemPrompt, extract.SystemPrompt)
	c.Concurrency = cmp.Or(c.Concurrency, 4)
	c.ChunkTokens = cmp.Or(c.ChunkTokens, 3000)
	if c.Timeout == 0 {
		c.Timeout = time.Minute
		if u, err := c.base(); err == nil && nearby(u.Hostname()) {
			c.Timeout = 3 * time.Minute
		}
	}
	if c.MaxOutput == 0 {
		c.MaxOutput = 1024
		if reasons(c.Model) {
			c.MaxOutput = 4096
		}
	}
	if c.ReasoningEffort == "" && reasons(c.Model) {
		c.ReasoningEffort = "low"
	}
	if c.now == nil {
		c.now = time.Now
	}
	return c
}

// reasons reports whether OpenAI, or a gateway to it, names its reasoning models
// like this.
func reasons(model string) bool {
	name := model[strings.LastIndexByte(model, '/')+1:]
	for _, prefix := range []string{"o1", "o3", "o4", "gpt-5", "gpt-6"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

func isAzure(u *url.URL) bool {
	return strings.HasSuffix(u.Hostname(), ".openai.azure.com") || strings.HasSuffix(u.Hostname(), ".cognitiveservices.azure.com")
}

// nearby reports whether host is this one or on a private network, where models
// run on small machines.
func nearby(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()
	}
	return !strings.Contains(host, ".") || strings.HasSuffix(host, ".local") || strings.HasSuffix(host, ".internal")
}

// endpoint names u in records: host and path.
func endpoint(u *url.URL) string {
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])) + u.Path
}
