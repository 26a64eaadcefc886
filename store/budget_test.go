package store

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Calls of one run in one day set aside and settle all at once: none waits for the
// other in a circle, and what is left is what was used. The rows are given another
// order than they are locked in.
func TestBudgetConcurrently(t *testing.T) {
	t.Parallel()
	b := setup(t)
	limits := []Limit{DayLimit("endpoint", nil, nil), RunLimit(1, nil)}
	b.exec("insert into backfill.budget (scope) values ($1), ($2)", limits[1].Scope, limits[0].Scope)
	const callers, calls = 8, 100
	errs := make(chan error, callers)
	for range callers {
		go func() {
			for i := range calls {
				if err := b.store.Reserve(context.Background(), limits, 10, 100); err != nil {
					errs <- fmt.Errorf("call %d: %w", i, err)
					return
				}
				if err := b.store.Settle(context.Background(), limits, 10, 100, 1, 2); err != nil {
					errs <- fmt.Errorf("call %d: %w", i, err)
					return
				}
			}
			errs <- nil
		}()
	}
	for range callers {
		require.NoError(t, <-errs)
	}
	require.Equal(t, []string{"800 1600 0 0", "800 1600 0 0"}, query[[]string](b, `
		select array_agg(concat_ws(' ', tokens, microusd, reserved_tokens, reserved_microusd)) from backfill.budget`))
}
