package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// retryCaptures is the number of captures that are queued in one transaction.
const retryCaptures = 10_000

// RetryFilter picks failed captures. Fields that are set must all match.
type RetryFilter struct {
	RunID   int64
	Outcome Outcome
	IDs     []int64
}

// Retry puts failed captures, dead ones and those that wait for their next
// attempt, into the queue at once, with all attempts before them. It returns
// their number, also after an error. They stay their runs', whose history says so and
// whose bounds hold for them, but for those of a run that was cancelled or failed:
// nothing more is done for that one.
func (s *Store) Retry(ctx context.Context, who string, f RetryFilter) (int64, error) {
	var all int64
	for last := (retried{}); ; {
		var step []retried
		err := s.as(ctx, who, func(tx pgx.Tx) (err error) {
			step, err = f.retry(ctx, tx, last)
			return err
		})
		if err != nil || len(step) == 0 {
			return all, err
		}
		last = step[len(step)-1]
		all += int64(len(step))
	}
}

// Waiting counts the failures of a run that wait for another attempt, or are queued
// for it.
func (s *Store) Waiting(ctx context.Context, run int64) (int64, error) {
	var n int64
	if err := s.pool.QueryRow(ctx, `
		select count(*) from backfill.extraction x join backfill.run r on r.id = x.run_id and r.extractor_id = x.extractor_id
		where r.id = $1 and x.state <> 'done' and x.state in ('retry', 'queued')`, run).Scan(&n); err != nil {
		return 0, wrap("counting failures that wait", err)
	}
	return n, nil
}

// retried is a failure that was queued.
type retried struct {
	Capture   int64 `db:"capture_id"`
	Extractor int16 `db:"extractor_id"`
}

// retry queues the next failures after one, in the ledger's order.
func (f RetryFilter) retry(ctx context.Context, tx pgx.Tx, after retried) ([]retried, error) {
	rows, err := tx.Query(ctx, `
		with picked as (
			select x.capture_id, x.extractor_id, r.id as run_id, coalesce(r.state in ('cancelling', 'cancelled', 'failed'), false) as over
			from backfill.extraction x left join backfill.run r on r.id = x.run_id
			where x.state in ('dead', 'retry') and (x.capture_id, x.extractor_id) > ($4, $5)
			  and ($1 = 0 or x.run_id = $1) and ($2 = '' or x.outcome = $2) and ($3::bigint[] is null or x.capture_id = any ($3))
			order by x.capture_id, x.extractor_id limit $6 for update of x
		), queued as (
			update backfill.extraction x
			set state = 'retry', attempts = 0, next_attempt_at = now(), run_id = case when not p.over then p.run_id end
			from picked p where x.capture_id = p.capture_id and x.extractor_id = p.extractor_id
		), noted as (
			insert into backfill.run_event (run_id, who, from_state, to_state, reason)
			select r.id, backfill.who(), r.state, r.state as unchanged,
			       format('%s of its failures are tried again%s', count(*), case when p.over then ', outside of it' else '' end)
			from picked p join backfill.run r on r.id = p.run_id group by r.id, r.state, p.over
		)
		select capture_id, extractor_id from picked order by capture_id, extractor_id`, f.RunID, f.Outcome, f.IDs, after.Capture, after.Extractor, retryCaptures)
	if err != nil {
		return nil, wrap("retrying", err)
	}
	step, err := pgx.CollectRows(rows, pgx.RowToStructByName[retried])
	if err != nil {
		return nil, wrap("retrying", err)
	}
	for swept := int64(len(step)); swept > 0; {
		if err := tx.QueryRow(ctx, "select backfill.sweep()").Scan(&swept); err != nil {
			return nil, wrap("retrying", err)
		}
	}
	return step, nil
}
