package store

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"
)

// Limit is a limit on what calls to models may use.
type Limit struct {
	// Scope names whose limit it is: see [DayLimit] and [RunLimit].
	Scope string
	// Tokens and MicroUSD are the most that may be used; nil is no limit. What is
	// used is booked in any case, so that a limit can be set later.
	Tokens, MicroUSD *int64
}

// DayLimit limits an endpoint's day, which begins at midnight UTC.
func DayLimit(endpoint string, tokens, microUSD *int64) Limit {
	return Limit{Scope: "day " + time.Now().UTC().Format(time.DateOnly) + " " + endpoint, Tokens: tokens, MicroUSD: microUSD}
}

// RunLimit limits what a run may cost; nil does not.
func RunLimit(run int64, microUSD *int64) Limit {
	return Limit{Scope: "run " + strconv.FormatInt(run, 10), MicroUSD: microUSD}
}

// OverBudgetError says that a reservation would go over a limit. Nothing was
// reserved.
type OverBudgetError struct {
	Scope string
	// Busy is set if calls that are under way have set so much aside: what they
	// really cost may leave enough.
	Busy bool
}

// Error names the limit.
func (e *OverBudgetError) Error() string { return "over the budget of " + e.Scope }

// abandoned is how long a reservation counts as one of a call that is under way.
// No call takes as long.
const abandoned = 15 * time.Minute

// Reserve sets an amount aside under every limit, or under none: then the error is
// an [*OverBudgetError]. Reserved amounts count, in all processes, until
// [Store.Settle] puts what was used in their place; those of a process that
// vanished do so for good.
func (s *Store) Reserve(ctx context.Context, limits []Limit, tokens, microUSD int64) error {
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return wrap("reserving the budget", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	for _, l := range inOrder(limits) {
		// Amounts before this reservation.
		var used, reserved struct{ tokens, microUSD int64 }
		var quiet bool
		err := tx.QueryRow(ctx, `
			with before as (select updated_at from backfill.budget where scope = $1)
			insert into backfill.budget as b (scope, reserved_tokens, reserved_microusd) values ($1, $2, $3)
			on conflict (scope) do update set updated_at = now(),
			    reserved_tokens = b.reserved_tokens + $2, reserved_microusd = b.reserved_microusd + $3
			returning tokens, microusd, reserved_tokens - $2, reserved_microusd - $3,
			    coalesce((select updated_at from before) < now() - $4::interval, false)`, l.Scope, tokens, microUSD, abandoned).
			Scan(&used.tokens, &used.microUSD, &reserved.tokens, &reserved.microUSD, &quiet)
		if err != nil {
			return wrap("reserving the budget", err)
		}
		over := func(limit *int64, used, reserved, more int64) (over, busy bool) {
			over = limit != nil && used+reserved+more > *limit
			return over, over && used+more <= *limit
		}
		overTokens, busyTokens := over(l.Tokens, used.tokens, reserved.tokens, tokens)
		overCost, busyCost := over(l.MicroUSD, used.microUSD, reserved.microUSD, microUSD)
		if overTokens || overCost {
			return &OverBudgetError{Scope: l.Scope, Busy: !quiet && overTokens == busyTokens && overCost == busyCost}
		}
	}
	if err := tx.Commit(ctx); err != nil {
		return wrap("reserving the budget", err)
	}
	return nil
}

// inOrder is the order that everybody locks limits in.
func inOrder(limits []Limit) []Limit {
	return slices.SortedFunc(slices.Values(limits), func(a, b Limit) int { return cmp.Compare(a.Scope, b.Scope) })
}

// Settle puts what was used in the place of what was reserved.
func (s *Store) Settle(ctx context.Context, limits []Limit, reservedTokens, reservedMicroUSD, tokens, microUSD int64) error {
	scopes := make([]string, len(limits))
	for i, l := range limits {
		scopes[i] = l.Scope
	}
	if _, err := s.pool.Exec(ctx, `
		update backfill.budget b set updated_at = now(), tokens = tokens + $4, microusd = microusd + $5,
		    reserved_tokens = reserved_tokens - $2, reserved_microusd = reserved_microusd - $3
		from (select scope from backfill.budget where scope = any ($1) order by scope for update) held
		where b.scope = held.scope`, scopes, reservedTokens, reservedMicroUSD, tokens, microUSD); err != nil {
		return wrap("settling the budget", err)
	}
	return nil
}
