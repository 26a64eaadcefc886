package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/justfortytwo/backfill/migrations"
	"github.com/justfortytwo/backfill/store"
)

func (a *app) migrateCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate up|status|down",
		Short: "Bring the database to this version's schema",
		Args: cobra.MatchAll(cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
			return errors.New("say what to do: " + cmd.Use)
		}),
		RunE: func(*cobra.Command, []string) error { return nil }, // without it, cobra shows the help instead
	}
	var yes, all bool
	down := &cobra.Command{
		Use:   "down",
		Short: "Roll back the latest migration, and the data in it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !yes {
				return errors.New("this drops tables with everything in them: add --yes if that is meant")
			}
			pool, err := a.pool(cmd.Context(), 4)
			if err != nil {
				return err
			}
			defer pool.Close()
			if all {
				if err := migrations.Reset(cmd.Context(), pool); err != nil {
					return err
				}
				if a.json {
					return a.writeJSON(map[string]any{"rolled_back": "all"})
				}
				fmt.Fprintln(a.stdout, "rolled back everything")
				return nil
			}
			m, err := migrations.Down(cmd.Context(), pool)
			if err != nil {
				return err
			}
			if a.json {
				return a.writeJSON(map[string]any{"rolled_back": m.Version, "name": m.Name})
			}
			fmt.Fprintf(a.stdout, "rolled back %d %s\n", m.Version, m.Name)
			return nil
		},
	}
	down.Flags().BoolVar(&yes, "yes", false, "really")
	down.Flags().BoolVar(&all, "all", false, "roll back everything, River's tables included")
	cmd.AddCommand(down,
		&cobra.Command{
			Use:   "up",
			Short: "Apply pending migrations and register this build's extractor versions",
			Long:  "Apply pending migrations, River's and ours, and register this build's extractor\nversions. It may run anywhere and at any time; concurrent calls take turns.",
			Args:  cobra.NoArgs,
			RunE:  func(cmd *cobra.Command, _ []string) error { return a.migrateUp(cmd) },
		},
		&cobra.Command{
			Use:   "status",
			Short: "List migrations",
			Args:  cobra.NoArgs,
			RunE:  func(cmd *cobra.Command, _ []string) error { return a.migrateStatus(cmd) },
		},
	)
	return cmd
}

func (a *app) migrateUp(cmd *cobra.Command) error {
	ctx := cmd.Context()
	pool, err := a.pool(ctx, 4)
	if err != nil {
		return err
	}
	defer pool.Close()
	before, err := migrations.Status(ctx, pool)
	if err != nil {
		return err
	}
	st := store.New(pool)
	old, err := st.Extractors(ctx)
	if err != nil && !errors.Is(err, store.ErrNotMigrated) {
		return err
	}
	if err := migrations.Up(ctx, pool, a.cfg.Extractors()...); err != nil {
		return err
	}
	pending := migrations.Pending(before)
	switch {
	case a.json:
		return a.writeJSON(map[string]any{"applied": pending})
	case pending == 0:
		fmt.Fprintln(a.stdout, "the schema is up to date")
	default:
		fmt.Fprintf(a.stdout, "applied %s\n", plural(pending, "migration"))
	}
	now, err := st.Extractors(ctx)
	if err != nil {
		return err
	}
	for _, x := range now {
		i := slices.IndexFunc(old, func(o store.Extractor) bool { return o.ID == x.ID && o.Version != "" && o.Version != x.Version })
		if i >= 0 {
			fmt.Fprintf(a.stdout, "%s: version %s takes the place of %s; `backfill run --extractor %s --reprocess stale --dry-run` says what that has done\n",
				x.Name, x.Version, old[i].Version, x.Name)
		}
	}
	return nil
}

func (a *app) migrateStatus(cmd *cobra.Command) error {
	pool, err := a.pool(cmd.Context(), 4)
	if err != nil {
		return err
	}
	defer pool.Close()
	all, err := migrations.Status(cmd.Context(), pool)
	if err != nil {
		return err
	}
	if a.json {
		return writeJSONLines(a, all)
	}
	return table(a.stdout, "SOURCE VERSION NAME APPLIED", func(row func(...any)) {
		for _, m := range all {
			applied := "pending"
			if m.Applied {
				applied = "yes"
				if !m.AppliedAt.IsZero() {
					applied = when(&m.AppliedAt)
				}
			}
			row(m.Source, m.Version, m.Name, applied)
		}
	})
}
