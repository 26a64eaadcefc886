package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// Reprocess says which captures a run takes.
type Reprocess string

// Reprocess modes. Stale and all replace results that are there; missing and
// failed only add.
const (
	ReprocessMissing Reprocess = "missing" // no result yet
	ReprocessFailed  Reprocess = "failed"  // dead
	ReprocessStale   Reprocess = "stale"   // done by another version
	ReprocessAll     Reprocess = "all"
)

// Kinds of runs.
const (
	KindRun     = "run"
	KindNightly = "nightly"
)

// NewRun describes a run to be planned.
type NewRun struct {
	Kind      string
	Extractor int16
	Reprocess Reprocess
	// Who and Why are for the record; Who defaults to the database user.
	Who, Why string
	// LocalDate makes a nightly unique for its night. Zero otherwise.
	LocalDate time.Time
}

// ErrRunExists says that somebody else has started tonight's run.
var ErrRunExists = errors.New("this night's run exists already")

// ErrNoRun says that there is no such run.
var ErrNoRun = errors.New("there is no such run: `backfill runs` lists them")

// CreateRun records a run in state planning and returns its number.
func (s *Store) CreateRun(ctx context.Context, r NewRun) (int64, error) {
	var night *time.Time
	if !r.LocalDate.IsZero() {
		night = &r.LocalDate
	}
	var id int64
	err := s.pool.QueryRow(ctx, `
		insert into backfill.run (kind, extractor_id, reprocess, who, why, local_date)
		select $1, $2, $3, coalesce($4, current_user), $5, $6::date
		-- A conflict would use up a number.
		where not exists (select from backfill.run where kind = $1 and extractor_id = $2 and local_date = $6::date)
		on conflict (local_date, kind, extractor_id) do nothing returning id`,
		r.Kind, r.Extractor, r.Reprocess, null(r.Who), null(r.Why), night).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, ErrRunExists
	}
	if err != nil {
		return 0, wrap("creating a run", err)
	}
	return id, nil
}

// planBatches is the number of batches that are planned in one transaction.
const planBatches = 50

// Plan writes a run's batches, in short transactions that each take up where the
// last one stopped, and then sets it running.
func (s *Store) Plan(ctx context.Context, run int64) error {
	for {
		more, err := s.planChunk(ctx, run)
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	if _, err := s.pool.Exec(ctx, `
		update backfill.run set state = 'running', planned_at = now() where id = $1 and state = 'planning'`, run); err != nil {
		return wrap("starting the run", err)
	}
	return s.SettleRun(ctx, run)
}

func (s *Store) planChunk(ctx context.Context, run int64) (more bool, err error) {
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		var slot struct {
			id   int16
			size int
			name string
			mode Reprocess
		}
		var kind string
		var after int64
		err := tx.QueryRow(ctx, `
			select e.id, e.batch_size, e.name, r.reprocess, r.kind, r.planned_upto
			from backfill.run r join backfill.extractor e on e.id = r.extractor_id
			where r.id = $1 and r.state = 'planning' for no key update of r`, run).
			Scan(&slot.id, &slot.size, &slot.name, &slot.mode, &kind, &after)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil // paused or cancelled while it was planned
		}
		if err != nil {
			return wrap("planning", err)
		}
		selection := selections[slot.mode]
		if kind == KindNightly {
			selection = nightlySelection
		}
		limit := slot.size * planBatches
		var picked int
		var last int64
		err = tx.QueryRow(ctx, `
			with open as materialized (
			    select coalesce(range_agg(b.ids), '{}') as ids
			    from backfill.batch b where b.extractor_id = $1 and b.due is not null
			), picked as (`+selection.sql+`), requeued as (
			    update backfill.extraction x set state = 'queued', attempts = 0, next_attempt_at = null
			    from picked p where x.capture_id = p.id and x.extractor_id = $1 and x.state = 'dead'
			), numbered as (
			    select p.id, (row_number() over (order by p.id) - 1) / e.batch_size as chunk, e.version
			    from picked p join backfill.extractor e on e.id = $1
			), queued as (
			    insert into backfill.batch (extractor_id, version, prio, mode, run_id, ids, captures)
			    select $1, version, 2, $4, $5, range_agg(int8range(id, id, '[]')), count(*)
			    from numbered group by version, chunk
			)
			select count(*), coalesce(max(id), 0) from picked`,
			slot.id, after, limit, selection.mode, run).Scan(&picked, &last)
		if err != nil {
			return wrap("planning", err)
		}
		if picked == 0 {
			return nil
		}
		if _, err := tx.Exec(ctx, `update backfill.run set planned_upto = $2 where id = $1`, run, last); err != nil {
			return wrap("planning", err)
		}
		more = picked == limit
		if _, err := tx.Exec(ctx, "select backfill.wake($1)", slot.name); err != nil {
			return wrap("planning", err)
		}
		return nil
	})
	return more, err
}

