// Package jobs joins store and the extractors into the pipeline: River jobs that
// drain batches of captures, and the schedule that keeps them going.
//
// River is the wakeup and the scheduler; the batch row is the durable fact. A
// lost, doubled or late job therefore costs time and never a capture.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
	"github.com/robfig/cron/v3"

	"github.com/justfortytwo/backfill/extract"
	"github.com/justfortytwo/backfill/extract/llm"
	"github.com/justfortytwo/backfill/migrations"
	"github.com/justfortytwo/backfill/store"
)

// Slot binds a row of backfill.extractor to the code that executes it.
type Slot struct {
	// ID and Name are the slot's number and name; the name is also its queue.
	ID   int16
	Name string
	// Version is the version the extractor implements. Batches of another
	// version are left to workers that implement that one.
	Version   string
	Extractor extract.SalienceExtractor
	Options   extract.Options

	// Model, where set, stands in Extractor's place: captures are taken one by one,
	// and their failures are told apart. It is called once, with the budget that
	// all processes share.
	Model func(llm.Budget) (*llm.Extractor, error)
	// Daily limits what the model may use.
	Daily DailyLimit
	// Fallback extracts what the model refuses or cannot answer; FallbackName goes
	// on record. Default nil: nothing does.
	Fallback     extract.SalienceExtractor
	FallbackName string
	// Workers is the number of drains of this slot. Default 0: Config.Workers.
	Workers int
}

// Config of a [Client].
type Config struct {
	// Slots are the extractors this process runs. At least one.
	Slots []Slot
	// Workers is the number of drains at once per slot, one of which only takes
	// live turns. Default 0: one more than GOMAXPROCS, at least 2.
	Workers int
	// Lease is how long a batch stays ours without a heartbeat, and so how long
	// work rests after a crash. Default 20 seconds.
	Lease time.Duration
	// MaxAttempts is the attempt after which a capture is dead. Default 5.
	MaxAttempts int16
	// Backoff is the pause after the given number of failed attempts. Default:
	// one minute, four times as long each time, with a fifth of jitter.
	Backoff func(attempts int16) time.Duration
	// Outage is the pause after so many failures of a model's endpoint in a row.
	// Default: two seconds, doubling to five minutes, with a fifth of jitter.
	Outage func(failures int32) time.Duration
	// Hold says when the database is too busy for backfills. Default: never.
	Hold store.Thresholds
	// SoftStop is how long Stop waits for work in hand. Default 8 seconds.
	SoftStop time.Duration
	// Nightly is when the reconciler runs. Default nil: never.
	Nightly cron.Schedule
	// Location is the time zone of Nightly. Default time.Local.
	Location *time.Location
	// PollOnly does without LISTEN, for proxies that pool transactions.
	PollOnly bool
	// Name is unique to this process. Default host name and process id.
	Name string
	// Logger receives what nobody else hears of. Default: slog's default.
	Logger *slog.Logger
	// Now is the clock of the nightly schedule. Default time.Now.
	Now func() time.Time
}

// Limits that are facts of the design rather than settings.
const (
	// sweepEvery bounds how late work is noticed that nobody announced.
	sweepEvery = 10 * time.Second
	// drainFor is how long one drain job goes on before it makes way.
	drainFor = 30 * time.Second
	// maxTextBytes is the longest text that is extracted.
	maxTextBytes = 8 << 20
	// flushBytes of results are held before they are written.
	flushBytes = 8 << 20
	// flushAfter so long they are written anyway: a slow extractor, or a slow
	// database, gets smaller transactions.
	flushAfter = 5 * time.Second
	// crashClaims of a capture that stands alone, all of which ended with the
	// worker, make it a crasher. The first may have been among others; that
	// workers were killed for other reasons at that very moment twice more is
	// unlikely, but that it happened once was seen when they were killed at random.
	crashClaims = 3
	// maxClaims without any progress make a batch dead.
	maxClaims = 5
)

func (c Config) withDefaults() Config {
	if c.Workers == 0 {
		c.Workers = runtime.GOMAXPROCS(0) + 1
	}
	if c.Lease == 0 {
		c.Lease = 20 * time.Second
	}
	if c.MaxAttempts == 0 {
		c.MaxAttempts = 5
	}
	if c.Backoff == nil {
		c.Backoff = backoff
	}
	if c.Outage == nil {
		c.Outage = outage
	}
	if c.SoftStop == 0 {
		c.SoftStop = 8 * time.Second
	}
	if c.Location == nil {
		c.Location = time.Local
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Slots = slices.Clone(c.Slots)
	for i := range c.Slots {
		if c.Slots[i].Workers == 0 {
			c.Slots[i].Workers = c.Workers
		}
	}
	if c.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "localhost"
		}
		c.Name = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	return c
}

func (c Config) validate() error {
	if len(c.Slots) == 0 {
		return errors.New("Config.Slots is empty: give at least one extractor")
	}
	for _, s := range c.Slots {
		if s.ID <= 0 || s.Name == "" || s.Version == "" || (s.Extractor == nil) == (s.Model == nil) {
			return fmt.Errorf("Config.Slots: slot %d %q needs ID, Name, Version, and Extractor or Model", s.ID, s.Name)
		}
		if s.Workers == 1 || s.Workers < 0 {
			return fmt.Errorf("Config.Slots: slot %q has %d workers: it must be at least 2, one of which is kept for live turns", s.Name, s.Workers)
		}
	}
	if c.Workers < 2 {
		return fmt.Errorf("Config.Workers is %d: it must be at least 2, one of which is kept for live turns", c.Workers)
	}
	if c.Lease < time.Second {
		return fmt.Errorf("Config.Lease is %s: it must be at least 1s", c.Lease)
	}
	return nil
}

