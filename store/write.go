package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Write commits results: ledger rows first, since they decide who may write, then
// candidates and entities, then what is left of the batches. Batches whose lease
// has moved on are left alone. Results that somebody else recorded meanwhile are
// dropped, unless the batch replaces them.
//
// The common case, nothing recorded yet, is three COPYs. When the ledger refuses
// that, or results are to be replaced, the same is done row by row decision.
func (s *Store) Write(ctx context.Context, w Write) (Written, error) {
	if !w.Entered && !slices.ContainsFunc(w.Works, func(k Work) bool { return k.Replace }) {
		written, err := s.write(ctx, w, appendRows)
		if !IsConflict(err) {
			return written, err
		}
	}
	return s.write(ctx, w, mergeRows)
}

// row is a result on its way into the ledger.
type row struct {
	*Result
	work     int // index into Write.Works
	attempts int16
	state    string
	nextTry  *time.Time
	handoff  *time.Time
	// firstOrd is the ord of the first candidate: behind those that were handed
	// over already.
	firstOrd int16
	// was is the outcome it replaces, if that was a final one, and removed the
	// number of candidates that went with it.
	was     Outcome
	removed int
	// noted is set for a failure to replace a result, which therefore stays.
	noted bool
}

func (s *Store) write(ctx context.Context, w Write, record func(context.Context, pgx.Tx, Write, []row) ([]row, error)) (Written, error) {
	written := Written{Outcomes: map[Outcome]int{}}
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		held, now, err := fence(ctx, tx, w.Works)
		if err != nil {
			return err
		}
		var rows []row
		for i, work := range w.Works {
			if !held[i] {
				written.Lost = append(written.Lost, work.BatchID)
				continue
			}
			for j := range work.Results {
				r := row{Result: &work.Results[j], work: i, firstOrd: 1}
				w.settle(&r, 1, now)
				rows = append(rows, r)
			}
		}
		// The ledger's order is the lock order.
		slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.CaptureID, b.CaptureID) })
		recorded, err := record(ctx, tx, w, rows)
		if err != nil {
			return err
		}
		if err := copyCandidates(ctx, tx, w, recorded); err != nil {
			return err
		}
		var calls []capturedCall
		for _, r := range rows {
			for i := range r.Calls {
				calls = append(calls, capturedCall{&r.Calls[i], r.CaptureID, w.Works[r.work].BatchID, w.Works[r.work].RunID})
			}
		}
		if err := copyCalls(ctx, tx, calls); err != nil {
			return err
		}
		for _, r := range recorded {
			written.Outcomes[r.Outcome]++
			written.Candidates += len(r.Candidates)
		}
		return closeBatches(ctx, tx, w, held, recorded)
	})
	return written, err
}

// settle decides what an attempt leads to.
func (w *Write) settle(r *row, attempts int16, now time.Time) {
	r.attempts = attempts
	switch {
	case r.Outcome.final():
		r.state = "done"
	case r.Retry && attempts < w.MaxAttempts:
		r.state = "retry"
		next := now.Add(w.Backoff(attempts))
		r.nextTry = &next
	default:
		r.state = "dead"
	}
	if len(r.Candidates) > 0 {
		r.handoff = &now
	}
}

// fence locks the batches and reports which are still ours, with the database's
// clock.
func fence(ctx context.Context, tx pgx.Tx, works []Work) (held []bool, now time.Time, err error) {
	leases := make([]Lease, len(works))
	for i, w := range works {
		leases[i] = w.Lease
	}
	ids, nos := split(leases)
	rows, err := tx.Query(ctx, "select id, now() from "+ours+" b", ids, nos)
	if err != nil {
		return nil, now, wrap("fencing batches", err)
	}
	held = make([]bool, len(works))
	var id int64
	_, err = pgx.ForEachRow(rows, []any{&id, &now}, func() error {
		held[slices.Index(ids, id)] = true
		return nil
	})
	if err != nil {
		return nil, now, wrap("fencing batches", err)
	}
	return held, now, nil
}

// appendRows records results of captures that have no ledger row.
func appendRows(ctx context.Context, tx pgx.Tx, w Write, rows []row) ([]row, error) {
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"backfill", "extraction"},
		[]string{"capture_id", "extractor_id", "version", "state", "outcome", "attempts", "next_attempt_at", "error", "fallback", "redactions", "run_id", "batch_id", "handoff_due"},
		pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) {
			r := &rows[i]
			work := &w.Works[r.work]
			return []any{r.CaptureID, w.Extractor, w.Version, r.state, string(r.Outcome), r.attempts, r.nextTry, null(r.Error), null(r.Fallback), r.Redactions, work.RunID, work.BatchID, r.handoff}, nil
		}))
	if err != nil {
		return nil, wrap("recording results", err)
	}
	return rows, nil
}

