package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// Call is a row of llm_call: one request to a model, without any text. Numbers that
// are nil are unknown.
type Call struct {
	Started                         time.Time
	Latency                         time.Duration
	Chunk, Chunks                   int16
	Attempt                         int16
	Candidates, Skipped, Redactions int16
	PromptTokens, CachedTokens      *int32
	CompletionTokens                *int32
	ReasoningTokens                 *int32
	// CostMicroUSD is in millionths of a dollar.
	CostMicroUSD *int64
	// Status is the HTTP status, 0 if there was no answer.
	Status              int16
	Estimated, Salvaged bool
	// PromptVersion is the extractor version it was made for.
	PromptVersion, Endpoint, Model, Returned, RequestID, Finish, Outcome string
	// Class is ok, the class of the failure, or [CallLost].
	Class, Code string
}

// CallLost is the class of a call that may have been made: the worker vanished
// with the capture in hand.
const CallLost = "lost"

// capturedCall is a call and what it was made for.
type capturedCall struct {
	*Call
	capture, batch int64
	run            *int64
}

func copyCalls(ctx context.Context, tx pgx.Tx, calls []capturedCall) error {
	if len(calls) == 0 {
		return nil
	}
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"backfill", "llm_call"},
		[]string{
			"capture_id", "batch_id", "run_id", "started_at", "latency_ms", "chunk", "chunks", "attempt", "candidates", "skipped", "redactions",
			"prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens", "cost_microusd", "http_status", "usage_estimated", "salvaged",
			"prompt_version", "endpoint", "model_requested", "model_returned", "request_id", "finish", "outcome", "class", "provider_code",
		},
		pgx.CopyFromSlice(len(calls), func(i int) ([]any, error) {
			c := calls[i]
			var status *int16
			if c.Status != 0 {
				status = &c.Status
			}
			return []any{
				c.capture, c.batch, c.run, c.Started, c.Latency.Milliseconds(), c.Chunk, c.Chunks, c.Attempt, c.Candidates, c.Skipped, c.Redactions,
				c.PromptTokens, c.CachedTokens, c.CompletionTokens, c.ReasoningTokens, c.CostMicroUSD, status, c.Estimated, c.Salvaged,
				null(c.PromptVersion), null(c.Endpoint), null(c.Model), null(c.Returned), null(c.RequestID), null(c.Finish), null(c.Outcome), c.Class, null(c.Code),
			}, nil
		}))
	if err != nil {
		return wrap("recording calls", err)
	}
	return nil
}

// ErrHalted says that no further capture of a batch may be entered, and no further
// call be made: its run or its slot does not let it, or its lease has moved on.
var ErrHalted = errors.New("the batch is not to be worked on")

// Entered is the state of a capture that a model is about to be asked about.
type Entered struct {
	// Attempt is the one that was committed, from 1.
	Attempt int16
	// Replaces is set if a result is there that this one is to replace.
	Replaces bool
	// Skip is set if there is nothing to do: done meanwhile, or deleted.
	Skip bool
	// MaxCostMicroUSD is the limit of the batch's run; nil is none.
	MaxCostMicroUSD *int64
	// RunEnded is set where this is a failure that the batch's run left behind.
	RunEnded bool
}

// Enter commits the attempt at a capture before a model is asked about it: in the
// ledger, and in the batch as the capture in hand. It fails with [ErrHalted].
func (s *Store) Enter(ctx context.Context, l Lease, capture int64, lease time.Duration) (Entered, error) {
	var e Entered
	var attempt *int16
	var state *string
	err := s.pool.QueryRow(ctx, `
		with held as (
			update backfill.batch b set at = $3, due = now() + $4
			where b.id = $1 and b.lease_no = $2 and b.state = 'leased'
			  and exists (select from backfill.workable_batch w where w.id = b.id)
			returning b.id, b.mode, b.extractor_id, b.version, b.run_id
		), entered as (
			insert into backfill.extraction as x (capture_id, extractor_id, version, state, attempts, run_id, batch_id)
			select i.id, h.extractor_id, h.version, 'queued', 1, h.run_id, h.id from held h join backfill.intake i on i.id = $3
			on conflict (capture_id, extractor_id) do update set state = 'queued', next_attempt_at = null, version = excluded.version,
			    attempts = case x.state when 'dead' then 1 else x.attempts + 1 end, run_id = excluded.run_id, batch_id = excluded.batch_id
			where x.state in ('queued', 'retry', 'dead')
			returning attempts
		)
		select (select attempts from entered),
		       (select x.state from backfill.extraction x where x.capture_id = $3 and x.extractor_id = h.extractor_id),
		       h.mode = 'replace',
		       (round((r.settings->>'max_cost')::numeric * 1000000))::bigint, r.finished_at is not null
		from held h left join backfill.run r on r.id = h.run_id`, l.BatchID, l.No, capture, lease).
		Scan(&attempt, &state, &e.Replaces, &e.MaxCostMicroUSD, &e.RunEnded)
	if errors.Is(err, pgx.ErrNoRows) {
		return e, ErrHalted
	}
	if err != nil {
		return e, wrap("recording the attempt", err)
	}
	done := state != nil && *state == "done"
	switch {
	case attempt != nil:
		e.Attempt, e.Replaces = *attempt, false
	case e.Replaces && done:
		e.Attempt = 1
	default:
		e.Skip = true
	}
	return e, nil
}

