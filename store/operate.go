package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// RunStateError says that a run cannot be asked for this now.
type RunStateError struct {
	// Message and Hint are the database's, about states only.
	Message, Hint string
}

// Error gives both.
func (e *RunStateError) Error() string { return e.Message + ". " + e.Hint }

// Change is who asks a run to do something.
type Change struct {
	Who string
	// Force does not wait for workers that hold batches of a run that is to pause or
	// end: their leases are taken away. Should such a worker be alive, its results
	// are refused, and calls to a model that it made are made again.
	Force bool
}

// PauseRun asks a run to pause: no new batch is claimed from now on, and batches in
// work are given back or finished. It is paused once none is left.
func (s *Store) PauseRun(ctx context.Context, run int64, c Change) error {
	return s.changeRun(ctx, run, c, "'pausing'", "paused")
}

// ResumeRun lets a run that rests go on. It is refused to one that would stop at once:
// its deadline has passed, or its budget is spent and was not raised since.
func (s *Store) ResumeRun(ctx context.Context, run int64, c Change) error {
	var deadline, budget bool
	err := s.pool.QueryRow(ctx, `
		select coalesce((r.settings->>'deadline')::timestamptz <= now(), false),
		       r.state = 'budget_exhausted' and coalesce(r.error = $2, false) and not exists (
		           select from backfill.run_event v
		           where v.run_id = r.id and v.from_state = v.to_state and v.reason ~ '\mmax-cost:'
		             and v.id > (select max(id) from backfill.run_event where run_id = r.id and from_state <> to_state))
		from backfill.run r where r.id = $1`, run, MaxCostReached).Scan(&deadline, &budget)
	switch {
	case err != nil && !errors.Is(err, pgx.ErrNoRows): // changeRun says that
		return wrap("reading the settings", err)
	case deadline:
		return &RunStateError{
			Message: fmt.Sprintf("run %d would stop at once: its deadline has passed", run),
			Hint:    fmt.Sprintf("`backfill set %d deadline=…` moves it, deadline=none takes it back.", run),
		}
	case budget:
		return &RunStateError{
			Message: fmt.Sprintf("run %d would stop at once: its budget is spent", run),
			Hint:    fmt.Sprintf("`backfill set %d max-cost=…` raises it, max-cost=none takes it back.", run),
		}
	}
	return s.changeRun(ctx, run, c, "case when planned_at is null then 'planning' else 'running' end", "planning", "running")
}

// MaxCostReached is why a run is exhausted that has spent its MaxCost.
const MaxCostReached = "max-cost is reached"

// CancelRun ends a run for good. What it has staged stays; what it has not begun
// has no result, so that a later run finds it. A run that has ended by itself can be
// cancelled while failures of it wait for another attempt: they are given up.
func (s *Store) CancelRun(ctx context.Context, run int64, c Change) error {
	var over bool
	err := s.pool.QueryRow(ctx, "select state in ('succeeded', 'finished_with_errors') from backfill.run where id = $1", run).Scan(&over)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) { // changeRun says that
		return wrap("reading the run", err)
	}
	if over {
		waiting, err := s.Waiting(ctx, run)
		if err != nil {
			return err
		}
		if waiting == 0 {
			return &RunStateError{Message: fmt.Sprintf("run %d has ended: there is nothing left to cancel", run), Hint: fmt.Sprintf("`backfill undo %d` takes back what it has staged.", run)}
		}
	}
	return s.changeRun(ctx, run, c, "'cancelling'", "cancelled")
}

// changeRun sets the state to an expression, unless it is that already or one that
// would be reached by it; a trigger refuses what is not allowed. Then the run's
// batches follow, in transactions of their own: should that be interrupted, the sweep
// goes on with it.
func (s *Store) changeRun(ctx context.Context, run int64, c Change, state string, reached ...string) error {
	err := s.as(ctx, c.Who, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			update backfill.run set state = `+state+` where id = $1 and state <> `+state+` and state <> all ($2)`, run, reached)
		var refused *pgconn.PgError
		switch {
		case errors.As(err, &refused) && refused.Code == "55000":
			return &RunStateError{Message: refused.Message, Hint: refused.Hint}
		case err != nil:
			return wrap("changing the run", err)
		case tag.RowsAffected() == 0:
			var exists bool
			if err := tx.QueryRow(ctx, "select exists (select from backfill.run where id = $1)", run).Scan(&exists); err != nil {
				return wrap("changing the run", err)
			}
			if !exists {
				return ErrNoRun
			}
		}
		if _, err := tx.Exec(ctx, "select backfill.settle_run($1, $2)", run, c.Force); err != nil {
			return wrap("changing the run", err)
		}
		return nil
	})
	for moved := int64(1); moved > 0 && err == nil; {
		if err = s.pool.QueryRow(ctx, "select backfill.follow_run($1)", run).Scan(&moved); err != nil {
			err = wrap("changing the run's batches", err)
		}
	}
	if err != nil {
		return err
	}
	return s.as(ctx, c.Who, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `
			select backfill.settle_run(r.id), backfill.try_wake(array[e.name])
			from backfill.run r join backfill.extractor e on e.id = r.extractor_id where r.id = $1`, run); err != nil {
			return wrap("changing the run", err)
		}
		return nil
	})
}

// as runs f in a transaction whose changes to runs are on record as who's.
func (s *Store) as(ctx context.Context, who string, f func(pgx.Tx) error) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "select set_config('backfill.who', $1, true)", who); err != nil {
			return wrap("naming who asks", err)
		}
		return f(tx)
	})
}
