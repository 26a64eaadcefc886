//go:build unix

package pglocal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// temporaryPrefix names the folders of temporary servers.
const temporaryPrefix = "backfill-pg-"

// keeper runs the server of $1 and removes that folder after it. The pipe on its
// standard input closes when the process that started it stops the server or
// dies, by whatever signal; the server then ends at once, since nothing of its
// data is needed. The lock on descriptor 3 is the keeper's and the server's too.
const keeper = `
home=$1; shift
exec 4<&0
"$@" </dev/null 4<&- &
server=$!
{ read -r line <&4; kill -QUIT $server; } 2>/dev/null &
watch=$!
wait $server; code=$?
kill $watch 2>/dev/null
rm -rf "$home"
exit $code
`

func startTemporary(ctx context.Context, cfg *Config) (*Server, error) {
	acct, err := serverAccount()
	if err != nil {
		return nil, err
	}
	bin, err := cfg.binaries(ctx, acct, 0)
	if err != nil {
		return nil, err
	}

	base, err := filepath.EvalSymlinks(cmp.Or(cfg.base, os.Getenv("TMPDIR"), memoryDir(), "/tmp"))
	if err != nil || len(base)+len("/"+temporaryPrefix+"4294967295") > maxSocketDir || !acct.canEnter(ctx, base) {
		base = "/tmp"
	}
	sweep(base, acct)
	home, err := os.MkdirTemp(base, temporaryPrefix)
	if err != nil {
		return nil, err
	}
	s := &Server{
		DataDir: filepath.Join(home, "data"),
		LogFile: filepath.Join(home, "server.log"),
		bin:     bin,
		sockets: home,
		port:    5432, // names the socket; nothing listens on TCP
	}
	if err := s.runTemporary(ctx, cfg, acct, home); err != nil {
		return nil, errors.Join(err, os.RemoveAll(home))
	}
	return s, nil
}

func (s *Server) runTemporary(ctx context.Context, cfg *Config, acct account, home string) error {
	held, err := lock(ctx, filepath.Join(home, "lock.new"))
	if err != nil {
		return err
	}
	defer held.Close()
	if err := os.Rename(held.Name(), filepath.Join(home, "lock")); err != nil { // sweep sees it locked or not at all
		return err
	}
	log, err := os.OpenFile(s.LogFile, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	if err := os.Lchown(home, acct.uid, acct.gid); err != nil {
		return err
	}
	if err := s.initdb(ctx, acct, "--auth=trust"); err != nil {
		return err
	}

	args := append([]string{"-c", keeper, "keeper", home, filepath.Join(s.bin, "postgres"), "-D", s.DataDir}, s.arguments(map[string]string{
		"listen_addresses":   "",
		"fsync":              "off",
		"synchronous_commit": "off",
		"full_page_writes":   "off",
		"max_wal_size":       "256MB",
	}, cfg.Settings)...)
	cmd := acct.command(context.WithoutCancel(ctx), home, "/bin/sh", args...)
	cmd.SysProcAttr.Setsid = true // Ctrl-C is for the process that started us
	cmd.ExtraFiles = []*os.File{held}
	cmd.Stdout, cmd.Stderr = log, log
	end, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // a server told to end at once has no status worth reading
		close(ended)
	}()
	var once sync.Once
	s.end = func(ctx context.Context) error {
		once.Do(func() { end.Close() })
		ctx, cancel := context.WithTimeout(ctx, stopTimeout)
		defer cancel()
		select {
		case <-ended:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("the server in %s has not ended: %w", home, context.Cause(ctx))
		}
	}

	if err := s.prepare(ctx, cfg.Database, ended); err != nil {
		return errors.Join(fmt.Errorf("%w; %s", err, logTail(log, 0)), s.end(context.WithoutCancel(ctx)))
	}
	return nil
}

// sweep removes the folders that servers left which could not clean up, as when
// the machine went down. Whoever uses a folder holds its lock.
func sweep(base string, acct account) {
	entries, _ := os.ReadDir(base) // a folder that cannot be listed has nothing of ours
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.IsDir() || ownerOf(info) != acct.uid || !strings.HasPrefix(entry.Name(), temporaryPrefix) {
			continue
		}
		home := filepath.Join(base, entry.Name())
		f, err := os.OpenFile(filepath.Join(home, "lock"), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			os.RemoveAll(home)
		}
		f.Close()
	}
}
