//go:build unix

package pglocal

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

func currentAccount() account { return account{uid: os.Geteuid(), gid: os.Getegid()} }

func TestFindBinaries(t *testing.T) {
	t.Parallel()
	v14, v15, v17 := fakeBinaries(t, "14.2"), fakeBinaries(t, "15.18 (Debian 15.18-0+deb12u1)"), fakeBinaries(t, "17beta1")
	for name, tt := range map[string]struct {
		dirs []string
		want int
		dir  string
		err  string
	}{
		"the first that will do":   {dirs: []string{t.TempDir(), v14, v15, v17}, dir: v15},
		"a beta":                   {dirs: []string{v17, v15}, dir: v17},
		"the version of the data":  {dirs: []string{v15, v17}, want: 17, dir: v17},
		"too old, so a download":   {dirs: []string{v14}, dir: "downloaded"},
		"a download with the data": {dirs: []string{v15}, want: fetchMajor, dir: "downloaded"},
		"no download for the data": {dirs: []string{v17}, want: 15, err: "made by Postgres 15, which is not installed; " + v17 + " is version 17"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, err := findBinaries(t.Context(), currentAccount(), tt.dirs, tt.want,
				func(context.Context) (string, error) { return "downloaded", nil })
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.dir, dir)
		})
	}
}

func TestNothingFound(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	v14 := fakeBinaries(t, "14.2")
	_, err := findBinaries(t.Context(), currentAccount(), []string{v14}, 0,
		func(context.Context) (string, error) { return "", refused })
	requireWaysOut(t, err)
	require.ErrorIs(t, err, refused)
	require.ErrorContains(t, err, v14+" is version 14")

	empty := t.TempDir()
	_, err = Start(t.Context(), Config{Temporary: true, BinDirs: []string{empty}})
	requireWaysOut(t, err)
	require.ErrorContains(t, err, empty)
}

func requireWaysOut(t *testing.T, err error) {
	t.Helper()
	require.ErrorIs(t, err, ErrNotFound)
	for _, way := range []string{"DATABASE_URL", "apt-get install postgresql", "brew install postgresql@17", "docker compose up -d db"} {
		require.ErrorContains(t, err, way)
	}
	require.NotContains(t, err.Error(), "\n")
}

func TestLastNumber(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]int{
		"/usr/lib/postgresql/9/bin":                           9,
		"/usr/lib/postgresql/17/bin":                          17,
		"/usr/local/opt/postgresql@16/bin":                    16,
		"/Applications/Postgres.app/Contents/Versions/latest": 0,
	} {
		require.Equal(t, want, lastNumber(path), path)
	}
}

func TestShellJoin(t *testing.T) {
	t.Parallel()
	require.Equal(t, "psql -p 5432", shellJoin("psql", "-p", "5432"))
	words := []string{"", "two words", "it's", `"$HOME" \n`, "a=b", "*"}
	out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", `printf '<%s>' `+shellJoin(words...)).Output()
	require.NoError(t, err)
	require.Equal(t, `<><two words><it's><"$HOME" \n><a=b><*>`, string(out))
}
