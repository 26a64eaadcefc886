package jobs

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/riverqueue/river"
	"github.com/robfig/cron/v3"

	"github.com/justfortytwo/backfill/store"
)

// Queues of the periodic jobs. They are apart from each other because planning
// millions of captures takes minutes, and the sweep must not wait for that.
const (
	sweepQueue   = "sweep"
	nightlyQueue = "nightly"
	planQueue    = "plan"
)

// every is a periodic job that is never retried: the next tick is the retry.
func every(interval time.Duration, queue string, args river.JobArgs) *river.PeriodicJob {
	return river.NewPeriodicJob(river.PeriodicInterval(interval), func() (river.JobArgs, *river.InsertOpts) {
		return args, &river.InsertOpts{Queue: queue, MaxAttempts: 1}
	}, &river.PeriodicJobOpts{RunOnStart: true})
}

type sweepArgs struct{}

func (sweepArgs) Kind() string { return "sweep" }

// sweepWorker finds due work, and candidates to hand over, that nobody announced, and
// sums up what is closed.
type sweepWorker struct {
	river.WorkerDefaults[sweepArgs]
	store *store.Store
	hold  store.Thresholds
}

// Work looks at the database's health first, so that what is woken knows.
func (w *sweepWorker) Work(ctx context.Context, _ *river.Job[sweepArgs]) error {
	_, err := w.store.Regulate(ctx, w.hold)
	_, sweepErr := w.store.Sweep(ctx)
	return errors.Join(err, sweepErr, w.store.Fold(ctx), w.store.NotifyWaiting(ctx))
}

// planArgs is empty: what to plan is in the run rows.
type planArgs struct{}

func (planArgs) Kind() string { return "plan" }

// planWorker plans runs, whoever created them. It takes one step of each in turn,
// so that a small run need not wait for a large one.
type planWorker struct {
	river.WorkerDefaults[planArgs]
	store    *store.Store
	stopping <-chan struct{}
}

// planFor is how long one plan job goes on before it makes way.
const planFor = time.Minute

func (w *planWorker) Work(ctx context.Context, _ *river.Job[planArgs]) error {
	for until := time.Now().Add(planFor); time.Now().Before(until); {
		runs, err := w.store.PlanningRuns(ctx)
		if err != nil || len(runs) == 0 {
			return err
		}
		for _, run := range runs {
			select {
			case <-w.stopping:
				return nil // the next worker goes on
			default:
			}
			if _, stepErr := w.store.PlanStep(ctx, run); stepErr != nil {
				err = errors.Join(err, fmt.Errorf("run %d: %w", run, stepErr))
			}
		}
		if err != nil {
			return err
		}
	}
	return w.store.WakePlanner(ctx)
}

type nightlyArgs struct{}

func (nightlyArgs) Kind() string { return "nightly" }

// nightlyWorker ticks every minute. The schedule says which night it is, and the
// unique run row makes sure that each night is run once, whoever ticks: River
// keeps schedules in its leader's memory only.
type nightlyWorker struct {
	river.WorkerDefaults[nightlyArgs]
	store *store.Store
	cfg   Config
}

func (w *nightlyWorker) Work(ctx context.Context, _ *river.Job[nightlyArgs]) error {
	if w.cfg.Nightly == nil {
		return nil // another worker's schedule
	}
	night, ok := lastFire(w.cfg.Nightly, w.cfg.Now().In(w.cfg.Location))
	if !ok {
		return nil
	}
	return Nightly(ctx, w.store, night)
}

// lastFire is the latest time at or before now at which the schedule fired, within
// the last two days. It is read off a wall clock that never changes: a time that the
// change to summer skips has come when the skipped hour is over, and one that comes
// twice in autumn is the same.
func lastFire(s cron.Schedule, now time.Time) (last time.Time, ok bool) {
	now = time.Date(now.Year(), now.Month(), now.Day(), now.Hour(), now.Minute(), now.Second(), now.Nanosecond(), time.UTC)
	for t := s.Next(now.Add(-48 * time.Hour)); !t.IsZero() && !t.After(now); t = s.Next(t) {
		last, ok = t, true
	}
	return last, ok
}

// Nightly reconciles every slot that takes part: a run for captures that have no
// result for whatever reason, and for failures worth another try. Only the first call
// for a night does anything.
func Nightly(ctx context.Context, st *store.Store, night time.Time) error {
	slots, err := st.NightlySlots(ctx)
	if err != nil {
		return err
	}
	for _, slot := range slots {
		run, err := st.CreateRun(ctx, NightlyRun(slot.ID, night))
		if errors.Is(err, store.ErrRunExists) {
			continue
		}
		if err != nil {
			return err
		}
		if err := st.Plan(ctx, run); err != nil {
			return err
		}
	}
	return nil
}

// NightlyRun describes the nightly run of a slot. Only one can be created for the
// date of night, in the zone it is given in.
func NightlyRun(slot int16, night time.Time) store.NewRun {
	return store.NewRun{
		Kind: store.KindNightly, Extractor: slot, Reprocess: store.ReprocessMissing, Why: "nightly",
		LocalDate: time.Date(night.Year(), night.Month(), night.Day(), 0, 0, 0, 0, time.UTC),
	}
}

// backoff is a minute after the first failure and four times as long after each
// further one, give or take a fifth so that failures do not return in step.
func backoff(attempts int16) time.Duration {
	d := time.Minute
	for range min(attempts, 6) - 1 {
		d *= 4
	}
	return jitter(d)
}

// jitter is d, give or take a fifth.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64())) //nolint:gosec // no secret
}
