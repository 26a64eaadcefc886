package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/internal/cli"
	"github.com/justfortytwo/backfill/internal/pgtest"
)

// result is what a command line came to.
type result struct {
	*testing.T

	args     []string
	code     int
	out, err string
}

// backfill runs a command line.
func backfill(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	var out, err bytes.Buffer
	code := cli.Run(t.Context(), args, strings.NewReader(stdin), &out, &err)
	r := result{T: t, args: args, code: code, out: out.String(), err: err.String()}
	require.NotContains(t, r.out+r.err, "goroutine ", "a stack trace: %v", args)
	return r
}

// ok requires success and nothing to complain about.
func (r result) ok() result {
	r.Helper()
	require.Zero(r, r.code, "%v: %s", r.args, r.err)
	require.Empty(r, r.err, r.args)
	return r
}

// fails requires an exit code, nothing on stdout, and one line on stderr that says
// what is wrong and what to do; after wrong usage a second one points to the help.
func (r result) fails(code int, says ...string) {
	r.Helper()
	require.Equal(r, code, r.code, "%v: %s%s", r.args, r.out, r.err)
	require.Empty(r, r.out, r.args)
	lines := strings.SplitAfter(r.err, "\n")
	lines = lines[:len(lines)-1]
	if code == 2 {
		require.Len(r, lines, 2, "%v: %s", r.args, r.err)
		require.Regexp(r, "^Try: backfill.* --help\n$", lines[1])
	} else {
		require.Len(r, lines, 1, "%v: %s", r.args, r.err)
	}
	for _, s := range says {
		require.Contains(r, lines[0], s, r.args)
	}
}

// objects are the lines of stdout, which hold a JSON object each and nothing else.
func (r result) objects() []map[string]any {
	r.Helper()
	var all []map[string]any
	d := json.NewDecoder(strings.NewReader(r.out))
	for d.More() {
		var o map[string]any
		require.NoError(r, d.Decode(&o), "%v: %s", r.args, r.out)
		all = append(all, o)
	}
	require.Equal(r, len(all), strings.Count(r.out, "\n"), "one line each: %s", r.out)
	return all
}

// object is the one line of stdout.
func (r result) object() map[string]any {
	r.Helper()
	all := r.objects()
	require.Len(r, all, 1, r.out)
	return all[0]
}

// requireKeys checks that an object has exactly these keys, in any order; those
// that end with ? may be left out.
func requireKeys(t *testing.T, o map[string]any, keys ...string) {
	t.Helper()
	known := map[string]bool{}
	for _, k := range keys {
		name, optional := strings.CutSuffix(k, "?")
		known[name] = true
		if !optional {
			require.Contains(t, o, name)
		}
	}
	for k := range o {
		require.True(t, known[k], "unexpected key %q in %v", k, o)
	}
}

// requirePlain checks that nothing in a text could be a command to a terminal.
func requirePlain(t *testing.T, s string) {
	t.Helper()
	for _, r := range s {
		require.True(t, r == '\n' || r == '\t' || !unicode.IsControl(r), "%U in %q", r, s)
	}
}

// database is a migrated database with some captures.
type database struct {
	*testing.T

	pool *pgxpool.Pool
	url  string
}

func setup(t *testing.T) database {
	t.Helper()
	pool := pgtest.New(t)
	return database{T: t, pool: pool, url: pool.Config().ConnString()}
}

// cli runs a command line on the database.
func (d database) cli(args ...string) result {
	d.Helper()
	return backfill(d.T, "", append([]string{"--database-url", d.url}, args...)...)
}

// cliWith is cli with something on stdin.
func (d database) cliWith(stdin string, args ...string) result {
	d.Helper()
	return backfill(d.T, stdin, append([]string{"--database-url", d.url}, args...)...)
}

func (d database) exec(sql string, args ...any) {
	d.Helper()
	_, err := d.pool.Exec(d.Context(), sql, args...)
	require.NoError(d, err)
}

func query[T any](d database, sql string, args ...any) T {
	d.Helper()
	rows, err := d.pool.Query(d.Context(), sql, args...)
	require.NoError(d, err)
	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	require.NoError(d, err)
	return v
}

// file writes a file into a folder of the test's own.
func file(t *testing.T, name string, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	return path
}

// Turns that hold one candidate, one other candidate, and none.
const (
	decision   = `{"id":"d","text":"We decided to use Postgres instead of MongoDB because the reports need joins.","source":"owner","date":"2026-01-31T10:00:00Z"}`
	preference = `{"id":"p","text":"I prefer tea over coffee in the morning, and always without sugar."}`
	smallTalk  = `{"id":"s","text":"Good morning!"}`
)
