package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/user"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/justfortytwo/backfill/jobs"
	"github.com/justfortytwo/backfill/store"
)

type runOptions struct {
	extractor, reprocess, why, order     string
	since, until, ids, sample            string
	sources                              []string
	limit                                int64
	settings                             map[string]*string
	wait, local, nightly, dry, show, yes bool
}

func (a *app) runCmd() *cobra.Command {
	o := runOptions{settings: map[string]*string{}}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Plan a backfill run, and follow or work it",
		Long: `Plan a run over captures and leave it to the workers. With --wait, follow it to
its end; with --local, work it in this process, together with every batch that is
already open, until nothing is due. Should this command be killed while it plans,
the workers go on.

--reprocess says which captures: missing (no result yet), failed (given up, for
whatever reason), stale (done by another version) or all. The last two replace
candidates that were not handed over yet; those that were stay, and the new ones of
the same capture name them in meta.supersedes.

--since and --until look at when a capture occurred or, where that is unknown, at
when it was stored. A date stands for the whole day in $BACKFILL_TIME_ZONE.

--dry-run says what the run would take, replace and cost, and writes nothing; with
--print it also shows the candidates of the first --limit captures.

Exit status 1 if the run was cancelled, failed, was paused, or stopped at its
--max-cost or --deadline: "backfill resume" lets it go on from there.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := noneEmpty(cmd, append(settingKeys(), "since", "until", "ids", "limit", "sample")...); err != nil {
				return a.usage(cmd, err)
			}
			spec, err := a.runSpec(o)
			if err != nil {
				return a.usage(cmd, err)
			}
			var unknown *store.UnknownExtractorError
			if err := a.run(cmd.Context(), o, spec); errors.As(err, &unknown) {
				return a.usage(cmd, fmt.Errorf("--extractor: %w", err))
			} else if err != nil {
				return err
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.extractor, "extractor", "", "whose results: heuristic or llm (default heuristic, and with --nightly all that it looks after)")
	f.StringVar(&o.reprocess, "reprocess", "missing", "missing, failed, stale or all")
	f.StringVar(&o.since, "since", "", "only captures from this date or time (RFC 3339) on")
	f.StringVar(&o.until, "until", "", "only captures up to and including this date, or before this time")
	f.StringArrayVar(&o.sources, "source", nil, "only captures of this source; can be repeated")
	f.StringVar(&o.ids, "ids", "", "only these captures, separated by commas; - reads them from stdin")
	f.Int64Var(&o.limit, "limit", 0, "only the first so many")
	f.StringVar(&o.sample, "sample", "", "only this share of them, such as 1%: always the same ones, and a part of every larger share")
	f.StringVar(&o.order, "order", "oldest", "oldest or newest first, by when they were stored")
	f.StringVar(&o.why, "reason", "", "for the record")
	for _, k := range settingKeys() {
		o.settings[k] = f.String(k, "", settingHelp[k])
	}
	f.BoolVar(&o.wait, "wait", false, "wait for the workers to finish it")
	f.BoolVar(&o.local, "local", false, "work it in this process")
	f.BoolVar(&o.nightly, "nightly", false, "what the workers do every night, if it was not done yet: missing and failed captures")
	f.BoolVar(&o.dry, "dry-run", false, "say what it would take, and do nothing")
	f.BoolVar(&o.show, "print", false, "with --limit: a dry run that shows the candidates")
	f.BoolVar(&o.yes, "yes", false, "replace results of a model without asking")
	cmd.MarkFlagsMutuallyExclusive("wait", "local", "dry-run")
	cmd.MarkFlagsMutuallyExclusive("wait", "local", "print")
	for _, other := range []string{"reprocess", "since", "until", "source", "ids", "limit", "sample", "order", "print"} {
		cmd.MarkFlagsMutuallyExclusive("nightly", other)
	}
	return cmd
}

func (a *app) run(ctx context.Context, o runOptions, spec store.NewRun) error {
	cfg, err := a.cfg.Jobs(a.logger())
	if err != nil {
		return err
	}
	st, closePool, err := a.connect(ctx, cfg.Conns())
	if err != nil {
		return err
	}
	defer closePool()

	extractors, err := whose(ctx, st, o)
	if err != nil {
		return err
	}
	if err := a.checkIDs(ctx, st, spec.IDs); err != nil {
		return err
	}
	var runs []int64
	for _, x := range extractors {
		spec.Extractor = x.ID
		run, err := a.begin(ctx, o, st, cfg, x, spec)
		if err != nil {
			return err
		}
		if run != 0 {
			runs = append(runs, run)
		}
	}
	switch {
	case o.local && len(runs) > 0:
		return a.local(ctx, st, cfg, runs)
	case o.wait:
		return eachRun(runs, func(run int64) error { return a.follow(ctx, st, run) })
	}
	return nil
}

// whose are the extractors that the options name.
func whose(ctx context.Context, st *store.Store, o runOptions) ([]store.Extractor, error) {
	if o.nightly && o.extractor == "" {
		return st.NightlySlots(ctx)
	}
	x, err := st.Extractor(ctx, cmp.Or(o.extractor, "heuristic"))
	return []store.Extractor{x}, err
}

// begin plans a run of one extractor, unless it is to be looked at only: then the run
// is 0.
func (a *app) begin(ctx context.Context, o runOptions, st *store.Store, cfg jobs.Config, x store.Extractor, spec store.NewRun) (run int64, err error) {
	if x.AsksModel() && spec.Settings.MaxCost > 0 {
		switch {
		case o.show:
			return 0, errors.New("--print asks the model outside of any run, so that --max-cost cannot bound it: --limit does")
		case a.cfg.LLM.Model != "" && a.cfg.LLM.Config().Unpriced():
			return 0, errors.New("--max-cost needs the price of the model: set BACKFILL_LLM_PRICES, here and for the workers")
		}
	}
	switch {
	case o.show:
		if err := a.preview(ctx, st, cfg, x, spec); err != nil {
			return 0, err
		}
		fallthrough
	case o.dry:
		return 0, a.dryRun(ctx, st, x, spec)
	case x.AsksModel() && spec.Reprocess.Replaces() && !o.yes:
		if err := a.confirmRun(ctx, st, x, spec); err != nil {
			return 0, err
		}
	}
	return a.plan(ctx, st, o, spec)
}

// checkIDs says which of the given ids are no captures.
func (a *app) checkIDs(ctx context.Context, st *store.Store, ids []int64) error {
	none, err := st.NoCaptures(ctx, ids)
	if err != nil || len(none) == 0 {
		return err
	}
	named := make([]string, min(len(none), 5))
	for i := range named {
		named[i] = strconv.FormatInt(none[i], 10)
	}
	more := ""
	if len(none) > len(named) {
		more = ", …"
	}
	fmt.Fprintf(a.stderr, "%d of the ids are no captures: %s%s\n", len(none), strings.Join(named, ", "), more)
	return nil
}

// plan creates the run, joins the workers in planning it, and says so. A nightly that
// is there already is taken as it is.
func (a *app) plan(ctx context.Context, st *store.Store, o runOptions, spec store.NewRun) (int64, error) {
	id, err := st.CreateRun(ctx, spec)
	if errors.Is(err, store.ErrRunExists) {
		if id, err = st.NightlyRun(ctx, spec); err != nil {
			return 0, err
		}
		fmt.Fprintf(a.stderr, "this night's run was started already: it is run %d, with the settings it has\n", id)
	}
	if err != nil {
		return 0, err
	}
	if err := st.Plan(ctx, id); err != nil {
		if ctx.Err() != nil {
			fmt.Fprintf(a.stderr, "the workers go on planning run %d; `backfill cancel %d` stops it\n", id, id)
		}
		return 0, err
	}
	run, err := st.Run(ctx, id)
	if err != nil {
		return 0, err
	}
	switch {
	case a.json && (o.wait || o.local): // runEnd writes the one line
		return id, nil
	case a.json:
		return id, a.writeJSON(map[string]any{"run": run.ID, "state": run.State, "batches": run.Batches, "captures": run.Total})
	}
	fmt.Fprintf(a.stdout, "run %d: %s in %s\n", run.ID, plural(run.Total, "capture"), plural(run.Batches, "batch"))
	if run.Total > 0 {
		return id, nil
	}
	all, err := st.Status(ctx)
	if err != nil {
		return 0, err
	}
	for _, s := range all {
		if s.Extractor == run.Extractor && s.Held > 0 {
			fmt.Fprintf(a.stderr, "%s held by runs that rest: `backfill runs` lists them\n", plural(s.Held, "capture"))
		}
		if s.Extractor == run.Extractor && s.Open() > 0 {
			fmt.Fprintf(a.stderr, "%s queued already, outside of this run: `backfill status` follows them\n", plural(s.Open(), "capture"))
		}
	}
	return id, nil
}

func osUser() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

// logger is where the in-process worker reports to: stderr, and only trouble.
func (a *app) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: max(slog.LevelWarn, a.cfg.LogLevel)}))
}
