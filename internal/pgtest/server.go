package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/justfortytwo/backfill/heuristic"
	"github.com/justfortytwo/backfill/internal/pglocal"
	"github.com/justfortytwo/backfill/migrations"
)

// givenURL names the variable with the server to use instead of a local one.
const givenURL = "BACKFILL_TEST_DATABASE_URL"

// timeout bounds one step on the server, the migrations included.
const timeout = time.Minute

// A pool of maxConns for each of many parallel tests fits into maxConnections.
const (
	maxConns       = 10
	maxConnections = "500"
)

// shared starts the server of this process on first use; running is that server.
var (
	shared  = sync.OnceValues(startServer)
	running atomic.Pointer[server]
)

type server struct {
	local    *pglocal.Server // nil for a given server
	url      *url.URL
	admin    *pgxpool.Pool
	prefix   string // of the names of this process's databases
	last     atomic.Int64
	template func() (string, error) // the migrated database, built on first use
}

func startServer() (*server, error) {
	s := &server{prefix: "backfill_test_" + strings.ToLower(rand.Text()[:8])}
	s.template = sync.OnceValues(s.buildTemplate)

	address := os.Getenv(givenURL)
	if address == "" {
		local, err := pglocal.Start(context.Background(), pglocal.Config{
			Temporary: true,
			Settings:  map[string]string{"max_connections": maxConnections},
			Log:       os.Stderr,
		})
		if err != nil {
			return nil, fmt.Errorf("%w; tests also take a server from %s", err, givenURL)
		}
		s.local, address = local, local.URL("")
	}
	running.Store(s)

	var err error
	if s.url, err = url.Parse(address); err != nil || s.url.Scheme == "" {
		return nil, errors.New(givenURL + " is not a URL such as postgres://user@host:5432/postgres")
	}
	if s.admin, err = newPool(address, "pgtest"); err != nil {
		return nil, err
	}
	return s, nil
}

// stopServer ends a local server, and removes the template from a given one.
func stopServer() error {
	s := running.Swap(nil)
	if s == nil {
		return nil
	}
	if s.admin != nil {
		defer s.admin.Close()
	}
	if s.local == nil {
		return s.drop(s.prefix)
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return s.local.Stop(ctx)
}

// buildTemplate migrates the database that tests get copies of. A database in
// use cannot be copied, so nobody may connect to it afterwards.
func (s *server) buildTemplate() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	name := s.prefix
	if err := s.exec(ctx, "create database %s template template0", name); err != nil {
		return "", err
	}
	pool, err := newPool(s.urlOf(name), "pgtest")
	if err != nil {
		return "", err
	}
	err = migrations.Up(ctx, pool, migrations.Extractor{Name: "heuristic", Version: heuristic.Version})
	pool.Close()
	if err != nil {
		return "", fmt.Errorf("migrating: %w", err)
	}
	return name, s.exec(ctx, "alter database %s allow_connections false", name)
}

// create copies a template to a database with a new name. Copying files took
// 25 ms and the default, which goes through the log, 42 ms.
func (s *server) create(template string) (name string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	name = fmt.Sprintf("%s_%d", s.prefix, s.last.Add(1))
	return name, s.exec(ctx, "create database %s template %s strategy file_copy", name, template)
}

// drop removes a database and ends the connections to it.
func (s *server) drop(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return s.exec(ctx, "drop database if exists %s with (force)", name)
}

// exec runs a statement that names databases.
func (s *server) exec(ctx context.Context, format string, names ...string) error {
	quoted := make([]any, len(names))
	for i, n := range names {
		quoted[i] = pgx.Identifier{n}.Sanitize()
	}
	_, err := s.admin.Exec(ctx, fmt.Sprintf(format, quoted...))
	return err
}

func (s *server) urlOf(database string) string {
	u := *s.url
	u.Path = "/" + database
	return u.String()
}

// newPool returns a pool with the settings the product's have.
func newPool(address, name string) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = maxConns
	cfg.ConnConfig.RuntimeParams["application_name"] = name
	cfg.ConnConfig.RuntimeParams["jit"] = "off"
	return pgxpool.NewWithConfig(context.Background(), cfg)
}