// Client works batches until it is stopped.
type Client struct {
	cfg   Config
	store *store.Store
	river *river.Client[pgx.Tx]
	// stopping is closed when Stop begins: drains give back what they have not
	// done, with the attempt.
	stopping chan struct{}
	stop     sync.Once
	drain    *drainWorker
	looking  sync.WaitGroup
	notifier *notifier
}

// New prepares a client on a pool of at least [Config.Conns] connections.
func New(pool *pgxpool.Pool, cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	st := store.New(pool)
	c := &Client{cfg: cfg, store: st, stopping: make(chan struct{}), notifier: &notifier{store: st, log: cfg.Logger, slots: map[string]bool{}}}

	drain, err := newDrainWorker(st, cfg, c.stopping)
	if err != nil {
		return nil, err
	}
	drain.notifier, c.drain = c.notifier, drain
	workers := river.NewWorkers()
	river.AddWorker(workers, drain)
	river.AddWorker(workers, &probeWorker{store: st, cfg: cfg, slots: drain.slots})
	river.AddWorker(workers, &sweepWorker{store: st, hold: cfg.Hold})
	river.AddWorker(workers, &nightlyWorker{store: st, cfg: cfg})
	river.AddWorker(workers, &planWorker{store: st, stopping: c.stopping})

	queues := map[string]river.QueueConfig{sweepQueue: {MaxWorkers: 1}, nightlyQueue: {MaxWorkers: 1}, planQueue: {MaxWorkers: 1}}
	for _, s := range cfg.Slots {
		queues[s.Name] = river.QueueConfig{MaxWorkers: s.Workers}
		if s.Model != nil {
			queues[probeQueue] = river.QueueConfig{MaxWorkers: 1}
		}
	}
	c.river, err = river.NewClient(riverpgxv5.New(pool), &river.Config{
		ID:      cfg.Name,
		Schema:  migrations.RiverSchema,
		Logger:  slog.New(stopHandler{cfg.Logger.Handler(), c.stopping}),
		Queues:  queues,
		Workers: workers,

		PeriodicJobs: []*river.PeriodicJob{
			every(sweepEvery, sweepQueue, sweepArgs{}), every(time.Minute, nightlyQueue, nightlyArgs{}), every(time.Minute, planQueue, planArgs{}),
		},
		PollOnly: cfg.PollOnly,
		// A pinned job becomes fetchable when the inserter commits, and nothing
		// notifies us then.
		FetchPollInterval: 250 * time.Millisecond,
		FetchCooldown:     10 * time.Millisecond,
		// River's own rescue is not a lease: ours is on the batch.
		JobTimeout:                  5 * time.Minute,
		RescueStuckJobsAfter:        10 * time.Minute,
		CompletedJobRetentionPeriod: time.Hour,
		SoftStopTimeout:             cfg.SoftStop,
		ErrorHandler:                errorHandler{cfg.Logger},
	})
	if err != nil {
		return nil, fmt.Errorf("preparing River: %w", err)
	}
	return c, nil
}

// Conns is the number of connections a client with this configuration can use at
// once: two per drain, and some for River.
func (c Config) Conns() int32 {
	n := int32(4)
	for _, s := range c.withDefaults().Slots {
		n += 2 * int32(s.Workers)
	}
	return n
}

// Start begins to work. Cancelling ctx stops at once; prefer [Client.Stop].
func (c *Client) Start(ctx context.Context) error {
	for _, s := range c.cfg.Slots {
		if s.Model != nil { // whoever restarts a worker may have mended what stopped it
			if err := c.store.ProbeSlot(ctx, s.ID); err != nil {
				return err
			}
		}
	}
	// River's schedule waits for a leader, which after a crash takes a while.
	if _, err := c.store.Sweep(ctx); err != nil {
		return err
	}
	if err := c.river.Start(ctx); err != nil {
		return fmt.Errorf("starting River: %w", err)
	}
	c.looking.Go(func() { c.drain.lookOut(ctx, c.river) })
	return nil
}

// Stop gives back what is not begun, waits for what is in hand, and returns when
// everything is written.
func (c *Client) Stop(ctx context.Context) error {
	c.stop.Do(func() { close(c.stopping) })
	if err := c.river.Stop(ctx); err != nil {
		return fmt.Errorf("stopping River: %w", err)
	}
	c.looking.Wait()
	c.notifier.send()
	return nil
}

// River is the client underneath, for inserting jobs and for River's UI.
func (c *Client) River() *river.Client[pgx.Tx] { return c.river }

// errorHandler logs job errors. River also stores them in the job row, which is
// why no error of ours carries text of a capture.
type errorHandler struct{ log *slog.Logger }

func (h errorHandler) HandleError(ctx context.Context, job *rivertype.JobRow, err error) *river.ErrorHandlerResult {
	h.log.ErrorContext(ctx, "job failed", "kind", job.Kind, "queue", job.Queue, "attempt", job.Attempt, "error", err)
	return nil
}

func (h errorHandler) HandlePanic(ctx context.Context, job *rivertype.JobRow, _ any, trace string) *river.ErrorHandlerResult {
	h.log.ErrorContext(ctx, "job panicked", "kind", job.Kind, "queue", job.Queue, "attempt", job.Attempt, "trace", trace)
	return nil
}
