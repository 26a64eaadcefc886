package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
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
	// Order is that in which captures are planned and worked. Default Oldest.
	Order  Order
	Filter Filter
	// IDs narrow it to these captures. Nil: all.
	IDs      []int64
	Settings Settings
}

// ErrRunExists says that somebody else has started tonight's run.
var ErrRunExists = errors.New("this night's run exists already")

// ErrNoRun says that there is no such run.
var ErrNoRun = errors.New("there is no such run: `backfill runs` lists them")

// CreateRun records a run in state planning, which wakes the workers to plan it, and
// returns its number.
func (s *Store) CreateRun(ctx context.Context, r NewRun) (int64, error) {
	if err := r.Settings.Validate(); err != nil {
		return 0, err
	}
	var ids []int64
	if r.IDs != nil {
		ids = sorted(r.IDs)
	}
	var id int64
	err := s.pool.QueryRow(ctx, `
		insert into backfill.run (kind, extractor_id, reprocess, who, why, local_date, sort, filter, ids, settings)
		select $1, $2, $3, coalesce($4, current_user), $5, $6::date, $7, $8, $9, $10
		-- A conflict would use up a number.
		where not exists (select from backfill.run where kind = $1 and extractor_id = $2 and local_date = $6::date)
		on conflict (local_date, kind, extractor_id) do nothing returning id`,
		r.Kind, r.Extractor, r.Reprocess, null(r.Who), null(r.Why), night(r.LocalDate), cmp.Or(r.Order, Oldest), r.Filter, ids, r.Settings).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, ErrRunExists
	}
	if err != nil {
		return 0, wrap("creating a run", err)
	}
	return id, nil
}

// NightlyRun is the run that [ErrRunExists] is about.
func (s *Store) NightlyRun(ctx context.Context, r NewRun) (int64, error) {
	var id int64
	err := s.pool.QueryRow(ctx, "select id from backfill.run where kind = $1 and extractor_id = $2 and local_date = $3",
		r.Kind, r.Extractor, night(r.LocalDate)).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, ErrNoRun
	}
	if err != nil {
		return 0, wrap("looking for the nightly", err)
	}
	return id, nil
}

func night(date time.Time) *time.Time {
	if date.IsZero() {
		return nil
	}
	return &date
}

// Unfinished counts captures in batches of this version that are leased, or may be
// claimed within the next seconds as things are.
func (s *Store) Unfinished(ctx context.Context, extractor int16, version string) (int64, error) {
	var n int64
	err := s.pool.QueryRow(ctx, `
		select coalesce(sum(b.todo), 0)::bigint
		from backfill.batch b
		where b.extractor_id = $1 and b.version = $2
		  and (b.state = 'leased'
		       or b.due < now() + interval '10 seconds' and exists (select from backfill.workable_batch w where w.id = b.id)
		          and (b.prio < 2 or not exists (select from backfill.hold h where h.seen_at > now() - interval '1 minute')))`,
		extractor, version).Scan(&n)
	if err != nil {
		return 0, wrap("counting open work", err)
	}
	return n, nil
}

// stopRun moves a run from one of some states to another, for a reason that is its
// own.
func (s *Store) stopRun(ctx context.Context, run int64, state, reason string, from ...string) error {
	if _, err := s.pool.Exec(ctx, `
		update backfill.run set state = $2, error = $3 where id = $1 and state = any ($4)`, run, state, reason, from); err != nil {
		return wrap("ending the run", err)
	}
	return nil
}

// ExhaustRun ends a run whose budget is spent, until it is resumed.
func (s *Store) ExhaustRun(ctx context.Context, run int64, reason string) error {
	return s.stopRun(ctx, run, "budget_exhausted", reason, "planning", "running")
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
	Order       Order             `json:"order"`
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
	// Filter is a [Filter] as it was stored.
	Filter json.RawMessage `json:"filter"`
	// IDs is the number of captures it was narrowed to; nil is all.
	IDs      *int64   `json:"ids"`
	Settings Settings `json:"settings"`
}

// Finished reports whether the run has ended for good.
func (r Run) Finished() bool { return r.FinishedAt != nil }

// Rests reports whether nothing more happens to the run unless somebody resumes it, if
// that: it was paused, has reached a bound of its settings, or has ended.
func (r Run) Rests() bool {
	return r.Finished() || r.State == "paused" || r.State == "budget_exhausted" || r.State == "deadline_reached"
}

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
	select run, kind, extractor, reprocess, sort, state, who, why, batches, open_batches, total, done, candidates,
	       outcomes, cost::float8, created_at, planned_at, finished_at, error, filter, ids, settings
	from backfill.v_run`

func scanRun(row pgx.CollectableRow) (Run, error) {
	var r Run
	var outcomes, filter, settings []byte
	err := row.Scan(&r.ID, &r.Kind, &r.Extractor, &r.Reprocess, &r.Order, &r.State, &r.Who, &r.Why, &r.Batches, &r.OpenBatches,
		&r.Total, &r.Done, &r.Candidates, &outcomes, &r.Cost, &r.CreatedAt, &r.PlannedAt, &r.FinishedAt, &r.Error,
		&filter, &r.IDs, &settings)
	if err != nil {
		return r, err
	}
	r.Filter = filter
	return r, errors.Join(json.Unmarshal(outcomes, &r.Outcomes), json.Unmarshal(settings, &r.Settings))
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

// Event is something that happened to a run. Where From and To are the same state,
// Reason says what else was changed.
type Event struct {
	At     time.Time `json:"at" db:"at"`
	Who    string    `json:"who" db:"who"`
	From   string    `json:"from" db:"from_state"`
	To     string    `json:"to" db:"to_state"`
	Reason string    `json:"reason" db:"reason"`
}

// Events lists what happened to a run, in order.
func (s *Store) Events(ctx context.Context, run int64) ([]Event, error) {
	return collect[Event](ctx, s, "reading events", `
		select at, who, from_state, to_state, reason from backfill.run_event where run_id = $1 order by id`, run)
}
