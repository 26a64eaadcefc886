//go:build unix

package pglocal

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// sharedDir holds the servers of root whose own folder the server's user cannot
// enter. Unlike the system's temporary folder it is kept, and nobody but root
// can take a name in it first.
const sharedDir = "/var/lib/backfill"

// place returns the server of a folder as it would run: its data is in the
// folder, or in shared where the account cannot enter the folder.
func place(ctx context.Context, dir, shared string, acct account) *Server {
	sum := sha256.Sum256([]byte(dir))
	name := hex.EncodeToString(sum[:8])
	home := filepath.Join(dir, "server")
	if !acct.canEnter(ctx, dir) {
		home = filepath.Join(shared, name)
	}
	s := &Server{
		DataDir: filepath.Join(home, "data"),
		LogFile: filepath.Join(home, "server.log"),
		sockets: home,
		end: func(ctx context.Context) error {
			_, err := stopPersistent(ctx, dir, shared)
			return err
		},
		// The same number at each start keeps URLs valid. It lies below the
		// ports systems hand out by themselves (32768 up), so it is mostly free.
		port: 20000 + int(binary.BigEndian.Uint16(sum[8:]))%12000,
	}
	if len(home) > maxSocketDir {
		s.sockets = fmt.Sprintf("/tmp/backfill-%d-%s", acct.uid, name)
	}
	return s
}

// open returns the server of an existing folder with the folder locked: whoever
// starts or stops it waits until the lock is closed.
func open(ctx context.Context, dir, shared string) (*Server, account, *os.File, error) {
	fail := func(err error) (*Server, account, *os.File, error) { return nil, account{}, nil, err }
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fail(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil { // one name, whatever links lead there
		return fail(err)
	}
	acct, err := serverAccount()
	if err != nil {
		return fail(err)
	}
	held, err := lock(ctx, filepath.Join(dir, "lock"))
	if errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("%w: be the user who first started this server, or choose another folder", err)
	}
	if err != nil {
		return fail(err)
	}
	return place(ctx, dir, shared, acct), acct, held, nil
}

func startPersistent(ctx context.Context, cfg *Config) (*Server, error) {
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
		return nil, err
	}
	shared := cmp.Or(cfg.base, sharedDir)
	s, acct, held, err := open(ctx, cfg.Dir, shared)
	if err != nil {
		return nil, err
	}
	defer held.Close()

	dir := filepath.Dir(held.Name())
	if s.password, err = password(filepath.Join(dir, "password")); err != nil {
		return nil, err
	}
	if s.Reused, err = s.adopt(ctx); err != nil {
		return nil, err
	}
	if !s.Reused {
		if err := s.create(ctx, cfg, acct, dir, shared); err != nil {
			return nil, err
		}
		if err := s.launch(ctx, cfg, acct); err != nil {
			return nil, err
		}
	}
	if err := s.prepare(ctx, cfg.Database, nil); err != nil {
		return nil, err
	}
	return s, nil
}

// adopt takes over a server that runs, once it says where it listens.
func (s *Server) adopt(ctx context.Context) (bool, error) {
	for {
		p, running, err := readPostmaster(s.DataDir)
		if err != nil || !running {
			return false, err
		}
		if p.port != 0 && p.sockets != "" {
			s.port, s.sockets = p.port, p.sockets
			return true, nil
		}
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("process %d, which holds %s, does not come up: %w", p.pid, s.DataDir, context.Cause(ctx))
		case <-time.After(poll):
		}
	}
}

