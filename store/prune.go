package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// pruneCaptures is the number of captures whose candidates go in one transaction.
const pruneCaptures = 1000

// Pruned is what [Store.Prune] removed, or would remove, and what it kept.
type Pruned struct {
	// Captures whose candidates were removed, and Candidates that were, with
	// their entries in the entity index.
	Captures   int64 `json:"captures" db:"captures"`
	Candidates int64 `json:"candidates" db:"candidates"`
	// Batches that were summed up: one row takes their place for each run, and one
	// for each slot.
	Batches int64 `json:"batches" db:"batches"`
	// Waiting are candidates that nobody has taken over, Younger those that were
	// taken over since.
	Waiting int64 `json:"waiting" db:"waiting"`
	Younger int64 `json:"younger" db:"younger"`
}

// Prunable counts what [Store.Prune] would remove and keep now.
func (s *Store) Prunable(ctx context.Context, age time.Duration) (Pruned, error) {
	p, err := collect[Pruned](ctx, s, "looking for what is old", `
		select count(distinct (s.capture_id, s.extractor_id)) filter (where `+handedOver+` and x.handed_at < now() - $1::interval) as captures,
		       count(*) filter (where `+handedOver+` and x.handed_at < now() - $1::interval) as candidates,
		       count(*) filter (where not `+handedOver+`) as waiting,
		       count(*) filter (where `+handedOver+` and x.handed_at >= now() - $1::interval) as younger,
		       (select coalesce(sum(n), 0)::bigint
		        from (select count(*) as n from backfill.batch b where `+foldable+`
		              group by b.extractor_id, b.run_id, b.prio having count(*) > 1) f) as batches
		from backfill.staging s join backfill.extraction x using (capture_id, extractor_id)`, age)
	if err != nil {
		return Pruned{}, err
	}
	return p[0], nil
}

// Prune removes candidates that were handed over longer ago than age, in short
// transactions, and sums up closed batches that are as old. What stays: captures,
// the ledger, which keeps the fingerprints so that nothing is staged again, and
// runs with their numbers. On an error it returns what was removed until then.
func (s *Store) Prune(ctx context.Context, age time.Duration) (Pruned, error) {
	var done Pruned
	slots, err := s.slotIDs(ctx)
	if err != nil {
		return done, err
	}
	for _, slot := range slots {
		for after, more := int64(0), true; more; {
			if after, more, err = s.pruneChunk(ctx, slot, age, after, &done); err != nil {
				return done, err
			}
		}
		n, err := s.fold(ctx, slot, age, true)
		if err != nil {
			return done, err
		}
		done.Batches += n
	}
	left, err := s.Prunable(ctx, age)
	done.Waiting, done.Younger = left.Waiting, left.Younger
	return done, err
}

// handedOver is what may go of a candidate s with the ledger row x.
const handedOver = "s.ord <= x.handed_upto"

func (s *Store) pruneChunk(ctx context.Context, extractor int16, age time.Duration, after int64, done *Pruned) (last int64, more bool, err error) {
	var captures []int64
	candidates := 0
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		// Rows that a consumer or a worker holds are left to the next time.
		rows, err := tx.Query(ctx, `
			select x.capture_id from backfill.extraction x
			where x.extractor_id = $1 and x.capture_id > $2 and x.handed_at < now() - $3::interval
			  and exists (select from backfill.staging s
			              where s.capture_id = x.capture_id and s.extractor_id = x.extractor_id and `+handedOver+`)
			order by x.capture_id limit $4 for no key update of x skip locked`, extractor, after, age, pruneCaptures)
		if err != nil {
			return wrap("pruning", err)
		}
		if captures, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil {
			return wrap("pruning", err)
		}
		if len(captures) == 0 {
			return nil
		}
		if _, err := tx.Exec(ctx, `
			update backfill.extraction x
			set pruned = coalesce(x.pruned, '{}') || (
			    select array_agg(s.fingerprint order by s.ord) from backfill.staging s
			    where s.capture_id = x.capture_id and s.extractor_id = x.extractor_id and `+handedOver+`)
			where x.extractor_id = $1 and x.capture_id = any ($2)`, extractor, captures); err != nil {
			return wrap("pruning", err)
		}
		removed, err := deleteWhere(ctx, tx, handedOver, extractor, captures)
		if err != nil {
			return err
		}
		for _, n := range removed {
			candidates += n
		}
		// A closed batch carries the change to the net counts.
		if _, err := tx.Exec(ctx, `
			insert into backfill.batch (extractor_id, version, prio, state, due, finished_at, ids, captures, candidates)
			select e.id, coalesce(e.version, ''), 0, 'done', null, now(), '{}', 0, -$2::integer
			from backfill.extractor e where e.id = $1`, extractor, candidates); err != nil {
			return wrap("pruning", err)
		}
		return nil
	})
	if err != nil || len(captures) == 0 {
		return after, false, err
	}
	done.Captures += int64(len(captures))
	done.Candidates += int64(candidates)
	return captures[len(captures)-1], len(captures) == pruneCaptures, nil
}

