package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
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

// Replaces reports whether results that are there are replaced.
func (r Reprocess) Replaces() bool { return selections[r].mode == "replace" }

// Order is the order in which a run takes captures: by id, that is by when they
// were stored.
type Order string

// Orders. Oldest is the default.
const (
	Oldest Order = "oldest"
	Newest Order = "newest"
)

// Filter narrows what a run takes. The zero value takes everything.
type Filter struct {
	// Since and Until bound the time a capture occurred or, where that is unknown,
	// was stored: from Since on, and before Until. Zero is no bound.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Sources are the sources to take. Empty: all.
	Sources []string `json:"sources,omitempty"`
	// Limit is the number of captures to take, the first ones in the run's order.
	// 0: all.
	Limit int64 `json:"limit,omitempty"`
	// Sample is the share of captures to take, up to 1. A capture is in it or not,
	// whenever it is drawn, and a smaller sample is a part of a larger one. 0: all.
	Sample float64 `json:"sample,omitempty"`
}

// scope is what a run takes, and how far it has come.
type scope struct {
	slot   Extractor
	kind   string
	mode   Reprocess
	order  Order
	filter Filter
	// ids are ascending; nil is every capture.
	ids []int64
	// size is the number of captures in a batch.
	size int
	// run is 0 where there is none yet.
	run int64
	// upto is the last id that was looked at, nil at first, and taken the number of
	// captures that were taken so far.
	upto  *int64
	taken int64
}

// narrow sets the filter from a run's row.
func (s *scope) narrow(filter []byte, ids []int64) error {
	if err := json.Unmarshal(filter, &s.filter); err != nil {
		return fmt.Errorf("its filter cannot be read: %w", err)
	}
	if ids != nil {
		s.ids = sorted(ids)
	}
	return nil
}

// sorted returns ids in ascending order, each once.
func sorted(ids []int64) []int64 {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return slices.Compact(ids)
}

// reach bounds one step through the captures: how many are looked at and how many
// are taken, in whole batches.
type reach struct{ look, take int }

// step is such that it takes a fraction of a second: a pause waits for it.
//
//nolint:gochecknoglobals // a constant
var step = reach{look: 50_000, take: 50_000}

// span is a stretch of capture ids, both ends included.
type span struct {
	low, high int64
	// ids are the captures in it, where they were named; nil is all.
	ids []int64
	// last is set if there is nothing behind it.
	last bool
}

// byIndex has a step go through the indexes, which where they are vacuumed it need
// not leave, and leaves the other cores to live turns. Plans forced like that look
// expensive enough to be compiled, which takes longer than they do.
func byIndex(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, "set local jit = off; set local enable_seqscan = off; set local enable_bitmapscan = off; set local max_parallel_workers_per_gather = 0")
	return err
}

// next is the stretch to look at after upto, in the run's order. It is empty at the
// end.
func (s *scope) next(ctx context.Context, tx pgx.Tx, look int) (span, error) {
	if s.ids != nil {
		return s.nextIDs(look), nil
	}
	sql, upto := "select id from backfill.intake where id > $1 order by id limit $2", int64(math.MinInt64)
	if s.order == Newest {
		sql, upto = "select id from backfill.intake where id < $1 order by id desc limit $2", math.MaxInt64
	}
	if s.upto != nil {
		upto = *s.upto
	}
	var w span
	var n int
	err := tx.QueryRow(ctx, "select coalesce(min(id), 1), coalesce(max(id), 0), count(*) from ("+sql+") w", upto, look).Scan(&w.low, &w.high, &n)
	if err != nil {
		return w, err
	}
	w.last = n < look
	return w, nil
}

func (s *scope) nextIDs(look int) span {
	rest := s.ids
	switch {
	case s.upto == nil:
	case s.order == Newest:
		i, _ := slices.BinarySearch(rest, *s.upto)
		rest = rest[:i]
	default:
		i, found := slices.BinarySearch(rest, *s.upto)
		if found {
			i++
		}
		rest = rest[i:]
	}
	w := span{low: 1, ids: rest, last: len(rest) <= look}
	if !w.last && s.order == Newest {
		w.ids = rest[len(rest)-look:]
	} else if !w.last {
		w.ids = rest[:look]
	}
	if len(w.ids) > 0 {
		w.low, w.high = w.ids[0], w.ids[len(w.ids)-1]
	}
	return w
}

