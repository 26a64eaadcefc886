package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// Plan writes a run's batches, in short transactions that each take up where the
// last one stopped, and sets it running. Several planners of one run take turns, so
// it does no harm to join in. It returns early where the run is paused or cancelled
// meanwhile.
func (s *Store) Plan(ctx context.Context, run int64) error {
	for {
		more, err := s.PlanStep(ctx, run)
		if err != nil || !more {
			return err
		}
	}
}

// PlanStep is one of the transactions of [Store.Plan]. It reports whether there is
// more to plan.
func (s *Store) PlanStep(ctx context.Context, run int64) (more bool, err error) {
	more, err = s.planStep(ctx, run, step)
	if err != nil || more {
		return more, err
	}
	return false, s.SettleRun(ctx, run)
}

// unplannableError says that a run cannot be planned, now or later.
type unplannableError struct{ err error }

func (e *unplannableError) Error() string { return "the run cannot be planned: " + e.err.Error() }

func (e *unplannableError) Unwrap() error { return e.err }

func (s *Store) planStep(ctx context.Context, run int64, r reach) (more bool, err error) {
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		sc, err := lockScope(ctx, tx, run)
		if err != nil {
			return err
		}
		more, err = sc.plan(ctx, tx, r)
		return err
	})
	var unplannable *unplannableError
	switch {
	case errors.Is(err, errNotPlanning):
		return false, nil
	case errors.As(err, &unplannable):
		return false, errors.Join(err, s.stopRun(ctx, run, "failed", unplannable.err.Error(), "planning"))
	}
	return more, err
}

// plan takes one step. Batches are numbered in the run's order, which is the order
// in which they are claimed.
func (s *scope) plan(ctx context.Context, tx pgx.Tx, r reach) (more bool, err error) {
	if err := byIndex(ctx, tx); err != nil {
		return false, wrap("planning", err)
	}
	w, err := s.next(ctx, tx, r.look)
	if err != nil {
		return false, wrap("planning", err)
	}
	most := s.most(r.take)
	var t taken
	err = tx.QueryRow(ctx, s.pick(w, `, requeued as (
		    update backfill.extraction x set state = 'queued', attempts = 0, next_attempt_at = null
		    from picked p where x.capture_id = p.id and x.extractor_id = @slot and x.state = 'dead'
		), numbered as (
		    select id, (row_number() over (order by id `+s.direction()+`) - 1) / @size as chunk from picked
		), queued as (
		    insert into backfill.batch (extractor_id, version, prio, mode, run_id, ids, captures)
		    select @slot, @version, 2, @mode, @run, range_agg(int8range(id, id, '[]')), count(*)
		    from numbered group by chunk order by chunk
		)
		select count(*), coalesce(min(id), 0), coalesce(max(id), 0) from picked`), s.args(w, most)).Scan(&t.n, &t.first, &t.last)
	if err != nil {
		return false, wrap("planning", err)
	}
	end := s.advance(w, most, t)
	if _, err := tx.Exec(ctx, "update backfill.run set planned_upto = $2, planned = $3 where id = $1", s.run, s.upto, s.taken); err != nil {
		return false, wrap("planning", err)
	}
	if end {
		if _, err := tx.Exec(ctx, "update backfill.run set state = 'running', planned_at = now() where id = $1", s.run); err != nil {
			return false, wrap("starting the run", err)
		}
	}
	if t.n > 0 {
		if _, err := tx.Exec(ctx, "select backfill.try_wake(array[$1])", s.slot.Name); err != nil {
			return false, wrap("planning", err)
		}
	}
	return !end, nil
}

// PlanningRuns lists the runs that are being planned, oldest first.
func (s *Store) PlanningRuns(ctx context.Context) ([]int64, error) {
	rows, err := s.pool.Query(ctx, "select id from backfill.run where state = 'planning' order by id")
	if err != nil {
		return nil, wrap("listing runs", err)
	}
	runs, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, wrap("listing runs", err)
	}
	return runs, nil
}

// WakePlanner makes sure that a worker goes on planning.
func (s *Store) WakePlanner(ctx context.Context) error {
	if _, err := s.pool.Exec(ctx, "select backfill.wake_planner()"); err != nil {
		return wrap("waking the planner", err)
	}
	return nil
}
