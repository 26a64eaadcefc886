package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/justfortytwo/backfill/store"
)

func (a *app) pauseCmd() *cobra.Command {
	return a.forceable(a.changeCmd("pause RUN", "Pause a run: nothing new is begun, what is in hand is finished or given back", (*store.Store).PauseRun))
}

func (a *app) resumeCmd() *cobra.Command {
	cmd, _ := a.changeCmd("resume RUN", "Let a run go on that rests", (*store.Store).ResumeRun)
	return cmd
}

func (a *app) cancelCmd() *cobra.Command {
	return a.forceable(a.changeCmd("cancel RUN", "End a run for good; what it has staged stays, see undo. Of one that has ended: give up its failures", (*store.Store).CancelRun))
}

func (a *app) forceable(cmd *cobra.Command, c *store.Change) *cobra.Command {
	cmd.Flags().BoolVar(&c.Force, "force", false, "do not wait for workers that hold batches of it: take them away; what such a worker does after all is refused")
	return cmd
}

func (a *app) changeCmd(use, short string, change func(*store.Store, context.Context, int64, store.Change) error) (*cobra.Command, *store.Change) {
	c := &store.Change{Who: osUser()}
	return &cobra.Command{
		Use:   use,
		Short: short,
		Args:  oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withRun(cmd, args[0], func(ctx context.Context, st *store.Store, id int64) error {
				if err := change(st, ctx, id, *c); err != nil {
					return err
				}
				run, err := st.Run(ctx, id)
				if err != nil {
					return err
				}
				if a.json {
					return a.writeJSON(run)
				}
				fmt.Fprintf(a.stdout, "run %d: %s, %d of %d done\n", run.ID, run.State, run.Done, run.Total)
				return nil
			})
		},
	}, c
}

// oneRun wants the number of a run.
func oneRun(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return errors.New("say which run, by its number: `backfill runs` lists them")
	}
	return nil
}

// withRun opens the database for a verb about one run.
func (a *app) withRun(cmd *cobra.Command, arg string, do func(context.Context, *store.Store, int64) error) error {
	id, err := number("run", arg)
	if err != nil {
		return a.usage(cmd, err)
	}
	st, closePool, err := a.connect(cmd.Context(), 0)
	if err != nil {
		return err
	}
	defer closePool()
	return do(cmd.Context(), st, id)
}

func (a *app) undoCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "undo RUN",
		Short: "Remove what a run has staged and was not handed over",
		Args:  oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withRun(cmd, args[0], func(ctx context.Context, st *store.Store, id int64) error {
				u, err := st.Undo(ctx, id, osUser())
				if err != nil {
					if u.Captures > 0 {
						fmt.Fprintf(a.stderr, "run %d: took back %s of %s until then\n", id, plural(u.Candidates, "candidate"), plural(u.Captures, "capture"))
					}
					return err
				}
				if a.json {
					return a.writeJSON(u)
				}
				fmt.Fprintf(a.stdout, "run %d: took back %s of %s\n", id, plural(u.Candidates, "candidate"), plural(u.Captures, "capture"))
				if u.Kept > 0 {
					fmt.Fprintf(a.stdout, "%s stay: handed over, or claimed by the memory service\n", plural(u.Kept, "candidate"))
				}
				return nil
			})
		},
	}
}

func (a *app) retryCmd() *cobra.Command {
	var f store.RetryFilter
	var outcome, ids string
	cmd := &cobra.Command{
		Use:   "retry [RUN]",
		Short: "Put failed captures into the queue at once, with all attempts before them",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && outcome == "" && ids == "" {
				return errors.New("say which: a run, --outcome or --ids; `backfill failures` lists them")
			}
			if failures := store.Failures(); outcome != "" && !slices.Contains(failures, store.Outcome(outcome)) {
				return fmt.Errorf("--outcome %q is not a failure: use one of %v", outcome, failures)
			}
			return cobra.MaximumNArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Outcome = store.Outcome(outcome)
			err := noneEmpty(cmd, "ids", "outcome")
			if err != nil {
				return a.usage(cmd, err)
			}
			if f.IDs, err = a.captureIDs(ids); err != nil {
				return a.usage(cmd, err)
			}
			if len(args) == 1 {
				if f.RunID, err = number("run", args[0]); err != nil {
					return a.usage(cmd, err)
				}
			}
			st, closePool, err := a.connect(cmd.Context(), 0)
			if err != nil {
				return err
			}
			defer closePool()
			outside := ""
			if f.RunID != 0 {
				run, err := st.Run(cmd.Context(), f.RunID)
				if err != nil {
					return err
				}
				if run.State == "cancelled" || run.State == "failed" {
					outside = fmt.Sprintf(", outside of run %d, which was %s: its bounds do not hold for them", run.ID, run.State)
				}
			}
			n, err := st.Retry(cmd.Context(), osUser(), f)
			if err != nil {
				if n > 0 {
					fmt.Fprintf(a.stderr, "%s queued until then\n", plural(n, "capture"))
				}
				return err
			}
			if a.json {
				return a.writeJSON(map[string]int64{"captures": n})
			}
			if n == 0 {
				outside = ""
			}
			fmt.Fprintf(a.stdout, "%s queued%s\n", plural(n, "capture"), outside)
			return nil
		},
	}
	cmd.Flags().StringVar(&outcome, "outcome", "", "only failures with this outcome")
	cmd.Flags().StringVar(&ids, "ids", "", "only these captures, separated by commas; - reads them from stdin")
	return cmd
}
