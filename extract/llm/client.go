package llm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"github.com/justfortytwo/backfill/extract"
)

// maxSteps is how many features one completion gives up.
const maxSteps = 3

// Client completes with one model of one endpoint. It is safe for concurrent use.
type Client struct {
	cfg     Config
	url     *url.URL
	sdk     *openai.Client
	ladder  *ladder
	gate    *gate
	breaker *breaker
	guard   guard
	// holdsKey reports whether a string holds the key. The key itself is kept
	// where only the SDK has it: fmt reaches into unexported fields.
	holdsKey func(string) bool
}

var _ extract.LLMClient = (*Client)(nil)

// New prepares a client. It makes no request.
func New(cfg Config) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	u, err := cfg.base()
	if err != nil {
		return nil, err
	}
	sdk := openai.DefaultConfig(string(cfg.APIKey))
	if cfg.AzureAPIVersion != "" {
		sdk = openai.DefaultAzureConfig(string(cfg.APIKey), cfg.BaseURL)
		sdk.APIVersion = cfg.AzureAPIVersion
		// The SDK would take colons and dots out of the deployment's name.
		sdk.AzureModelMapperFunc = url.PathEscape
	}
	key := string(cfg.APIKey)
	cfg.APIKey = ""
	sdk.BaseURL = cfg.BaseURL
	sdk.HTTPClient = newDoer(cfg.Concurrency)
	return &Client{
		cfg: cfg, url: u, sdk: openai.NewClientWithConfig(sdk),
		ladder: newLadder(cfg), gate: newGate(cfg), breaker: newBreaker(cfg.now),
		holdsKey: func(s string) bool { return key != "" && strings.Contains(s, key) },
	}, nil
}

// Call is the record of one request.
type Call struct {
	Started time.Time
	Latency time.Duration
	// Endpoint is host, port and path. Model is what was asked for, Returned what
	// answered.
	Endpoint, Model, Returned string
	RequestID                 string
	Finish                    extract.Finish
	// Class is "ok" or the [Kind] of the failure.
	Class  string
	Status int
	Code   string
	Usage  extract.Usage
	// Estimated is set where the endpoint did not say what it used and the budget
	// was settled by an estimate.
	Estimated bool
	// CostMicroUSD is in millionths of a dollar; nil is unknown.
	CostMicroUSD *int64

	// The rest is the [Extractor]'s.

	// Chunk of Chunks, from 1.
	Chunk, Chunks int
	// Outcome is what could be read; empty if nothing was there to read.
	Outcome             extract.Outcome
	Candidates, Skipped int
	Salvaged            bool
	// Redactions in the turn.
	Redactions int
}

// Complete implements [extract.LLMClient]. Its error is an [*Error], ctx's, or the
// budget's. A request is sent once, and again only where the endpoint refused a
// feature of it.
func (c *Client) Complete(ctx context.Context, r extract.Request) (extract.Completion, error) {
	got, _, err := c.complete(ctx, r, false)
	return got, err
}

// complete also returns the record of each request. To insist is to ask once more
// after an answer that could not be read: with twice the cap, a reminder, and a
// temperature.
func (c *Client) complete(ctx context.Context, r extract.Request, insist bool) (extract.Completion, []Call, error) {
	if strings.TrimSpace(r.Prompt) == "" {
		return extract.Completion{}, nil, &Error{Kind: FailCapture, Code: CodeBlank} // the SDK would leave the message out
	}
	var calls []Call
	for step := 0; ; step++ {
		shape := c.ladder.now()
		got, err := c.attempt(ctx, r, shape, insist)
		if got.call != nil {
			calls = append(calls, *got.call)
		}
		var e *Error
		if !errors.As(err, &e) {
			if err == nil {
				c.guard.add(false)
			}
			return got.Completion, calls, err
		}
		switch {
		case e.Kind == Degrade && !c.ladder.down(e.feature, shape):
			stopped := *e
			stopped.Kind = StopQueue
			e = &stopped
		case e.Kind == Degrade && step < maxSteps:
			continue
		case e.Kind == FailCapture, e.Kind == RetryLater && e.Code == CodeUndecodable:
			if c.guard.add(true) {
				e = &Error{Kind: StopQueue, Status: e.Status, Code: CodeGuard, RequestID: e.RequestID}
			}
		}
		if e.Kind == StopQueue {
			// Others who ask before the queue has stopped are told to wait, not to
			// stop it: by then it may be running again.
			c.gate.hold(breakFor, c.cfg.now(), e.Status)
		}
		return got.Completion, calls, e
	}
}