// end is the last id of a stretch in the run's order.
func (s *scope) end(w span) int64 {
	if s.order == Newest {
		return w.low
	}
	return w.high
}

// most is how many captures the next step takes at most: whole batches.
func (s *scope) most(take int) int64 {
	most := int64(s.size * max(1, take/s.size))
	if s.filter.Limit > 0 {
		most = min(most, s.filter.Limit-s.taken)
	}
	return most
}

// selection picks captures out of a domain of ids, which is a part of intake.
type selection struct{ sql, mode string }

// The gap is an anti-join of indexes alone; what it leaves out of the ledger is
// few, and in a partial index.
//
//nolint:gochecknoglobals // a table of statements
var selections = map[Reprocess]selection{
	ReprocessMissing: {mode: "missing", sql: gap + `
		select x.capture_id from domain d join backfill.extraction x on x.capture_id = d.id
		where x.extractor_id = @slot and x.state = 'queued' and x.state <> 'done'`},
	ReprocessFailed: {mode: "missing", sql: `
		select x.capture_id as id from domain d join backfill.extraction x on x.capture_id = d.id
		where x.extractor_id = @slot and x.state = 'dead' and x.state <> 'done'`},
	ReprocessStale: {mode: "replace", sql: `
		select x.capture_id as id from domain d join backfill.extraction x on x.capture_id = d.id
		where x.extractor_id = @slot and x.state = 'done' and x.version <> @version and x.capture_id between @low and @high`},
	ReprocessAll: {mode: "replace", sql: `select d.id from domain d`},
}

const gap = `
	select d.id from domain d
	where not exists (select from backfill.extraction x
	                  where x.capture_id = d.id and x.extractor_id = @slot and x.capture_id between @low and @high)
	union all`

// nightlySelection is the gap finder: what has no result, and what failed for a
// reason that may have passed. A capture that took the process down or that
// Postgres refused is not tried again every night, nor is one that this version of a
// model has refused or gave no readable answer to: it would cost every night. Captures are compared with
// the ledger, never with an id watermark: ids commit out of order.
//
//nolint:gochecknoglobals // a statement
var nightlySelection = selection{mode: "missing", sql: gap + `
	select x.capture_id from domain d join backfill.extraction x on x.capture_id = d.id
	where x.extractor_id = @slot and x.state <> 'done'
	  and (x.state = 'queued' or x.state = 'dead' and x.outcome not in ('crashed', 'data_error', 'too_long')
	       and not (x.outcome in ('refused', 'unparseable', 'truncated') and x.version = @version))`}

func (s *scope) selection() selection {
	if s.kind == KindNightly {
		return nightlySelection
	}
	return selections[s.mode]
}

// pick is the one statement that says what a run takes: it defines picked, the
// captures of a stretch in the run's order, and goes on with a query over them.
// Captures in open batches are on their way already, except that all means all; the
// run's own batches are behind us.
func (s *scope) pick(w span, query string) string {
	domain := "select i.id from backfill.intake i where i.id between @low and @high"
	if w.ids != nil {
		domain = "select i.id from unnest(@ids::bigint[]) u(id) join backfill.intake i on i.id = u.id"
	}
	sql := `
		with open as materialized (
		    select coalesce(range_agg(b.ids), '{}') as ids from backfill.batch b
		    where b.extractor_id = @slot and b.due is not null and b.run_id is distinct from @run
		), domain as not materialized (` + domain + `
		), base as (` + s.selection().sql + `
		), picked as materialized (
		    select b.id from base b`
	f := s.filter
	if !f.Since.IsZero() || !f.Until.IsZero() || len(f.Sources) > 0 || s.kind == KindNightly {
		// One look at the capture for each that is left. Left to itself, the database
		// would rather read all of intake.
		sql += ` cross join lateral (
		        select i.created_at, i.occurred_at, i.source from backfill.intake i where i.id = b.id offset 0) i`
	}
	sql += " where true"
	if s.kind == KindNightly {
		sql += " and i.created_at >= (select active_from from backfill.extractor where id = @slot)"
	}
	if s.mode != ReprocessAll {
		sql += " and not (select ids from open) @> b.id"
	}
	if !f.Since.IsZero() {
		sql += " and coalesce(i.occurred_at, i.created_at) >= @since"
	}
	if !f.Until.IsZero() {
		sql += " and coalesce(i.occurred_at, i.created_at) < @until"
	}
	if len(f.Sources) > 0 {
		sql += " and i.source = any (@sources)"
	}
	if f.Sample > 0 {
		sql += " and backfill.draw(b.id) < @sample"
	}
	return sql + " order by b.id " + s.direction() + " limit @most)" + query
}