func copyCandidates(ctx context.Context, tx pgx.Tx, w Write, rows []row) error {
	type numbered struct {
		*Candidate
		row *row
		ord int16
	}
	var staged []numbered
	entities := 0
	for i := range rows {
		for j := range rows[i].Candidates {
			staged = append(staged, numbered{&rows[i].Candidates[j], &rows[i], rows[i].firstOrd + int16(j)})
			entities += len(rows[i].Candidates[j].Entities)
		}
	}
	if len(staged) == 0 {
		return nil
	}
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"backfill", "staging"},
		[]string{"capture_id", "extractor_id", "ord", "content", "kind", "salience", "source", "observed", "date", "tags", "meta", "evidence", "fingerprint", "entities", "version", "fallback"},
		pgx.CopyFromSlice(len(staged), func(i int) ([]any, error) {
			c := staged[i]
			return []any{
				c.row.CaptureID, w.Extractor, c.ord, c.Content, null(c.Kind), c.Salience, null(c.Source), null(c.Observed), null(c.Date),
				notNil(c.Tags), object(c.Meta), null(c.Evidence), c.Fingerprint, notNil(c.Entities), w.Version, null(c.row.Fallback),
			}, nil
		}))
	if err != nil {
		return wrap("staging candidates", err)
	}
	if entities == 0 {
		return nil
	}
	next := 0
	var of numbered
	var i int
	_, err = tx.CopyFrom(ctx, pgx.Identifier{"backfill", "entity"}, []string{"entity", "capture_id", "extractor_id", "ord"},
		pgx.CopyFromFunc(func() ([]any, error) {
			for of.Candidate == nil || i == len(of.Entities) {
				if next == len(staged) {
					return nil, nil
				}
				of, i = staged[next], 0
				next++
			}
			i++
			return []any{of.Entities[i-1], of.row.CaptureID, w.Extractor, of.ord}, nil
		}))
	if err != nil {
		return wrap("indexing entities", err)
	}
	return nil
}

// closeBatches subtracts what was done and closes, keeps or gives back the rest.
func closeBatches(ctx context.Context, tx pgx.Tx, w Write, held []bool, recorded []row) error {
	type tally struct {
		net               map[Outcome]int
		outcomes          map[Outcome]int
		found, candidates int
	}
	tallies := make([]tally, len(w.Works))
	for i := range tallies {
		tallies[i] = tally{net: map[Outcome]int{}, outcomes: map[Outcome]int{}}
	}
	for _, r := range recorded {
		t := &tallies[r.work]
		t.outcomes[r.Outcome]++
		if r.noted {
			continue
		}
		t.found += len(r.Candidates)
		t.candidates += len(r.Candidates) - r.removed
		t.net[r.Outcome]++
		t.net[r.was]--
	}
	batch := &pgx.Batch{}
	for i, work := range w.Works {
		if !held[i] {
			continue
		}
		done := slices.Clone(work.Gone)
		for _, r := range work.Results {
			done = append(done, r.CaptureID)
		}
		outcomes, err := json.Marshal(tallies[i].outcomes)
		if err != nil {
			return fmt.Errorf("encoding outcomes: %w", err)
		}
		net := tallies[i].net
		batch.Queue(closeBatch, work.BatchID, done, work.Close == GiveBack, work.Close == Dead,
			net[Staged], net[Empty], net[Skipped], tallies[i].candidates, tallies[i].found, json.RawMessage(outcomes), net[Undone])
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return wrap("closing batches", err)
	}
	return nil
}

const closeBatch = `
	update backfill.batch b set
	    ids = l.ids, at = null,
	    attempts = case when $3 then greatest(b.attempts - 1, 0) when isempty(l.ids) then b.attempts else 1 end,
	    state = case when $4 then 'dead' when isempty(l.ids) then 'done' when $3 then 'pending' else 'leased' end,
	    due = case when $4 or isempty(l.ids) then null
	               when $3 then now()
	               else b.due end,
	    finished_at = case when $4 or isempty(l.ids) then now() end,
	    staged = b.staged + $5, empty = b.empty + $6, skipped = b.skipped + $7, undone = b.undone + $11, candidates = b.candidates + $8, found = b.found + $9,
	    outcomes = case when b.outcomes = '{}' then $10::jsonb else (
	        select coalesce(jsonb_object_agg(key, n), '{}')
	        from (select key, sum(value::integer) as n
	              from (select * from jsonb_each_text(b.outcomes) union all select * from jsonb_each_text($10::jsonb)) o
	              group by key) sums) end
	from (select id, ids - coalesce((select range_agg(int8range(c, c, '[]')) from unnest($2::bigint[]) c), '{}') as ids
	      from backfill.batch where id = $1) l
	where b.id = l.id`

func null(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func notNil(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

func object(m json.RawMessage) json.RawMessage {
	if len(m) == 0 {
		return json.RawMessage("{}")
	}
	return m
}
