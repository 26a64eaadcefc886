package store

import (
	"context"
	"errors"

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
	return s.changeRun(ctx, run, c, "'pausing'")
}

// ResumeRun lets a run that rests go on.
func (s *Store) ResumeRun(ctx context.Context, run int64, c Change) error {
	return s.changeRun(ctx, run, c, "case when planned_at is null then 'planning' else 'running' end")
}

// CancelRun ends a run for good. What it has staged stays; what it has not begun
// has no result, so that a later run finds it.
func (s *Store) CancelRun(ctx context.Context, run int64, c Change) error {
	return s.changeRun(ctx, run, c, "'cancelling'")
}

// changeRun sets the state to an expression; a trigger refuses what is not allowed.
func (s *Store) changeRun(ctx context.Context, run int64, c Change, state string) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "select set_config('backfill.who', $1, true)", c.Who); err != nil {
			return wrap("changing the run", err)
		}
		var queue string
		err := tx.QueryRow(ctx, `
			update backfill.run r set state = `+state+` from backfill.extractor e
			where r.id = $1 and e.id = r.extractor_id returning e.name`, run).Scan(&queue)
		var refused *pgconn.PgError
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return ErrNoRun
		case errors.As(err, &refused) && refused.Code == "55000":
			return &RunStateError{Message: refused.Message, Hint: refused.Hint}
		case err != nil:
			return wrap("changing the run", err)
		}
		if _, err := tx.Exec(ctx, "select backfill.try_wake(array[$2]), backfill.settle_run($1, $3)", run, queue, c.Force); err != nil {
			return wrap("changing the run", err)
		}
		return nil
	})
}

// RetryFilter picks failed captures. Fields that are set must all match.
type RetryFilter struct {
	RunID   int64
	Outcome Outcome
	IDs     []int64
}

// Retry puts failed captures, dead ones and those that wait for their next
// attempt, into the queue at once, with all attempts before them. It returns
// their number.
func (s *Store) Retry(ctx context.Context, f RetryFilter) (int64, error) {
	var n int64
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			update backfill.extraction set state = 'retry', attempts = 0, next_attempt_at = now()
			where state in ('dead', 'retry')
			  and ($1 = 0 or run_id = $1) and ($2 = '' or outcome = $2) and ($3::bigint[] is null or capture_id = any ($3))`,
			f.RunID, f.Outcome, f.IDs)
		if err != nil {
			return wrap("retrying", err)
		}
		for n = tag.RowsAffected(); ; {
			var swept int64
			if err := tx.QueryRow(ctx, "select backfill.sweep()").Scan(&swept); err != nil {
				return wrap("retrying", err)
			}
			if swept == 0 {
				return nil
			}
		}
	})
	return n, err
}

// TakenBack is what [Store.Undo] did.
type TakenBack struct {
	// Captures whose result was taken back, and Candidates that went with it.
	Captures   int64 `json:"captures"`
	Candidates int64 `json:"candidates"`
	// Kept are candidates that stay: they were handed over, or are claimed.
	Kept int64 `json:"kept"`
}

// Undo removes the candidates that a run has staged, except those that were handed
// over or are claimed. Its captures stay done, with outcome undone, so that the
// nightly does not redo them.
func (s *Store) Undo(ctx context.Context, run int64) (TakenBack, error) {
	var u TakenBack
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		var extractor int16
		err := tx.QueryRow(ctx, "select extractor_id from backfill.run where id = $1 for update", run).Scan(&extractor)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrNoRun
		}
		if err != nil {
			return wrap("undoing", err)
		}
		rows, err := tx.Query(ctx, `
			select capture_id from backfill.extraction
			where run_id = $1 and extractor_id = $2 and state = 'done' and outcome = 'staged'
			order by capture_id for update`, run, extractor)
		if err != nil {
			return wrap("undoing", err)
		}
		captures, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil {
			return wrap("undoing", err)
		}
		removed, err := deleteCandidates(ctx, tx, extractor, captures)
		if err != nil {
			return err
		}
		for _, n := range removed {
			u.Candidates += int64(n)
		}
		// The closed batch carries the change to the net counts.
		err = tx.QueryRow(ctx, `
			with undone as (
				update backfill.extraction x set outcome = 'undone', handoff_due = null, updated_at = now()
				where x.extractor_id = $2 and x.capture_id = any ($3) and x.claimed_upto = 0
				returning capture_id
			), settled as (
				update backfill.extraction x set updated_at = now(), handoff_due = case when x.claimed_upto > x.handed_upto then x.handoff_due end
				where x.extractor_id = $2 and x.capture_id = any ($3) and x.claimed_upto > 0
			), net as (
				insert into backfill.batch (extractor_id, run_id, prio, state, due, finished_at, version, ids, captures, staged, candidates)
				select $2, $1, 1, 'done', null, now(), e.version, '{}', 0, -(select count(*) from undone), -$4::integer
				from backfill.extractor e where e.id = $2
			)
			select (select count(*) from undone),
			       (select count(*) from backfill.staging s join backfill.extraction x using (capture_id, extractor_id)
			        where s.extractor_id = $2 and s.capture_id = any ($3) and s.ord <= x.claimed_upto)`,
			run, extractor, captures, u.Candidates).Scan(&u.Captures, &u.Kept)
		if err != nil {
			return wrap("undoing", err)
		}
		return nil
	})
	return u, err
}
