//go:build unix

package pglocal

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func TestTemporary(t *testing.T) {
	t.Parallel()
	s := startIn(t, Config{Temporary: true, Database: "scratch", Settings: map[string]string{"max_connections": "7"}})

	for name, want := range map[string]string{
		"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off",
		"listen_addresses": "", "server_encoding": "UTF8", "max_connections": "7",
	} {
		require.Equal(t, want, query[string](t, s.URL("scratch"), "show "+name), name)
	}
	require.Equal(t, "postgres", query[string](t, s.URL(""), "select current_database()::text"))

	require.NoError(t, s.Stop(t.Context()))
	require.NoDirExists(t, filepath.Dir(s.DataDir))
}

// The owner gets no chance to clean up, and yet the server and its folder go.
func TestTemporaryOwnerKilled(t *testing.T) {
	t.Parallel()
	p := startHelper(t, "")
	s := p.server(t)
	server, running, err := readPostmaster(s.DataDir)
	require.NoError(t, err)
	require.True(t, running)

	require.NoError(t, p.Process.Kill())
	require.Error(t, p.Wait())
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Dir(s.DataDir))
		return errors.Is(err, fs.ErrNotExist) && !isPostmaster(server.pid, s.DataDir)
	}, 10*time.Second, poll)
}

func TestTemporaryFails(t *testing.T) {
	t.Parallel()
	base := openDir(t)
	require.NoError(t, os.Chmod(base, 0o777))
	_, err := Start(t.Context(), Config{Temporary: true, base: base, Settings: map[string]string{"max_connections": "many"}})
	require.ErrorContains(t, err, "the server ended")
	require.ErrorContains(t, err, `invalid value for parameter "max_connections": "many"`)
	left, err := os.ReadDir(base)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestSweep(t *testing.T) {
	t.Parallel()
	base := openDir(t)
	acct := account{uid: os.Geteuid()}
	home := func(name string, withLock bool) string {
		path := filepath.Join(base, temporaryPrefix+name)
		require.NoError(t, os.MkdirAll(filepath.Join(path, "data"), 0o700))
		if withLock {
			require.NoError(t, os.WriteFile(filepath.Join(path, "lock"), nil, 0o600))
		}
		return path
	}
	dead, used, starting := home("dead", true), home("used", true), home("starting", false)
	held, err := lock(t.Context(), filepath.Join(used, "lock"))
	require.NoError(t, err)
	defer held.Close()
	linked := filepath.Join(base, temporaryPrefix+"linked")
	elsewhere := filepath.Join(base, "elsewhere")
	require.NoError(t, os.Rename(home("moved", true), elsewhere))
	require.NoError(t, os.Symlink(elsewhere, linked))

	sweep(base, account{uid: acct.uid + 1})
	require.DirExists(t, dead, "it belongs to somebody else")

	sweep(base, acct)
	require.NoDirExists(t, dead)
	require.DirExists(t, used)
	require.DirExists(t, starting)
	require.DirExists(t, filepath.Join(elsewhere, "data"))
}

func TestPersistent(t *testing.T) { //nolint:tparallel // its steps share one server
	t.Parallel()
	dir := filepath.Join(openDir(t), "the user's demo") // awkward in a command line
	cfg := Config{Dir: dir, Database: "demo"}

	// Started by one of two processes, which are gone before the first query.
	a, b := startHelper(t, dir), startHelper(t, dir)
	first, second := a.server(t), b.server(t)
	require.NotEqual(t, first.Reused, second.Reused)
	require.Equal(t, first.URL, second.URL)
	a.exit(t)
	b.exit(t)

	s := startIn(t, cfg)
	require.True(t, s.Reused)
	require.Equal(t, first.URL, s.URL(""))
	require.Equal(t, "127.0.0.1", query[string](t, s.URL(""), "show listen_addresses"))
	require.Equal(t, "on", query[string](t, s.URL(""), "show fsync"))
	run(t, s.URL("demo"), "create table kept as select 42 as n")

	stopped, err := Stop(t.Context(), dir)
	require.NoError(t, err)
	require.True(t, stopped)
	_, err = pgx.Connect(t.Context(), s.URL("demo"))
	require.Error(t, err)
	stopped, err = Stop(t.Context(), dir)
	require.NoError(t, err)
	require.False(t, stopped)

	t.Run("a start that fails", func(t *testing.T) {
		_, err := Start(t.Context(), Config{Dir: dir, Settings: map[string]string{"max_connections": "many"}})
		require.ErrorContains(t, err, `invalid value for parameter "max_connections": "many"`)
		stopped, err := Stop(t.Context(), dir)
		require.NoError(t, err)
		require.False(t, stopped)
	})

	t.Run("other binaries than the data's", func(t *testing.T) {
		other := fakeBinaries(t, "99.1")
		_, err := Start(t.Context(), Config{Dir: dir, BinDirs: []string{other}})
		require.ErrorContains(t, err, "the data was made by Postgres")
		require.ErrorContains(t, err, other+" is version 99")
	})

	again := startIn(t, cfg)
	require.False(t, again.Reused)
	require.Equal(t, s.URL("demo"), again.URL("demo"), "a URL stays valid over a restart")
	require.Equal(t, 42, query[int](t, again.URL("demo"), "select n from kept"))

	t.Run("asks for a password on TCP", func(t *testing.T) {
		_, err := pgx.Connect(t.Context(), strings.Replace(again.URL(""), again.password, "guess", 1))
		require.ErrorContains(t, err, "password authentication failed")
	})

	t.Run("psql", func(t *testing.T) {
		if _, err := exec.LookPath("psql"); err != nil {
			t.Skip("no psql here")
		}
		for _, command := range []string{again.Psql("demo"), "psql " + shellJoin(again.URL("demo"))} {
			out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", command+" -XAtc 'select n from kept'").CombinedOutput()
			require.NoError(t, err, "%s: %s", command, out)
			require.Equal(t, "42\n", string(out))
		}
		require.NotContains(t, again.Psql("demo"), again.password)
	})
}

// Neither a crash nor what happens to its traces may keep the server from
// starting again.
func TestPersistentAfterCrash(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	s := startIn(t, Config{Dir: dir})
	run(t, s.URL(""), "create table kept as select 42 as n")
	pidFile := filepath.Join(s.DataDir, "postmaster.pid")
	stale, err := os.ReadFile(pidFile)
	require.NoError(t, err)

	server, running, err := readPostmaster(s.DataDir)
	require.NoError(t, err)
	require.True(t, running)
	conn, err := pgx.Connect(t.Context(), s.URL(""))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(server.pid, syscall.SIGKILL))
	_, err = conn.Exec(t.Context(), "select pg_sleep(60)") // its own process ends soon after the server
	require.Error(t, err)
	require.NoError(t, os.Remove(filepath.Join(dir, "password")))
	s = startIn(t, Config{Dir: dir})
	require.False(t, s.Reused)
	require.Equal(t, 42, query[int](t, s.URL(""), "select n from kept"))

	// The number in the pid file has become another process, this one.
	require.NoError(t, s.Stop(t.Context()))
	_, rest, _ := strings.Cut(string(stale), "\n")
	require.NoError(t, os.WriteFile(pidFile, []byte(strconv.Itoa(os.Getpid())+"\n"+rest), 0o600))
	// Another program has the port.
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)))
	require.NoError(t, err)
	defer l.Close()
	other := startIn(t, Config{Dir: dir})
	require.False(t, other.Reused)
	require.NotEqual(t, s.port, other.port)
	require.Equal(t, 42, query[int](t, other.URL(""), "select n from kept"))
}

