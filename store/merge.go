package store

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// prior is the ledger row that stands where a result should go.
type prior struct {
	captureID             int64
	state                 string
	outcome               Outcome
	attempts              int16
	handedUpto, claimedTo int16
	claimed               bool
	handoff               *time.Time
}

// mergeRows records results where ledger rows may exist. Rows are locked in
// capture order before anything is decided, so that an update, a delete or
// another worker comes either before or after us:
//
//   - a tombstone stays: deleted text does not come back;
//   - a done row stays, unless the batch replaces;
//   - a failure to replace a result that the text still has is noted on it;
//   - a result of text that has changed since is dropped: the change queued a
//     batch of its own;
//   - candidates that are handed over or claimed stay, new ones are numbered
//     behind them and say what they supersede, and one that says the same is not
//     staged again.
func mergeRows(ctx context.Context, tx pgx.Tx, w Write, rows []row) ([]row, error) {
	captures := make([]int64, len(rows))
	hashes := make([]string, len(rows))
	for i, r := range rows {
		captures[i], hashes[i] = r.CaptureID, r.Hash
	}
	priors, err := lockPriors(ctx, tx, w.Extractor, captures)
	if err != nil {
		return nil, err
	}
	fresh, err := freshCaptures(ctx, tx, captures, hashes)
	if err != nil {
		return nil, err
	}
	kept, err := keptFingerprints(ctx, tx, w.Extractor, priors)
	if err != nil {
		return nil, err
	}

	elsewhere, err := stagedElsewhere(ctx, tx, w.Extractor, rows)
	if err != nil {
		return nil, err
	}

	var added, replaced, noted []row
	for _, r := range rows {
		if !fresh[r.CaptureID] {
			continue
		}
		if r.Fallback != "" {
			r.Result = without(r.Result, elsewhere)
		}
		p, exists := priors[r.CaptureID]
		if !exists {
			added = append(added, r)
			continue
		}
		if p.state == "deleted" || p.state == "done" && !w.Works[r.work].Replace {
			continue
		}
		if p.state == "done" && !r.Outcome.final() && w.Works[r.work].RunID != nil {
			r.Result, r.noted = without(r.Result, nil), true
			noted = append(noted, r)
			continue
		}
		w.replace(&r, p, kept)
		replaced = append(replaced, r)
	}
	if err := supersede(ctx, tx, w.Extractor, rows, replaced); err != nil {
		return nil, err
	}
	if added, err = insertRows(ctx, tx, w, added); err != nil {
		return nil, err
	}
	if err := updateRows(ctx, tx, w, replaced); err != nil {
		return nil, err
	}
	if err := noteFailures(ctx, tx, w, noted); err != nil {
		return nil, err
	}
	merged := slices.Concat(added, replaced, noted)
	slices.SortFunc(merged, func(a, b row) int { return int(a.CaptureID - b.CaptureID) })
	return merged, nil
}

// replace fits a result over the ledger row that is there.
func (w *Write) replace(r *row, p prior, kept map[fingerprint]bool) {
	now := time.Now()
	if r.handoff != nil {
		now = *r.handoff // the database's clock
	}
	attempts := int16(1)
	switch {
	case w.Entered && p.state == "queued":
		attempts = p.attempts
	case p.state == "retry" || p.state == "queued":
		attempts = p.attempts + 1
	}
	w.settle(r, attempts, now)
	if p.state == "done" {
		r.was = p.outcome
	}
	r.Result = without(r.Result, kept)
	r.firstOrd = p.claimedTo + 1
	switch {
	case p.claimed: // its lease stays; the acknowledgement finds the new ones
		r.handoff = p.handoff
	case len(r.Candidates) == 0 && p.claimedTo == p.handedUpto:
		r.handoff = nil
	case r.handoff == nil:
		r.handoff = p.handoff
	}
}

// without returns r without the candidates that are already there, or without any
// if known is nil.
func without(r *Result, known map[fingerprint]bool) *Result {
	result := *r
	result.Candidates = slices.DeleteFunc(slices.Clone(r.Candidates), func(c Candidate) bool {
		return known == nil || known[fingerprint{r.CaptureID, c.Fingerprint}]
	})
	return &result
}

func lockPriors(ctx context.Context, tx pgx.Tx, extractor int16, captures []int64) (map[int64]prior, error) {
	rows, err := tx.Query(ctx, `
		select capture_id, state, coalesce(outcome, ''), attempts, handed_upto, claimed_upto, claim is not null, handoff_due
		from backfill.extraction where extractor_id = $1 and capture_id = any ($2)
		order by capture_id for update`, extractor, captures)
	if err != nil {
		return nil, wrap("locking ledger rows", err)
	}
	priors := map[int64]prior{}
	var p prior
	_, err = pgx.ForEachRow(rows, []any{&p.captureID, &p.state, &p.outcome, &p.attempts, &p.handedUpto, &p.claimedTo, &p.claimed, &p.handoff}, func() error {
		priors[p.captureID] = p
		return nil
	})
	if err != nil {
		return nil, wrap("locking ledger rows", err)
	}
	return priors, nil
}