// foldable are closed batches older than $1 whose run, if they have one, has ended
// as long ago.
const foldable = `
	b.due is null and b.finished_at < now() - $1::interval
	and (b.run_id is null
	     or exists (select from backfill.run r where r.id = b.run_id and r.finished_at < now() - $1::interval))`

// Fold sums up a slot's closed batches that belong to no run and ended longer ago
// than age: one row takes their place, and v_status stays as it is.
func (s *Store) Fold(ctx context.Context, extractor int16, age time.Duration) error {
	_, err := s.fold(ctx, extractor, age, false)
	return err
}

// fold also takes the batches of runs if asked to, for each run by itself: v_run
// stays as it is too. It returns the number of batches that were summed up.
func (s *Store) fold(ctx context.Context, extractor int16, age time.Duration, runs bool) (int64, error) {
	var folded int64
	err := s.pool.QueryRow(ctx, `
		with groups as materialized (
			-- Retries within a run are no further captures: v_run tells them apart.
			select b.run_id, b.prio from backfill.batch b
			where b.extractor_id = $2 and ($3 or b.run_id is null) and `+foldable+`
			group by b.run_id, b.prio having count(*) > 1
		), old as (
			delete from backfill.batch b using groups g
			where b.extractor_id = $2 and b.run_id is not distinct from g.run_id and b.prio = g.prio and `+foldable+`
			returning b.*
		), sums as (
			select run_id, prio, jsonb_object_agg(key, n) as outcomes
			from (select run_id, prio, key, sum(value::bigint) as n
			      from old, jsonb_each_text(outcomes) group by run_id, prio, key) o
			group by run_id, prio
		), added as (
			-- What was cancelled stays to do in the eyes of its run.
			insert into backfill.batch (extractor_id, version, prio, run_id, state, due, created_at, started_at, finished_at, captures,
			    batches, staged, empty, skipped, candidates, found, outcomes, ids)
			select $2, max(o.version), o.prio, o.run_id, case when bool_and(o.state = 'done') then 'done' else 'cancelled' end,
			    null, min(o.created_at), min(o.started_at), max(o.finished_at), sum(o.captures),
			    sum(o.batches), sum(o.staged), sum(o.empty), sum(o.skipped), sum(o.candidates), sum(o.found),
			    coalesce((select s.outcomes from sums s where s.run_id is not distinct from o.run_id and s.prio = o.prio), '{}'),
			    coalesce(range_agg(o.ids) filter (where o.state <> 'done' and o.run_id is not null), '{}')
			from old o group by o.run_id, o.prio
		)
		select count(*) from old`, age, extractor, runs).Scan(&folded)
	if err != nil {
		return 0, wrap("summing up batches", err)
	}
	return folded, nil
}

func (s *Store) slotIDs(ctx context.Context) ([]int16, error) {
	rows, err := s.pool.Query(ctx, "select id from backfill.extractor order by id")
	if err != nil {
		return nil, wrap("listing extractors", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int16])
	if err != nil {
		return nil, wrap("listing extractors", err)
	}
	return ids, nil
}
