package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// Status is a row of v_status: what stands where in one slot.
type Status struct {
	Extractor     string         `json:"extractor" db:"extractor"`
	Version       *string        `json:"version" db:"version"`
	OnInsert      bool           `json:"on_insert" db:"on_insert"`
	Captures      int64          `json:"captures" db:"captures"`
	Staged        int64          `json:"staged" db:"staged"`
	Empty         int64          `json:"empty" db:"empty"`
	Skipped       int64          `json:"skipped" db:"skipped"`
	Undone        int64          `json:"undone" db:"undone"`
	Candidates    int64          `json:"candidates" db:"candidates"`
	Pending       int64          `json:"pending" db:"pending"`
	Leased        int64          `json:"leased" db:"leased"`
	Held          int64          `json:"held" db:"held"`
	Retry         int64          `json:"retry" db:"retry"`
	Dead          int64          `json:"dead" db:"dead"`
	OldestPending *time.Duration `json:"-" db:"oldest_pending"`
	// StoppedAt is set while the slot is stopped: see [Store.StopSlot].
	StoppedAt  *time.Time `json:"stopped_at" db:"stopped_at"`
	StopReason *string    `json:"stop_reason" db:"stop_reason"`
	StopFix    *string    `json:"stop_fix" db:"stop_fix"`
}

// Done is the number of captures with a final result.
func (s Status) Done() int64 { return s.Staged + s.Empty + s.Skipped + s.Undone }

// Open is the number of captures waiting or in work.
func (s Status) Open() int64 { return s.Pending + s.Leased }

func collect[T any](ctx context.Context, s *Store, doing, sql string, args ...any) ([]T, error) {
	rows, err := s.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, wrap(doing, err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByName[T])
	if err != nil {
		return nil, wrap(doing, err)
	}
	return out, nil
}

// Status reads v_status.
func (s *Store) Status(ctx context.Context) ([]Status, error) {
	return collect[Status](ctx, s, "reading the status", `select * from backfill.v_status`)
}

// Failure is a row of v_failure.
type Failure struct {
	CaptureID     int64      `json:"capture" db:"capture_id"`
	Extractor     string     `json:"extractor" db:"extractor"`
	Outcome       Outcome    `json:"outcome" db:"outcome"`
	State         string     `json:"state" db:"state"`
	Attempts      int16      `json:"attempts" db:"attempts"`
	Error         *string    `json:"error" db:"error"`
	NextAttemptAt *time.Time `json:"next_attempt_at" db:"next_attempt_at"`
	UpdatedAt     time.Time  `json:"updated_at" db:"updated_at"`
	Version       string     `json:"version" db:"version"`
	RunID         *int64     `json:"run" db:"run_id"`
}

// FailureGroup counts failures of one kind, with one example.
type FailureGroup struct {
	Extractor string  `json:"extractor" db:"extractor"`
	Outcome   Outcome `json:"outcome" db:"outcome"`
	State     string  `json:"state" db:"state"`
	Error     *string `json:"error" db:"error"`
	Captures  int64   `json:"captures" db:"captures"`
	Example   int64   `json:"example" db:"example"`
}

// FailureGroups counts failures by extractor, outcome, state and error.
func (s *Store) FailureGroups(ctx context.Context) ([]FailureGroup, error) {
	return collect[FailureGroup](ctx, s, "reading failures", `
		select extractor, outcome, state, error, count(*) as captures, min(capture_id) as example
		from backfill.v_failure group by 1, 2, 3, 4 order by captures desc, extractor, outcome`)
}

// Entity is an entity key and how often it is named.
type Entity struct {
	Entity     string `json:"entity" db:"entity"`
	Candidates int64  `json:"candidates" db:"candidates"`
	Captures   int64  `json:"captures" db:"captures"`
}

// Entities lists the most frequent entities.
func (s *Store) Entities(ctx context.Context, limit int) ([]Entity, error) {
	return collect[Entity](ctx, s, "reading entities", `
		select entity, count(*) as candidates, count(distinct capture_id) as captures
		from backfill.entity group by entity order by candidates desc, entity limit $1`, limit)
}

