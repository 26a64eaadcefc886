package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/justfortytwo/backfill/internal/version"
	"github.com/justfortytwo/backfill/store"
)

func (a *app) failuresCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "failures",
		Short: "Show what failed, by kind, with one example each",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			st, closePool, err := a.connect(cmd.Context(), 0)
			if err != nil {
				return err
			}
			defer closePool()
			groups, err := st.FailureGroups(cmd.Context())
			if err != nil {
				return err
			}
			if a.json {
				return writeJSONLines(a, groups)
			}
			if len(groups) == 0 {
				fmt.Fprintln(a.stdout, "no failures")
				return nil
			}
			return table(a.stdout, "CAPTURES EXTRACTOR OUTCOME STATE EXAMPLE ERROR", func(row func(...any)) {
				for _, g := range groups {
					row(g.Captures, g.Extractor, g.Outcome, g.State, g.Example, deref(g.Error))
				}
			})
		},
	}
}

func (a *app) showCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "show CAPTURE",
		Short: "Show everything that is known of a capture",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("say which capture, by its number")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := number("capture", args[0])
			if err != nil {
				return a.usage(cmd, err)
			}
			st, closePool, err := a.connect(cmd.Context(), 0)
			if err != nil {
				return err
			}
			defer closePool()
			h, err := st.History(cmd.Context(), id)
			if err != nil {
				return err
			}
			if a.json {
				return a.writeJSON(h)
			}
			a.showHistory(id, h)
			return nil
		},
	}
}

func (a *app) showHistory(id int64, h store.History) {
	w := a.stdout
	if c := h.Capture; c == nil {
		fmt.Fprintf(w, "capture %d was deleted\n", id)
	} else {
		fmt.Fprintf(w, "capture %d  source %s  id %v  occurred %v  stored %s\n\n", c.ID, oneLine(c.Source, 100), oneLine(fmt.Sprint(deref(c.ExternalID)), 512), deref(c.OccurredAt), when(&c.CreatedAt))
		fmt.Fprintf(w, "%s\n\n", indent(printable(c.Text)))
	}
	for _, l := range h.Ledger {
		fmt.Fprintf(w, "%s: %s", strings.TrimSpace(l.Extractor+" "+l.Version), l.State)
		if l.Outcome != nil {
			fmt.Fprintf(w, ", %s", *l.Outcome)
		}
		fmt.Fprintf(w, " (attempt %d, %s)", l.Attempts, when(&l.UpdatedAt))
		if l.Error != nil {
			fmt.Fprintf(w, ": %s", *l.Error)
		}
		if l.NextAttemptAt != nil {
			fmt.Fprintf(w, "; next attempt %s", when(l.NextAttemptAt))
		}
		if l.Fallback != nil {
			fmt.Fprintf(w, "; the %s stands in", *l.Fallback)
		}
		if l.HandedTo != nil {
			fmt.Fprintf(w, "; handed to %s", oneLine(*l.HandedTo, 100))
		}
		fmt.Fprintln(w)
		for _, c := range h.Candidates {
			if c.Extractor != l.Extractor {
				continue
			}
			fmt.Fprintf(w, "  %d. %-10s %.2f  %s\n", c.Ord, deref(c.Kind), c.Salience, oneLine(c.Content, 1000))
			if len(c.Entities) > 0 {
				fmt.Fprintf(w, "     entities: %s\n", oneLine(strings.Join(c.Entities, ", "), 1000))
			}
		}
	}
	for _, b := range h.Open {
		fmt.Fprintf(w, "%s: in batch %d, %s since %s\n", b.Extractor, b.ID, b.State, when(&b.CreatedAt))
	}
	if len(h.Ledger) == 0 && len(h.Open) == 0 {
		fmt.Fprintln(w, "no extractor has seen it: `backfill run` takes it up")
	}
}

func indent(s string) string { return "    " + strings.ReplaceAll(s, "\n", "\n    ") }

func (a *app) entitiesCmd() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "entities [NAME]",
		Short: "List entities, or what is known of one",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			st, closePool, err := a.connect(cmd.Context(), 0)
			if err != nil {
				return err
			}
			defer closePool()
			if len(args) == 1 {
				return a.naming(cmd, st, strings.ToLower(args[0]), limit)
			}
			entities, err := st.Entities(cmd.Context(), limit)
			if err != nil {
				return err
			}
			if a.json {
				return writeJSONLines(a, entities)
			}
			return table(a.stdout, "CANDIDATES CAPTURES ENTITY", func(row func(...any)) {
				for _, e := range entities {
					row(e.Candidates, e.Captures, oneLine(e.Entity, 256))
				}
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 50, "how many")
	return cmd
}

func (a *app) naming(cmd *cobra.Command, st *store.Store, name string, limit int) error {
	found, err := st.Naming(cmd.Context(), name, limit)
	if err != nil {
		return err
	}
	if len(found) == 0 && !a.json {
		fmt.Fprintf(a.stdout, "no candidate names %q\n", name)
	}
	for _, c := range found {
		if a.json {
			if err := a.writeJSON(c); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(a.stdout, "%-8d %-10s %.2f  %s\n", c.CaptureID, deref(c.Kind), c.Salience, oneLine(c.Content, 200))
	}
	return nil
}

func (a *app) versionCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of this build and of its extractors",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v, commit := version.Get()
			versions := map[string]string{}
			for _, e := range a.cfg.Extractors() {
				versions[e.Name] = e.Version
			}
			if a.json {
				return a.writeJSON(map[string]any{"version": v, "commit": commit, "extractors": versions})
			}
			fmt.Fprintf(a.stdout, "backfill %s (%s)\n", v, commit)
			for _, e := range a.cfg.Extractors() {
				fmt.Fprintf(a.stdout, "%s %s\n", e.Name, e.Version)
			}
			return nil
		},
	}
}
