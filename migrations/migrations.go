// Package migrations brings a database to the schema this version needs: River's
// tables in schema "river" and ours in schema "backfill".
package migrations

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/rivermigrate"
)

// RiverSchema is the schema that holds River's tables.
const RiverSchema = "river"

const versionTable = "backfill.schema_migrations"

// lockKey is the advisory lock that serialises migrations, "backfill" in ASCII.
const lockKey int64 = 0x6261636b66696c6c

//go:embed sql/*.sql
var files embed.FS

// Extractor is a slot's current version, made known to the database by [Up].
type Extractor struct {
	// Name is the slot's name, "heuristic" or "llm".
	Name string `json:"name"`
	// Version is what its results are recorded under.
	Version string `json:"version"`
}

// Migration is the state of one migration.
type Migration struct {
	// Source is "river" or "backfill".
	Source  string `json:"source"`
	Version int64  `json:"version"`
	Name    string `json:"name"`
	Applied bool   `json:"applied"`
	// AppliedAt is zero where nothing recorded it (River's).
	AppliedAt time.Time `json:"applied_at,omitzero"`
}

// Up applies every pending migration and registers the given extractor versions.
// It may be called by any number of processes at once: they take turns. The pool
// must allow three connections and connect directly, not through a
// transaction-pooling proxy.
func Up(ctx context.Context, pool *pgxpool.Pool, extractors ...Extractor) error {
	return locked(ctx, pool, func(m *migrator) error {
		if err := m.up(ctx); err != nil {
			return err
		}
		for _, e := range extractors {
			if _, err := pool.Exec(ctx, "select backfill.register_extractor($1, $2)", e.Name, e.Version); err != nil {
				return fmt.Errorf("registering extractor %s %s: %w", e.Name, e.Version, err)
			}
		}
		return nil
	})
}

// Down rolls back our latest migration and returns it; ErrNothingToRollBack when
// there is none.
func Down(ctx context.Context, pool *pgxpool.Pool) (Migration, error) {
	var done Migration
	err := locked(ctx, pool, func(m *migrator) error {
		res, err := m.goose.Down(ctx)
		if errors.Is(err, goose.ErrNoNextVersion) {
			return ErrNothingToRollBack
		}
		if err != nil {
			return fmt.Errorf("rolling back: %w", err)
		}
		done = Migration{Source: "backfill", Version: res.Source.Version, Name: name(res.Source.Path)}
		return nil
	})
	return done, err
}

// Reset rolls back everything, River's tables and both schemas included.
func Reset(ctx context.Context, pool *pgxpool.Pool) error {
	return locked(ctx, pool, func(m *migrator) error {
		if _, err := m.goose.DownTo(ctx, 0); err != nil {
			return fmt.Errorf("rolling back: %w", err)
		}
		if _, err := m.river.Migrate(ctx, rivermigrate.DirectionDown, &rivermigrate.MigrateOpts{TargetVersion: -1}); err != nil {
			return fmt.Errorf("rolling back River's migrations: %w", err)
		}
		// River drops its own migration table with its first migration.
		if _, err := pool.Exec(ctx, "drop table "+versionTable+"; drop schema backfill; drop schema "+RiverSchema); err != nil {
			return fmt.Errorf("dropping the schemas: %w", err)
		}
		return nil
	})
}

// ErrNothingToRollBack says that no migration of ours is applied.
var ErrNothingToRollBack = errors.New("no migration of ours is applied")

// ErrNewerSchema says that a later version has migrated this database.
var ErrNewerSchema = errors.New("the schema is newer than this build: install the version that migrated it")

// Status lists every migration, River's first, without changing anything. A
// database that was never migrated has them all pending; one that a later version
// has migrated is ErrNewerSchema.
func Status(ctx context.Context, pool *pgxpool.Pool) ([]Migration, error) {
	var exists bool
	if err := pool.QueryRow(ctx, "select to_regclass($1) is not null", versionTable).Scan(&exists); err != nil {
		return nil, fmt.Errorf("looking for %s: %w", versionTable, err)
	}
	m, err := newMigrator(pool)
	if err != nil {
		return nil, err
	}
	defer m.close()

	applied := map[int]bool{}
	if exists {
		rows, err := m.river.ExistingVersions(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading River's migrations: %w", err)
		}
		for _, r := range rows {
			applied[r.Version] = true
		}
	}
	var all []Migration
	for _, v := range m.river.AllVersions() {
		all = append(all, Migration{Source: "river", Version: int64(v.Version), Name: v.Name, Applied: applied[v.Version]})
	}
	if !exists {
		for _, s := range m.goose.ListSources() {
			all = append(all, Migration{Source: "backfill", Version: s.Version, Name: name(s.Path)})
		}
		return all, nil
	}
	if err := m.checkNewer(ctx); err != nil {
		return nil, err
	}
	ours, err := m.goose.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading migrations: %w", err)
	}
	for _, s := range ours {
		all = append(all, Migration{
			Source: "backfill", Version: s.Source.Version, Name: name(s.Source.Path),
			Applied: s.State == goose.StateApplied, AppliedAt: s.AppliedAt,
		})
	}
	return all, nil
}

// Pending counts the migrations that Up would apply.
func Pending(all []Migration) int {
	n := 0
	for _, m := range all {
		if !m.Applied {
			n++
		}
	}
	return n
}