// MayGoOn returns ErrHalted where Enter would.
func (s *Store) MayGoOn(ctx context.Context, l Lease) error {
	var ok bool
	if err := s.pool.QueryRow(ctx, `
		select exists (select from backfill.workable_batch where id = $1 and lease_no = $2 and state = 'leased')`,
		l.BatchID, l.No).Scan(&ok); err != nil {
		return wrap("asking whether to go on", err)
	}
	if !ok {
		return ErrHalted
	}
	return nil
}

// Left says why a capture is left without a result.
type Left struct {
	Lease
	RunID   *int64
	Capture int64
	// Delay is when the batch is due again, Reason why it was left: a class and a
	// code. An empty one leaves an earlier one standing.
	Delay  time.Duration
	Reason string
	Calls  []Call
}

// Leave gives a batch back whose capture in hand could not be worked for a reason
// that is not its own. The attempt is given back too, so that an outage costs no
// capture; the calls stay on record.
func (s *Store) Leave(ctx context.Context, l Left) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		calls := make([]capturedCall, len(l.Calls))
		for i := range l.Calls {
			calls[i] = capturedCall{&l.Calls[i], l.Capture, l.BatchID, l.RunID}
		}
		if err := copyCalls(ctx, tx, calls); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			update backfill.batch b
			set state = 'pending', at = null, attempts = greatest(b.attempts - 1, 0), error = coalesce(nullif($4, ''), b.error), due = now() + $3
			where b.id = $1 and b.lease_no = $2 and b.state = 'leased'`, l.BatchID, l.No, l.Delay, l.Reason)
		if err != nil {
			return wrap("postponing a capture", err)
		}
		if tag.RowsAffected() == 0 {
			return nil // whoever holds it now has entered the capture himself
		}
		// A row that says nothing but this attempt goes; one with earlier attempts
		// keeps those.
		if _, err := tx.Exec(ctx, `
			delete from backfill.extraction x using backfill.batch b
			where b.id = $1 and x.capture_id = $2 and x.extractor_id = b.extractor_id
			  and x.state = 'queued' and x.attempts <= 1 and x.outcome is null`, l.BatchID, l.Capture); err != nil {
			return wrap("postponing a capture", err)
		}
		if _, err := tx.Exec(ctx, `
			update backfill.extraction x set attempts = greatest(x.attempts - 1, 0) from backfill.batch b
			where b.id = $1 and x.capture_id = $2 and x.extractor_id = b.extractor_id and x.state = 'queued'`, l.BatchID, l.Capture); err != nil {
			return wrap("postponing a capture", err)
		}
		return nil
	})
}

// GiveUp gives up a capture that was entered, for a reason that is not its own: the
// outcome of its earlier attempts stays on record. The batch is closed by [Store.Write].
func (s *Store) GiveUp(ctx context.Context, extractor int16, capture int64, reason string) error {
	if _, err := s.pool.Exec(ctx, `
		update backfill.extraction set state = 'dead', next_attempt_at = null, error = $3, attempts = greatest(attempts - 1, 0), updated_at = now()
		where capture_id = $2 and extractor_id = $1 and state = 'queued'`, extractor, capture, reason); err != nil {
		return wrap("giving a capture up", err)
	}
	return nil
}

// LoseCall records that a worker vanished with the capture in hand, and that a
// model may have been asked.
func (s *Store) LoseCall(ctx context.Context, l Lease) error {
	if _, err := s.pool.Exec(ctx, `
		insert into backfill.llm_call (capture_id, batch_id, run_id, attempt, prompt_version, class)
		select b.at, b.id, b.run_id, coalesce(x.attempts, 1), b.version, $3
		from backfill.batch b left join backfill.extraction x on x.capture_id = b.at and x.extractor_id = b.extractor_id
		where b.id = $1 and b.lease_no = $2 and b.state = 'leased' and b.at is not null`, l.BatchID, l.No, CallLost); err != nil {
		return wrap("recording a lost call", err)
	}
	return nil
}