// answer is a completion and its record, which is nil if nothing was sent.
type answer struct {
	extract.Completion
	call *Call
}

// attempt makes one request, if breaker, budget and limits let it.
func (c *Client) attempt(ctx context.Context, r extract.Request, s Shape, insist bool) (answer, error) {
	if err := c.breaker.closed(c.cfg.now()); err != nil {
		return answer{}, err
	}
	prompt := estimate(r.System) + estimate(r.Prompt)
	most := prompt + c.maxOutput(r, insist)
	settle, err := c.reserve(ctx, c.spend(prompt, most-prompt))
	if err != nil {
		return answer{}, err
	}
	if err := c.gate.enter(ctx, most, c.cfg.now()); err != nil {
		settle(c.spend(0, 0))
		return answer{}, err
	}
	got, err := c.breaker.Execute(func() (answer, error) { return c.send(ctx, r, s, insist) })
	settle(c.used(got, prompt))
	return got, refusal(err)
}

func (c *Client) reserve(ctx context.Context, est Spend) (func(Spend), error) {
	if c.cfg.Budget == nil {
		return func(Spend) {}, nil
	}
	return c.cfg.Budget.Reserve(ctx, est)
}

// spend is what so many tokens are worth.
func (c *Client) spend(prompt, output int) Spend {
	return Spend{
		Tokens:   int64(prompt + output),
		MicroUSD: c.cfg.Prices.Cost(c.cfg.Model, extract.Usage{PromptTokens: &prompt, CompletionTokens: &output}),
	}
}

// used is what a request has cost, by the endpoint's word or, where it gave none,
// by estimate: an endpoint that refuses charges nothing, one that was not heard
// of again has read the prompt.
func (c *Client) used(got answer, prompt int) Spend {
	switch u := got.Usage; {
	case got.call == nil:
		return c.spend(0, 0)
	case u.PromptTokens != nil && u.CompletionTokens != nil:
		return Spend{Tokens: int64(*u.PromptTokens) + int64(*u.CompletionTokens), MicroUSD: got.call.CostMicroUSD}
	case !got.call.Estimated:
		return c.spend(0, 0)
	}
	return c.spend(prompt, estimate(got.Text))
}

// send makes the request and reads its answer.
func (c *Client) send(parent context.Context, r extract.Request, s Shape, insist bool) (answer, error) {
	ctx, cancel := context.WithTimeout(parent, c.cfg.Timeout)
	defer cancel()
	x := &exchange{}
	start := c.cfg.now()
	resp, err := c.sdk.CreateChatCompletion(withExchange(ctx, x), c.request(r, s, insist))
	got := answer{}
	if x.sent {
		got.Usage = usage(x.body)
		got.RequestID = c.identifier(x.header.Get("X-Request-ID"))
		got.Model = c.identifier(resp.Model)
		got.call = &Call{
			Started: start, Latency: c.cfg.now().Sub(start), Endpoint: endpoint(c.url), Model: c.cfg.Model, Returned: got.Model,
			RequestID: got.RequestID, Status: x.status, Usage: got.Usage, Class: "ok",
			Estimated:    x.mayCost() && (got.Usage.PromptTokens == nil || got.Usage.CompletionTokens == nil),
			CostMicroUSD: c.cfg.Prices.Cost(c.cfg.Model, got.Usage),
		}
	}
	if parent.Err() != nil && err != nil {
		if got.call != nil {
			got.call.Class, got.call.Code = string(RetryLater), "cancelled"
		}
		return got, fmt.Errorf("asking the model: %w", parent.Err())
	}
	e := c.judge(x, resp, err, r, &got)
	if e == nil {
		return got, nil
	}
	e.RequestID = got.RequestID
	e.Code = c.identifier(e.Code)
	if e.Kind == RetryLater || e.Status == http.StatusPaymentRequired {
		if e.RetryAfter = wait(e.Status, x.header, c.cfg.now()); e.RetryAfter > 0 {
			e.Kind = RetryLater
			c.gate.hold(e.RetryAfter, c.cfg.now(), e.Status)
		}
	}
	if got.call != nil {
		got.call.Class, got.call.Code, got.call.Finish = string(e.Kind), e.Code, got.Finish
	}
	return got, e
}

