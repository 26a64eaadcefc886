package cli_test

import (
	"context"
	"net/url"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/internal/pglocal"
	"github.com/justfortytwo/backfill/internal/pgtest"
)

const secret = "open-sesame"

// databaseVerbs are those that need a database; doctor reports on stdout instead.
func databaseVerbs(t *testing.T) [][]string {
	t.Helper()
	return [][]string{
		{"import", file(t, "turns.jsonl", decision)},
		{"run"},
		{"run", "--local"},
		{"run", "--nightly", "--wait"},
		{"status"},
		{"status", "1"},
		{"runs"},
		{"failures"},
		{"show", "1"},
		{"entities"},
		{"entities", "postgres"},
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		says string
	}{
		{[]string{"frobnicate"}, `unknown command "frobnicate"`},
		{[]string{"import", "--frobnicate", "x"}, "unknown flag: --frobnicate"},
		{[]string{"import"}, "at least 1 arg"},
		{[]string{"show"}, "say which capture"},
		{[]string{"show", "1", "2"}, "say which capture"},
		{[]string{"status", "1", "2"}, "1 arg"},
		{[]string{"entities", "--limit", "many"}, "--limit"},
		{[]string{"run", "everything"}, "everything"},
		{[]string{"run", "--reprocess", "everything"}, "use missing, failed, stale or all"},
		{[]string{"run", "--order", "random"}, "use oldest or newest"},
		{[]string{"run", "--since", "yesterday"}, `--since "yesterday" is neither a date`},
		{[]string{"run", "--until", "2026-02-30"}, `--until "2026-02-30" is neither a date`},
		{[]string{"run", "--since", "2026-02-02", "--until", "2026-02-01"}, "nothing is in between"},
		{[]string{"run", "--source", ""}, "every capture has a source"},
		{[]string{"run", "--limit", "-1"}, "from 1 on"},
		{[]string{"run", "--limit", "0"}, `--limit is "0"`},
		{[]string{"run", "--ids", ""}, `--ids is "": give it a value, or leave it out`},
		{[]string{"run", "--since", ""}, `--since is ""`},
		{[]string{"retry", "1", "--ids", ""}, `--ids is ""`},
		{[]string{"run", "--sample", "1"}, "a share such as 1%"},
		{[]string{"run", "--sample", "0%"}, "a share such as 1%"},
		{[]string{"run", "--sample", "NaN%"}, "a share such as 1%"},
		{[]string{"run", "--ids", "1,two,3,4x"}, `--ids: this is no number of a capture: line 1: "two", line 1: "4x"`},
		{[]string{"run", "--ids", "-"}, "--ids names no captures"},
		{[]string{"run", "--print"}, "--print needs --limit"},
		{[]string{"run", "--print", "--limit", "1", "--local"}, "local print"},
		{[]string{"run", "--dry-run", "--wait"}, "dry-run wait"},
		{[]string{"run", "--nightly", "--source", "x"}, "nightly source"},
		{[]string{"run", "--max-cost", "5 dollars"}, "--max-cost is"},
		{[]string{"run", "--concurrency", "-2"}, "--concurrency is"},
		{[]string{"run", "--concurrency", "9999"}, "from 1 to 1000"},
		{[]string{"run", "--batch-size", "20000"}, "from 1 to 10000"},
		{[]string{"run", "--max-error-rate", "5"}, "--max-error-rate is"},
		{[]string{"run", "--deadline", "25:00"}, "--deadline is"},
		{[]string{"run", "--deadline", "2020-01-01T06:00:00Z"}, "one to come"},
		{[]string{"set", "1"}, "KEY=VALUE"},
		{[]string{"set", "1", "concurrency"}, "is not KEY=VALUE"},
		{[]string{"set", "1", "speed=11"}, `there is no setting "speed": use batch-size, concurrency, deadline, max-cost, max-error-rate`},
		{[]string{"set", "1", "concurrency=many"}, "a number from 1 on, or none"},
		{[]string{"set", "1", "max-cost=NaN"}, "US dollars"},
		{[]string{"set", "1", "batch-size=10001"}, "from 1 to 10000"},
		{[]string{"retry", "--ids", "x"}, `"x"`},
		{[]string{"migrate", "sideways"}, "sideways"},
		{[]string{"migrate", "up", "down"}, "down"},
		{[]string{"--database-url"}, "needs an argument"},
	} {
		backfill(t, "", tt.args...).fails(2, tt.says)
	}
	r := backfill(t, "")
	require.Equal(t, 2, r.code)
	require.Empty(t, r.out)
	require.Contains(t, r.err, "Usage:")
}

