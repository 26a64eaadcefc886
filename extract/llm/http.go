package llm

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
)

// Most bytes that are read of an answer. An answer at the cap of tokens has a
// few dozen kilobytes.
const (
	maxBody      = 1 << 20
	maxErrorBody = 64 << 10
)

// exchange is what happened on the wire, which the SDK tells only in part.
type exchange struct {
	// sent is whether a request left the SDK at all.
	sent   bool
	status int
	header http.Header
	body   []byte
	// over is set when the body was longer than we read.
	over bool
	// err is the failure to send, or to read the answer.
	err error
}

// mayCost reports whether the endpoint may charge for the request: it answered,
// or we stopped listening while it worked.
func (x *exchange) mayCost() bool {
	if x.status == 0 {
		return errors.Is(x.err, context.DeadlineExceeded) || errors.Is(x.err, context.Canceled)
	}
	return x.status < http.StatusMultipleChoices
}

type exchangeKey struct{}

// withExchange has the request made in ctx recorded in x.
func withExchange(ctx context.Context, x *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

// doer is the SDK's HTTP client: it follows no redirect, because that would send
// the key to wherever it points, reads no more than it should, and records the
// exchange.
type doer struct{ client *http.Client }

func newDoer(conns int) *doer {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
	if base, ok := http.DefaultTransport.(*http.Transport); ok {
		transport = base.Clone()
	}
	transport.MaxConnsPerHost = conns
	transport.MaxIdleConnsPerHost = conns
	return &doer{client: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Do implements the SDK's HTTPDoer.
func (d *doer) Do(req *http.Request) (*http.Response, error) {
	x, ok := req.Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		x = &exchange{}
	}
	x.sent = true
	resp, err := d.client.Do(req) //nolint:gosec // the operator names the endpoint
	if err != nil {
		x.err = err
		return nil, err
	}
	defer resp.Body.Close()
	x.status, x.header = resp.StatusCode, resp.Header
	limit := maxErrorBody
	if resp.StatusCode < http.StatusMultipleChoices {
		limit = maxBody
	}
	x.body, x.err = io.ReadAll(io.LimitReader(resp.Body, int64(limit)+1))
	if len(x.body) > limit {
		x.body, x.over = x.body[:limit], true
	}
	if x.err != nil {
		return nil, x.err
	}
	resp.Body = io.NopCloser(bytes.NewReader(x.body))
	return resp, nil
}