// judge reads the answer into got, or says what is wrong with it.
func (c *Client) judge(x *exchange, resp openai.ChatCompletionResponse, err error, r extract.Request, got *answer) *Error {
	complained := false
	if x.sent && x.status < 300 {
		_, complained = inAnswer(x.body)
	}
	if err != nil || x.over || x.status >= 300 || complained || len(resp.Choices) == 0 {
		return classify(x, err)
	}
	choice := resp.Choices[0]
	got.Finish = extract.Finish(choice.FinishReason)
	if choice.FinishReason == openai.FinishReasonFunctionCall {
		got.Finish = extract.FinishToolCalls
	}
	got.call.Finish = got.Finish
	got.Text = text(choice.Message)
	e := &Error{Status: x.status}
	switch {
	case got.Finish == extract.FinishContentFilter:
		e.Kind, e.Code = FailCapture, CodeFilter
	case strings.TrimSpace(got.Text) != "":
		if !truncated(r, got.Usage) {
			return nil
		}
		e.Kind, e.Code = SplitTurn, CodeTruncated
	case choice.Message.Refusal != "":
		e.Kind, e.Code = FailCapture, CodeRefusal
	case got.Finish == extract.FinishLength:
		e.Kind, e.Code = BadOutput, CodeLength
	default:
		e.Kind, e.Code = BadOutput, CodeBlank
	}
	return e
}

// text is what a message says: its content, in one piece or several, or else the
// arguments of the calls it wants made. Thoughts do not count.
func text(m openai.ChatCompletionMessage) string {
	says := []string{m.Content}
	for _, part := range m.MultiContent {
		if part.Type == openai.ChatMessagePartTypeText {
			says = append(says, part.Text)
		}
	}
	if out := strings.Join(says, ""); strings.TrimSpace(out) != "" {
		return out
	}
	var args []string
	for _, call := range m.ToolCalls {
		args = append(args, call.Function.Arguments)
	}
	if m.FunctionCall != nil {
		args = append(args, m.FunctionCall.Arguments)
	}
	return strings.Join(args, "\n")
}

// estimate is the number of tokens of s: a third of its bytes, which is on the
// high side for most languages and tokenizers.
func estimate(s string) int { return (len(s) + 2) / 3 }

// truncated reports whether the endpoint has read less than half of the prompt,
// as some do when it does not fit. Small prompts always fit. Runs of one byte,
// such as indentation, are few tokens and do not count.
func truncated(r extract.Request, u extract.Usage) bool {
	const small = 1000
	if u.PromptTokens == nil || *u.PromptTokens == 0 {
		return false
	}
	bytes := 0
	for _, s := range []string{r.System, r.Prompt} {
		for i := range len(s) {
			if i == 0 || s[i] != s[i-1] {
				bytes++
			}
		}
	}
	est := bytes / 3
	return est > small && *u.PromptTokens < est/2
}

// Wait returns how long requests are kept back from now on: by an open breaker, or
// a pause that the endpoint asked for. 0 is not at all.
func (c *Client) Wait() time.Duration {
	now := c.cfg.now()
	wait, _ := c.gate.held(now)
	if e, ok := errors.AsType[*Error](c.breaker.closed(now)); ok {
		wait = max(wait, e.RetryAfter)
	}
	return wait
}

// Resume ends every pause that the endpoint asked for.
func (c *Client) Resume() { c.gate.release() }

// Shape returns what the endpoint takes, as far as requests have shown.
func (c *Client) Shape() Shape { return c.ladder.now() }

// Endpoint names the endpoint in records: host, port and path.
func (c *Client) Endpoint() string { return endpoint(c.url) }

// Model is the model that is asked.
func (c *Client) Model() string { return c.cfg.Model }

// String implements [fmt.Stringer].
func (c *Client) String() string { return "llm client of " + c.cfg.Model + " at " + c.Endpoint() }

// Format implements [fmt.Formatter]: no verb prints more than String.
func (c *Client) Format(f fmt.State, _ rune) { fmt.Fprint(f, c.String()) }