// StagedCandidate is a candidate with where it came from.
type StagedCandidate struct {
	CaptureID  int64           `json:"capture" db:"capture_id"`
	Extractor  string          `json:"extractor" db:"extractor"`
	Ord        int16           `json:"ord" db:"ord"`
	Content    string          `json:"content" db:"content"`
	Kind       *string         `json:"kind" db:"kind"`
	Salience   float32         `json:"salience" db:"salience"`
	Source     *string         `json:"source" db:"source"`
	Observed   *string         `json:"observed" db:"observed"`
	Date       *string         `json:"date" db:"date"`
	Tags       []string        `json:"tags" db:"tags"`
	Meta       json.RawMessage `json:"meta" db:"meta"`
	Evidence   *string         `json:"evidence" db:"evidence"`
	Entities   []string        `json:"entities" db:"entities"`
	Version    string          `json:"version" db:"version"`
	HandedOver bool            `json:"handed_over" db:"handed_over"`
}

const selectCandidate = `
	select capture_id, extractor, ord, content, kind, salience, source, observed, date, tags, meta, evidence, entities,
	       version, handed_over
	from backfill.v_candidate `

// Naming lists candidates that name an entity, newest capture first.
func (s *Store) Naming(ctx context.Context, entity string, limit int) ([]StagedCandidate, error) {
	return collect[StagedCandidate](ctx, s, "reading candidates", selectCandidate+`
		where (capture_id, extractor, ord) in (
			select n.capture_id, e.name, n.ord from backfill.entity n join backfill.extractor e on e.id = n.extractor_id
			where n.entity = $1)
		order by capture_id desc, extractor, ord limit $2`, entity, limit)
}

// Sample lists the most salient candidates, at most one of a capture.
func (s *Store) Sample(ctx context.Context, limit int) ([]StagedCandidate, error) {
	return collect[StagedCandidate](ctx, s, "reading candidates", selectCandidate+`
		where ord = 1 order by salience desc, capture_id limit $1`, limit)
}

// Kinds counts candidates by kind, the most frequent first.
func (s *Store) Kinds(ctx context.Context) ([]KindCount, error) {
	return collect[KindCount](ctx, s, "counting candidates", `
		select coalesce(kind, '') as kind, count(*) as candidates from backfill.staging group by kind order by candidates desc, kind`)
}

// KindCount is how many candidates are of a kind; Kind is empty where none was
// decided.
type KindCount struct {
	Kind       string `json:"kind" db:"kind"`
	Candidates int64  `json:"candidates" db:"candidates"`
}

// StoredCapture is a capture as it stands in intake.
type StoredCapture struct {
	ID         int64           `json:"id" db:"id"`
	Source     string          `json:"source" db:"source"`
	ExternalID *string         `json:"external_id" db:"external_id"`
	Observed   *string         `json:"observed" db:"observed"`
	OccurredAt *string         `json:"occurred_at" db:"occurred_at"`
	Text       string          `json:"text" db:"text"`
	Meta       json.RawMessage `json:"meta" db:"meta"`
	CreatedAt  time.Time       `json:"created_at" db:"created_at"`
}

// LedgerRow is what one extractor made of a capture.
type LedgerRow struct {
	Extractor     string     `json:"extractor" db:"extractor"`
	State         string     `json:"state" db:"state"`
	Outcome       *Outcome   `json:"outcome" db:"outcome"`
	Version       string     `json:"version" db:"version"`
	Attempts      int16      `json:"attempts" db:"attempts"`
	NextAttemptAt *time.Time `json:"next_attempt_at" db:"next_attempt_at"`
	Error         *string    `json:"error" db:"error"`
	Fallback      *string    `json:"fallback" db:"fallback"`
	RunID         *int64     `json:"run" db:"run_id"`
	Redactions    int16      `json:"redactions" db:"redactions"`
	HandedTo      *string    `json:"handed_to" db:"handed_to"`
	CreatedAt     time.Time  `json:"created_at" db:"created_at"`
	UpdatedAt     time.Time  `json:"updated_at" db:"updated_at"`
}

