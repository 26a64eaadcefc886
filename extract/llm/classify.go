package llm

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	openai "github.com/sashabaranov/go-openai"
)

// classify says what to do about a request that failed with the SDK's error err.
// It decides by status, then by code, then by words that endpoints are known to
// use; the body decides between kinds and is not kept.
func classify(x *exchange, err error) *Error {
	switch {
	case !x.sent:
		return refusedLocally(err)
	case x.status == 0:
		return unanswered(x.err)
	}
	e := &Error{Status: x.status}
	switch {
	case x.status >= 300 && x.status < 400:
		e.Kind, e.Code = StopQueue, CodeRedirect
	case x.status < 300:
		undecoded(e, x)
	default:
		refused(e, complaintOf(x.body))
	}
	// The endpoint's own word on whether to try again beats what we make of its
	// status, but not a reason to stop: a key does not get better.
	switch should := x.header.Get("X-Should-Retry"); {
	case should == "true" && e.Kind == FailCapture:
		e.Kind = RetryLater
	case should == "false" && e.Kind == RetryLater:
		e.Kind = StopQueue
	}
	return e
}

// refusedLocally classifies what the SDK does not send.
func refusedLocally(err error) *Error {
	switch {
	case errors.Is(err, openai.ErrReasoningModelMaxTokensDeprecated):
		return &Error{Kind: Degrade, Code: CodeModel, feature: tokenField}
	case errors.Is(err, openai.ErrReasoningModelLimitationsOther), errors.Is(err, openai.ErrReasoningSamplingUnsupported):
		return &Error{Kind: Degrade, Code: CodeModel, feature: temperature}
	case errors.Is(err, openai.ErrReasoningEffortUnsupported):
		return &Error{Kind: Degrade, Code: CodeModel, feature: effort}
	case errors.Is(err, openai.ErrChatCompletionInvalidModel):
		return &Error{Kind: StopQueue, Code: CodeModel}
	default:
		return &Error{Kind: StopQueue, Code: CodeURL}
	}
}

// unanswered classifies a failure of the network.
func unanswered(err error) *Error {
	var (
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		verify    *tls.CertificateVerificationError
		record    tls.RecordHeaderError
		address   *url.Error
		timeout   net.Error
	)
	switch {
	case errors.As(err, &authority), errors.As(err, &host), errors.As(err, &invalid), errors.As(err, &verify), errors.As(err, &record),
		err != nil && strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return &Error{Kind: StopQueue, Code: CodeTLS}
	case errors.As(err, &address) && address.Op == "parse":
		return &Error{Kind: StopQueue, Code: CodeURL}
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return &Error{Kind: RetryLater, Code: CodeTimeout}
	default:
		return &Error{Kind: RetryLater, Code: CodeNetwork}
	}
}

// undecoded classifies an answer of status 200 that is none.
func undecoded(e *Error, x *exchange) {
	body := bytes.TrimSpace(x.body)
	c, complained := inAnswer(body)
	e.Kind = RetryLater
	switch {
	case x.over:
		e.Code = CodeTooLarge
	case x.err != nil:
		e.Code = CodeNetwork
		if errors.Is(x.err, context.DeadlineExceeded) {
			e.Code = CodeTimeout
		}
	case len(body) > 0 && body[0] == '<':
		e.Kind, e.Code = StopQueue, CodeHTML
	case complained && c.status >= 400:
		e.Status = c.status
		refused(e, c)
	case complained:
		e.Code = c.code
	case bytes.HasPrefix(body, []byte("{")) && bytes.HasSuffix(body, []byte("}")) && !bytes.Contains(body, []byte(`"message"`)):
		e.Code = CodeNoChoices
	default:
		e.Code = CodeUndecodable
	}
}

// refused classifies an error by its status and what the endpoint says.
func refused(e *Error, c complaint) {
	e.Code = c.code
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(c.text, w) })
	}
	e.moderated = c.moderated || has(moderation...)
	switch s := e.Status; {
	case s == http.StatusUnauthorized:
		e.Kind = StopQueue
	case s == http.StatusForbidden && e.moderated:
		e.Kind = FailCapture
	case s == http.StatusForbidden, s == http.StatusNotFound, s == http.StatusMethodNotAllowed, s == http.StatusGone:
		e.Kind = StopQueue
	case s == http.StatusPaymentRequired:
		e.Kind = StopQueue // RetryLater if it says when: see wait
	case s == http.StatusTooManyRequests && has(money...):
		e.Kind = StopQueue
	case s == http.StatusRequestTimeout, s == http.StatusConflict, s == http.StatusTooEarly, s == http.StatusTooManyRequests:
		e.Kind = RetryLater
	case s == http.StatusRequestEntityTooLarge, has(overflow...) && s <= http.StatusInternalServerError:
		e.Kind = SplitTurn
	case s >= 500:
		e.Kind = RetryLater
	case e.moderated:
		e.Kind = FailCapture
	case has("json_validate_failed"):
		e.Kind, e.Code = BadOutput, "json_validate_failed"
	case has(badKey...), has("model") && has(badModel...):
		e.Kind = StopQueue
	default:
		if e.feature = featureIn(c.text); e.feature != noFeature && has(unsupported...) {
			e.Kind = Degrade
			return
		}
		e.Kind, e.feature = FailCapture, noFeature
	}
}

// Words of endpoints, in lower case.
var (
	moderation = []string{
		"content_filter", "content management policy", "responsibleaipolicyviolation", "content_policy", "moderation", "flagged",
		"data_inspection_failed", "content_blocked", "prohibited_content", "safety_violation",
	}
	money = []string{
		"insufficient_quota", "credit_balance_exhausted", "spend_limit", "usage_limit_exceeded", "billing_hard_limit", "billing_not_active",
		"insufficient_balance", "insufficient credits",
	}
	overflow = []string{
		"context_length", "context length", "context window", "context size", "exceed_context", "maximum model length", "max_model_len",
		"prompt is too long", "prompt too long", "input is too long", "too many tokens", "string_above_max_length", "token count", "reduce the length",
		"maximum number of tokens allowed", "input tokens exceed", "maximum prompt length",
	}
	badKey   = []string{"invalid_api_key", "api key not valid", "api_key_invalid", "incorrect api key"}
	badModel = []string{"model_not_found", "not found", "does not exist", "not a valid model", "invalid_model", "unknown model", "model_not_supported"}
	// unsupported are complaints about a field rather than about its content.
	unsupported = []string{
		"unsupported", "not support", "unavailable", "not available", "extra_forbidden", "not permitted", "unrecognized", "unexpected", "unknown",
		"invalid", "must be", "not allowed", "deprecated", "needs", "requires", "not implemented", "disabled", "no longer",
	}
)