// selection picks captures behind $2, at most $3, for slot $1, leaving out those
// in open batches.
type selection struct{ sql, mode string }

//nolint:gochecknoglobals // a table of statements
var selections = map[Reprocess]selection{
	ReprocessMissing: {mode: "missing", sql: `
		select i.id from backfill.intake i
		where i.id > $2 and not (select ids from open) @> i.id
		  and not exists (select from backfill.extraction x
		                  where x.capture_id = i.id and x.extractor_id = $1 and x.state <> 'queued')
		order by i.id limit $3`},
	ReprocessFailed: {mode: "missing", sql: `
		select x.capture_id as id from backfill.extraction x
		where x.extractor_id = $1 and x.state = 'dead' and x.capture_id > $2
		  and not (select ids from open) @> x.capture_id
		order by x.capture_id limit $3`},
	ReprocessStale: {mode: "replace", sql: `
		select x.capture_id as id from backfill.extraction x
		join backfill.extractor e on e.id = x.extractor_id and e.version <> x.version
		where x.extractor_id = $1 and x.state = 'done' and x.capture_id > $2
		  and not (select ids from open) @> x.capture_id
		order by x.capture_id limit $3`},
	ReprocessAll: {mode: "replace", sql: `
		select i.id from backfill.intake i where i.id > $2
		order by i.id limit $3`},
}

// nightlySelection is the gap finder: what has no result, and what failed for a
// reason that may have passed. A capture that took the process down or that
// Postgres refused is not tried again every night. Captures are compared with
// the ledger, never with an id watermark: ids commit out of order.
//
//nolint:gochecknoglobals // a statement
var nightlySelection = selection{mode: "missing", sql: `
	select i.id from backfill.intake i
	join backfill.extractor e on e.id = $1 and i.created_at >= e.active_from
	where i.id > $2 and not (select ids from open) @> i.id
	  and not exists (select from backfill.extraction x
	                  where x.capture_id = i.id and x.extractor_id = $1 and x.state <> 'queued'
	                    and (x.state <> 'dead' or x.outcome in ('crashed', 'data_error', 'too_long')))
	order by i.id limit $3`}

// NightlySlots lists the extractors that the nightly looks after.
func (s *Store) NightlySlots(ctx context.Context) ([]int16, error) {
	rows, err := s.pool.Query(ctx, `
		select id from backfill.extractor where active_from is not null and version is not null order by id`)
	if err != nil {
		return nil, wrap("listing extractors", err)
	}
	slots, err := pgx.CollectRows(rows, pgx.RowTo[int16])
	if err != nil {
		return nil, wrap("listing extractors", err)
	}
	return slots, nil
}

// Unfinished counts captures in batches of this version that are leased or may be
// claimed within the next seconds.
func (s *Store) Unfinished(ctx context.Context, extractor int16, version string) (int64, error) {
	var n int64
	err := s.pool.QueryRow(ctx, `
		select coalesce(sum(backfill.size(b.ids)), 0)::bigint
		from backfill.batch b left join backfill.run r on r.id = b.run_id
		where b.extractor_id = $1 and b.version = $2
		  and (b.state = 'leased'
		       or b.due < now() + interval '10 seconds' and (r.id is null or r.state in ('planning', 'running')))`,
		extractor, version).Scan(&n)
	if err != nil {
		return 0, wrap("counting open work", err)
	}
	return n, nil
}

// PlanningRuns lists runs that are still being planned after the given age. Several
// planners of one run take turns, so it does no harm to join in.
func (s *Store) PlanningRuns(ctx context.Context, age time.Duration) ([]int64, error) {
	rows, err := s.pool.Query(ctx, `
		select id from backfill.run where state = 'planning' and created_at < now() - $1::interval order by id`, age)
	if err != nil {
		return nil, wrap("listing runs", err)
	}
	runs, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, wrap("listing runs", err)
	}
	return runs, nil
}

