package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/justfortytwo/backfill/store"
)

// watchEvery is how often --watch looks again.
const watchEvery = time.Second

func (a *app) statusCmd() *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use:   "status [RUN]",
		Short: "Show what stands where, or how far a run has come",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			show := a.status
			if len(args) == 1 {
				run, err := number("run", args[0])
				if err != nil {
					return a.usage(cmd, err)
				}
				show = (&runWatch{app: a, id: run}).show
			}
			ctx := cmd.Context()
			st, closePool, err := a.connect(ctx, 0)
			if err != nil {
				return err
			}
			defer closePool()
			for {
				end, err := show(ctx, st)
				if err != nil || !watch || end {
					return err
				}
				select {
				case <-ctx.Done():
					return nil
				case <-time.After(watchEvery):
				}
			}
		},
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "look again every second, until a run has ended")
	return cmd
}

// number parses an argument that is a number.
func number(what, arg string) (int64, error) {
	n, err := strconv.ParseInt(arg, 10, 64)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is not the number of a %s", arg, what)
	}
	return n, nil
}

func (a *app) status(ctx context.Context, st *store.Store) (end bool, err error) {
	all, err := st.Status(ctx)
	if err != nil {
		return false, err
	}
	if a.json {
		return false, writeJSONLines(a, all)
	}
	err = table(a.stdout, "EXTRACTOR VERSION STAGED EMPTY SKIPPED UNDONE PENDING LEASED HELD RETRY DEAD CANDIDATES OLDEST", func(row func(...any)) {
		for _, s := range all {
			oldest := "-"
			if s.OldestPending != nil {
				oldest = s.OldestPending.Round(time.Second).String()
			}
			row(s.Extractor, deref(s.Version), s.Staged, s.Empty, s.Skipped, s.Undone, s.Pending, s.Leased, s.Held, s.Retry, s.Dead, s.Candidates, oldest)
		}
	})
	for _, s := range all {
		if s.StoppedAt != nil {
			fmt.Fprintf(a.stdout, "%s is stopped since %s: %s\n  → %s\n", s.Extractor, when(s.StoppedAt), deref(s.StopReason), deref(s.StopFix))
		}
	}
	return false, err
}

// runWatch remembers the last look at a run, to tell its pace.
type runWatch struct {
	app  *app
	id   int64
	rate float64 // captures a second, moving average
	done int64
	at   time.Time
}

func (w *runWatch) show(ctx context.Context, st *store.Store) (end bool, err error) {
	run, err := st.Run(ctx, w.id)
	if err != nil {
		return false, err
	}
	reason, recent, err := stall(ctx, st, run)
	if err != nil {
		return false, err
	}
	eta := w.pace(run, recent)
	if w.app.json {
		var seconds *int64
		if eta > 0 {
			s := int64(eta.Seconds())
			seconds = &s
		}
		return run.Finished(), w.app.writeJSON(map[string]any{
			"run": run.ID, "state": run.State, "total": run.Total, "done": run.Done, "outcomes": run.Outcomes,
			"rate": w.rate, "eta_seconds": seconds, "cost": run.Cost, "reason": reason,
		})
	}
	line := fmt.Sprintf("run %d  %s  %d/%d", run.ID, run.State, run.Done, run.Total)
	switch {
	case run.PlannedAt == nil:
		line += " so far"
	case run.Total > 0:
		line += fmt.Sprintf(" (%.1f%%)", 100*float64(run.Done)/float64(run.Total))
	}
	switch {
	case w.rate >= 10:
		line += fmt.Sprintf("  %.0f/s", w.rate)
	case w.rate >= 0.01:
		line += fmt.Sprintf("  %.2g/s", w.rate)
	}
	if eta > 0 {
		line += "  ETA " + eta.Round(time.Second).String()
	}
	line += "  " + outcomes(run.Outcomes)
	if run.Cost != nil {
		line += "  " + dollars(*run.Cost)
	}
	if reason != "" {
		line += "  — " + reason
	}
	fmt.Fprintln(w.app.stdout, line)
	return run.Finished(), nil
}