func (s *scope) direction() string {
	if s.order == Newest {
		return "desc"
	}
	return "asc"
}

func (s *scope) args(w span, most int64) pgx.NamedArgs {
	return pgx.NamedArgs{
		"slot": s.slot.ID, "version": s.slot.Version, "run": s.run, "mode": s.selection().mode, "size": s.size,
		"low": w.low, "high": w.high, "ids": w.ids, "most": most,
		"since": s.filter.Since, "until": s.filter.Until, "sources": s.filter.Sources, "sample": s.filter.Sample,
	}
}

// taken is what a query over picked says of it.
type taken struct {
	n int64
	// first and last are the lowest and highest id.
	first, last int64
}

// advance moves on behind a stretch of which these captures were taken, and reports
// whether that was all.
func (s *scope) advance(w span, most int64, t taken) (end bool) {
	upto, full := s.end(w), t.n == most
	if full && t.n > 0 { // there may be more in it
		if upto = t.last; s.order == Newest {
			upto = t.first
		}
	}
	s.upto = &upto
	s.taken += t.n
	return s.filter.Limit > 0 && s.taken >= s.filter.Limit || w.last && !full
}

// scopeOf is what a run would take that is not there yet.
func (s *Store) scopeOf(ctx context.Context, r NewRun) (*scope, error) {
	sc := &scope{kind: r.Kind, mode: r.Reprocess, order: r.Order, filter: r.Filter, size: r.Settings.BatchSize}
	if r.IDs != nil {
		sc.ids = sorted(r.IDs)
	}
	all, err := collect[Extractor](ctx, s, "looking the extractor up", selectExtractor+"where id = $1", r.Extractor)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there is no extractor %d", r.Extractor)
	}
	if sc.slot = all[0]; sc.slot.Version == "" {
		return nil, &UnusedExtractorError{Name: sc.slot.Name}
	}
	if sc.size == 0 {
		sc.size = sc.slot.BatchSize
	}
	return sc, nil
}

// errNotPlanning says that a run is not in state planning.
var errNotPlanning = errors.New("the run is not being planned")

// lockScope reads what a run takes and holds its row, and with that other planners,
// until the transaction ends; the version of its extractor is held as well, so that
// no batch of an outdated one is written. errNotPlanning when it was paused,
// cancelled or planned meanwhile.
func lockScope(ctx context.Context, tx pgx.Tx, run int64) (*scope, error) {
	sc := &scope{run: run}
	var filter []byte
	var ids []int64
	err := tx.QueryRow(ctx, `
		select e.id, e.name, coalesce(e.version, ''), coalesce((r.settings->'batch_size')::integer, e.batch_size),
		       r.kind, r.reprocess, r.sort, r.filter, r.ids, r.planned_upto, r.planned
		from backfill.run r join backfill.extractor e on e.id = r.extractor_id
		where r.id = $1 and r.state = 'planning' for no key update of r for key share of e`, run).
		Scan(&sc.slot.ID, &sc.slot.Name, &sc.slot.Version, &sc.size, &sc.kind, &sc.mode, &sc.order, &filter, &ids, &sc.upto, &sc.taken)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, errNotPlanning
	case err != nil:
		return nil, wrap("planning", err)
	case sc.slot.Version == "":
		return nil, &unplannableError{err: &UnusedExtractorError{Name: sc.slot.Name}}
	}
	if err := sc.narrow(filter, ids); err != nil {
		return nil, &unplannableError{err: err}
	}
	return sc, nil
}

// NoCaptures are those of the ids that are no captures.
func (s *Store) NoCaptures(ctx context.Context, ids []int64) ([]int64, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := s.pool.Query(ctx, `
		select distinct u.id from unnest($1::bigint[]) u(id) where not exists (select from backfill.intake i where i.id = u.id) order by u.id`, ids)
	if err != nil {
		return nil, wrap("looking captures up", err)
	}
	none, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, wrap("looking captures up", err)
	}
	return none, nil
}