// create makes the folders and, the first time, the data.
func (s *Server) create(ctx context.Context, cfg *Config, acct account, dir, shared string) error {
	home := filepath.Dir(s.DataDir)
	if filepath.Dir(home) == shared {
		if err := os.MkdirAll(shared, 0o755); err != nil {
			return err
		}
	}
	for _, path := range []string{home, s.sockets} {
		if err := acct.privateDir(path); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "location"), []byte(home+"\n"), 0o644); err != nil {
		return err
	}

	made, err := os.ReadFile(filepath.Join(s.DataDir, "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		if s.bin, err = cfg.binaries(ctx, acct, 0); err != nil {
			return err
		}
		fmt.Fprintf(cfg.Log, "creating the data of a local Postgres in %s\n", home)
		return s.initdb(ctx, acct, "--auth-local=trust", "--auth-host=scram-sha-256")
	}
	if err != nil {
		return err
	}
	major, err := strconv.Atoi(string(bytes.TrimSpace(made)))
	if err != nil {
		return fmt.Errorf("the version of the data in %s: %w", s.DataDir, err)
	}
	s.bin, err = cfg.binaries(ctx, acct, major)
	return err
}

// launch starts the server through pg_ctl, which detaches it from this process
// and its terminal and waits for it to be ready.
func (s *Server) launch(ctx context.Context, cfg *Config, acct account) error {
	for attempt := 1; ; attempt++ {
		if !portFree(s.port) {
			var err error
			if s.port, err = anyPort(); err != nil {
				return err
			}
		}
		if err := s.clearStale(); err != nil {
			return err
		}
		err := s.pgCtlStart(ctx, cfg, acct)
		if err == nil || attempt == 3 || portFree(s.port) {
			return err
		}
		// Another program took the port in between: choose again.
	}
}

func (s *Server) pgCtlStart(ctx context.Context, cfg *Config, acct account) error {
	var offset int64
	if info, err := os.Stat(s.LogFile); err == nil {
		offset = info.Size()
	}
	options := shellJoin(s.arguments(map[string]string{"listen_addresses": "127.0.0.1"}, cfg.Settings)...)
	cmd := acct.command(ctx, filepath.Dir(s.DataDir), filepath.Join(s.bin, "pg_ctl"), "start", "--silent", "--wait",
		"--timeout", strconv.Itoa(int(startTimeout.Seconds())),
		"--pgdata", s.DataDir, "--log", s.LogFile, "--options", options)
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	err = fmt.Errorf("pg_ctl: %w: %s", err, tail(out))
	if log, openErr := os.Open(s.LogFile); openErr == nil {
		err = fmt.Errorf("%w; %s", err, logTail(log, offset))
		log.Close()
	}
	// It may still be coming up, without anyone who waits for it.
	if p, running, _ := readPostmaster(s.DataDir); running {
		err = errors.Join(err, endPostmaster(context.WithoutCancel(ctx), s.DataDir, p.pid))
	}
	return err
}

// stopPersistent ends the server of dir, if it runs.
func stopPersistent(ctx context.Context, dir, shared string) (bool, error) {
	s, _, held, err := open(ctx, dir, shared)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer held.Close()
	p, running, err := readPostmaster(s.DataDir)
	if err != nil || !running {
		return false, err
	}
	return true, endPostmaster(ctx, s.DataDir, p.pid)
}

// endPostmaster asks for a fast shutdown, which ends connections and writes a
// checkpoint, and waits for it.
func endPostmaster(ctx context.Context, data string, pid int) error {
	if err := syscall.Kill(pid, syscall.SIGINT); err != nil {
		return fmt.Errorf("ending process %d: %w", pid, err)
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	for isPostmaster(pid, data) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("process %d has not ended: %w", pid, context.Cause(ctx))
		case <-time.After(poll):
		}
	}
	return nil
}

// password returns the password kept in a file, which it creates.
func password(path string) (string, error) {
	kept, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if p := string(bytes.TrimSpace(kept)); p != "" {
		return p, nil
	}
	p := rand.Text()
	return p, os.WriteFile(path, []byte(p+"\n"), 0o600)
}

func portFree(port int) bool {
	l, err := listen(port)
	if err != nil {
		return false
	}
	return l.Close() == nil
}

func anyPort() (int, error) {
	l, err := listen(0)
	if err != nil {
		return 0, err
	}
	defer l.Close()
	addr, err := netip.ParseAddrPort(l.Addr().String())
	return int(addr.Port()), err
}

func listen(port int) (*net.TCPListener, error) {
	return net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
}
