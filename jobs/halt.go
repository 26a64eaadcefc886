package jobs

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/justfortytwo/backfill/extract/llm"
	"github.com/justfortytwo/backfill/store"
)

// probeQueue is worked by processes that have a model.
const probeQueue = "probe"

// halt stops a slot whose endpoint refuses every request, in all processes. What
// decides is the slot's row; River's queue is paused so that nobody polls for
// nothing and its UI shows it. again says that the capture in hand is the reason:
// then nothing is stopped.
func (w *drainWorker) halt(ctx context.Context, slot *slot, capture int64, why *llm.Error) (again bool, err error) {
	if again, err = w.store.StopSlot(ctx, slot.ID, capture, why.Error(), why.Fix()); again || err != nil {
		return again, err
	}
	w.cfg.Logger.ErrorContext(ctx, "the queue is stopped: no request to the model can succeed",
		"queue", slot.Name, "endpoint", slot.model.Client().Endpoint(), "reason", why.Error(), "fix", why.Fix())
	client, err := river.ClientFromContextSafely[pgx.Tx](ctx)
	if err != nil {
		return false, fmt.Errorf("pausing the queue: %w", err)
	}
	return false, ignoreMissing(client.QueuePause(ctx, slot.Name, nil))
}

// ignoreMissing forgives a queue that River does not know yet.
func ignoreMissing(err error) error {
	if err != nil && !errors.Is(err, river.ErrNotFound) {
		return fmt.Errorf("changing River's queue: %w", err)
	}
	return nil
}

type probeArgs struct {
	Slot int16 `json:"slot"`
}

func (probeArgs) Kind() string { return "probe" }

// probeWorker asks the endpoint of a stopped slot for a tiny completion, and lets
// the slot go on if that succeeds.
type probeWorker struct {
	river.WorkerDefaults[probeArgs]
	store *store.Store
	cfg   Config
	slots map[string]*slot
}

func (w *probeWorker) Work(ctx context.Context, job *river.Job[probeArgs]) error {
	for _, slot := range w.slots {
		if slot.ID == job.Args.Slot && slot.model != nil {
			return w.probe(ctx, slot)
		}
	}
	return nil // another process has it
}

func (w *probeWorker) probe(ctx context.Context, slot *slot) error {
	_, err := slot.model.Client().Probe(ctx)
	if bad, ok := errors.AsType[*llm.Error](err); ok {
		if bad.Kind == llm.StopQueue {
			_, err := w.store.StopSlot(ctx, slot.ID, 0, bad.Error(), bad.Fix())
			return err
		}
		return nil // busy or away: the reason stands until something answers
	}
	if err != nil {
		return err
	}
	if err := ignoreMissing(river.ClientFromContext[pgx.Tx](ctx).QueueResume(ctx, slot.Name, nil)); err != nil {
		return err
	}
	w.cfg.Logger.InfoContext(ctx, "the model answers again: the queue goes on", "queue", slot.Name)
	return w.store.ReleaseSlot(ctx, slot.ID)
}
