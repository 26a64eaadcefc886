package jobs

import (
	"context"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// Drain works what is due of a slot like one drain job does, in the caller's
// goroutine and without River. It ends early when stopping is closed.
func (c *Client) Drain(ctx context.Context, slot string, stopping <-chan struct{}) error {
	drain, err := newDrainWorker(c.store, c.cfg, stopping)
	if err != nil {
		return err
	}
	drain.notifier = c.notifier
	return drain.Work(ctx, &river.Job[drainArgs]{JobRow: &rivertype.JobRow{Queue: slot}})
}

// Backoff is the default of Config.Backoff.
func Backoff(attempts int16) time.Duration { return backoff(attempts) }
