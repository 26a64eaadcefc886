package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/justfortytwo/backfill/jobs"
	"github.com/justfortytwo/backfill/store"
)

// pollEvery is how often a run that is waited for is looked at.
const pollEvery = 200 * time.Millisecond

// eachRun goes on after a run that did not end well, and returns the worst that
// happened: an error, or else that captures failed.
func eachRun(runs []int64, end func(run int64) error) error {
	var worst error
	for _, run := range runs {
		err := end(run)
		if _, failures := errors.AsType[exit](worst); err != nil && (worst == nil || failures) {
			worst = err
		}
	}
	return worst
}

// local works runs, and whatever else is due, in this process.
func (a *app) local(ctx context.Context, st *store.Store, cfg jobs.Config, runs []int64) error {
	cfg.Nightly = nil // this process is gone before the night
	before, err := st.Status(ctx)
	if err != nil {
		return err
	}
	if err := a.workUntilIdle(ctx, st, cfg); err != nil {
		return err
	}
	after, err := st.Status(ctx)
	if err != nil {
		return err
	}
	if !a.json {
		for i, s := range after {
			if done := s.Done() - before[i].Done(); done > 0 {
				fmt.Fprintf(a.stdout, "%s: %s done meanwhile: %d staged, %d empty, %d skipped, %s\n", s.Extractor, plural(done, "capture"),
					s.Staged-before[i].Staged, s.Empty-before[i].Empty, s.Skipped-before[i].Skipped, plural(s.Candidates-before[i].Candidates, "candidate"))
			}
		}
	}
	return eachRun(runs, func(run int64) error { return a.runEnd(ctx, st, run) })
}

// workUntilIdle drains everything that is due and waits for what is leased.
func (a *app) workUntilIdle(ctx context.Context, st *store.Store, cfg jobs.Config) error {
	client, err := jobs.New(st.Pool(), cfg)
	if err != nil {
		return err
	}
	if err := client.Start(ctx); err != nil {
		return err
	}
	bar := newProgress(a.stderr, "extracting", false)
	err = a.untilIdle(ctx, st, cfg, bar)
	bar.done()
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	return errors.Join(err, client.Stop(stopCtx))
}

func (a *app) untilIdle(ctx context.Context, st *store.Store, cfg jobs.Config, bar *progress) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var most int64
	for {
		var open int64
		for _, s := range cfg.Slots {
			n, err := st.Unfinished(ctx, s.ID, s.Version)
			if err != nil {
				return err
			}
			open += n
		}
		if open == 0 {
			return nil
		}
		most = max(most, open)
		bar.set(most-open, most)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// reasonEvery is how often a run that is waited for is asked what holds it up.
const reasonEvery = 5 * time.Second

// follow waits for a run that others work, until it ends or rests. What holds it up
// meanwhile is said whenever that changes.
func (a *app) follow(ctx context.Context, st *store.Store, id int64) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	bar := newProgress(a.stderr, "run "+strconv.FormatInt(id, 10), false)
	defer bar.done()
	asked, told := time.Now(), ""
	for {
		run, err := st.Run(ctx, id)
		if err != nil {
			return err
		}
		if run.Rests() {
			bar.done()
			return a.runEnd(ctx, st, id)
		}
		bar.set(run.Done, run.Total)
		if time.Since(asked) > reasonEvery {
			asked = time.Now()
			reason, _, err := stall(ctx, st, run)
			if err != nil {
				return err
			}
			// Without the figures in it, which change all the time.
			if kind := strings.Map(noDigit, reason); kind != told {
				if told = kind; reason != "" {
					bar.say(fmt.Sprintf("run %d: %s", id, reason))
				}
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func noDigit(r rune) rune {
	if unicode.IsDigit(r) {
		return -1
	}
	return r
}

// runEnd says what a run came to.
func (a *app) runEnd(ctx context.Context, st *store.Store, id int64) error {
	if err := st.SettleRun(ctx, id); err != nil {
		return err
	}
	run, err := st.Run(ctx, id)
	if err != nil {
		return err
	}
	if a.json {
		if err := a.writeJSON(map[string]any{
			"run": run.ID, "state": run.State, "batches": run.Batches, "captures": run.Total, "candidates": run.Candidates,
			"outcomes": run.Outcomes, "cost": run.Cost,
		}); err != nil {
			return err
		}
	} else {
		line := fmt.Sprintf("run %d: %s: %s, %s", run.ID, run.State, outcomes(run.Outcomes), plural(run.Candidates, "candidate"))
		if run.Cost != nil {
			line += ", " + dollars(*run.Cost)
		}
		fmt.Fprintln(a.stdout, line)
	}
	switch run.State {
	case "cancelled":
		return fmt.Errorf("run %d was cancelled", id)
	case "failed":
		return fmt.Errorf("run %d failed: %v", id, deref(run.Error))
	case "budget_exhausted":
		return fmt.Errorf("run %d has spent its budget: `backfill set %d max-cost=…` raises it, then `backfill resume %d`", id, id, id)
	case "paused":
		return fmt.Errorf("run %d is paused: `backfill resume %d` lets it go on", id, id)
	case "deadline_reached":
		return fmt.Errorf("run %d has reached its deadline: `backfill set %d deadline=…` moves it, then `backfill resume %d`", id, id, id)
	}
	if !run.Finished() {
		reason, _, err := stall(ctx, st, run)
		if err != nil {
			return err
		}
		return fmt.Errorf("run %d is not finished, %d of %d done: %s", id, run.Done, run.Total, cmp.Or(reason, "others work on it"))
	}
	if run.Failed() > 0 || run.State == "finished_with_errors" {
		fmt.Fprintln(a.stderr, "some captures failed: `backfill failures` says why")
		return exit(exitItemErrors)
	}
	return nil
}
