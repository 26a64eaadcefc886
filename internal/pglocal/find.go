//go:build unix

package pglocal

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// installGlobs are the folders packages install Postgres to: Debian, PGDG for
// Red Hat, a source build, Homebrew on both architectures, MacPorts and
// Postgres.app.
var installGlobs = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/usr/local/pgsql/bin",
	"/opt/homebrew/opt/postgresql@*/bin",
	"/usr/local/opt/postgresql@*/bin",
	"/opt/local/lib/postgresql*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
}

var number = regexp.MustCompile(`\d+`)

// searchDirs lists where Postgres may be: what the user's PATH prefers first,
// then each kind of package with its newest version first.
func searchDirs(ctx context.Context) []string {
	var dirs []string
	if path, err := exec.LookPath("initdb"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	for _, glob := range installGlobs {
		found, _ := filepath.Glob(glob) // the only error is a bad pattern
		slices.SortFunc(found, func(a, b string) int { return cmp.Compare(lastNumber(b), lastNumber(a)) })
		dirs = append(dirs, found...)
	}
	return dirs
}

// lastNumber is the last number in a path, the version there, or 0.
func lastNumber(path string) int {
	all := number.FindAllString(path, -1)
	if len(all) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(all[len(all)-1])
	return n
}

// binaries returns the folder of the binaries to use. With want > 0 only that
// major version will do: it made the data.
func (c *Config) binaries(ctx context.Context, acct account, want int) (string, error) {
	if c.BinDirs != nil {
		return findBinaries(ctx, acct, c.BinDirs, want, func(context.Context) (string, error) {
			return "", fmt.Errorf("none in %s", strings.Join(c.BinDirs, ", "))
		})
	}
	return findBinaries(ctx, acct, searchDirs(ctx), want, func(ctx context.Context) (string, error) {
		return fetchBinaries(ctx, acct, c.Log)
	})
}

func findBinaries(ctx context.Context, acct account, dirs []string, want int, fetch func(context.Context) (string, error)) (string, error) {
	var unfit []string
	for _, dir := range dirs {
		major, err := version(ctx, acct, dir)
		switch {
		case err != nil:
			unfit = append(unfit, err.Error())
		case major < MinVersion || want > 0 && major != want:
			unfit = append(unfit, fmt.Sprintf("%s is version %d", dir, major))
		default:
			return dir, nil
		}
	}
	seen := ""
	if len(unfit) > 0 {
		seen = "; " + strings.Join(unfit, "; ")
	}
	if want > 0 && want != fetchMajor {
		return "", fmt.Errorf("the data was made by Postgres %d, which is not installed%s: install it, or delete the data to start anew", want, seen)
	}
	dir, err := fetch(ctx)
	if err != nil {
		return "", fmt.Errorf("%w (%w%s): set DATABASE_URL to a server you have, or install one with "+
			"`apt-get install postgresql` or `brew install postgresql@17`, or start one with `docker compose up -d db`",
			ErrNotFound, err, seen)
	}
	return dir, nil
}

var versionLine = regexp.MustCompile(`^postgres \(PostgreSQL\) (\d+)`)

// version is the major version of the binaries in dir. It runs them as the
// account that will run the server, so that a folder closed to it is no choice.
func version(ctx context.Context, acct account, dir string) (int, error) {
	for _, name := range []string{"initdb", "pg_ctl"} {
		if !isFile(filepath.Join(dir, name)) {
			return 0, fmt.Errorf("%s has no %s", dir, name)
		}
	}
	postgres := filepath.Join(dir, "postgres")
	out, err := acct.command(ctx, "/", postgres, "--version").Output()
	if err != nil {
		return 0, fmt.Errorf("%s --version: %w", postgres, err)
	}
	m := versionLine.FindSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("%s does not state its version", postgres)
	}
	return strconv.Atoi(string(m[1]))
}
