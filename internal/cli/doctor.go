package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/justfortytwo/backfill/migrations"
	"github.com/justfortytwo/backfill/store"
)

// Levels of a finding.
const (
	fine  = "ok"
	warns = "warning"
	fails = "error"
)

// finding is one thing the doctor looked at.
type finding struct {
	Level string `json:"level"`
	Check string `json:"check"`
	Found string `json:"found"`
	// Do is the fix, empty when all is well.
	Do string `json:"do,omitempty"`
}

func (a *app) doctorCmd() *cobra.Command {
	maxAge := age(24 * time.Hour)
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check database, migrations, workers, stuck work and the model, and say what to do",
		Long: `Check database, migrations, workers, stuck work and, if one is configured, the
model, which is asked for one tiny completion; and say what to do. It exits
with status 1 if something is wrong, such as captures that have been without an
outcome for too long, and with 0 if there are only warnings: run it from a
scheduler that tells somebody.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			failed := false
			for _, f := range append(a.examine(cmd.Context(), maxAge), a.probe(cmd.Context())...) {
				failed = failed || f.Level == fails
				if a.json {
					if err := a.writeJSON(f); err != nil {
						return err
					}
					continue
				}
				fmt.Fprintf(a.stdout, "%-8s %-11s %s\n", f.Level, f.Check, f.Found)
				if f.Do != "" {
					fmt.Fprintf(a.stdout, "%20s → %s\n", "", f.Do)
				}
			}
			if failed {
				return exit(exitError)
			}
			return nil
		},
	}
	cmd.Flags().Var(&maxAge, "max-age", "how old a capture may be without an outcome, such as 2d or 12h")
	return cmd
}

// examine stops at the first failure that makes what follows pointless.
func (a *app) examine(ctx context.Context, maxAge age) []finding {
	pool, err := a.pool(ctx, 0)
	if err != nil {
		return []finding{{fails, "database", err.Error(), "point DATABASE_URL at a running Postgres, or start one: docker compose up -d db"}}
	}
	defer pool.Close()
	cfg := pool.Config().ConnConfig
	found := []finding{{fine, "database", fmt.Sprintf("%s on %s:%d as %s", cfg.Database, cfg.Host, cfg.Port, cfg.User), ""}}

	all, err := migrations.Status(ctx, pool)
	switch n := migrations.Pending(all); {
	case err != nil:
		return append(found, finding{fails, "migrations", err.Error(), ""}) // the error names the fix
	case n > 0:
		return append(found, finding{fails, "migrations", fmt.Sprintf("%d of %d pending", n, len(all)), "backfill migrate up"})
	}
	found = append(found, finding{fine, "migrations", fmt.Sprintf("all %d applied", len(all)), ""})

	st := store.New(pool)
	health, err := st.Health(ctx)
	if err != nil {
		return append(found, finding{fails, "tables", err.Error(), "backfill migrate up"})
	}
	statuses, err := st.Status(ctx)
	if err != nil {
		return append(found, finding{fails, "tables", err.Error(), "backfill migrate up"})
	}
	overdue, err := st.Overdue(ctx, time.Duration(maxAge))
	if err != nil {
		return append(found, finding{fails, "tables", err.Error(), ""})
	}
	found = append(found, a.diagnose(health, statuses)...)
	if overdue.Captures > 0 {
		return append(found, finding{
			fails, "age",
			fmt.Sprintf("%s older than %s without an outcome, the oldest %s old", plural(overdue.Captures, "capture"), &maxAge, overdue.Oldest.Round(time.Minute)),
			"backfill failures and backfill status say what holds them up; backfill run --local works them here",
		})
	}
	return append(found, finding{fine, "age", fmt.Sprintf("every capture older than %s has its outcome", &maxAge), ""})
}

func (a *app) diagnose(h store.Health, statuses []store.Status) []finding {
	var found []finding
	add := func(bad bool, level, check, good, trouble, do string) {
		if bad {
			found = append(found, finding{level, check, trouble, do})
		} else {
			found = append(found, finding{fine, check, good, ""})
		}
	}
	add(h.ServerVersion < 150000, fails, "postgres", fmt.Sprintf("version %d", h.ServerVersion/10000),
		fmt.Sprintf("version %d is too old", h.ServerVersion/10000), "upgrade to Postgres 15 or later")
	for _, s := range statuses {
		if s.StoppedAt != nil {
			add(true, fails, "queue", "", fmt.Sprintf("%s is stopped since %s: %s", s.Extractor, when(s.StoppedAt), deref(s.StopReason)),
				fmt.Sprintf("%s; then restart the workers, or wait: one asks again every 10 minutes", deref(s.StopFix)))
		}
	}
	for _, e := range a.cfg.Extractors() {
		for _, s := range statuses {
			if s.Extractor != e.Name {
				continue
			}
			current := fmt.Sprint(deref(s.Version))
			trouble := fmt.Sprintf("this build has %s %s, the database says %s", e.Name, e.Version, current)
			do := "if this build is the newer one: backfill migrate up; else install the newer one"
			if e.Name == "llm" {
				trouble = fmt.Sprintf("BACKFILL_LLM_MODEL makes it %s here, the database says %s", e.Version, current)
				do = "set the model that the database knows, or make this one current: backfill migrate up"
			}
			add(current != e.Version, warns, "extractor", fmt.Sprintf("%s %s", e.Name, e.Version), trouble, do)
		}
	}
	seen, away := "none has been seen", true
	if h.SeenWorker != nil {
		ago := time.Since(*h.SeenWorker)
		seen, away = fmt.Sprintf("last seen %s ago", ago.Round(time.Second)), ago > time.Minute
	}
	add(away, warns, "worker", seen, seen, "start one: worker (or backfill run --local)")
	add(h.Due > 0 && h.DueFor > time.Minute, warns, "queue", plural(h.Due, "capture")+" due",
		fmt.Sprintf("%s due, the oldest for %s", plural(h.Due, "capture"), h.DueFor.Round(time.Second)), "start a worker, or more of them")
	add(h.OtherVersion > 0, warns, "versions", "all queued work is for current versions",
		plural(h.OtherVersion, "capture")+" queued for another version", "backfill migrate up")
	add(h.Expired > 0, warns, "leases", "none has run out", plural(h.Expired, "lease")+" ran out: a worker vanished",
		"nothing: the next claim takes them over; look at that worker's log if it recurs")
	add(h.Dead > 0, warns, "failures", "no capture was given up", plural(h.Dead, "capture")+" given up",
		"backfill failures says why; backfill run --reprocess failed tries again")
	add(h.Planning > 0, warns, "runs", "none is stuck", plural(h.Planning, "run")+" still planning after an hour", "backfill runs; start it again")
	add(h.Resting > 0, warns, "bounds", "no run rests at one", plural(h.Resting, "run")+" at its budget or deadline, with captures that wait",
		"backfill runs; raise the bound with backfill set, then backfill resume")
	add(h.FailedJobs > 0, warns, "river", "no job was discarded today", plural(h.FailedJobs, "job")+" discarded today",
		"look at the worker's log, or at River's UI")
	return found
}
