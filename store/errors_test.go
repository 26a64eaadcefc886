package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestErrorClasses(t *testing.T) {
	t.Parallel()
	state := func(code string) error {
		return fmt.Errorf("writing: %w", &pgconn.PgError{Code: code, Message: "quotes a value"})
	}
	const conflict, data, retryable, neither = "conflict", "data", "retryable", ""
	for _, tt := range []struct {
		name  string
		err   error
		class string
	}{
		{"unique violation", state("23505"), conflict},
		{"check violation", state("23514"), data},
		{"not null violation", state("23502"), data},
		{"untranslatable character", state("22P05"), data},
		{"invalid byte sequence", state("22021"), data},
		{"value too long", state("22001"), data},
		{"program limit exceeded", state("54000"), data},
		{"serialization failure", state("40001"), retryable},
		{"deadlock", state("40P01"), retryable},
		{"lock timeout", state("55P03"), retryable},
		{"idle in transaction", state("25P03"), retryable},
		{"disk full", state("53100"), retryable},
		{"too many connections", state("53300"), retryable},
		{"connection failure", state("08006"), retryable},
		{"admin shutdown", state("57P01"), retryable},
		{"server is starting", state("57P03"), retryable},
		{"statement timeout", state("57014"), neither},
		{"undefined table", state("42P01"), neither},
		{"permission denied", state("42501"), neither},
		{"syntax error", state("42601"), neither},
		{"internal error", state("XX000"), neither},
		{"lost connection", fmt.Errorf("reading: %w", io.ErrUnexpectedEOF), retryable},
		{"end of stream", fmt.Errorf("reading: %w", io.EOF), retryable},
		{"closed socket", net.ErrClosed, retryable},
		{"network error", &net.OpError{Op: "dial", Err: errors.New("refused")}, retryable},
		{"interrupted", context.Canceled, retryable},
		{"too late", context.DeadlineExceeded, retryable},
		{"a bug of ours", errors.New("no idea"), neither},
	} {
		require.Equal(t, tt.class == conflict, IsConflict(tt.err), "%s: conflict", tt.name)
		require.Equal(t, tt.class == data, IsDataError(tt.err), "%s: data error", tt.name)
		require.Equal(t, tt.class == retryable, IsRetryable(tt.err), "%s: retryable", tt.name)
		require.NotContains(t, Code(tt.err), "quotes a value", tt.name)
	}
	require.Equal(t, "SQLSTATE 23514", Code(state("23514")))
	require.Equal(t, "connection", Code(io.EOF))
}

// What a missing or older schema gives is told apart from other errors.
func TestNotMigrated(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"42P01", "3F000", "42883", "42703"} {
		err := wrap("reading", &pgconn.PgError{Code: code})
		require.ErrorIs(t, err, ErrNotMigrated, code)
		require.ErrorContains(t, err, "backfill migrate up", code)
		require.ErrorContains(t, err, code)
	}
	require.NotErrorIs(t, wrap("reading", &pgconn.PgError{Code: "42501"}), ErrNotMigrated)
}

func TestClean(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                    "",
		"plain":               "plain",
		"grüße 👋":             "grüße 👋",
		"a\x00b":              "a\uFFFDb",
		"cut \xe2\x82":        "cut \uFFFD",
		"\xff\x00 both":       "\uFFFD\uFFFD both",
		"tab\tand\x1b escape": "tab\tand\x1b escape",
	} {
		require.Equal(t, want, Clean(in), "%q", in)
	}
	rapid.Check(t, func(t *rapid.T) {
		out := Clean(string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")))
		require.True(t, utf8.ValidString(out))
		require.NotContains(t, out, "\x00")
		require.Equal(t, out, Clean(out), "idempotent")
	})
}
