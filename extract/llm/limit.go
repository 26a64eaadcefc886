package llm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
	"golang.org/x/time/rate"
)

// patience is the longest delay that is waited out. A longer one is the caller's,
// who can do without a worker meanwhile.
const patience = 5 * time.Second

// gate lets requests through, one process's worth: the pause an endpoint asked
// for, a limit on requests, a limit on tokens.
type gate struct {
	requests, tokens *rate.Limiter

	mu     sync.Mutex
	until  time.Time
	status int // the HTTP status that is the reason
}

func newGate(cfg Config) *gate {
	g := &gate{}
	if rpm := cfg.RequestsPerMinute; rpm > 0 {
		g.requests = rate.NewLimiter(rate.Limit(rpm/60), max(1, int(rpm/60)))
	}
	if tpm := cfg.TokensPerMinute; tpm > 0 {
		g.tokens = rate.NewLimiter(rate.Limit(tpm/60), max(1, int(tpm/4)))
	}
	return g
}

// hold keeps every request back for d, because of an answer with that status.
func (g *gate) hold(d time.Duration, now time.Time, status int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if until := now.Add(d); until.After(g.until) {
		g.until, g.status = until, status
	}
}

// release ends every hold.
func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.until = time.Time{}
}

// held returns how long requests are kept back from now on, and the status that is
// the reason.
func (g *gate) held(now time.Time) (time.Duration, int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return max(0, g.until.Sub(now)), g.status
}

// enter waits for the turn of a request of so many tokens, or returns an [Error]
// to wait, or ctx's error.
func (g *gate) enter(ctx context.Context, tokens int, now time.Time) error {
	delay, status := g.held(now)
	code := CodeHeld
	var booked []*rate.Reservation
	book := func(l *rate.Limiter, n int) {
		if l == nil || delay > patience {
			return
		}
		r := l.ReserveN(now, min(n, l.Burst())) // more than a burst could never go
		booked = append(booked, r)
		if d := r.DelayFrom(now); d > delay {
			delay, status, code = d, 0, CodeRateLimited
		}
	}
	book(g.requests, 1)
	book(g.tokens, tokens)
	giveBack := func() {
		for _, r := range booked {
			r.CancelAt(now)
		}
	}
	if delay > patience {
		giveBack()
		return &Error{Kind: RetryLater, Status: status, Code: code, RetryAfter: min(delay, maxWait)}
	}
	if delay == 0 {
		return nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		giveBack()
		return fmt.Errorf("waiting to ask the model: %w", ctx.Err())
	}
}

// breakFor is how long an open breaker keeps requests away from an endpoint that
// fails.
const breakFor = 30 * time.Second

// breaker opens after five failures in a row, or when half of at least twenty
// requests of a minute fail.
type breaker struct {
	*gobreaker.CircuitBreaker[answer]

	mu     sync.Mutex
	opened time.Time
}

func newBreaker(now func() time.Time) *breaker {
	b := &breaker{}
	b.CircuitBreaker = gobreaker.NewCircuitBreaker[answer](gobreaker.Settings{
		Interval:     time.Minute,
		BucketPeriod: 10 * time.Second,
		Timeout:      breakFor,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			return c.ConsecutiveFailures >= 5 || c.Requests >= 20 && 2*c.TotalFailures >= c.Requests
		},
		OnStateChange: func(_ string, _, to gobreaker.State) {
			if to == gobreaker.StateOpen {
				b.mu.Lock()
				b.opened = now()
				b.mu.Unlock()
			}
		},
		// Only what says that the endpoint is in trouble counts against it.
		IsSuccessful: func(err error) bool { return KindOf(err) != RetryLater },
		IsExcluded:   func(err error) bool { return err != nil && KindOf(err) == "" },
	})
	return b
}

// closed returns the [Error] to wait if the breaker is open.
func (b *breaker) closed(now time.Time) error {
	if b.State() != gobreaker.StateOpen {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return &Error{Kind: RetryLater, Code: CodeBreakerOpen, RetryAfter: max(time.Second, breakFor-now.Sub(b.opened))}
}

// refusal turns the breaker's own errors into ours.
func refusal(err error) error {
	switch {
	case errors.Is(err, gobreaker.ErrOpenState):
		return &Error{Kind: RetryLater, Code: CodeBreakerOpen, RetryAfter: breakFor}
	case errors.Is(err, gobreaker.ErrTooManyRequests):
		// Half open: one request tries the endpoint out.
		return &Error{Kind: RetryLater, Code: CodeBreakerOpen, RetryAfter: patience}
	}
	return err
}

// guard tells a broken endpoint or adapter from bad captures: it looks like all
// of them were bad at once.
type guard struct {
	mu    sync.Mutex
	inRow int
	last  [50]bool
	n     int
}

const guardRow = 20

// add counts a completion and reports whether the queue should stop. It starts
// over once it has said so.
func (g *guard) add(failed bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last[g.n%len(g.last)] = failed
	g.n++
	if !failed {
		g.inRow = 0
		return false
	}
	g.inRow++
	bad := 0
	for _, f := range g.last {
		if f {
			bad++
		}
	}
	if g.inRow < guardRow && (g.n < len(g.last) || bad <= len(g.last)/2) {
		return false
	}
	g.inRow, g.n, g.last = 0, 0, [50]bool{}
	return true
}
