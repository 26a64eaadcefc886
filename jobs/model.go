package jobs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/justfortytwo/backfill/extract/llm"
	"github.com/justfortytwo/backfill/store"
)

// modelAttempts is how often an answer that cannot be read is asked for. After the
// last one the fallback stands in.
const modelAttempts = 3

// model is what a slot has that asks one.
type model struct {
	*llm.Extractor
	// outages counts failures of the endpoint since it last answered.
	outages atomic.Int32
}

// workModel works a batch capture by capture: each is entered in the ledger before
// the model is asked, no transaction is open meanwhile, and its result commits as
// the answer arrives. It reports whether more can be done now.
func (w *drainWorker) workModel(ctx context.Context, slot *slot, b store.Batch) (more bool, err error) {
	if b.At != nil {
		if err := w.store.LoseCall(ctx, b.Lease); err != nil {
			return false, err
		}
	}
	if done, err := w.suspect(ctx, slot, &b); done || err != nil {
		return true, err
	}
	until := time.Now().Add(drainFor)
	for _, id := range b.IDs {
		if w.stopped(ctx) || time.Now().After(until) {
			return true, w.giveBack(ctx, slot, b)
		}
		entered, err := w.enter(ctx, b.Lease, id)
		if errors.Is(err, store.ErrHalted) {
			return true, w.giveBack(ctx, slot, b)
		}
		if err != nil {
			return false, err
		}
		switch done, err := w.ask(ctx, slot, b, id, entered); {
		case errors.Is(err, store.ErrLeaseLost):
			return true, nil
		case err != nil || !done:
			return false, err
		}
	}
	return true, nil
}

// enter is not cut off by a stop: what came of it would not be known, and an attempt
// that was committed is given back by whoever knows of it.
func (w *drainWorker) enter(ctx context.Context, l store.Lease, capture int64) (store.Entered, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return w.store.Enter(ctx, l, capture, w.cfg.Lease)
}

// ask works one capture that was entered. Where that is not possible now, it has
// given the batch back, and is not done.
func (w *drainWorker) ask(ctx context.Context, slot *slot, b store.Batch, id int64, e store.Entered) (done bool, err error) {
	work := store.Work{Lease: b.Lease, RunID: b.RunID, Replace: b.Replace}
	if !e.Skip {
		for capture, err := range w.store.Captures(ctx, []int64{id}, maxTextBytes) {
			if err != nil { // the attempt is given back here too
				return false, errors.Join(err, w.leave(ctx, slot, b, id, err, nil))
			}
			result, failure := w.answer(ctx, slot, b, capture, e)
			if bad, ok := errors.AsType[*llm.Error](failure); ok && bad.Kind == llm.StopQueue && !w.stopped(ctx) {
				again, err := w.halt(ctx, slot, id, bad)
				if err != nil {
					return false, err
				}
				if again { // a probe has succeeded, and this one is refused all the same
					slot.model.Client().Resume()
					result, failure = w.failed(ctx, slot, capture, bad, result, e), nil
				}
			}
			if spent, ok := errors.AsType[*runSpentError](failure); ok && e.RunEnded { // which cannot rest until it is resumed
				if err := w.store.GiveUp(ctx, slot.ID, id, spent.Error()); err != nil {
					return false, err
				}
				continue
			}
			if failure != nil {
				return false, w.leave(ctx, slot, b, id, failure, result.Calls)
			}
			work.Results = append(work.Results, result)
		}
	}
	if len(work.Results) == 0 {
		work.Gone = []int64{id} // done or deleted since
	}
	return true, w.writeOne(ctx, slot, b, id, work)
}

// answer asks the model about a capture. failure is set where no verdict on the
// capture came out of that: its endpoint, the budget or our stopping is the reason.
func (w *drainWorker) answer(ctx context.Context, slot *slot, b store.Batch, c store.Capture, e store.Entered) (r store.Result, failure error) {
	if r, done := unfit(c); done {
		return r, nil
	}
	r = store.Result{CaptureID: c.ID, Hash: c.Hash}
	defer func() {
		if p := recover(); p != nil {
			// The type only: a panic value may quote the text.
			r.Candidates, r.Outcome, r.Error, r.Retry, failure = nil, store.Panic, fmt.Sprintf("%T", p), true, nil
		}
	}()
	ctx = withSpender(ctx, &spender{lease: b.Lease, run: b.RunID, maxCost: e.MaxCostMicroUSD})
	var got llm.Result
	for attempt := int(e.Attempt); ; attempt++ {
		var err error
		got, err = slot.model.Extract(ctx, turn(c), slot.Options, attempt)
		for _, call := range got.Calls {
			r.Calls = append(r.Calls, callRow(call, slot.Version, attempt))
		}
		r.Redactions = int16(min(got.Redactions, math.MaxInt16))
		var bad *llm.Error
		switch {
		case err == nil:
			return w.answered(ctx, slot, c, got, r, e), nil
		case !errors.As(err, &bad):
			return r, err
		case bad.Kind == llm.BadOutput && e.Replaces && attempt < modelAttempts:
			// The ledger's row is the result that is to be replaced: it cannot
			// count attempts, so that they are made here.
			continue
		case bad.Kind == llm.BadOutput || bad.Kind == llm.FailCapture:
			return w.failed(ctx, slot, c, bad, r, e), nil
		default:
			return r, bad
		}
	}
}

