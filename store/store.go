// Package store holds every SQL statement of the product and the typed rows they
// read and write. It knows Postgres and our schema, and nothing of River or of
// extraction.
package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Options of [Connect].
type Options struct {
	// AppName is the application_name of every connection. Default "backfill".
	AppName string
	// StatementTimeout bounds one statement. Default 5 minutes; -1 disables it.
	StatementTimeout time.Duration
	// MaxConns is the size of the pool. Default 0: pgx's own default, or the
	// URL's pool_max_conns, but at least 4.
	MaxConns int32
}

// Connect opens a pool and verifies it with one round trip. An empty url means
// the PG* environment variables.
func Connect(ctx context.Context, url string, o Options) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		// The parser masks passwords, but only in URLs it can parse.
		return nil, errors.New("DATABASE_URL is not a Postgres URL: it should read postgres://user:password@host:5432/database")
	}
	if o.AppName == "" {
		o.AppName = "backfill"
	}
	if o.StatementTimeout == 0 {
		o.StatementTimeout = 5 * time.Minute
	}
	params := cfg.ConnConfig.RuntimeParams
	params["application_name"] = o.AppName
	params["statement_timeout"] = strconv.FormatInt(max(0, o.StatementTimeout.Milliseconds()), 10)
	params["idle_in_transaction_session_timeout"] = "60000"
	// A join over unnest(multirange) is costed at millions of rows; compiling
	// it on every read cost up to a fifth of the throughput.
	params["jit"] = "off"
	cfg.MaxConns = max(cfg.MaxConns, o.MaxConns, 4)

	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection pool: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, &ConnectError{Host: cfg.ConnConfig.Host, Port: cfg.ConnConfig.Port, Database: cfg.ConnConfig.Database, User: cfg.ConnConfig.User, err: err}
	}
	return pool, nil
}

// ConnectError says that the server did not let us in.
type ConnectError struct {
	Host           string
	Port           uint16
	Database, User string
	err            error
}

// Error names the server and the fix; it never holds the password.
func (e *ConnectError) Error() string {
	where := fmt.Sprintf("%s:%d", e.Host, e.Port)
	var pg *pgconn.PgError
	switch {
	case !errors.As(e.err, &pg):
		return fmt.Sprintf("no Postgres answers at %s: is it running, and is DATABASE_URL (or PGHOST, PGPORT) right?", where)
	case pg.Code == "28P01" || pg.Code == "28000":
		return fmt.Sprintf("Postgres at %s refused user %q (SQLSTATE %s): check user and password in DATABASE_URL", where, e.User, pg.Code)
	case pg.Code == "3D000":
		return fmt.Sprintf("Postgres at %s has no database %q: create it with `createdb %s`, or correct DATABASE_URL", where, e.Database, e.Database)
	default:
		return fmt.Sprintf("Postgres at %s refused the connection: %s (SQLSTATE %s)", where, pg.Message, pg.Code)
	}
}

// Unwrap gives the driver's error.
func (e *ConnectError) Unwrap() error { return e.err }

// Store runs our statements on a pool. It is safe for concurrent use.
type Store struct {
	pool *pgxpool.Pool
}

// New returns a store on a pool from [Connect].
func New(pool *pgxpool.Pool) *Store { return &Store{pool: pool} }

// Pool is the pool the store runs on.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// inTx runs f in a read committed transaction.
func (s *Store) inTx(ctx context.Context, f func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, f)
}

// ErrNotMigrated says that the schema is missing or too old.
var ErrNotMigrated = errors.New("the database is not migrated to this version: run `backfill migrate up`")

// Wrap says what was being done, and recognises a database that is not migrated.
func wrap(doing string, err error) error {
	switch sqlState(err) {
	case "42501":
		return fmt.Errorf("%s: this database user may not do that: connect as the owner of schema backfill, or see deploy/roles.sql (SQLSTATE 42501)", doing)
	case "42P01", "3F000", "42883", "42703": // undefined table, schema, function, column
		return fmt.Errorf("%s: %w (SQLSTATE %s)", doing, ErrNotMigrated, sqlState(err))
	}
	return fmt.Errorf("%s: %w", doing, err)
}

func sqlState(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code
	}
	return ""
}

// IsConflict reports a unique violation: somebody else wrote this row first.
func IsConflict(err error) bool { return sqlState(err) == "23505" }

// IsDataError reports that Postgres refused a value: invalid or too long text, a
// failed check. Trying again cannot help; the row has to be found and set aside.
func IsDataError(err error) bool {
	code := sqlState(err)
	if len(code) != 5 || code == "23505" {
		return false
	}
	return code[:2] == "22" || code[:2] == "23" || code[:2] == "54"
}

// IsRetryable reports that the same work may succeed at once or later: a
// serialisation failure, a deadlock, a lock timeout, a lost connection, a server
// that is out of resources or shutting down.
func IsRetryable(err error) bool {
	switch code := sqlState(err); code {
	case "":
		return offline(err)
	case "55P03", "25P03":
		return true
	default:
		return code[:2] == "40" || code[:2] == "08" || code[:2] == "53" || code[:3] == "57P"
	}
}

// IsOffline reports that the connection was lost or never came about.
func IsOffline(err error) bool { return sqlState(err) == "" && offline(err) }

// offline reports that the connection or the caller went away.
func offline(err error) bool {
	var network net.Error
	return pgconn.SafeToRetry(err) || errors.As(err, &network) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Code is what may be recorded about a database error: its SQLSTATE. Messages
// can quote values, so they never reach a column or a log.
func Code(err error) string {
	if code := sqlState(err); code != "" {
		return "SQLSTATE " + code
	}
	return "connection"
}