// OpenBatch is a batch that is still to do.
type OpenBatch struct {
	ID        int64     `json:"batch" db:"batch"`
	Extractor string    `json:"extractor" db:"extractor"`
	Version   string    `json:"version" db:"version"`
	State     string    `json:"state" db:"state"`
	Mode      string    `json:"mode" db:"mode"`
	Prio      int16     `json:"prio" db:"prio"`
	Captures  int64     `json:"captures" db:"captures"`
	Attempts  int32     `json:"attempts" db:"attempts"`
	Worker    *string   `json:"worker" db:"worker"`
	Error     *string   `json:"error" db:"error"`
	CreatedAt time.Time `json:"created_at" db:"created_at"`
}

// History is everything that is known of a capture. Capture is nil where it was
// deleted.
type History struct {
	Capture    *StoredCapture    `json:"capture"`
	Ledger     []LedgerRow       `json:"ledger"`
	Candidates []StagedCandidate `json:"candidates"`
	Open       []OpenBatch       `json:"open_batches"`
}

// ErrNoCapture says that there is no such capture.
var ErrNoCapture = errors.New("there is no such capture")

// History reads everything that is known of a capture; ErrNoCapture when that is
// nothing.
func (s *Store) History(ctx context.Context, capture int64) (History, error) {
	var h History
	captures, err := collect[StoredCapture](ctx, s, "reading the capture", `
		select id, source, external_id, observed, occurred_at::text, text, meta, created_at
		from backfill.intake where id = $1`, capture)
	if err != nil {
		return h, err
	}
	h.Ledger, err = collect[LedgerRow](ctx, s, "reading the ledger", `
		select e.name as extractor, x.state, x.outcome, x.version, x.attempts, x.next_attempt_at, x.error, x.fallback,
		       x.run_id, x.redactions, x.handed_to, x.created_at, x.updated_at
		from backfill.extraction x join backfill.extractor e on e.id = x.extractor_id
		where x.capture_id = $1 order by e.id`, capture)
	if err != nil {
		return h, err
	}
	if len(captures) == 0 && len(h.Ledger) == 0 {
		return h, ErrNoCapture
	}
	if len(captures) > 0 {
		h.Capture = &captures[0]
	}
	if h.Candidates, err = collect[StagedCandidate](ctx, s, "reading candidates", selectCandidate+"where capture_id = $1 order by extractor, ord", capture); err != nil {
		return h, err
	}
	h.Open, err = collect[OpenBatch](ctx, s, "reading batches", `
		select batch, extractor, version, state, mode, prio, captures, attempts, worker, error, created_at
		from backfill.v_batch where ids @> $1::bigint order by batch`, capture)
	return h, err
}

// Cost is a row of v_cost: a day's calls to a model.
type Cost struct {
	Day              time.Time `json:"day" db:"day"`
	Endpoint         *string   `json:"endpoint" db:"endpoint"`
	Model            *string   `json:"model" db:"model"`
	Calls            int64     `json:"calls" db:"calls"`
	Failed           int64     `json:"failed" db:"failed"`
	PromptTokens     *int64    `json:"prompt_tokens" db:"prompt_tokens"`
	CompletionTokens *int64    `json:"completion_tokens" db:"completion_tokens"`
	// Cost is in dollars, of the calls whose cost is known; nil if none is.
	Cost             *float64 `json:"cost" db:"cost"`
	CallsWithoutCost int64    `json:"calls_without_cost" db:"calls_without_cost"`
}

// Costs reads v_cost from that time on, newest first.
func (s *Store) Costs(ctx context.Context, since time.Time) ([]Cost, error) {
	return collect[Cost](ctx, s, "reading costs", `
		select day, endpoint, model, calls, failed, prompt_tokens, completion_tokens, cost::float8 as cost, calls_without_cost
		from backfill.v_cost where day >= $1 order by day desc, endpoint, model`, since)
}

// Counts are the sizes of the tables people ask about.
type Counts struct {
	Captures   int64 `json:"captures" db:"captures"`
	Candidates int64 `json:"candidates" db:"candidates"`
	Entities   int64 `json:"entities" db:"entities"`
}

// Counts counts rows, exactly.
func (s *Store) Counts(ctx context.Context) (Counts, error) {
	c, err := collect[Counts](ctx, s, "counting", `
		select (select count(*) from backfill.intake) as captures, (select count(*) from backfill.staging) as candidates,
		       (select count(distinct entity) from backfill.entity) as entities`)
	if err != nil {
		return Counts{}, err
	}
	return c[0], nil
}
