package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// migrator joins River's migrations and ours.
type migrator struct {
	pool  *pgxpool.Pool
	db    *sql.DB
	goose *goose.Provider
	river *rivermigrate.Migrator[pgx.Tx]
}

func newMigrator(pool *pgxpool.Pool) (*migrator, error) {
	dir, err := fs.Sub(files, "sql")
	if err != nil {
		return nil, fmt.Errorf("opening the embedded migrations: %w", err)
	}
	versions, err := database.NewStore(goose.DialectPostgres, versionTable)
	if err != nil {
		return nil, fmt.Errorf("preparing migrations: %w", err)
	}
	db := stdlib.OpenDBFromPool(pool)
	provider, err := goose.NewProvider(goose.DialectCustom, db, dir, goose.WithStore(versions), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("preparing migrations: %w", err), db.Close())
	}
	river, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Schema: RiverSchema})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("preparing River's migrations: %w", err), db.Close())
	}
	return &migrator{pool: pool, db: db, goose: provider, river: river}, nil
}

func (m *migrator) close() { _ = m.db.Close() }

func (m *migrator) up(ctx context.Context) error {
	if _, err := m.pool.Exec(ctx, "create schema if not exists backfill; create schema if not exists "+RiverSchema); err != nil {
		return fmt.Errorf("creating the schemas: %w", err)
	}
	if err := m.checkNewer(ctx); err != nil {
		return err
	}
	if _, err := m.river.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("applying River's migrations: %w", err)
	}
	if _, err := m.goose.Up(ctx); err != nil {
		return fmt.Errorf("applying migrations: %w", err)
	}
	return nil
}

// checkNewer refuses a database that a later version has migrated.
func (m *migrator) checkNewer(ctx context.Context) error {
	version, err := m.goose.GetDBVersion(ctx)
	if err != nil {
		return fmt.Errorf("reading the schema's version: %w", err)
	}
	sources := m.goose.ListSources()
	if latest := sources[len(sources)-1].Version; version > latest {
		return fmt.Errorf("%w: it has migration %d, this build knows %d", ErrNewerSchema, version, latest)
	}
	return nil
}

// locked runs f under a session advisory lock that is held on one connection of
// its own, so that concurrent migrations take turns across River's and ours.
func locked(ctx context.Context, pool *pgxpool.Pool, f func(*migrator) error) error {
	if n := pool.Config().MaxConns; n < 3 {
		return fmt.Errorf("migrations need a pool of 3 connections, this one allows %d: raise pool_max_conns", n)
	}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	// The lock goes with the connection, also when we are interrupted.
	defer func() { _ = conn.Hijack().Close(context.WithoutCancel(ctx)) }()
	// Waiting for another migration is not a slow statement.
	if _, err := conn.Exec(ctx, "set statement_timeout = 0"); err != nil {
		return fmt.Errorf("preparing the migration lock: %w", err)
	}
	if _, err := conn.Exec(ctx, "select pg_advisory_lock($1)", lockKey); err != nil {
		return fmt.Errorf("waiting for another migration to end: %w", err)
	}
	m, err := newMigrator(pool)
	if err != nil {
		return err
	}
	defer m.close()
	return f(m)
}

// name is a migration's name without path, number and extension.
func name(file string) string {
	base := strings.TrimSuffix(path.Base(file), ".sql")
	if _, after, ok := strings.Cut(base, "_"); ok {
		return after
	}
	return base
}
