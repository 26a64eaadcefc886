package llm

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Kind is the class of a failure: what a caller is to do about it.
type Kind string

// Kinds.
const (
	// RetryLater: the endpoint is busy, away or over a limit. Try the capture
	// again after RetryAfter, or a backoff of your own if that is longer, without
	// counting an attempt. It is never a reason to give a capture up.
	RetryLater Kind = "retry_later"
	// StopQueue: no request will succeed until someone acts, so stop asking for
	// all captures. [Error.Fix] says what to do, [Client.Probe] when it is done.
	StopQueue Kind = "stop_queue"
	// Degrade: the endpoint refused a feature of the request several times over.
	// What it refused is remembered; try again at once.
	Degrade Kind = "degrade"
	// SplitTurn: the turn is too long for the model. [Extractor] splits it.
	SplitTurn Kind = "split_turn"
	// FailCapture: this turn was refused, and will be again.
	FailCapture Kind = "fail_capture"
	// BadOutput: there was an answer, but nothing can be read from it. Worth an
	// attempt or two.
	BadOutput Kind = "bad_output"
)

// Codes of failures that no endpoint has a code for.
const (
	CodeBreakerOpen = "breaker_open"          // the breaker keeps requests away
	CodeRateLimited = "rate_limited_here"     // over a limit of the configuration
	CodeHeld        = "on_hold"               // in a pause the endpoint asked for, or just after StopQueue
	CodeBudget      = "budget_spent"          // nothing left of the budget
	CodeModel       = "model_refused_locally" // the SDK does not send this

	CodeTimeout = "timeout" // no answer in time
	CodeNetwork = "network" // no answer, or half of one
	CodeTLS     = "tls"     // a certificate that is not trusted, or no TLS at all
	CodeURL     = "bad_url" // no request could be made of the address

	CodeRedirect    = "redirect"         // somewhere else is asked to be asked
	CodeHTML        = "html"             // a web page
	CodeUndecodable = "undecodable"      // not the JSON of a completion
	CodeTooLarge    = "body_too_large"   // over a megabyte
	CodeNoChoices   = "no_choices"       // a completion without an answer
	CodeRefusal     = "refusal"          // the model refuses
	CodeFilter      = "content_filter"   // a filter ended the answer
	CodeBlank       = "blank"            // nothing was said
	CodeLength      = "length"           // the answer was cut at the cap of tokens
	CodeTruncated   = "prompt_truncated" // the prompt was cut without a word

	CodeGuard   = "too_many_failures" // 20 in a row, or over half of 50
	CodeTooLong = "too_long"          // even the smallest piece does not fit
	CodeCalls   = "too_many_calls"    // the bound of one extraction
)

// Error is a failed completion. It carries facts about the failure and nothing
// that the endpoint or the turn said, and it wraps nothing for the same reason.
type Error struct {
	Kind Kind
	// Status is the HTTP status, 0 if there was no answer. With [CodeHeld] it is
	// that of the answer which is the reason.
	Status int
	// Code is the endpoint's own code if it has the form of one, else one of the
	// codes above, else empty.
	Code string
	// RetryAfter is how long the endpoint asks to be left alone, at most 30
	// minutes; 0 if it does not say. Only of RetryLater.
	RetryAfter time.Duration
	// RequestID is the endpoint's id of the request.
	RequestID string

	// feature is what a refusal of Degrade is about.
	feature feature
	// moderated is set where the content of the turn is the reason.
	moderated bool
}

// Error implements error. The request's id is left out, so that failures of one
// kind read alike.
func (e *Error) Error() string {
	var facts []string
	if e.Status > 0 {
		facts = append(facts, fmt.Sprintf("HTTP %d", e.Status))
	}
	if e.Code != "" {
		facts = append(facts, e.Code)
	}
	if e.RetryAfter > 0 {
		facts = append(facts, "retry after "+e.RetryAfter.Round(100*time.Millisecond).String())
	}
	if len(facts) == 0 {
		return "llm: " + string(e.Kind)
	}
	return "llm: " + string(e.Kind) + " (" + strings.Join(facts, ", ") + ")"
}

// Wait reports whether no request was made, because none should be before
// RetryAfter: an open breaker, a limiter of ours, a pause the endpoint asked for,
// the half minute after a StopQueue, a spent budget.
func (e *Error) Wait() bool {
	switch e.Code {
	case CodeBreakerOpen, CodeRateLimited, CodeHeld, CodeBudget:
		return e.Kind == RetryLater
	}
	return false
}

// Refused reports whether the content of the turn is the reason for a FailCapture:
// a filter, a moderation, or the model's own refusal.
func (e *Error) Refused() bool {
	return e.Kind == FailCapture && (e.moderated || e.Code == CodeFilter || e.Code == CodeRefusal)
}

// Fix says what an operator can do about a StopQueue error, in one sentence; it
// is empty for the other kinds.
func (e *Error) Fix() string {
	if e.Kind != StopQueue {
		return ""
	}
	switch {
	case e.Status == http.StatusUnauthorized || e.Code == "invalid_api_key":
		return "the endpoint refuses the key: set OPENAI_API_KEY to a valid one"
	case e.Status == http.StatusForbidden:
		return "the endpoint denies access: check what the key of OPENAI_API_KEY may do, and from where"
	case e.Status == http.StatusPaymentRequired || e.Status == http.StatusTooManyRequests:
		return "the account is out of credit or over its spending limit: top it up or raise the limit"
	case e.Status == http.StatusNotFound || e.Code == CodeModel:
		return "the endpoint does not serve this: check BACKFILL_LLM_MODEL and OPENAI_BASE_URL"
	case e.Code == CodeRedirect || e.Code == CodeHTML:
		return "OPENAI_BASE_URL leads to a web page or to another address: it should end in /v1 and answer with JSON"
	case e.Code == CodeTLS:
		return "the certificate of OPENAI_BASE_URL is not trusted: check its host name, or install its authority"
	case e.Code == CodeURL:
		return "OPENAI_BASE_URL is not a usable address"
	case e.Code == CodeGuard:
		return "most captures fail with this endpoint: check BACKFILL_LLM_MODEL, and the codes in backfill.llm_call"
	default:
		return "the endpoint refuses every request: check BACKFILL_LLM_MODEL and OPENAI_BASE_URL"
	}
}

// KindOf returns the kind of the [Error] in err's chain, or "" if there is none:
// then err is a context's.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return ""
}
