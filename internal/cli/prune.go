package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/justfortytwo/backfill/store"
)

// age is a flag that takes a duration, also in days.
type age time.Duration

func (a *age) Type() string { return "age" }

// String implements pflag.Value.
func (a *age) String() string {
	const day = 24 * time.Hour
	switch d := time.Duration(*a); {
	case d == 0:
		return "" // not given
	case d%day == 0:
		return strconv.FormatInt(int64(d/day), 10) + "d"
	default:
		return d.String()
	}
}

// Set implements pflag.Value.
func (a *age) Set(s string) error {
	var d time.Duration
	var err error
	if days, ok := strings.CutSuffix(s, "d"); ok {
		var n int64
		if n, err = strconv.ParseInt(days, 10, 16); err == nil {
			d = time.Duration(n) * 24 * time.Hour
		}
	} else {
		d, err = time.ParseDuration(s)
	}
	if err != nil || d <= 0 {
		return errors.New("use days or hours, such as 2d or 12h")
	}
	*a = age(d)
	return nil
}

func (a *app) pruneCmd() *cobra.Command {
	var olderThan age
	var dryRun, yes bool
	cmd := &cobra.Command{
		Use:   "prune --older-than AGE",
		Short: "Remove candidates that were handed over, and sum up closed batches",
		Long: `Remove candidates that the memory service has acknowledged longer ago than the
given age, such as 30d or 12h, with their entries in the entity index, and sum up
closed batches of that age into one row for each run.

Captures stay, and so do their outcomes, the runs with their numbers, and every
candidate that was not handed over. The ledger keeps a fingerprint of what is
removed: it is not staged again. Nothing is ever pruned by itself.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			st, closePool, err := a.connect(ctx, 0)
			if err != nil {
				return err
			}
			defer closePool()
			would, err := st.Prunable(ctx, time.Duration(olderThan))
			if err != nil {
				return err
			}
			if dryRun {
				return a.pruned("would remove", would)
			}
			if !yes && would.Candidates > 0 {
				return fmt.Errorf("this removes %s of %s for good: add --yes, or --dry-run for details",
					plural(would.Candidates, "candidate"), plural(would.Captures, "capture"))
			}
			done, err := st.Prune(ctx, time.Duration(olderThan))
			if err != nil {
				return fmt.Errorf("%w; %s had been removed by then", err, plural(done.Candidates, "candidate"))
			}
			return a.pruned("removed", done)
		},
	}
	f := cmd.Flags()
	f.Var(&olderThan, "older-than", "how long ago it was handed over or closed, such as 30d or 12h")
	f.BoolVar(&dryRun, "dry-run", false, "only say what would be removed")
	f.BoolVar(&yes, "yes", false, "do it")
	cobra.CheckErr(cmd.MarkFlagRequired("older-than"))
	cmd.MarkFlagsMutuallyExclusive("dry-run", "yes")
	return cmd
}

func (a *app) pruned(did string, p store.Pruned) error {
	if a.json {
		return a.writeJSON(p)
	}
	fmt.Fprintf(a.stdout, "%s %s of %s; %s summed up\n", did, plural(p.Candidates, "candidate"), plural(p.Captures, "capture"), plural(p.Batches, "closed batch"))
	fmt.Fprintf(a.stdout, "kept %s: %d not handed over, %d handed over since\n", plural(p.Waiting+p.Younger, "candidate"), p.Waiting, p.Younger)
	return nil
}
