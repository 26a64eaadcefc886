package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// Priorities of a batch, the most urgent first.
const (
	PrioLive  int16 = 0 // a turn that was just inserted or changed
	PrioRetry int16 = 1 // a capture that failed before
	PrioRun   int16 = 2 // a backfill run or the nightly
)

// ErrLeaseLost says that the batch was claimed by somebody else, cancelled or
// closed since we claimed it. Whoever holds it now does the work.
var ErrLeaseLost = errors.New("the lease has moved on")

// Lease identifies one claim of a batch.
type Lease struct {
	BatchID int64
	// No is the fencing token: it rises with every claim.
	No int32
}

// Batch is a claimed batch.
type Batch struct {
	Lease
	RunID *int64
	Prio  int16
	// Replace overwrites results that are done; otherwise only missing ones are
	// written.
	Replace bool
	// Attempts counts claims without progress, this one included.
	Attempts int32
	// At is the capture an earlier claim had in hand when it vanished.
	At *int64
	// Room is set if the claim took one batch alone because runs are capped, and
	// this one's may have another leased.
	Room bool
	// IDs are the captures still to do, ascending.
	IDs []int64
}

// Claim says which batches to take.
type Claim struct {
	Extractor int16
	// Version is the extractor version this process can execute.
	Version string
	// MaxPrio is the least urgent priority to take.
	MaxPrio int16
	// Limit is the number of batches.
	Limit int
	// Lease is how long they are ours without a heartbeat.
	Lease time.Duration
	// Worker names this process.
	Worker string
}

// planOnce has a claim planned once a connection, along the indexes whatever the
// statistics say at that moment. Left to itself, the database plans it anew each
// time, which takes four times as long as the claim. A plan that was forced looks
// expensive enough to be compiled, for seconds, were that not forbidden.
const planOnce = `
	select set_config('plan_cache_mode', 'force_generic_plan', true), set_config('jit', 'off', true),
	       set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true)`

// lockClaims keeps runs from being called paused or cancelled while a claim that does
// not know of it yet is under way. Live turns are no part of runs.
const lockClaims = "select pg_advisory_xact_lock_shared(hashtextextended('backfill claims', $1)) where $2 > 0"

// lockCapped takes this slot's runs that are capped and whose lock is free, until
// the transaction ends: leases of such a run can only be counted by one claim at a
// time.
const lockCapped = `
	with capped as materialized (
		select id from backfill.run where extractor_id = $1 and state in ('planning', 'running') and settings ? 'concurrency'
	)
	select set_config('backfill.capped', coalesce((
		select array_agg(id)::text from capped where pg_try_advisory_xact_lock(hashtextextended('backfill run ' || id, 0))), '{}'), true)`

// claim takes one batch at a time where runs are capped: they were counted before.
const claim = `
	with blocked as materialized (
		select r.id from backfill.run r
		where r.extractor_id = $1 and r.state in ('planning', 'running') and r.settings ? 'concurrency'
		  and (r.id <> all (current_setting('backfill.capped')::bigint[])
		       or (select count(*) from backfill.batch l where l.run_id = r.id and l.state = 'leased' and l.due > now())
		          >= (r.settings->'concurrency')::integer)
	)
	update backfill.batch b
	set state = 'leased', attempts = b.attempts + 1, lease_no = b.lease_no + 1,
	    due = now() + $5, worker = $6, started_at = coalesce(b.started_at, now())
	from (select id from backfill.due_batch
	      where extractor_id = $1 and prio = $2 and version = $3
	        and (run_id is null or run_id <> all (array(select id from blocked)))
	      order by due, id
	      limit case when current_setting('backfill.capped') = '{}' then $4 else 1 end
	      for update skip locked) d
	where b.id = d.id
	returning b.id, b.lease_no, b.run_id, b.prio, b.mode = 'replace', b.attempts, b.at,
	    current_setting('backfill.capped') <> '{}' and not exists (
	        select from backfill.run r where r.id = b.run_id and r.settings ? 'concurrency'
	          and (select count(*) from backfill.batch l where l.run_id = r.id and l.state = 'leased' and l.due > now()) + 1
	              >= (r.settings->'concurrency')::integer),
	    array(select generate_series(lower(r), upper(r) - 1) from unnest(b.ids) r)`

// Claim leases the most urgent due batches, oldest first, all of one priority.
// The attempt is committed before any work starts, so that a capture which kills
// the process still burns it.
func (s *Store) Claim(ctx context.Context, c Claim) ([]Batch, error) {
	for prio := PrioLive; prio <= c.MaxPrio; prio++ {
		var batches []Batch
		// One transaction, one round trip.
		work := &pgx.Batch{}
		work.Queue(planOnce)
		work.Queue(lockClaims, c.Extractor, prio)
		work.Queue(lockCapped, c.Extractor)
		work.Queue(claim, c.Extractor, prio, c.Version, c.Limit, c.Lease, c.Worker).Query(func(rows pgx.Rows) (err error) {
			batches, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (Batch, error) {
				var b Batch
				err := row.Scan(&b.BatchID, &b.No, &b.RunID, &b.Prio, &b.Replace, &b.Attempts, &b.At, &b.Room, &b.IDs)
				return b, err
			})
			return err
		})
		if err := s.pool.SendBatch(ctx, work).Close(); err != nil {
			return nil, wrap("claiming batches", err)
		}
		if len(batches) > 0 {
			return batches, nil
		}
	}
	return nil, nil
}