func TestRootsPrivateHome(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root's server runs as another user")
	}
	dir := filepath.Join(t.TempDir(), ".backfill", "pg")
	base := openDir(t)
	cfg := Config{Dir: dir, base: base}

	s := startIn(t, cfg)
	run(t, s.URL(""), "create table kept as select 42 as n")
	location, err := os.ReadFile(filepath.Join(dir, "location"))
	require.NoError(t, err)
	home := strings.TrimSpace(string(location))
	require.Equal(t, base, filepath.Dir(home))
	require.Equal(t, filepath.Dir(s.DataDir), home)
	info, err := os.Stat(home)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
	require.NotZero(t, ownerOf(info))

	require.NoError(t, s.Stop(t.Context()))
	s = startIn(t, cfg)
	require.Equal(t, 42, query[int](t, s.URL(""), "select n from kept"))
}

// The tests above ran as whoever runs them. Where that is root, here they are as
// a user without rights.
func TestUnprivileged(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root to become another user")
	}
	dir := openDir(t)
	copied := filepath.Join(dir, "pglocal.test")
	// By another process: a child that a parallel test forks while we had it open for
	// writing would keep it from being executed.
	out, err := exec.CommandContext(t.Context(), "install", "-m", "755", os.Args[0], copied).CombinedOutput()
	require.NoError(t, err, "%s", out)
	const nobody = 65534
	home := filepath.Join(dir, "home")
	require.NoError(t, account{uid: nobody, gid: nobody}.privateDir(home))

	cmd := account{uid: nobody, gid: nobody, drop: true}.command(t.Context(), home, copied,
		"-test.run", "^(TestTemporary|TestPersistent|TestPrivateDir)$")
	cmd.Env = append(cmd.Env, "TMPDIR="+home)
	out, err = cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	left, err := os.ReadDir(home)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestPrivateDir(t *testing.T) {
	t.Parallel()
	acct := account{uid: os.Geteuid(), gid: os.Getegid()}
	dir := t.TempDir()
	fresh := filepath.Join(dir, "fresh")
	require.NoError(t, acct.privateDir(fresh))
	require.NoError(t, acct.privateDir(fresh), "a second time")

	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(fresh, link))
	require.ErrorContains(t, acct.privateDir(link), link)

	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.ErrorContains(t, acct.privateDir(file), file)

	open := filepath.Join(dir, "open")
	require.NoError(t, os.Mkdir(open, 0o755))
	require.NoError(t, os.Chmod(open, 0o755))
	require.ErrorContains(t, acct.privateDir(open), open)
}

func TestConfigValidate(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Config{})
	require.ErrorContains(t, err, "Dir")
	_, err = Start(t.Context(), Config{Dir: t.TempDir(), Temporary: true})
	require.ErrorContains(t, err, "Dir")
}

func TestStopUnknown(t *testing.T) {
	t.Parallel()
	stopped, err := Stop(t.Context(), filepath.Join(t.TempDir(), "never"))
	require.NoError(t, err)
	require.False(t, stopped)
}
