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
	// Batches that were summed up: see [Store.Fold].
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
		              group by `+foldGroup+` having count(*) > 1) f) as batches
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
	}
	if done.Batches, err = s.fold(ctx, age, 2); err != nil {
		return done, err
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

// foldable are closed batches that ended longer ago than $1.
const foldable = "b.due is null and b.finished_at < now() - $1::interval"

// foldGroup is what batches have in common that are summed up: v_run tells retries
// within a run, which are no further captures, and failures to replace.
const foldGroup = "b.extractor_id, b.run_id, b.prio, b.mode, b.state"

// Folding of what workers leave behind: the latest minutes stay as they are, which
// tell the pace of a run, and so does what is not worth it.
const (
	foldAfter = 2 * time.Minute
	foldFrom  = 1000 // batches
)

// Fold sums up closed batches, so that views need not read every one there ever was:
// one row takes the place of a thousand or more that belong to the same run, or to
// none. v_status and v_run stay as they are.
func (s *Store) Fold(ctx context.Context) error {
	_, err := s.fold(ctx, foldAfter, foldFrom)
	return err
}

// fold sums up groups of at least so many batches that ended longer ago than age. It
// returns the number of batches that were summed up.
func (s *Store) fold(ctx context.Context, age time.Duration, from int) (int64, error) {
	var folded int64
	err := s.pool.QueryRow(ctx, `
		with groups as materialized (
			select `+foldGroup+` from backfill.batch b where `+foldable+` group by `+foldGroup+` having count(*) >= $2
		), old as (
			delete from backfill.batch b using groups g
			where b.extractor_id = g.extractor_id and coalesce(b.run_id, 0) = coalesce(g.run_id, 0) and b.prio = g.prio
			  and b.mode = g.mode and b.state = g.state and `+foldable+`
			returning b.*
		), sums as materialized (
			select `+foldGroup+`, jsonb_object_agg(key, n) as outcomes
			from (select `+foldGroup+`, o.key, sum(o.value::bigint) as n
			      from old b, jsonb_each_text(b.outcomes) o group by `+foldGroup+`, o.key) b
			group by `+foldGroup+`
		), added as (
			-- What was cancelled stays to do in the eyes of its run.
			insert into backfill.batch (extractor_id, version, prio, mode, run_id, state, due, created_at, started_at, finished_at, lease_no,
			    captures, batches, staged, empty, skipped, undone, candidates, found, outcomes, ids)
			select b.extractor_id, max(b.version), b.prio, b.mode, b.run_id, b.state, null, min(b.created_at), min(b.started_at), max(b.finished_at),
			    sum(b.lease_no), sum(b.captures), sum(b.batches), sum(b.staged), sum(b.empty), sum(b.skipped), sum(b.undone), sum(b.candidates), sum(b.found),
			    coalesce((select s.outcomes from sums s
			              where (s.extractor_id, coalesce(s.run_id, 0), s.prio, s.mode, s.state)
			                  = (b.extractor_id, coalesce(b.run_id, 0), b.prio, b.mode, b.state)), '{}'),
			    coalesce(range_agg(b.ids) filter (where b.run_id is not null), '{}')
			from old b group by `+foldGroup+`
		)
		select count(*) from old`, age, from).Scan(&folded)
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
