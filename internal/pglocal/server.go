//go:build unix

package pglocal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// poll is the pause between two looks at something that gives no signal.
const poll = 20 * time.Millisecond

// maxSocketDir is how long the path of a socket's folder may be, in bytes: the
// system's limit for a socket path is 103 on macOS (107 on Linux), and
// "/.s.PGSQL.65535" takes 15 of them.
const maxSocketDir = 103 - 15

// arguments are the settings as the postgres binary takes them. They travel on
// its command line and not in a file, so that root writes nothing into another
// user's folder.
func (s *Server) arguments(defaults, overrides map[string]string) []string {
	settings := map[string]string{
		"max_connections":         "100",
		"port":                    strconv.Itoa(s.port),
		"shared_buffers":          "128MB",
		"max_wal_size":            "1GB",
		"unix_socket_directories": s.sockets,
	}
	maps.Copy(settings, defaults)
	maps.Copy(settings, overrides)
	args := make([]string, 0, 2*len(settings))
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	return args
}

// initdb creates the data directory, complete or not at all. It leaves writing
// the files to disk to the system: at that moment they hold nothing to lose.
func (s *Server) initdb(ctx context.Context, acct account, args ...string) error {
	home := filepath.Dir(s.DataDir)
	fresh := filepath.Join(home, "initdb") // what an initdb that was killed left here goes first
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	args = append(args, "-D", fresh, "-U", superuser, "--encoding=UTF8", "--no-instructions", "--no-sync")
	run := func(locale string) ([]byte, error) {
		return acct.command(ctx, home, filepath.Join(s.bin, "initdb"), append(args, "--locale="+locale)...).CombinedOutput()
	}
	out, err := run("C.UTF-8")
	if err != nil && strings.Contains(string(out), "invalid locale name") {
		out, err = run("C") // some systems, older macOS among them, have no C.UTF-8
	}
	if err != nil {
		return fmt.Errorf("initdb in %s: %w\n%s", home, err, tail(out))
	}
	return os.Rename(fresh, s.DataDir)
}

// prepare waits until the server takes connections, sets the password of a server
// that listens on TCP, and creates the database.
func (s *Server) prepare(ctx context.Context, database string, ended <-chan struct{}) error {
	conn, err := connect(ctx, s.socketURL("postgres"), ended)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if s.password != "" {
		quoted := "'" + strings.ReplaceAll(s.password, "'", "''") + "'"
		if _, err := conn.Exec(ctx, "alter role "+superuser+" password "+quoted); err != nil {
			return fmt.Errorf("setting the server's password: %w", err)
		}
		tcp, err := connect(ctx, s.URL("postgres"), ended)
		if err != nil {
			return err
		}
		tcp.Close(ctx)
	}
	if database == "" {
		return nil
	}
	return createDatabase(ctx, conn, database)
}

// connect returns a connection once the server takes one. It gives up when ctx
// ends, when the server ends, or when the server refuses for good.
func connect(ctx context.Context, url string, ended <-chan struct{}) (*pgx.Conn, error) {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		conn, err := pgx.Connect(ctx, url)
		if err == nil {
			return conn, nil
		}
		if !comingUp(err) {
			return nil, err
		}
		select {
		case <-ended:
			return nil, errors.New("the server ended while starting")
		case <-ctx.Done():
			return nil, fmt.Errorf("no connection in time: %w", err)
		case <-tick.C:
		}
	}
}

// comingUp reports whether a connection failed as it does while a server starts:
// there is nothing to connect to yet, or the server asks for patience.
func comingUp(err error) bool {
	const cannotConnectNow = "57P03"
	if pgErr := (*pgconn.PgError)(nil); errors.As(err, &pgErr) {
		return pgErr.Code == cannotConnectNow
	}
	return errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED)
}

// createDatabase creates a database that does not exist yet.
func createDatabase(ctx context.Context, conn *pgx.Conn, name string) error {
	_, err := conn.Exec(ctx, "create database "+pgx.Identifier{name}.Sanitize())
	const duplicateDatabase = "42P04"
	if pgErr := (*pgconn.PgError)(nil); errors.As(err, &pgErr) && pgErr.Code == duplicateDatabase {
		return nil
	}
	if err != nil {
		return fmt.Errorf("creating the database %s: %w", name, err)
	}
	return nil
}

// lock takes the exclusive lock on a file, which it creates, and waits for it
// until ctx ends. Closing the file gives it back, as does the end of the process.
func lock(ctx context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			f.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("waiting for another start or stop, which holds %s: %w", path, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// postmaster is what a running server writes about itself into its data
// directory.
type postmaster struct {
	pid, port int
	sockets   string
}

// readPostmaster reports the server of a data directory, if one runs.
func readPostmaster(data string) (p postmaster, running bool, err error) {
	var rest []string
	p.pid, rest, err = readLockFile(filepath.Join(data, "postmaster.pid"))
	if err != nil || !isPostmaster(p.pid, data) {
		return postmaster{}, false, err
	}
	if len(rest) > 3 { // data directory, start time, port, socket folder
		p.port, _ = strconv.Atoi(strings.TrimSpace(rest[2]))
		p.sockets = strings.TrimSpace(rest[3])
	}
	return p, true, nil
}

// readLockFile splits a lock file into the process number of its first line, 0
// without one, and the other lines.
func readLockFile(path string) (pid int, rest []string, err error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, err
	}
	lines := strings.Split(string(raw), "\n")
	pid, _ = strconv.Atoi(strings.TrimSpace(lines[0]))
	return pid, lines[1:], nil
}

// isPostmaster reports whether a process lives and is the server of data. A pid
// file survives a crash, and after a reboot or in a new container its number may
// be any other process; where the system has /proc the command line tells.
func isPostmaster(pid int, data string) bool {
	if pid <= 1 || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	args, known := commandLine(pid)
	return !known || slices.Contains(args, data)
}

// clearStale removes the lock files of an earlier run, that of the data and that
// of the socket, whose number now is a process that is no Postgres at all, or a
// dead one nobody has waited for: the server would take it for another server and
// refuse to start. Any other stale file is the server's own to judge.
func (s *Server) clearStale() error {
	for _, path := range []string{
		filepath.Join(s.DataDir, "postmaster.pid"),
		filepath.Join(s.sockets, fmt.Sprintf(".s.PGSQL.%d.lock", s.port)),
	} {
		pid, _, err := readLockFile(path)
		if err != nil {
			return err
		}
		if pid <= 0 || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			continue
		}
		if args, known := commandLine(pid); known && filepath.Base(args[0]) != "postgres" {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// commandLine is how a process was started, where the system has /proc. That of
// a process which has ended is one empty word.
func commandLine(pid int) (args []string, known bool) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		_, err = os.Stat("/proc/self/cmdline")
		return []string{""}, err == nil
	}
	return strings.Split(string(raw), "\x00"), true
}

// logTail is the end of what a server wrote to its log from an offset on, to
// close an error with.
func logTail(log io.ReaderAt, offset int64) string {
	raw, _ := io.ReadAll(io.NewSectionReader(log, offset, 1<<20))
	if len(raw) == 0 {
		return "its log is empty"
	}
	return "the end of its log:\n" + tail(raw)
}

// tail is the last lines of a program's output.
func tail(out []byte) string {
	const most = 15
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}