func freshCaptures(ctx context.Context, tx pgx.Tx, captures []int64, hashes []string) (map[int64]bool, error) {
	rows, err := tx.Query(ctx, `
		select i.id from unnest($1::bigint[], $2::text[]) u(id, hash)
		join backfill.intake i on i.id = u.id and i.content_hash = u.hash`, captures, hashes)
	if err != nil {
		return nil, wrap("comparing captures", err)
	}
	fresh := map[int64]bool{}
	var id int64
	_, err = pgx.ForEachRow(rows, []any{&id}, func() error { fresh[id] = true; return nil })
	if err != nil {
		return nil, wrap("comparing captures", err)
	}
	return fresh, nil
}

type fingerprint struct {
	capture int64
	content [16]byte
}

// keptFingerprints are the candidates that stay because they were handed over or
// are claimed.
func keptFingerprints(ctx context.Context, tx pgx.Tx, extractor int16, priors map[int64]prior) (map[fingerprint]bool, error) {
	var captures []int64
	for id, p := range priors {
		if p.claimedTo > 0 {
			captures = append(captures, id)
		}
	}
	kept := map[fingerprint]bool{}
	if len(captures) == 0 {
		return kept, nil
	}
	return fingerprints(ctx, tx, `
		select s.capture_id, s.fingerprint
		from backfill.known_candidate s join backfill.extraction x using (capture_id, extractor_id)
		where s.extractor_id = $1 and s.capture_id = any ($2) and s.ord <= x.claimed_upto`, extractor, captures)
}

// stagedElsewhere are the candidates that other slots have staged for the captures
// another extractor stood in for.
func stagedElsewhere(ctx context.Context, tx pgx.Tx, extractor int16, rows []row) (map[fingerprint]bool, error) {
	var captures []int64
	for _, r := range rows {
		if r.Fallback != "" {
			captures = append(captures, r.CaptureID)
		}
	}
	if len(captures) == 0 {
		return map[fingerprint]bool{}, nil
	}
	return fingerprints(ctx, tx, `
		select s.capture_id, s.fingerprint from backfill.known_candidate s
		where s.extractor_id <> $1 and s.capture_id = any ($2)`, extractor, captures)
}

func fingerprints(ctx context.Context, tx pgx.Tx, sql string, args ...any) (map[fingerprint]bool, error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, wrap("reading staged candidates", err)
	}
	found := map[fingerprint]bool{}
	var f fingerprint
	_, err = pgx.ForEachRow(rows, []any{&f.capture, &f.content}, func() error { found[f] = true; return nil })
	if err != nil {
		return nil, wrap("reading staged candidates", err)
	}
	return found, nil
}

// columns are rows turned on their side, as unnest takes them.
type columns struct {
	captures         []int64
	states, outcomes []string
	attempts         []int16
	nextTry, handoff []*time.Time
	errors, fallback []*string
	redactions       []int16
	runs             []*int64
	batches          []int64
}

func column(w Write, rows []row) columns {
	var c columns
	for _, r := range rows {
		work := w.Works[r.work]
		c.captures = append(c.captures, r.CaptureID)
		c.states, c.outcomes = append(c.states, r.state), append(c.outcomes, string(r.Outcome))
		c.attempts = append(c.attempts, r.attempts)
		c.nextTry, c.handoff = append(c.nextTry, r.nextTry), append(c.handoff, r.handoff)
		c.errors, c.fallback = append(c.errors, null(r.Error)), append(c.fallback, null(r.Fallback))
		c.redactions = append(c.redactions, r.Redactions)
		c.runs, c.batches = append(c.runs, work.RunID), append(c.batches, work.BatchID)
	}
	return c
}

const unnested = `unnest($3::bigint[], $4::text[], $5::text[], $6::smallint[], $7::timestamptz[], $8::timestamptz[],
	$9::text[], $10::text[], $11::smallint[], $12::bigint[], $13::bigint[])
	u(capture_id, state, outcome, attempts, next_attempt_at, handoff_due, error, fallback, redactions, run_id, batch_id)`

func (c columns) args(w Write) []any {
	return []any{
		w.Extractor, w.Version, c.captures, c.states, c.outcomes, c.attempts, c.nextTry, c.handoff,
		c.errors, c.fallback, c.redactions, c.runs, c.batches,
	}
}

