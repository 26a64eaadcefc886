package jobs

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/justfortytwo/backfill/extract/llm"
	"github.com/justfortytwo/backfill/store"
)

// budget joins the limits of an endpoint's day and of the run a call is made for.
type budget struct {
	store    *store.Store
	endpoint string
	daily    DailyLimit
	log      *slog.Logger
}

// DailyLimit bounds what all processes together may use of an endpoint in a day,
// which begins at midnight UTC. nil is no limit.
type DailyLimit struct {
	Tokens *int64
	// MicroUSD is in millionths of a dollar. It needs the model's price.
	MicroUSD *int64
}

// runSpentError says that a run may make no further call. Its message holds no
// more than numbers of runs and names of settings.
type runSpentError struct{ reason string }

func (e *runSpentError) Error() string { return e.reason }

// spender is what calls are made for: a capture in hand.
type spender struct {
	lease   store.Lease
	run     *int64
	maxCost *int64 // in millionths of a dollar
	calls   int
}

// newModel prepares a slot's model, with the budget that all processes share.
func newModel(st *store.Store, s Slot, log *slog.Logger) (*llm.Extractor, error) {
	shared := &budget{store: st, daily: s.Daily, log: log}
	x, err := s.Model(shared)
	if err != nil {
		return nil, err
	}
	shared.endpoint = x.Client().Endpoint()
	return x, nil
}

type spenderKey struct{}

func withSpender(ctx context.Context, s *spender) context.Context {
	return context.WithValue(ctx, spenderKey{}, s)
}

// Reserve implements [llm.Budget]. It is asked before every call, so that it also
// sees to it that there is no further one where a long turn takes many.
func (b *budget) Reserve(ctx context.Context, est llm.Spend) (settle func(llm.Spend), err error) {
	s, _ := ctx.Value(spenderKey{}).(*spender)
	if s != nil {
		if s.calls++; s.calls > 1 { // the first was allowed as the capture was entered
			if err := b.store.MayGoOn(ctx, s.lease); err != nil {
				return nil, err
			}
		}
	}
	limits := []store.Limit{store.DayLimit(b.endpoint, b.daily.Tokens, b.daily.MicroUSD)}
	var run store.Limit
	if s != nil && s.run != nil {
		if s.maxCost != nil && est.MicroUSD == nil {
			return nil, &runSpentError{"max-cost is set and the model's price is not: set BACKFILL_LLM_PRICES"}
		}
		run = store.RunLimit(*s.run, s.maxCost)
		limits = append(limits, run)
	}
	err = b.store.Reserve(ctx, limits, est.Tokens, micro(est))
	over, isOver := errors.AsType[*store.OverBudgetError](err)
	switch {
	case isOver && over.Busy:
		return nil, llm.BudgetSpent(busyWait)
	case isOver && over.Scope == run.Scope:
		return nil, &runSpentError{store.MaxCostReached}
	case isOver:
		now := time.Now().UTC()
		return nil, llm.BudgetSpent(now.Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(now))
	case err != nil:
		return nil, err
	}
	return func(used llm.Spend) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := b.store.Settle(ctx, limits, est.Tokens, micro(est), used.Tokens, micro(used)); err != nil {
			// It stays reserved: too careful rather than too late.
			b.log.WarnContext(ctx, "what a call has used was not booked: what was set aside for it counts instead", "error", err)
		}
	}, nil
}

// busyWait is the pause of whoever finds what is left of a limit set aside for calls
// that are under way.
const busyWait = 2 * time.Second

func micro(s llm.Spend) int64 {
	if s.MicroUSD == nil {
		return 0
	}
	return *s.MicroUSD
}
