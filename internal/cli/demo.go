package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/justfortytwo/backfill/internal/pglocal"
	"github.com/justfortytwo/backfill/internal/transcript"
	"github.com/justfortytwo/backfill/migrations"
	"github.com/justfortytwo/backfill/store"
	"github.com/justfortytwo/backfill/testdata"
)

// demoDir is where the demo's Postgres lives, below the working directory.
const demoDir = ".backfill/pg"

const demoDatabase = "backfill"

func (a *app) demoCmd() *cobra.Command {
	var stop bool
	cmd := &cobra.Command{
		Use:   "demo [PATH...]",
		Short: "The whole job on a local Postgres, from nothing",
		Long: `Start a local Postgres, migrate it, import the sample conversations (or your own
files), extract candidate memories from them, and show what was found. The server
stays up, so that you can look around with psql and run the demo again.

It needs initdb and postgres on this machine, or downloads them. With --database-url
or DATABASE_URL it uses that database instead.`,
		RunE: func(cmd *cobra.Command, paths []string) error {
			if stop {
				return a.demoStop(cmd.Context())
			}
			return a.demo(cmd.Context(), paths)
		},
	}
	cmd.Flags().BoolVar(&stop, "stop", false, "stop the demo's Postgres; its data stays")
	return cmd
}

func (a *app) demoStop(ctx context.Context) error {
	stopped, err := pglocal.Stop(ctx, demoDir)
	if err != nil {
		return fmt.Errorf("stopping the demo's Postgres: %w", err)
	}
	if a.json {
		return a.writeJSON(map[string]any{"stopped": stopped})
	}
	if stopped {
		fmt.Fprintln(a.stdout, "stopped; its data stays")
	} else {
		fmt.Fprintln(a.stdout, "it is not running")
	}
	return nil
}

func (a *app) demo(ctx context.Context, paths []string) error {
	psql := `psql "$DATABASE_URL"`
	if a.cfg.DatabaseURL == "" {
		server, err := pglocal.Start(ctx, pglocal.Config{Dir: demoDir, Database: demoDatabase, Log: a.stderr})
		if err != nil {
			return err
		}
		a.cfg.DatabaseURL, psql = server.URL(demoDatabase), server.Psql(demoDatabase)
	}
	cfg, err := a.cfg.Jobs(a.logger())
	if err != nil {
		return err
	}
	cfg.Nightly = nil
	pool, err := a.pool(ctx, cfg.Conns())
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := migrations.Up(ctx, pool, a.cfg.Extractors()...); err != nil {
		return err
	}
	st := store.New(pool)
	before, err := st.Counts(ctx)
	if err != nil {
		return err
	}

	imported := a.demoImport(ctx, st, paths)
	var code exit
	if imported != nil && !errors.As(imported, &code) {
		return imported
	}
	if err := a.workUntilIdle(ctx, st, cfg); err != nil {
		return err
	}
	if err := a.demoReport(ctx, st, before, psql); err != nil {
		return err
	}
	return imported
}

// demoImport stores the given files, or the samples.
func (a *app) demoImport(ctx context.Context, st *store.Store, paths []string) error {
	if len(paths) == 0 {
		dir, err := os.MkdirTemp("", "backfill-samples-")
		if err != nil {
			return fmt.Errorf("unpacking the samples: %w", err)
		}
		defer os.RemoveAll(dir)
		if err := os.CopyFS(dir, testdata.Conversations); err != nil {
			return fmt.Errorf("unpacking the samples: %w", err)
		}
		paths = []string{filepath.Join(dir, "conversations")}
	}
	sum, total, err := readInto(ctx, st, paths, transcript.Options{Stdin: a.stdin})
	if err != nil {
		return err
	}
	return a.importEnd(sum, fmt.Sprintf("imported %s: %d new, %d changed, %d unchanged",
		plural(sum.Captures, "capture"), total.New, total.Changed, total.Unchanged))
}

// demoReport shows what is in the database now, and how to look further.
func (a *app) demoReport(ctx context.Context, st *store.Store, before store.Counts, psql string) error {
	after, err := st.Counts(ctx)
	if err != nil {
		return err
	}
	status, err := st.Status(ctx)
	if err != nil {
		return err
	}
	kinds, err := st.Kinds(ctx)
	if err != nil {
		return err
	}
	sample, err := st.Sample(ctx, 10)
	if err != nil {
		return err
	}
	entities, err := st.Entities(ctx, 10)
	if err != nil {
		return err
	}
	if a.json {
		return a.writeJSON(map[string]any{
			"captures": after.Captures, "new_captures": after.Captures - before.Captures,
			"candidates": after.Candidates, "new_candidates": after.Candidates - before.Candidates,
			"status": status, "kinds": kinds, "sample": sample, "entities": entities, "database_url": a.cfg.DatabaseURL,
		})
	}
	w := a.stdout
	fmt.Fprintf(w, "\n%d captures, %d new\n", after.Captures, after.Captures-before.Captures)
	fmt.Fprintf(w, "%d candidates, %d new\n", after.Candidates, after.Candidates-before.Candidates)
	for _, s := range status {
		if s.Version != nil {
			fmt.Fprintf(w, "\n%s %s: %d staged, %d empty, %d skipped, %d waiting for a retry, %d dead\n",
				s.Extractor, *s.Version, s.Staged, s.Empty, s.Skipped, s.Retry, s.Dead)
		}
	}
	var parts []string
	for _, k := range kinds {
		parts = append(parts, fmt.Sprintf("%d %s", k.Candidates, k.Kind))
	}
	fmt.Fprintf(w, "by kind: %s\n\n", strings.Join(parts, ", "))
	for _, c := range sample {
		fmt.Fprintf(w, "  %-10s %.2f  %s\n", deref(c.Kind), c.Salience, oneLine(c.Content, 100))
	}
	parts = nil
	for _, e := range entities {
		parts = append(parts, fmt.Sprintf("%s (%d)", oneLine(e.Entity, 60), e.Candidates))
	}
	fmt.Fprintf(w, "\ntop entities: %s\n", strings.Join(parts, ", "))
	fmt.Fprintf(w, `
Look around:
  %s

  select * from backfill.v_status;
  select kind, salience, content, entities from backfill.v_candidate order by salience desc limit 20;
  select entity, content from backfill.v_entity where entity = 'postgres';
  insert into backfill.intake (source, text) values ('me', 'We decided to ship on Fridays because support is quiet then.');

Run the demo again to extract what you inserted. A running worker does it at once:
  DATABASE_URL='%s' bin/worker
`, psql, a.cfg.DatabaseURL)
	return nil
}
