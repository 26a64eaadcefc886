package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// undoCaptures is the number of captures whose candidates are taken back in one
// transaction, which is one line of the run's history.
const undoCaptures = 10_000

// TakenBack is what [Store.Undo] did.
type TakenBack struct {
	// Captures of which something was taken back, and Candidates that were.
	Captures   int64 `json:"captures"`
	Candidates int64 `json:"candidates"`
	// Kept are candidates that stay: they were handed over, or are claimed.
	Kept int64 `json:"kept"`
}

// Undo removes the candidates that a run has staged, except those that were handed
// over or are claimed. Its captures stay done, with outcome undone where nothing is
// left of them, so that the nightly does not redo them. It is refused to a run that
// is at work. It takes many transactions for a large run, and goes on where it was
// interrupted when it is called again.
func (s *Store) Undo(ctx context.Context, run int64, who string) (TakenBack, error) {
	var u TakenBack
	for after, more := int64(0), true; more; {
		var step TakenBack
		err := s.as(ctx, who, func(tx pgx.Tx) (err error) {
			step, after, more, err = undo(ctx, tx, run, after)
			return err
		})
		if err != nil {
			return u, err
		}
		u.Captures, u.Candidates, u.Kept = u.Captures+step.Captures, u.Candidates+step.Candidates, u.Kept+step.Kept
	}
	return u, nil
}

// undo takes back the next captures after the given one.
func undo(ctx context.Context, tx pgx.Tx, run, after int64) (u TakenBack, last int64, more bool, err error) {
	var extractor int16
	var state string
	err = tx.QueryRow(ctx, "select extractor_id, state from backfill.run where id = $1 for share", run).Scan(&extractor, &state)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return u, after, false, ErrNoRun
	case err != nil:
		return u, after, false, wrap("undoing", err)
	case state == "planning" || state == "running" || state == "pausing" || state == "cancelling":
		return u, after, false, &RunStateError{
			Message: fmt.Sprintf("run %d is %s: what it stages meanwhile would stay", run, state),
			Hint:    fmt.Sprintf("`backfill pause %d` or `backfill cancel %d` first.", run, run),
		}
	}
	var waiting bool
	if err := tx.QueryRow(ctx, `
		select exists (select from backfill.extraction
		               where run_id = $1 and extractor_id = $2 and state <> 'done' and state in ('retry', 'queued'))`, run, extractor).Scan(&waiting); err != nil {
		return u, after, false, wrap("undoing", err)
	}
	if waiting && (state == "succeeded" || state == "finished_with_errors") {
		return u, after, false, &RunStateError{
			Message: fmt.Sprintf("failures of run %d wait for another attempt: what is staged of them then would stay", run),
			Hint:    fmt.Sprintf("`backfill cancel %d` gives them up.", run),
		}
	}
	rows, err := tx.Query(ctx, `
		select capture_id from backfill.extraction
		where run_id = $1 and extractor_id = $2 and state = 'done' and outcome = 'staged' and capture_id > $3
		order by capture_id limit $4 for update`, run, extractor, after, undoCaptures)
	if err != nil {
		return u, after, false, wrap("undoing", err)
	}
	captures, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return u, after, false, wrap("undoing", err)
	}
	if len(captures) == 0 {
		return u, after, false, nil
	}
	removed, err := deleteCandidates(ctx, tx, extractor, captures)
	if err != nil {
		return u, after, false, err
	}
	u.Captures = int64(len(removed))
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
			insert into backfill.batch (extractor_id, run_id, prio, state, due, finished_at, version, ids, captures, staged, undone, candidates)
			select $2, $1, 1, 'done', null, now(), e.version, '{}', 0, -u.n, u.n, -$4::integer
			from backfill.extractor e, (select count(*) as n from undone) u where e.id = $2
		), kept as (
			select count(*) as n from backfill.staging s join backfill.extraction x using (capture_id, extractor_id)
			where s.extractor_id = $2 and s.capture_id = any ($3) and s.ord <= x.claimed_upto
		), noted as (
			insert into backfill.run_event (run_id, who, from_state, to_state, reason)
			select r.id, backfill.who(), r.state, r.state as unchanged,
			       format('undone: %s candidates of %s captures taken back, %s kept', $4::bigint, $5::bigint, kept.n)
			from backfill.run r, kept where r.id = $1
		)
		select n from kept`,
		run, extractor, captures, u.Candidates, u.Captures).Scan(&u.Kept)
	if err != nil {
		return u, after, false, wrap("undoing", err)
	}
	return u, captures[len(captures)-1], true, nil
}
