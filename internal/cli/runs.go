package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/justfortytwo/backfill/store"
)

func (a *app) runsCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "runs [RUN]",
		Short: "List runs, newest first, or tell the story of one",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.withRun(cmd, args[0], a.showRun)
			}
			st, closePool, err := a.connect(cmd.Context(), 0)
			if err != nil {
				return err
			}
			defer closePool()
			runs, err := st.Runs(cmd.Context(), 50)
			if err != nil {
				return err
			}
			if a.json {
				return writeJSONLines(a, runs)
			}
			return table(a.stdout, "RUN KIND EXTRACTOR REPROCESS STATE DONE TOTAL FAILED CANDIDATES COST WHO CREATED FINISHED", func(row func(...any)) {
				for _, r := range runs {
					cost := "-"
					if r.Cost != nil {
						cost = dollars(*r.Cost)
					}
					row(r.ID, r.Kind, r.Extractor, r.Reprocess, r.State, r.Done, r.Total, r.Failed(), r.Candidates, cost, r.Who, when(&r.CreatedAt), when(r.FinishedAt))
				}
			})
		},
	}
}

// showRun is who asked for a run, for what, and what happened to it since.
func (a *app) showRun(ctx context.Context, st *store.Store, id int64) error {
	run, err := st.Run(ctx, id)
	if err != nil {
		return err
	}
	events, err := st.Events(ctx, id)
	if err != nil {
		return err
	}
	if a.json {
		return a.writeJSON(struct {
			store.Run
			Events []store.Event `json:"events"`
		}{run, events})
	}
	w := a.stdout
	fmt.Fprintf(w, "run %d  %s  %s %s, %s first  %d/%d  %s\n", run.ID, run.State, run.Extractor, run.Reprocess, run.Order, run.Done, run.Total, outcomes(run.Outcomes))
	if run.Cost != nil {
		fmt.Fprintf(w, "cost: %s\n", dollars(*run.Cost))
	}
	fmt.Fprintf(w, "by %s, %s", oneLine(run.Who, 100), when(&run.CreatedAt))
	if run.Why != nil {
		fmt.Fprintf(w, ": %s", oneLine(*run.Why, 500))
	}
	fmt.Fprintln(w)
	if run.IDs != nil {
		fmt.Fprintln(w, "of the captures named: "+strconv.FormatInt(*run.IDs, 10))
	}
	if string(run.Filter) != "{}" {
		fmt.Fprintf(w, "filter: %s\n", oneLine(string(run.Filter), 500))
	}
	fmt.Fprintf(w, "settings: %s\n", settings(run.Settings))
	if run.Error != nil {
		fmt.Fprintf(w, "error: %s\n", oneLine(*run.Error, 500))
	}
	for _, e := range events {
		what := e.Reason
		if e.From != e.To {
			what = e.From + " → " + e.To + ": " + e.Reason
		}
		fmt.Fprintf(w, "  %s  %-10s  %s\n", when(&e.At), oneLine(e.Who, 100), oneLine(what, 500))
	}
	return nil
}
