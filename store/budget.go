package store

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// Limit is a limit on what calls to models may use.
type Limit struct {
	// Scope names whose limit it is: see [DayLimit] and [RunLimit].
	Scope string
	// Tokens and MicroUSD are the most that may be used; nil is no limit.
	Tokens, MicroUSD *int64
	// spent is the part of llm_call that counted before the limit was set.
	spent string
	arg   any
}

// DayLimit limits an endpoint's day, which begins at midnight UTC.
func DayLimit(endpoint string, tokens, microUSD *int64) Limit {
	return Limit{
		Scope: "day " + time.Now().UTC().Format(time.DateOnly) + " " + endpoint, Tokens: tokens, MicroUSD: microUSD,
		spent: "endpoint = $4 and started_at >= date_trunc('day', now(), 'UTC')", arg: endpoint,
	}
}

// RunLimit limits what a run may cost.
func RunLimit(run int64, microUSD int64) Limit {
	return Limit{Scope: "run " + strconv.FormatInt(run, 10), MicroUSD: &microUSD, spent: "run_id = $4", arg: run}
}

// OverBudgetError says that a reservation would go over a limit. Nothing was
// reserved.
type OverBudgetError struct{ Scope string }

// Error names the limit.
func (e *OverBudgetError) Error() string { return "over the budget of " + e.Scope }

// Reserve sets an amount aside under every limit, or under none: then the error is
// an [*OverBudgetError]. Reserved amounts count as used, in all processes, until
// [Store.Settle] corrects them.
func (s *Store) Reserve(ctx context.Context, limits []Limit, tokens, microUSD int64) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		for _, l := range limits {
			var usedTokens, usedMicroUSD int64
			err := tx.QueryRow(ctx, `
				insert into backfill.budget as b (scope, tokens, microusd)
				select $1, coalesce(sum(coalesce(prompt_tokens, 0) + coalesce(completion_tokens, 0)), 0) + $2, coalesce(sum(cost_microusd), 0) + $3
				from backfill.llm_call where not exists (select from backfill.budget where scope = $1) and `+l.spent+`
				on conflict (scope) do update set tokens = b.tokens + $2, microusd = b.microusd + $3, updated_at = now()
				returning tokens, microusd`, l.Scope, tokens, microUSD, l.arg).Scan(&usedTokens, &usedMicroUSD)
			if err != nil {
				return wrap("reserving the budget", err)
			}
			if l.Tokens != nil && usedTokens > *l.Tokens || l.MicroUSD != nil && usedMicroUSD > *l.MicroUSD {
				return &OverBudgetError{l.Scope}
			}
		}
		return nil
	})
}

// Settle corrects reservations by the difference between what was reserved and
// what was used.
func (s *Store) Settle(ctx context.Context, limits []Limit, tokens, microUSD int64) error {
	scopes := make([]string, len(limits))
	for i, l := range limits {
		scopes[i] = l.Scope
	}
	if _, err := s.pool.Exec(ctx, `
		update backfill.budget set tokens = tokens + $2, microusd = microusd + $3, updated_at = now()
		where scope = any ($1)`, scopes, tokens, microUSD); err != nil {
		return wrap("settling the budget", err)
	}
	return nil
}