func TestNoDatabase(t *testing.T) {
	t.Parallel()
	verbs := append(databaseVerbs(t), []string{"migrate", "up"}, []string{"migrate", "status"}, []string{"migrate", "down", "--yes"}, []string{"demo"})
	for _, args := range verbs {
		backfill(t, "", append([]string{"--database-url", "postgres://me:" + secret + "@127.0.0.1:1/x"}, args...)...).
			fails(1, "no Postgres answers at 127.0.0.1:1", "is it running")
	}
	backfill(t, "", "--database-url", "mysql://me:"+secret+"@localhost", "status").fails(1, "not a Postgres URL", "postgres://user:password@host")

	r := backfill(t, "", "--database-url", "postgres://me:"+secret+"@127.0.0.1:1/x", "doctor", "--json")
	require.Equal(t, 1, r.code)
	require.Empty(t, r.err)
	require.NotContains(t, r.out, secret)
	finding := r.object()
	require.Equal(t, "error", finding["level"])
	require.Equal(t, "database", finding["check"])
	require.Contains(t, finding["do"], "docker compose up -d db")
}

func TestNotMigrated(t *testing.T) {
	t.Parallel()
	url := pgtest.Empty(t).Config().ConnString()
	for _, args := range databaseVerbs(t) {
		backfill(t, "", append([]string{"--database-url", url}, args...)...).fails(1, "run `backfill migrate up`")
	}
	require.Contains(t, backfill(t, "", "--database-url", url, "migrate", "status").ok().out, "pending")
	r := backfill(t, "", "--database-url", url, "doctor")
	require.Equal(t, 1, r.code)
	require.Regexp(t, `(?m)^error +migrations +\d+ of \d+ pending\n +→ backfill migrate up$`, r.out)
}

func TestNoSuchThing(t *testing.T) {
	t.Parallel()
	d := setup(t)
	d.cli("status", "999").fails(1, "no such run")
	d.cli("status", "999", "--watch", "--json").fails(1, "no such run")
	d.cli("show", "999").fails(1, "no such capture")
	for _, no := range []string{"abc", "0", "-1", "99999999999999999999"} {
		d.cli("show", "--", no).fails(2, `"`+no+`" is not the number of a capture`)
		d.cli("status", "--", no).fails(2, `"`+no+`" is not the number of a run`)
	}
	d.cli("show", "999", "--json").fails(1, "no such capture")
	for _, verb := range []string{"pause", "resume", "cancel", "undo"} {
		d.cli(verb).fails(2, "say which run")
		d.cli(verb, "1", "2").fails(2, "say which run")
	}
	d.cli("show").fails(2, "say which capture")
}

// A server with passwords: the wrong one is told apart from a missing database,
// and never shown.
func TestPassword(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "backfill-cli-") //nolint:usetesting // t.TempDir is closed to the account of the server
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	server, err := pglocal.Start(t.Context(), pglocal.Config{Dir: dir})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop(context.Background())) })

	good, err := url.Parse(server.URL(""))
	require.NoError(t, err)
	at := func(user *url.Userinfo, database string) string {
		u := *good
		u.User, u.Path = user, "/"+database
		return u.String()
	}
	password, _ := good.User.Password()
	for _, tt := range []struct{ url, says, fix string }{
		{at(url.UserPassword("postgres", secret), "postgres"), `refused user "postgres" (SQLSTATE 28P01)`, "check user and password in DATABASE_URL"},
		{at(url.UserPassword("stranger", password), "postgres"), `refused user "stranger"`, "check user and password in DATABASE_URL"},
		{at(good.User, "nowhere"), `has no database "nowhere"`, "createdb nowhere"},
	} {
		for _, verb := range []string{"status", "doctor"} {
			r := backfill(t, "", "--database-url", tt.url, verb)
			require.NotContains(t, r.out+r.err, secret)
			require.NotContains(t, r.out+r.err, password)
			if verb == "doctor" {
				require.Equal(t, 1, r.code)
				require.Contains(t, r.out, tt.says)
				continue
			}
			r.fails(1, tt.says, tt.fix)
		}
	}
	r := backfill(t, "", "--database-url", good.String(), "doctor")
	require.Contains(t, r.out, "postgres on 127.0.0.1")
	require.NotContains(t, r.out+r.err, password)
}

// Flags beat the environment, and the environment beats the defaults.
func TestEnvironment(t *testing.T) {
	url := pgtest.URL(t)
	t.Setenv("PGHOST", "127.0.0.1")
	t.Setenv("PGPORT", "1")
	t.Setenv("DATABASE_URL", "")
	backfill(t, "", "status").fails(1, "no Postgres answers at 127.0.0.1:1")

	t.Setenv("DATABASE_URL", "postgres://me@127.0.0.1:2/x")
	backfill(t, "", "status").fails(1, "no Postgres answers at 127.0.0.1:2")
	backfill(t, "", "status", "--database-url", url).ok()
	backfill(t, "", "status", "--database-url", "postgres://me@127.0.0.1:3/x").fails(1, "no Postgres answers at 127.0.0.1:3")

	t.Setenv("DATABASE_URL", url)
	backfill(t, "", "status").ok()

	t.Setenv("BACKFILL_CLASSIFY_MAX_CHARS", "10")
	for _, args := range [][]string{{"status"}, {"extract"}, {"version"}, {"import", "--dry-run", "-"}} {
		backfill(t, "", args...).fails(1, "BACKFILL_CLASSIFY_MAX_CHARS", "at least 20")
	}
}