// insertRows returns the rows that were inserted: where somebody was faster, his
// result stands.
func insertRows(ctx context.Context, tx pgx.Tx, w Write, rows []row) ([]row, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	res, err := tx.Query(ctx, `
		insert into backfill.extraction (capture_id, extractor_id, version, state, outcome, attempts, next_attempt_at,
		    handoff_due, error, fallback, redactions, run_id, batch_id)
		select u.capture_id, $1, $2, u.state, u.outcome, u.attempts, u.next_attempt_at,
		    u.handoff_due, u.error, u.fallback, u.redactions, u.run_id, u.batch_id
		from `+unnested+` order by u.capture_id
		on conflict (capture_id, extractor_id) do nothing
		returning capture_id`, column(w, rows).args(w)...)
	if err != nil {
		return nil, wrap("recording results", err)
	}
	inserted, err := pgx.CollectRows(res, pgx.RowTo[int64])
	if err != nil {
		return nil, wrap("recording results", err)
	}
	slices.Sort(inserted)
	return slices.DeleteFunc(rows, func(r row) bool {
		_, ok := slices.BinarySearch(inserted, r.CaptureID)
		return !ok
	}), nil
}

// updateRows overwrites locked ledger rows and removes their candidates that
// nobody has taken.
func updateRows(ctx context.Context, tx pgx.Tx, w Write, rows []row) error {
	if len(rows) == 0 {
		return nil
	}
	cols := column(w, rows)
	if _, err := tx.Exec(ctx, `
		update backfill.extraction x set
		    version = $2, state = u.state, outcome = u.outcome, attempts = u.attempts, next_attempt_at = u.next_attempt_at,
		    handoff_due = u.handoff_due, error = u.error, fallback = u.fallback, redactions = u.redactions,
		    run_id = u.run_id, batch_id = u.batch_id, updated_at = now()
		from `+unnested+` where x.capture_id = u.capture_id and x.extractor_id = $1`, cols.args(w)...); err != nil {
		return wrap("overwriting results", err)
	}
	removed, err := deleteCandidates(ctx, tx, w.Extractor, cols.captures)
	for i := range rows {
		rows[i].removed = removed[rows[i].CaptureID]
	}
	return err
}

// noteFailures leaves results as they are and says that they could not be replaced.
func noteFailures(ctx context.Context, tx pgx.Tx, w Write, rows []row) error {
	if len(rows) == 0 {
		return nil
	}
	captures, notes := make([]int64, len(rows)), make([]string, len(rows))
	for i, r := range rows {
		captures[i], notes[i] = r.CaptureID, "not replaced: "+string(r.Outcome)
		if r.Error != "" {
			notes[i] += ", " + r.Error
		}
	}
	if _, err := tx.Exec(ctx, `
		update backfill.extraction x set error = u.note, updated_at = now()
		from unnest($2::bigint[], $3::text[]) u(capture_id, note) where x.capture_id = u.capture_id and x.extractor_id = $1`,
		w.Extractor, captures, notes); err != nil {
		return wrap("noting failures", err)
	}
	return nil
}

// deleteCandidates removes candidates behind claimed_upto, which nobody has taken,
// and counts them by capture.
func deleteCandidates(ctx context.Context, tx pgx.Tx, extractor int16, captures []int64) (map[int64]int, error) {
	return deleteWhere(ctx, tx, "s.ord > x.claimed_upto", extractor, captures)
}

// deleteWhere removes the candidates s, with the ledger row x, that fulfil a
// condition, and their entities. The entity index has no path by capture, so the
// nested loop through staging.entities is not left to the planner.
func deleteWhere(ctx context.Context, tx pgx.Tx, which string, extractor int16, captures []int64) (map[int64]int, error) {
	doomed := `
		backfill.staging s join backfill.extraction x using (capture_id, extractor_id)
		where s.extractor_id = $1 and s.capture_id = any ($2) and ` + which
	batch := &pgx.Batch{}
	batch.Queue("set local enable_hashjoin = off")
	batch.Queue("set local enable_mergejoin = off")
	batch.Queue("set local enable_material = off") // without statistics it would read all of extraction
	batch.Queue(`
		delete from backfill.entity t
		using (select s.capture_id, s.extractor_id, s.ord, unnest(s.entities) as entity from `+doomed+`) d
		where t.entity = d.entity and t.capture_id = d.capture_id and t.extractor_id = d.extractor_id and t.ord = d.ord`, extractor, captures)
	removed := map[int64]int{}
	batch.Queue(`
		delete from backfill.staging t using (select s.capture_id, s.extractor_id, s.ord from `+doomed+`) d
		where t.capture_id = d.capture_id and t.extractor_id = d.extractor_id and t.ord = d.ord
		returning t.capture_id`, extractor, captures).Query(func(rows pgx.Rows) error {
		var id int64
		_, err := pgx.ForEachRow(rows, []any{&id}, func() error { removed[id]++; return nil })
		return err
	})
	batch.Queue("set local enable_hashjoin = on")
	batch.Queue("set local enable_mergejoin = on")
	batch.Queue("set local enable_material = on")
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, wrap("removing candidates", err)
	}
	return removed, nil
}