// pace updates the rate and returns the time left; 0 when that is anybody's guess:
// below one per cent, or at rest. The first look goes by what the run did in the last
// minute.
func (w *runWatch) pace(run store.Run, recent float64) time.Duration {
	now := time.Now()
	if w.at.IsZero() {
		w.rate = recent
	} else {
		current := float64(run.Done-w.done) / now.Sub(w.at).Seconds()
		w.rate = 0.7*w.rate + 0.3*current
	}
	if run.State != "running" && run.State != "planning" {
		w.rate = 0 // it rests
	}
	w.at, w.done = now, run.Done
	if w.rate < 0.01 || run.PlannedAt == nil || run.Done*100 < run.Total {
		return 0
	}
	return time.Duration(float64(run.Total-run.Done) / w.rate * float64(time.Second))
}

// workerGone is how long a worker may be silent: the sweep alone is a job every ten
// seconds.
const workerGone = 30 * time.Second

// stall says why a run is not moving, or why nothing of it is in hand, and how many
// captures a second it did in the last minute.
func stall(ctx context.Context, st *store.Store, run store.Run) (reason string, rate float64, err error) {
	switch run.State {
	case "planning", "running":
	case "pausing", "cancelling":
		reason, err = inHand(ctx, st, run)
		return reason, 0, err
	case "paused", "cancelled":
		reason, err = whoAsked(ctx, st, run)
		return reason, 0, err
	case "succeeded", "finished_with_errors":
		waiting, err := st.Waiting(ctx, run.ID)
		if waiting > 0 {
			reason = fmt.Sprintf("%s waiting for another attempt, on its account; `backfill cancel %d` gives them up", plural(waiting, "failure"), run.ID)
		}
		return reason, 0, err
	default:
		return orZero(run.Error), 0, nil
	}
	b, err := st.Blocked(ctx, run.ID)
	if err != nil {
		return "", 0, err
	}
	switch {
	case b.Working:
		return "", b.Rate, nil
	case b.StopReason != nil:
		return fmt.Sprintf("%s is stopped: %s → %s", run.Extractor, *b.StopReason, deref(b.StopFix)), b.Rate, nil
	case b.Hold != nil:
		return "held: " + *b.Hold, b.Rate, nil
	}
	switch {
	case b.SeenWorker == nil:
		reason = "waiting for a worker: none has been seen"
	case time.Since(*b.SeenWorker) > workerGone:
		reason = fmt.Sprintf("waiting for a worker: none seen for %s", time.Since(*b.SeenWorker).Round(time.Second))
	case b.Error != nil:
		reason = fmt.Sprintf("%s; again in %s", *b.Error, b.Again.Round(time.Second))
	case b.Untaken != nil && *b.Untaken > workerGone && b.Rate == 0:
		reason = fmt.Sprintf("no worker has taken any of it for %s: they are busy, or none runs %s version %s", b.Untaken.Round(time.Second), run.Extractor, deref(b.Version))
	}
	return reason, b.Rate, nil
}

// inHand is what a run that is to pause or to end waits for.
func inHand(ctx context.Context, st *store.Store, run store.Run) (string, error) {
	reason, err := whoAsked(ctx, st, run)
	if err != nil {
		return "", err
	}
	held, err := st.Held(ctx, run.ID)
	if err != nil {
		return "", err
	}
	verb := "pause"
	if run.State == "cancelling" {
		verb = "cancel"
	}
	switch {
	case held.Batches > 0:
		reason += fmt.Sprintf(": %s in work at %s, for %s at most; `backfill %s %d --force` does not wait", plural(held.Batches, "batch"),
			oneLine(held.Workers, 200), held.Until.Round(time.Second), verb, run.ID)
	case held.SeenWorker == nil || time.Since(*held.SeenWorker) > workerGone:
		reason += fmt.Sprintf(": no worker is there to complete it; `backfill %s %d` does", verb, run.ID)
	}
	return reason, nil
}

// whoAsked is "paused by ines".
func whoAsked(ctx context.Context, st *store.Store, run store.Run) (string, error) {
	events, err := st.Events(ctx, run.ID)
	if err != nil {
		return "", err
	}
	for _, e := range slices.Backward(events) {
		if e.From != e.To && (e.To == "pausing" || e.To == "cancelling") {
			return run.State + " by " + oneLine(e.Who, 100), nil
		}
	}
	return run.State, nil
}

// outcomes is "12 staged, 3 empty".
func outcomes(by map[store.Outcome]int64) string {
	if len(by) == 0 {
		return "nothing done"
	}
	var parts []string
	for _, o := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, fmt.Sprintf("%d %s", by[o], o))
	}
	return strings.Join(parts, ", ")
}
