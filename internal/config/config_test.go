package config_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/heuristic"
	"github.com/justfortytwo/backfill/internal/config"
)

func TestDefaults(t *testing.T) {
	t.Parallel()
	want := config.Config{
		StatementTimeout: 5 * time.Minute,
		Lease:            20 * time.Second,
		MaxAttempts:      5,
		ClassifyMaxChars: heuristic.ClassifyMaxChars,
		Nightly:          "0 3 * * *",
		HoldReplicaLag:   30 * time.Second,
		HTTPAddr:         "127.0.0.1:8080",
		LogLevel:         slog.LevelInfo,
		LogFormat:        "json",
	}
	for name, environ := range map[string][]string{
		"nothing set": nil,
		"set to nothing": {
			"DATABASE_URL=", "BACKFILL_STATEMENT_TIMEOUT=", "BACKFILL_WORKERS=", "BACKFILL_LEASE=", "BACKFILL_MAX_ATTEMPTS=",
			"BACKFILL_CLASSIFY_MAX_CHARS=", "BACKFILL_MIN_SALIENCE=", "BACKFILL_NIGHTLY=", "BACKFILL_TIME_ZONE=", "BACKFILL_POLL_ONLY=",
			"BACKFILL_HTTP_ADDR=", "BACKFILL_LOG_LEVEL=", "BACKFILL_LOG_FORMAT=",
		},
		"other programs'": {"PATH=/bin", "EMPTY", "=C:=C:\\", "backfill_workers=many"},
	} {
		got, err := config.Load(environ)
		require.NoError(t, err, name)
		require.Equal(t, want, got, name)
	}

	jobs, err := want.Jobs(slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.Len(t, jobs.Slots, 1)
	require.Equal(t, want.Extractors()[0].Version, jobs.Slots[0].Version, "what is registered is what is executed")
	night := time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)
	require.Equal(t, night, jobs.Nightly.Next(night.Add(-time.Hour)))
	require.Equal(t, time.Local, jobs.Location)
}

func TestLoad(t *testing.T) {
	t.Parallel()
	got, err := config.Load([]string{
		"DATABASE_URL=postgres://me@db/mine", "BACKFILL_STATEMENT_TIMEOUT=-1s", "BACKFILL_WORKERS=7", "BACKFILL_LEASE=1m", "BACKFILL_MAX_ATTEMPTS=2",
		"BACKFILL_CLASSIFY_MAX_CHARS=-1", "BACKFILL_MIN_SALIENCE=0.25", "BACKFILL_NIGHTLY=off", "BACKFILL_TIME_ZONE=Europe/Berlin",
		"BACKFILL_POLL_ONLY=true", "BACKFILL_HTTP_ADDR=127.0.0.1:8080", "BACKFILL_LOG_LEVEL=debug", "BACKFILL_LOG_FORMAT=text",
	})
	require.NoError(t, err)
	require.Equal(t, config.Config{
		DatabaseURL: "postgres://me@db/mine", StatementTimeout: -time.Second, Workers: 7, Lease: time.Minute, MaxAttempts: 2,
		ClassifyMaxChars: -1, MinSalience: 0.25, Nightly: "off", TimeZone: "Europe/Berlin", HoldReplicaLag: 30 * time.Second,
		PollOnly: true, HTTPAddr: "127.0.0.1:8080", HTTPAddrSet: true, LogLevel: slog.LevelDebug, LogFormat: "text",
	}, got)
	require.InDelta(t, 0.25, got.Options().MinSalience, 0)

	jobs, err := got.Jobs(nil)
	require.NoError(t, err)
	require.Nil(t, jobs.Nightly)
	require.Equal(t, "Europe/Berlin", jobs.Location.String())
	require.Equal(t, 7, jobs.Workers)
	require.Equal(t, time.Minute, jobs.Lease)
	require.Equal(t, int16(2), jobs.MaxAttempts)
	require.True(t, jobs.PollOnly)
}

// A value that cannot be is refused by the name of its variable, on one line.
func TestBadValues(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ variable, value, says string }{
		{"BACKFILL_STATEMENT_TIMEOUT", "soon", ""},
		{"BACKFILL_STATEMENT_TIMEOUT", "30", ""},
		{"BACKFILL_WORKERS", "many", ""},
		{"BACKFILL_WORKERS", "-1", "at least 2"},
		{"BACKFILL_WORKERS", "1", "at least 2"},
		{"BACKFILL_LEASE", "20", ""},
		{"BACKFILL_LEASE", "999ms", "at least 1s"},
		{"BACKFILL_LEASE", "-1m", "at least 1s"},
		{"BACKFILL_MAX_ATTEMPTS", "0", "at least 1"},
		{"BACKFILL_MAX_ATTEMPTS", "70000", ""},
		{"BACKFILL_CLASSIFY_MAX_CHARS", "1", "20"},
		{"BACKFILL_CLASSIFY_MAX_CHARS", "19", "20"},
		{"BACKFILL_CLASSIFY_MAX_CHARS", "long", ""},
		{"BACKFILL_MIN_SALIENCE", "-0.1", "from 0 to 1"},
		{"BACKFILL_MIN_SALIENCE", "1.01", "from 0 to 1"},
		{"BACKFILL_MIN_SALIENCE", "NaN", "from 0 to 1"},
		{"BACKFILL_MIN_SALIENCE", "high", ""},
		{"BACKFILL_NIGHTLY", "at night", "cron's five fields"},
		{"BACKFILL_NIGHTLY", "0 0 3 * * *", "cron's five fields"},
		{"BACKFILL_NIGHTLY", "TZ=Asia/Tokyo 0 3 * * *", "cron's five fields"},
		{"BACKFILL_TIME_ZONE", "Middle/Earth", "IANA name"},
		{"BACKFILL_POLL_ONLY", "perhaps", ""},
		{"BACKFILL_LOG_LEVEL", "loud", ""},
		{"BACKFILL_LOG_FORMAT", "xml", "json or text"},
	} {
		_, err := config.Load([]string{tt.variable + "=" + tt.value})
		require.ErrorContains(t, err, tt.variable, "%s=%s", tt.variable, tt.value)
		require.ErrorContains(t, err, tt.says, "%s=%s", tt.variable, tt.value)
		require.NotContains(t, err.Error(), "\n", tt.variable)
		for _, internal := range []string{"strconv", "ParseInt", "env:"} {
			require.NotContains(t, err.Error(), internal, tt.variable)
		}
		require.Equal(t, 1, strings.Count(err.Error(), tt.variable), err)
	}
	for _, floor := range []string{"20", "0", "-5"} {
		_, err := config.Load([]string{"BACKFILL_CLASSIFY_MAX_CHARS=" + floor})
		require.NoError(t, err, floor)
	}
}