// answered turns what the model found into a result.
func (w *drainWorker) answered(ctx context.Context, slot *slot, c store.Capture, got llm.Result, r store.Result, e store.Entered) store.Result {
	if slot.model.outages.Swap(0) > 0 {
		w.cfg.Logger.InfoContext(ctx, "the model answers again", "queue", slot.Name)
	}
	if got.Partial && len(got.Candidates) == 0 && got.Reason != nil {
		// Nothing was found where something was left out: that is a failure.
		return w.failed(ctx, slot, c, got.Reason, r, e)
	}
	r = staged(r, c, got.Candidates, got.Redactions)
	switch {
	case r.Outcome == store.DataError:
	case got.Reason != nil:
		r.Error = "partial: " + got.Reason.Error()
	case got.Partial:
		r.Error = "partial: longer than the model is given, the middle was left out"
	}
	return r
}

// failed records a failure that is the capture's own. Where nothing better is
// there and no attempt is left, the fallback stands in.
func (w *drainWorker) failed(ctx context.Context, slot *slot, c store.Capture, bad *llm.Error, r store.Result, e store.Entered) store.Result {
	slot.model.outages.Store(0)
	r.Error = bad.Error()
	switch {
	case bad.Kind == llm.BadOutput && bad.Code == llm.CodeLength:
		r.Outcome = store.Truncated
	case bad.Kind == llm.BadOutput:
		r.Outcome = store.Unparseable
	case bad.Code == llm.CodeTooLong || bad.Code == llm.CodeCalls:
		r.Outcome = store.TooLong
	case bad.Refused():
		r.Outcome = store.Refused
	default:
		r.Outcome = store.ProviderError
	}
	if r.Retry = bad.Kind == llm.BadOutput && e.Attempt < min(modelAttempts, w.cfg.MaxAttempts); r.Retry || e.Replaces || slot.Fallback == nil {
		return r
	}
	stand := slot.extract(ctx, c, slot.Fallback)
	if stand.Outcome == store.Staged || stand.Outcome == store.Empty {
		r.Fallback, r.Candidates = slot.FallbackName, stand.Candidates
	}
	return r
}

// leave gives the batch back after a failure that is not about the capture.
func (w *drainWorker) leave(ctx context.Context, slot *slot, b store.Batch, id int64, failure error, calls []store.Call) error {
	stopped := w.stopped(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	left := store.Left{Lease: b.Lease, RunID: b.RunID, Capture: id, Calls: calls}
	bad, isLLM := errors.AsType[*llm.Error](failure)
	spent, isSpent := errors.AsType[*runSpentError](failure)
	switch {
	case stopped, errors.Is(failure, store.ErrHalted): // somebody else takes it, at once or later
	case isSpent:
		left.Reason, left.Delay = spent.Error(), sweepEvery
		if err := w.store.ExhaustRun(ctx, *b.RunID, spent.Error()); err != nil {
			return err
		}
		w.cfg.Logger.WarnContext(ctx, "the run rests", "run", *b.RunID, "reason", spent.Error())
	case isLLM && bad.Kind == llm.StopQueue:
		left.Reason = bad.Error() // it waits for the slot
	case isLLM:
		left.Reason, left.Delay = bad.Error(), bad.RetryAfter
		if !bad.Wait() {
			n := slot.model.outages.Add(1)
			left.Delay = max(bad.RetryAfter, w.cfg.Outage(n))
			if n == 1 {
				w.cfg.Logger.WarnContext(ctx, "the model does not answer: its captures wait, and no attempt is counted",
					"queue", slot.Name, "endpoint", slot.model.Client().Endpoint(), "reason", bad.Error())
			}
		}
	default: // the database
		left.Reason, left.Delay = store.Code(failure), sweepEvery
	}
	if err := w.store.Leave(ctx, left); err != nil {
		return err
	}
	if left.Delay > 0 && left.Delay < sweepEvery {
		return w.store.Wake(ctx, slot.Name, left.Delay)
	}
	return nil
}

// outage is the default of Config.Outage.
func outage(failures int32) time.Duration {
	return jitter(min(2*time.Second<<min(failures-1, 8), 5*time.Minute))
}

// callRow turns a call into its row.
func callRow(c llm.Call, version string, attempt int) store.Call {
	narrow := func(n *int) *int32 {
		if n == nil {
			return nil
		}
		v := int32(min(max(*n, 0), math.MaxInt32))
		return &v
	}
	small := func(n int) int16 { return int16(min(max(n, 0), math.MaxInt16)) }
	return store.Call{
		Started: c.Started, Latency: c.Latency, Chunk: small(c.Chunk), Chunks: small(c.Chunks), Attempt: small(attempt),
		Candidates: small(c.Candidates), Skipped: small(c.Skipped), Redactions: small(c.Redactions),
		PromptTokens: narrow(c.Usage.PromptTokens), CachedTokens: narrow(c.Usage.CachedTokens),
		CompletionTokens: narrow(c.Usage.CompletionTokens), ReasoningTokens: narrow(c.Usage.ReasoningTokens),
		CostMicroUSD: c.CostMicroUSD, Status: small(c.Status), Estimated: c.Estimated, Salvaged: c.Salvaged,
		PromptVersion: version, Endpoint: c.Endpoint, Model: c.Model, Returned: c.Returned, RequestID: c.RequestID,
		Finish: string(c.Finish), Outcome: string(c.Outcome), Class: c.Class, Code: c.Code,
	}
}
