//go:build unix

package pglocal

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// helperEnv makes the test binary another process that starts a server, and its
// value is the folder: of a persistent server, or empty for a temporary one.
const helperEnv = "PGLOCAL_TEST_HELPER"

func TestMain(m *testing.M) {
	if dir, ok := os.LookupEnv(helperEnv); ok {
		os.Exit(helper(dir))
	}
	goleak.VerifyTestMain(m)
}

// helper starts a server, prints it, and lives until its input ends.
func helper(dir string) int {
	s, err := Start(context.Background(), Config{Dir: dir, Temporary: dir == ""})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := json.NewEncoder(os.Stdout).Encode(started{s.Reused, s.DataDir, s.URL("")}); err != nil {
		return 1
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// started is what a helper tells of its server.
type started struct {
	Reused  bool   `json:"reused"`
	DataDir string `json:"data_dir"`
	URL     string `json:"url"`
}

// process is a running helper.
type process struct {
	*exec.Cmd
	in  io.Closer
	out *bufio.Reader
}

func startHelper(t *testing.T, dir string) *process {
	t.Helper()
	p := &process{Cmd: exec.CommandContext(t.Context(), os.Args[0])}
	p.Env = append(os.Environ(), helperEnv+"="+dir)
	p.Stderr = os.Stderr
	in, err := p.StdinPipe()
	require.NoError(t, err)
	out, err := p.StdoutPipe()
	require.NoError(t, err)
	p.in, p.out = in, bufio.NewReader(out)
	require.NoError(t, p.Start())
	return p
}

// server waits for the helper's server.
func (p *process) server(t *testing.T) (s started) {
	t.Helper()
	line, err := p.out.ReadBytes('\n')
	require.NoError(t, err, "the helper ended early")
	require.NoError(t, json.Unmarshal(line, &s))
	return s
}

// exit lets the helper end by itself.
func (p *process) exit(t *testing.T) {
	t.Helper()
	require.NoError(t, p.in.Close())
	require.NoError(t, p.Wait())
}

// openDir is a new folder that any user can enter, unlike t.TempDir.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pglocal-test-") //nolint:usetesting // others cannot enter t.TempDir
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// startIn starts a persistent server that ends with the test.
func startIn(t *testing.T, cfg Config) *Server {
	t.Helper()
	s, err := Start(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop(context.Background())) })
	return s
}

func query[T any](t *testing.T, url, sql string) T {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	rows, err := conn.Query(t.Context(), sql)
	require.NoError(t, err)
	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	require.NoError(t, err)
	return v
}

// fakeBinaries is a folder of programs that only state a version.
func fakeBinaries(t *testing.T, version string) string {
	t.Helper()
	dir := openDir(t)
	for _, name := range []string{"initdb", "pg_ctl", "postgres"} {
		script := fmt.Sprintf("#!/bin/sh\necho '%s (PostgreSQL) %s'\n", name, version)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755))
	}
	return dir
}

func run(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	_, err = conn.Exec(t.Context(), sql)
	require.NoError(t, err)
}
