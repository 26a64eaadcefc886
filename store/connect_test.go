package store

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/internal/pgtest"
)

// Every connection gets the settings the product relies on.
func TestConnect(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	settings := func(o Options) (got map[string]string, conns int32) {
		pool, err := Connect(t.Context(), url, o)
		require.NoError(t, err)
		defer pool.Close()
		rows, err := pool.Query(t.Context(), `
			select name, setting from pg_settings
			where name in ('application_name', 'statement_timeout', 'idle_in_transaction_session_timeout', 'jit')`)
		require.NoError(t, err)
		got = map[string]string{}
		var name, setting string
		_, err = pgx.ForEachRow(rows, []any{&name, &setting}, func() error {
			got[name] = setting
			return nil
		})
		require.NoError(t, err)
		return got, pool.Config().MaxConns
	}

	got, conns := settings(Options{})
	require.Equal(t, map[string]string{
		"application_name": "backfill", "statement_timeout": "300000", "idle_in_transaction_session_timeout": "60000", "jit": "off",
	}, got)
	require.GreaterOrEqual(t, conns, int32(4))

	got, conns = settings(Options{AppName: "night shift", StatementTimeout: 1500 * time.Millisecond, MaxConns: 17})
	require.Equal(t, "night shift", got["application_name"])
	require.Equal(t, "1500", got["statement_timeout"])
	require.Equal(t, int32(17), conns)

	got, _ = settings(Options{StatementTimeout: -1})
	require.Equal(t, "0", got["statement_timeout"], "disabled")
}

// What a user reads names the thing and the fix, on one line, without secrets.
func TestConnectRefused(t *testing.T) {
	t.Parallel()
	const secret = "open-sesame"
	given, err := pgx.ParseConfig(pgtest.URL(t))
	require.NoError(t, err)
	at := func(user, database string) string {
		return fmt.Sprintf("host=%s port=%d user=%s password=%s dbname=%s sslmode=disable", given.Host, given.Port, user, secret, database)
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	nobody := closed.Addr().String()
	require.NoError(t, closed.Close())

	for name, tt := range map[string]struct {
		url  string
		says []string
	}{
		"nobody listens":    {"postgres://me:" + secret + "@" + nobody + "/x", []string{"no Postgres answers at " + nobody, "is it running", "DATABASE_URL"}},
		"unknown host":      {"postgres://me:" + secret + "@nowhere.invalid:5432/x", []string{"no Postgres answers at nowhere.invalid:5432"}},
		"unknown user":      {at("stranger", given.Database), []string{`refused user "stranger"`, "SQLSTATE 28000", "check user and password"}},
		"unknown database":  {at(given.User, "nowhere"), []string{`has no database "nowhere"`, "createdb nowhere"}},
		"another scheme":    {"mysql://me:" + secret + "@localhost/x", []string{"not a Postgres URL", "postgres://user:password@host:5432/database"}},
		"a port of letters": {"postgres://me:" + secret + "@localhost:" + secret + "/x", []string{"not a Postgres URL"}},
		"no URL at all":     {secret, []string{"not a Postgres URL"}},
		"a broken escape":   {"postgres://me:" + secret + "%zz@localhost/x", []string{"not a Postgres URL"}},
		"unknown sslmode":   {"postgres://me:" + secret + "@localhost/x?sslmode=perhaps", []string{"not a Postgres URL"}},
	} {
		_, err := Connect(t.Context(), tt.url, Options{})
		require.Error(t, err, name)
		for _, s := range tt.says {
			require.ErrorContains(t, err, s, name)
		}
		require.NotContains(t, err.Error(), secret, name)
		require.NotContains(t, err.Error(), "\n", name)
	}
}

// An interrupt is not mistaken for a server that is down.
func TestConnectInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Connect(ctx, pgtest.URL(t), Options{})
	require.ErrorIs(t, err, context.Canceled)
}

// Refusals of which the local server has none.
func TestConnectError(t *testing.T) {
	t.Parallel()
	refusal := func(code, message string) string {
		return (&ConnectError{Host: "db", Port: 5432, User: "me", Database: "mine", err: &pgconn.PgError{Code: code, Message: message}}).Error()
	}
	require.Equal(t, `Postgres at db:5432 refused user "me" (SQLSTATE 28P01): check user and password in DATABASE_URL`,
		refusal("28P01", "password authentication failed"))
	require.Equal(t, "Postgres at db:5432 refused the connection: sorry, too many clients already (SQLSTATE 53300)",
		refusal("53300", "sorry, too many clients already"))
}
