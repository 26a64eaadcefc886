package jobs

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/justfortytwo/backfill/store"
)

// drainArgs is empty: what to do is in the batch rows, the queue says for whom.
type drainArgs struct{}

func (drainArgs) Kind() string { return "drain" }

// drainWorker claims batches and works them until none is due.
type drainWorker struct {
	river.WorkerDefaults[drainArgs]
	store    *store.Store
	cfg      Config
	slots    map[string]*slot
	stopping <-chan struct{}
	notifier *notifier
}

// slot is a Slot at work.
type slot struct {
	Slot
	model *model // nil for one without
	// bulk holds a token for every drain that may take retries and runs; the one
	// without a token is kept for live turns.
	bulk chan struct{}
	// idle counts looks at work that is due with all hands free, one after another. It
	// is lookOut's alone.
	idle int
}

func newDrainWorker(st *store.Store, cfg Config, stopping <-chan struct{}) (*drainWorker, error) {
	w := &drainWorker{store: st, cfg: cfg, slots: map[string]*slot{}, stopping: stopping}
	for _, s := range cfg.Slots {
		slot := &slot{Slot: s, bulk: make(chan struct{}, s.Workers-1)}
		if s.Model != nil {
			x, err := newModel(st, s, cfg.Logger)
			if err != nil {
				return nil, err
			}
			slot.model = &model{Extractor: x}
		}
		w.slots[s.Name] = slot
	}
	return w, nil
}

// modelTimeout bounds a drain that asks a model: it ends between two captures, but
// one capture may take many calls.
const modelTimeout = 2 * time.Hour

// Timeout implements [river.Worker].
func (w *drainWorker) Timeout(job *river.Job[drainArgs]) time.Duration {
	if slot, ok := w.slots[job.Queue]; ok && slot.model != nil {
		return modelTimeout
	}
	return 0 // the client's
}

// Batches to claim at once: few while they are full, many while they are the
// single captures of a live stream.
const (
	minClaim   = 2
	maxClaim   = 256
	smallClaim = 1000 // captures
)

func (w *drainWorker) Work(ctx context.Context, job *river.Job[drainArgs]) error {
	slot, ok := w.slots[job.Queue]
	if !ok {
		return nil // not ours; the sweep wakes its queue again
	}
	maxPrio := store.PrioLive
	select {
	case slot.bulk <- struct{}{}:
		maxPrio = store.PrioRun
		defer func() { <-slot.bulk }()
	default:
	}
	until := time.Now().Add(drainFor)
	limit, rechecks := minClaim, 0
	for !w.stopped(ctx) {
		if time.Now().After(until) {
			return w.store.Wake(ctx, slot.Name, 0)
		}
		if slot.model != nil {
			if limit = 1; slot.model.Client().Wait() > 0 {
				return nil // the sweep comes back
			}
		}
		batches, err := w.store.Claim(ctx, store.Claim{
			Extractor: slot.ID, Version: slot.Version, MaxPrio: maxPrio, Limit: limit, Lease: w.cfg.Lease, Worker: w.cfg.Name,
		})
		if err != nil {
			return err
		}
		if len(batches) == 0 {
			// What was locked a moment ago may be free again by now.
			due, err := w.store.AnyDue(ctx, slot.ID, slot.Version, maxPrio)
			if err != nil || !due || rechecks == 3 {
				return err
			}
			rechecks++
			continue
		}
		rechecks = 0
		if (len(batches) == limit || batches[0].Room) && slot.free() {
			// There may be more, and we could do more at once.
			if err := w.store.Wake(ctx, slot.Name, 0); err != nil {
				return err
			}
		}
		captures := 0
		for _, b := range batches {
			captures += len(b.IDs)
		}
		if more, err := w.work(ctx, slot, batches); err != nil || !more {
			return err
		}
		if limit = minClaim; captures < smallClaim {
			limit = min(maxClaim, max(minClaim, 2*len(batches)))
		}
	}
	return nil
}

// free reports whether a drain that takes retries and runs could begin.
func (s *slot) free() bool { return len(s.bulk) < cap(s.bulk) }

// lookEvery is how soon a process with free hands sees what is due.
const lookEvery = 500 * time.Millisecond

// deafAfter is so many looks at work that is due, all hands free, after which we have
// probably not heard that the queue goes on.
const deafAfter = 10

// lookOut wakes the queues that this process has hands free for, until it stops. A job
// that calls for more hands is as likely fetched by a process that has only its drain
// for live turns left, and then comes to nothing. What cannot be asked now is asked
// again, and the sweep reports it.
func (w *drainWorker) lookOut(ctx context.Context, client *river.Client[pgx.Tx]) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-w.stopping:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, slot := range w.slots {
			w.look(ctx, client, slot)
		}
	}
}