// Fold sums up a slot's closed batches that belong to no run and ended longer ago
// than age: one row takes their place, and v_status stays as it is.
func (s *Store) Fold(ctx context.Context, extractor int16, age time.Duration) error {
	_, err := s.pool.Exec(ctx, `
		with old as (
			delete from backfill.batch
			where extractor_id = $1 and due is null and run_id is null and finished_at < now() - $2::interval
			returning *
		), sums as (
			select key, sum(value::bigint) as n from old, jsonb_each_text(outcomes) group by key
		)
		insert into backfill.batch (extractor_id, version, prio, state, due, created_at, finished_at, captures,
		    staged, empty, skipped, candidates, found, outcomes, ids)
		select $1, max(version), 0, 'done', null, min(created_at), max(finished_at), sum(captures),
		    sum(staged), sum(empty), sum(skipped), sum(candidates), sum(found),
		    (select coalesce(jsonb_object_agg(key, n), '{}') from sums), '{}'
		from old having count(*) > 0`, extractor, age)
	if err != nil {
		return wrap("folding batches", err)
	}
	return nil
}

// SettleRun moves a run on that has come to rest: to its end, or to paused or
// cancelled where that was asked for.
func (s *Store) SettleRun(ctx context.Context, run int64) error {
	if _, err := s.pool.Exec(ctx, "select backfill.settle_run($1)", run); err != nil {
		return wrap("settling the run", err)
	}
	return nil
}

// Run is a row of v_run.
type Run struct {
	ID          int64             `json:"run"`
	Kind        string            `json:"kind"`
	Extractor   string            `json:"extractor"`
	Reprocess   Reprocess         `json:"reprocess"`
	State       string            `json:"state"`
	Who         string            `json:"who"`
	Why         *string           `json:"why"`
	Batches     int64             `json:"batches"`
	OpenBatches int64             `json:"open_batches"`
	Total       int64             `json:"total"`
	Done        int64             `json:"done"`
	Candidates  int64             `json:"candidates"`
	Outcomes    map[Outcome]int64 `json:"outcomes"`
	Cost        *float64          `json:"cost"`
	CreatedAt   time.Time         `json:"created_at"`
	PlannedAt   *time.Time        `json:"planned_at"`
	FinishedAt  *time.Time        `json:"finished_at"`
	Error       *string           `json:"error"`
}

// Finished reports whether the run will make no further progress by itself.
func (r Run) Finished() bool { return r.FinishedAt != nil }

// Failed counts captures whose result is not a final one.
func (r Run) Failed() int64 {
	var n int64
	for o, c := range r.Outcomes {
		if !o.final() {
			n += c
		}
	}
	return n
}

const selectRun = `
	select run, kind, extractor, reprocess, state, who, why, batches, open_batches, total, done, candidates,
	       outcomes, cost::float8, created_at, planned_at, finished_at, error
	from backfill.v_run`

func scanRun(row pgx.CollectableRow) (Run, error) {
	var r Run
	var outcomes []byte
	err := row.Scan(&r.ID, &r.Kind, &r.Extractor, &r.Reprocess, &r.State, &r.Who, &r.Why, &r.Batches, &r.OpenBatches,
		&r.Total, &r.Done, &r.Candidates, &outcomes, &r.Cost, &r.CreatedAt, &r.PlannedAt, &r.FinishedAt, &r.Error)
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(outcomes, &r.Outcomes)
}

// Run reads one run; ErrNoRun when there is none.
func (s *Store) Run(ctx context.Context, id int64) (Run, error) {
	rows, err := s.pool.Query(ctx, selectRun+" where run = $1", id)
	if err != nil {
		return Run{}, wrap("reading the run", err)
	}
	r, err := pgx.CollectExactlyOneRow(rows, scanRun)
	if errors.Is(err, pgx.ErrNoRows) {
		return Run{}, ErrNoRun
	}
	if err != nil {
		return Run{}, wrap("reading the run", err)
	}
	return r, nil
}

// Runs lists runs, newest first.
func (s *Store) Runs(ctx context.Context, limit int) ([]Run, error) {
	rows, err := s.pool.Query(ctx, selectRun+" order by run desc limit $1", limit)
	if err != nil {
		return nil, wrap("reading runs", err)
	}
	runs, err := pgx.CollectRows(rows, scanRun)
	if err != nil {
		return nil, wrap("reading runs", err)
	}
	return runs, nil
}
