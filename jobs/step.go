package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/justfortytwo/backfill/store"
)

// step works a batch in single-step mode: one capture a transaction, and the
// capture in hand is on record before it is touched. So neither a capture that
// takes the process down nor one that Postgres refuses holds up its neighbours.
func (w *drainWorker) step(ctx context.Context, slot *slot, b store.Batch) error {
	if done, err := w.suspect(ctx, slot, &b); done || err != nil {
		return err
	}
	for _, id := range b.IDs {
		if w.stopped(ctx) {
			return w.giveBack(ctx, slot, b)
		}
		switch err := w.store.StepInto(ctx, b.Lease, id, w.cfg.Lease); {
		case errors.Is(err, store.ErrHalted):
			return w.giveBack(ctx, slot, b)
		case err != nil:
			return err
		}
		if err := w.stepInto(ctx, slot, b, id); err != nil {
			return err
		}
	}
	return nil
}

// suspect looks at what earlier claims of a batch came to: the capture that was in
// hand when a worker vanished is set aside, or, when it stands alone and that
// happened again and again, recorded as a crasher. done says that nothing is left
// to do.
func (w *drainWorker) suspect(ctx context.Context, slot *slot, b *store.Batch) (done bool, err error) {
	switch {
	case b.At == nil:
	case len(b.IDs) > 1:
		if err := w.store.SetAside(ctx, b.Lease); err != nil {
			return false, err
		}
		b.IDs = slices.DeleteFunc(b.IDs, func(id int64) bool { return id == *b.At })
	case b.Attempts > crashClaims:
		return true, w.record(ctx, slot, *b, *b.At, store.Result{
			Outcome: store.Crashed, Error: "worker after worker vanished with this capture in hand",
		})
	}
	if b.Attempts > maxClaims {
		return true, w.bury(ctx, slot, *b)
	}
	return false, nil
}

// giveBack returns what is left of a batch, with the attempt.
func (w *drainWorker) giveBack(ctx context.Context, slot *slot, b store.Batch) error {
	_, err := w.write(ctx, slot, []store.Work{{Lease: b.Lease, RunID: b.RunID, Replace: b.Replace, Close: store.GiveBack}})
	return err
}

func (w *drainWorker) stepInto(ctx context.Context, slot *slot, b store.Batch, id int64) error {
	work := store.Work{Lease: b.Lease, RunID: b.RunID, Replace: b.Replace}
	for capture, err := range w.store.Captures(ctx, []int64{id}, maxTextBytes) {
		if err != nil {
			return err
		}
		work.Results = append(work.Results, slot.result(ctx, capture))
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if len(work.Results) == 0 {
		work.Gone = []int64{id} // deleted since
	}
	return w.writeOne(ctx, slot, b, id, work)
}

// writeOne commits the work on one capture. What Postgres refuses becomes its
// outcome.
func (w *drainWorker) writeOne(ctx context.Context, slot *slot, b store.Batch, id int64, work store.Work) error {
	written, err := w.write(ctx, slot, []store.Work{work})
	if err != nil && !store.IsRetryable(err) {
		return w.record(ctx, slot, b, id, store.Result{Outcome: store.DataError, Error: store.Code(err)})
	}
	if err == nil && len(written.Lost) > 0 {
		return store.ErrLeaseLost
	}
	return err
}

// bury closes a batch that was claimed again and again without coming anywhere,
// and says so for each of its captures.
func (w *drainWorker) bury(ctx context.Context, slot *slot, b store.Batch) error {
	work := store.Work{Lease: b.Lease, RunID: b.RunID, Replace: b.Replace, Close: store.Dead}
	for capture, err := range w.store.Captures(ctx, b.IDs, 0) {
		if err != nil {
			return err
		}
		work.Results = append(work.Results, store.Result{
			CaptureID: capture.ID, Hash: capture.Hash, Outcome: store.Crashed,
			Error: fmt.Sprintf("its batch was claimed %d times without progress", b.Attempts),
		})
	}
	_, err := w.write(ctx, slot, []store.Work{work})
	return err
}

// record writes a verdict on one capture that was not extracted.
func (w *drainWorker) record(ctx context.Context, slot *slot, b store.Batch, id int64, r store.Result) error {
	work := store.Work{Lease: b.Lease, RunID: b.RunID, Replace: b.Replace, Gone: []int64{id}}
	for capture, err := range w.store.Captures(ctx, []int64{id}, 0) {
		if err != nil {
			return err
		}
		r.CaptureID, r.Hash = capture.ID, capture.Hash
		work.Results = []store.Result{r}
	}
	_, err := w.write(ctx, slot, []store.Work{work})
	return err
}
