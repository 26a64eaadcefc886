package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/user"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/justfortytwo/backfill/jobs"
	"github.com/justfortytwo/backfill/store"
)

// pollEvery is how often a run that is waited for is looked at.
const pollEvery = 200 * time.Millisecond

// extractors are the slots by name.
//
//nolint:gochecknoglobals // a constant
var extractors = map[string]int16{"heuristic": 1}

type runOptions struct {
	extractor, reprocess, why string
	wait, local, nightly      bool
}

func (a *app) runCmd() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Plan a backfill run, and follow or work it",
		Long: `Plan a run over captures and leave it to the workers. With --wait, follow it to
its end; with --local, work it in this process, together with every batch that is
already open, until nothing is due.

--reprocess says which captures: missing (no result yet), failed (given up, for
whatever reason), stale (done by another version) or all. The last two replace candidates that were not
handed over yet.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return a.usage(cmd, err)
			}
			return a.run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.extractor, "extractor", "heuristic", "whose results")
	f.StringVar(&o.reprocess, "reprocess", "missing", "missing, failed, stale or all")
	f.StringVar(&o.why, "reason", "", "for the record")
	f.BoolVar(&o.wait, "wait", false, "wait for the workers to finish it")
	f.BoolVar(&o.local, "local", false, "work it in this process")
	f.BoolVar(&o.nightly, "nightly", false, "what the workers do every night, if it was not done yet: missing and failed captures")
	cmd.MarkFlagsMutuallyExclusive("wait", "local")
	cmd.MarkFlagsMutuallyExclusive("nightly", "reprocess")
	return cmd
}

func (o runOptions) validate() error {
	if _, ok := extractors[o.extractor]; !ok {
		return fmt.Errorf("--extractor %q is not known: use heuristic", o.extractor)
	}
	switch store.Reprocess(o.reprocess) {
	case store.ReprocessMissing, store.ReprocessFailed, store.ReprocessStale, store.ReprocessAll:
		return nil
	}
	return fmt.Errorf("--reprocess %q is not known: use missing, failed, stale or all", o.reprocess)
}

func (a *app) run(ctx context.Context, o runOptions) error {
	cfg, err := a.cfg.Jobs(a.logger())
	if err != nil {
		return err
	}
	st, closePool, err := a.connect(ctx, cfg.Conns())
	if err != nil {
		return err
	}
	defer closePool()

	run, err := a.plan(ctx, st, o)
	if err != nil {
		return err
	}
	if run == nil { // a nightly that was done already
		return nil
	}
	switch {
	case o.local:
		return a.local(ctx, st, cfg, run.ID)
	case o.wait:
		return a.follow(ctx, st, run.ID)
	}
	return nil
}

// plan creates the run and says so.
func (a *app) plan(ctx context.Context, st *store.Store, o runOptions) (*store.Run, error) {
	spec := store.NewRun{
		Kind: store.KindRun, Extractor: extractors[o.extractor], Reprocess: store.Reprocess(o.reprocess), Who: osUser(), Why: o.why,
	}
	if o.nightly {
		location, err := a.cfg.Location()
		if err != nil {
			return nil, err
		}
		spec = jobs.NightlyRun(spec.Extractor, time.Now().In(location))
		spec.Who = osUser()
	}
	id, err := st.CreateRun(ctx, spec)
	if errors.Is(err, store.ErrRunExists) {
		fmt.Fprintln(a.stderr, "this night's run was started already: `backfill runs` shows it")
		return nil, nil //nolint:nilnil // nothing to do is no error
	}
	if err != nil {
		return nil, err
	}
	if err := st.Plan(ctx, id); err != nil {
		return nil, err
	}
	run, err := st.Run(ctx, id)
	if err != nil {
		return nil, err
	}
	switch {
	case a.json && (o.wait || o.local): // runEnd writes the one line
		return &run, nil
	case a.json:
		return &run, a.writeJSON(map[string]any{"run": run.ID, "state": run.State, "batches": run.Batches, "captures": run.Total})
	}
	fmt.Fprintf(a.stdout, "run %d: %s in %s\n", run.ID, plural(run.Total, "capture"), plural(run.Batches, "batch"))
	if run.Total > 0 {
		return &run, nil
	}
	all, err := st.Status(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if s.Extractor == run.Extractor && s.Open() > 0 {
			fmt.Fprintf(a.stderr, "%s queued already, outside of this run: `backfill status` follows them\n", plural(s.Open(), "capture"))
		}
	}
	return &run, nil
}

func osUser() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

// local works the run, and whatever else is due, in this process.
func (a *app) local(ctx context.Context, st *store.Store, cfg jobs.Config, run int64) error {
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
	return a.runEnd(ctx, st, run)
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

// follow waits for a run that others work.
func (a *app) follow(ctx context.Context, st *store.Store, id int64) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	bar := newProgress(a.stderr, "run "+strconv.FormatInt(id, 10), false)
	defer bar.done()
	warned := time.Now()
	for {
		run, err := st.Run(ctx, id)
		if err != nil {
			return err
		}
		if run.Finished() {
			bar.done()
			return a.runEnd(ctx, st, id)
		}
		bar.set(run.Done, run.Total)
		if time.Since(warned) > 15*time.Second && run.Done == 0 {
			warned = time.Now()
			h, err := st.Health(ctx)
			if err != nil {
				return err
			}
			if h.SeenWorker == nil || time.Since(*h.SeenWorker) > time.Minute {
				fmt.Fprintln(a.stderr, "waiting for a worker: none has been seen for a minute; start `worker`, or use --local")
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
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
		fmt.Fprintf(a.stdout, "run %d: %s: %s, %s\n", run.ID, run.State, outcomes(run.Outcomes), plural(run.Candidates, "candidate"))
	}
	if run.Failed() > 0 || run.State == "finished_with_errors" {
		fmt.Fprintln(a.stderr, "some captures failed: `backfill failures` says why")
		return exit(exitItemErrors)
	}
	return nil
}

// logger is where the in-process worker reports to: stderr, and only trouble.
func (a *app) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: max(slog.LevelWarn, a.cfg.LogLevel)}))
}
