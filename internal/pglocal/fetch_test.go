//go:build unix

package pglocal

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
	"github.com/stretchr/testify/require"
)

// archive is a tar.xz of bin/initdb, bin/pg_ctl and bin/postgres: shell scripts,
// of which postgres states version 17.5 and initdb fails.
const archive = `
/Td6WFoAAATm1rRGAgAhARYAAAB0L+Wj4Cf/AMJdADEaShsFkZA3OlG9V3Gz1uQT2IkQonAbexNN
15tic70r6rNJbkVqC6RLQH2665UL531xp7xGLwZ7XwcXL/wvKJ1XmYboX9C1sHqiJXeoA4tSCUm8
xy/szQTiQjJWrqQBPSE1MVZxc+WnHakBqjCVPPrfc+BaRCygF6aA8VtwWge6H4wujMi6Q67f8V35
5OQRzNfVw1zqZe6Q6xrtbLszfM6z6Gs2ZViDdXw4VhMrsxdIWB0adSg169+DrMOI8YkkbKuAAAAA
uu4y1/NUBmcAAd4BgFAAALkY5FexxGf7AgAAAAAEWVo=`

// repository serves one file for whatever version and system is asked for.
func repository(t *testing.T, jar http.HandlerFunc) embeddedpostgres.Config {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".sha256") {
			http.NotFound(w, r)
			return
		}
		jar(w, r)
	}))
	t.Cleanup(srv.Close)
	return embeddedpostgres.DefaultConfig().Version(fetchVersion).BinaryRepositoryURL(srv.URL)
}

func jarOf(t *testing.T, txz []byte) []byte {
	t.Helper()
	var jar bytes.Buffer
	z := zip.NewWriter(&jar)
	w, err := z.Create("postgres.txz")
	require.NoError(t, err)
	_, err = w.Write(txz)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return jar.Bytes()
}

func TestFetch(t *testing.T) {
	t.Parallel()
	txz, err := base64.StdEncoding.DecodeString(archive)
	require.NoError(t, err)
	jar := jarOf(t, txz)
	var requests atomic.Int32
	from := repository(t, func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		_, _ = w.Write(jar)
	})
	cache := filepath.Join(openDir(t), "cache")

	for range 2 {
		bin, err := fetchInto(t.Context(), cache, from, io.Discard)
		require.NoError(t, err)
		acct, err := serverAccount()
		require.NoError(t, err)
		major, err := version(t.Context(), acct, bin)
		require.NoError(t, err)
		require.Equal(t, fetchMajor, major)
	}
	require.EqualValues(t, 1, requests.Load(), "the second time it is there")
	requireOnly(t, cache, "postgres-"+string(fetchVersion))
}

func TestFetchFails(t *testing.T) {
	t.Parallel()
	txz, err := base64.StdEncoding.DecodeString(archive)
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		jar []byte
		err string
	}{
		"refused":     {nil, "no version found"},
		"not a jar":   {[]byte("<html>"), "zip"},
		"cut archive": {jarOf(t, txz[:len(txz)/2]), "extract"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := repository(t, func(w http.ResponseWriter, _ *http.Request) {
				if tt.jar == nil {
					http.Error(w, "blocked", http.StatusForbidden)
					return
				}
				_, _ = w.Write(tt.jar)
			})
			cache := t.TempDir()
			_, err := fetchInto(t.Context(), cache, from, io.Discard)
			require.ErrorContains(t, err, "downloading Postgres: ")
			require.ErrorContains(t, err, tt.err)
			requireOnly(t, cache)
		})
	}
}

func TestFetchGivesUp(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	from := repository(t, func(http.ResponseWriter, *http.Request) { <-release })
	t.Cleanup(func() { close(release) })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := fetchInto(ctx, openDir(t), from, io.Discard)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func requireOnly(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	found := make([]string, len(entries))
	for i, e := range entries {
		found[i] = e.Name()
	}
	require.ElementsMatch(t, names, found)
}
