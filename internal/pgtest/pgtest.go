// Package pgtest gives each test a private database on a real Postgres.
//
// The first test that asks starts a server, which ends with the test process.
// With BACKFILL_TEST_DATABASE_URL set the databases are created on that server
// instead; its role needs CREATEDB, and whatever the migrations need.
package pgtest

import (
	"fmt"
	"os"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// M runs a package's tests and then stops the server. A package that also looks
// for leaked goroutines has it run by goleak:
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.M{M: m}) }
type M struct{ *testing.M }

// Run returns the exit code of the tests, or 1 if the server did not stop.
func (m M) Run() int {
	code := m.M.Run()
	if err := stopServer(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// Main is the body of a TestMain: it runs the tests, stops the server and exits.
func Main(m *testing.M) { os.Exit(M{M: m}.Run()) }

// New returns a pool on a database of its own with all migrations applied. Its
// URL is Config().ConnString() of the pool. Both go away with the test.
func New(tb testing.TB) *pgxpool.Pool {
	tb.Helper()
	return connect(tb, URL(tb))
}

// URL creates a database with all migrations applied, which is dropped at the
// end of the test, and returns its URL.
func URL(tb testing.TB) string {
	tb.Helper()
	s := get(tb)
	template, err := s.template()
	if err != nil {
		tb.Fatalf("pgtest: building the template database: %v", err)
	}
	return create(tb, s, template)
}

// Empty is New without any migration.
func Empty(tb testing.TB) *pgxpool.Pool {
	tb.Helper()
	return connect(tb, create(tb, get(tb), "template0"))
}

func get(tb testing.TB) *server {
	tb.Helper()
	s, err := shared()
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	return s
}

func create(tb testing.TB, s *server, template string) string {
	tb.Helper()
	name, err := s.create(template)
	if err != nil {
		tb.Fatalf("pgtest: creating a database: %v", err)
	}
	tb.Cleanup(func() {
		if err := s.drop(name); err != nil {
			tb.Errorf("pgtest: dropping the test's database: %v", err)
		}
	})
	return s.urlOf(name)
}

func connect(tb testing.TB, url string) *pgxpool.Pool {
	tb.Helper()
	pool, err := newPool(url, tb.Name())
	if err != nil {
		tb.Fatalf("pgtest: connecting: %v", err)
	}
	tb.Cleanup(pool.Close)
	return pool
}