// AnyDue reports whether a batch of this version may be claimed now.
func (s *Store) AnyDue(ctx context.Context, extractor int16, version string, maxPrio int16) (bool, error) {
	var due bool
	err := s.pool.QueryRow(ctx, `
		select exists (select from backfill.due_batch where extractor_id = $1 and version = $2 and prio <= $3)`,
		extractor, version, maxPrio).Scan(&due)
	if err != nil {
		return false, wrap("looking for due batches", err)
	}
	return due, nil
}

// Extend is the heartbeat: it prolongs leases that are still ours.
func (s *Store) Extend(ctx context.Context, leases []Lease, by time.Duration) error {
	ids, nos := split(leases)
	_, err := s.pool.Exec(ctx, `
		update backfill.batch b set due = now() + $3 from `+ours+` l where b.id = l.id`, ids, nos, by)
	if err != nil {
		return wrap("extending leases", err)
	}
	return nil
}

// StepInto records the capture in hand, in single-step mode, before it is worked:
// should it take the process down, the next claim knows which one it was. It fails
// with [ErrHalted].
func (s *Store) StepInto(ctx context.Context, l Lease, capture int64, lease time.Duration) error {
	tag, err := s.pool.Exec(ctx, `
		update backfill.batch set at = $3, due = now() + $4
		where id = $1 and lease_no = $2 and state = 'leased'
		  and exists (select from backfill.workable_batch w where w.id = $1)`, l.BatchID, l.No, capture, lease)
	if err != nil {
		return wrap("recording the capture in hand", err)
	}
	if tag.RowsAffected() == 0 {
		return ErrHalted
	}
	return nil
}

// SetAside moves the capture in hand into a batch of its own, which is due at
// once and starts in single-step mode, so that its neighbours go on without it.
func (s *Store) SetAside(ctx context.Context, l Lease) error {
	tag, err := s.pool.Exec(ctx, `
		with source as (
			update backfill.batch b
			set ids = b.ids - int8multirange(int8range(b.at, b.at, '[]')), captures = b.captures - 1, at = null
			from (select id, at from backfill.batch where id = $1 and lease_no = $2 and state = 'leased'
			      and at is not null for update) old
			where b.id = old.id
			returning old.at, b.created_at, b.extractor_id, b.version, b.prio, b.mode, b.run_id
		)
		insert into backfill.batch (created_at, extractor_id, version, prio, mode, run_id, attempts, captures, ids)
		select created_at, extractor_id, version, prio, mode, run_id, 1, 1, int8multirange(int8range(at, at, '[]')) from source`,
		l.BatchID, l.No)
	if err != nil {
		return wrap("setting a capture aside", err)
	}
	if tag.RowsAffected() == 0 {
		return ErrLeaseLost
	}
	return nil
}

// ours are the batches $1 whose lease is still that of $2, locked in the order that
// everybody locks them in.
const ours = `(
	select b.id from backfill.batch b join unnest($1::bigint[], $2::integer[]) l(id, no) on b.id = l.id
	where b.lease_no = l.no and b.state = 'leased' order by b.id for update of b)`

// Postpone gives batches back unfinished, to be claimed again after the delay.
// The attempt counts, unless it is given back too: then the capture in hand is
// not under suspicion either.
func (s *Store) Postpone(ctx context.Context, leases []Lease, delay time.Duration, reason string, giveBack bool) error {
	ids, nos := split(leases)
	_, err := s.pool.Exec(ctx, `
		update backfill.batch b
		set state = 'pending', error = $4, attempts = case when $5 then greatest(b.attempts - 1, 0) else b.attempts end,
		    at = case when not $5 then b.at end, due = now() + $3
		from `+ours+` l where b.id = l.id`, ids, nos, delay, reason, giveBack)
	if err != nil {
		return wrap("postponing batches", err)
	}
	return nil
}

// Return gives back batches that were not touched, as they were before the claim.
func (s *Store) Return(ctx context.Context, leases []Lease) error {
	ids, nos := split(leases)
	_, err := s.pool.Exec(ctx, `
		update backfill.batch b set state = 'pending', attempts = greatest(b.attempts - 1, 0), due = now()
		from `+ours+` l where b.id = l.id`, ids, nos)
	if err != nil {
		return wrap("returning batches", err)
	}
	return nil
}

// Wake makes sure that a drain job of this queue starts after the delay.
func (s *Store) Wake(ctx context.Context, queue string, delay time.Duration) error {
	if _, err := s.pool.Exec(ctx, "select backfill.wake($1, now() + $2)", queue, delay); err != nil {
		return wrap("waking queue "+queue, err)
	}
	return nil
}

// Sweep requeues failed captures whose time has come, ends finished runs and
// wakes every queue with due work. It returns the number of captures requeued.
func (s *Store) Sweep(ctx context.Context) (int64, error) {
	var n int64
	if err := s.pool.QueryRow(ctx, "select backfill.sweep()").Scan(&n); err != nil {
		return 0, wrap("sweeping", err)
	}
	return n, nil
}

func split(leases []Lease) (ids []int64, nos []int32) {
	for _, l := range leases {
		ids, nos = append(ids, l.BatchID), append(nos, l.No)
	}
	return ids, nos
}