// look wakes a slot's queue where work is due that this process could do.
func (w *drainWorker) look(ctx context.Context, client *river.Client[pgx.Tx], slot *slot) {
	if !slot.free() || slot.model != nil && slot.model.Client().Wait() > 0 {
		return
	}
	due, err := w.store.AnyDue(ctx, slot.ID, slot.Version, store.PrioRun)
	if err != nil || !due {
		slot.idle = 0
		return
	}
	if len(slot.bulk) > 0 {
		slot.idle = 0
	} else if slot.idle++; slot.idle == deafAfter {
		slot.idle = 0
		listenAgain(ctx, client, slot.Name)
	}
	_ = w.store.Wake(ctx, slot.Name, 0)
}

// listenAgain tells this process, and all others, that a queue goes on which River
// does not hold paused: River says it once, and whoever was about to start, or had
// just lost his connection, keeps the queue paused for good.
func listenAgain(ctx context.Context, client *river.Client[pgx.Tx], name string) {
	if queue, err := client.QueueGet(ctx, name); err == nil && queue.PausedAt == nil {
		_ = client.QueueResume(ctx, name, nil) // the next look tries again
	}
}

func (w *drainWorker) stopped(ctx context.Context) bool {
	select {
	case <-w.stopping:
		return true
	case <-ctx.Done():
		return true
	default:
		return false
	}
}

// work finishes claimed batches one way or another: written, given back or
// postponed. It reports whether more can be done now.
func (w *drainWorker) work(ctx context.Context, slot *slot, batches []store.Batch) (more bool, err error) {
	beat := w.heartbeat(ctx, batches)
	defer beat()
	if slot.model != nil { // which claims one at a time
		if more, err = w.workModel(ctx, slot, batches[0]); err != nil {
			err = w.postpone(ctx, batches, err)
		}
	} else {
		more, err = true, w.workGroup(ctx, slot, batches)
	}
	if err != nil {
		return false, err
	}
	return more, w.settleRuns(ctx, batches)
}

// workGroup works batches as one, unless one of them is under suspicion: its last
// claim came to nothing, or it was in single-step mode. That one is worked alone,
// capture by capture, and the others are returned first: should it take the worker
// down, it does not count against them.
func (w *drainWorker) workGroup(ctx context.Context, slot *slot, batches []store.Batch) error {
	if i := slices.IndexFunc(batches, func(b store.Batch) bool { return b.Attempts > 1 || b.At != nil }); i >= 0 {
		others := slices.Delete(slices.Clone(batches), i, i+1)
		if err := w.store.Return(ctx, leases(others)); err != nil {
			return w.postpone(ctx, batches, err)
		}
		if len(others) > 0 {
			if err := w.store.Wake(ctx, slot.Name, 0); err != nil {
				return w.postpone(ctx, batches, err)
			}
		}
		return w.stepAll(ctx, slot, batches[i:i+1])
	}
	refused, err := (&group{drainWorker: w, slot: slot, batches: batches}).run(ctx)
	if err != nil {
		return w.postpone(ctx, batches, err)
	}
	return w.stepAll(ctx, slot, refused)
}

func (w *drainWorker) stepAll(ctx context.Context, slot *slot, batches []store.Batch) error {
	for i, b := range batches {
		if err := w.step(ctx, slot, b); err != nil && !errors.Is(err, store.ErrLeaseLost) {
			return w.postpone(ctx, batches[i:], err)
		}
	}
	return nil
}

// postpone gives batches back after an error that is not about a capture: the
// database is busy, away or shutting down.
func (w *drainWorker) postpone(ctx context.Context, batches []store.Batch, cause error) error {
	delay := 5 * time.Second
	if w.stopped(ctx) {
		delay = 0
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := w.store.Postpone(ctx, leases(batches), delay, store.Code(cause), store.IsRetryable(cause)); err != nil {
		return errors.Join(cause, err) // their leases run out
	}
	return cause
}

// settleRuns moves the runs on whose last batches these were.
func (w *drainWorker) settleRuns(ctx context.Context, batches []store.Batch) error {
	var runs []int64
	for _, b := range batches {
		if b.RunID != nil && !slices.Contains(runs, *b.RunID) {
			runs = append(runs, *b.RunID)
		}
	}
	for _, run := range runs {
		if err := w.store.SettleRun(ctx, run); err != nil {
			return err
		}
	}
	return nil
}

// heartbeat keeps the leases of batches alive until the returned function is
// called. A beat that fails is not reported: should the lease be lost over it,
// the fence says so.
func (w *drainWorker) heartbeat(ctx context.Context, batches []store.Batch) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(w.cfg.Lease / 3)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				_ = w.store.Extend(ctx, leases(batches), w.cfg.Lease)
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

func leases(batches []store.Batch) []store.Lease {
	out := make([]store.Lease, len(batches))
	for i, b := range batches {
		out[i] = b.Lease
	}
	return out
}
