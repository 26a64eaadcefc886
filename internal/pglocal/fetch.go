//go:build unix

package pglocal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// fetchVersion is downloaded when this machine has no Postgres. fetchMajor is
// its major version.
const (
	fetchVersion = embeddedpostgres.V17
	fetchMajor   = 17
)

// fetchBinaries downloads Postgres into a cache every later start uses, and
// returns the folder of its binaries.
func fetchBinaries(ctx context.Context, acct account, log io.Writer) (string, error) {
	cache := "/var/cache/backfill" // the server's user cannot enter root's own
	if !acct.drop {
		base, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		cache = filepath.Join(base, "backfill")
	}
	return fetchInto(ctx, cache, embeddedpostgres.DefaultConfig().Version(fetchVersion), log)
}

func fetchInto(ctx context.Context, cache string, from embeddedpostgres.Config, log io.Writer) (string, error) {
	target := filepath.Join(cache, "postgres-"+string(fetchVersion))
	bin := filepath.Join(target, "bin")
	if isFile(filepath.Join(bin, "postgres")) {
		return bin, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	fmt.Fprintf(log, "no Postgres found: downloading version %s to %s\n", fetchVersion, target)

	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- unpack(cache, target, from) }() // the download cannot be cancelled, only left behind
	select {
	case err := <-done:
		if err != nil {
			return "", fmt.Errorf("downloading Postgres: %w", err)
		}
		return bin, nil
	case <-ctx.Done():
		return "", fmt.Errorf("downloading Postgres: %w", context.Cause(ctx))
	}
}

// unpack downloads to a folder beside target and moves it there when complete.
//
// The library has no call that only downloads: its Start goes on to initdb and a
// server of its own, which could not drop privileges and might come up after we
// gave up waiting. A locale that does not exist stops it at initdb. It empties
// the data directory just before that, so a file put there tells a download that
// is complete from one that failed.
func unpack(cache, target string, from embeddedpostgres.Config) error {
	tmp, err := os.MkdirTemp(cache, "fetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	pending := filepath.Join(tmp, "data", "pending")
	if err := os.Mkdir(filepath.Dir(pending), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(pending, nil, 0o600); err != nil {
		return err
	}

	unpacked := filepath.Join(tmp, "pg")
	err = embeddedpostgres.NewDatabase(from.
		CachePath(filepath.Join(tmp, "archive")).
		RuntimePath(filepath.Join(tmp, "run")).
		BinariesPath(unpacked).
		DataPath(filepath.Dir(pending)).
		Locale("none").
		Logger(io.Discard)).Start()
	if _, statErr := os.Stat(pending); !errors.Is(statErr, fs.ErrNotExist) {
		return errors.New(strings.TrimSpace(fmt.Sprint(err)))
	}
	if err := os.Chmod(unpacked, 0o755); err != nil {
		return err
	}
	if err := os.Rename(unpacked, target); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
