//go:build unix

package pglocal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// account is the system user that runs the server.
type account struct {
	uid, gid int
	drop     bool // this process is root and has to become that user
}

// serverAccount is the current user, or, for root, postgres or nobody.
func serverAccount() (account, error) {
	if uid := os.Geteuid(); uid != 0 {
		return account{uid: uid, gid: os.Getegid()}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.Atoi(u.Uid)
		if err != nil || uid <= 0 { // macOS gives nobody the id -2
			continue
		}
		gid, err := strconv.Atoi(u.Gid)
		if err != nil || gid <= 0 {
			continue
		}
		return account{uid: uid, gid: gid, drop: true}, nil
	}
	return account{}, errors.New("root cannot run Postgres, and this system has no user postgres or nobody to run it as: start it as another user")
}

// command prepares a program that runs as the account, in dir and with dir as
// its HOME. The environment is cut down to PATH: the PG* variables of the caller
// are about the caller's own server, and messages in the caller's language would
// break what parses them. The program's groups are cut down to the account's
// own, so that nothing of root's remains.
func (a account) command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if a.drop {
		cmd.SysProcAttr.Credential = &syscall.Credential{
			Uid: uint32(a.uid), Gid: uint32(a.gid), Groups: []uint32{uint32(a.gid)},
		}
	}
	return cmd
}

// canEnter asks the system itself, as the account, because mode bits are not all
// that decides.
func (a account) canEnter(ctx context.Context, dir string) bool {
	return a.command(ctx, "/", "/bin/sh", "-c", `cd "$1"`, "sh", dir).Run() == nil
}

// privateDir makes path a folder only the account may enter. It accepts one that
// is there only if it is just that, so that a name somebody else could have
// taken first in a shared folder is never trusted.
func (a account) privateDir(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	owner := ownerOf(info)
	if !info.IsDir() || info.Mode().Perm()&0o077 != 0 || owner != a.uid && owner != os.Geteuid() {
		return fmt.Errorf("%s is not a private folder (mode 0700) of user id %d: remove it, or run as the user it belongs to", path, a.uid)
	}
	if owner == a.uid {
		return nil
	}
	return os.Lchown(path, a.uid, a.gid)
}

// ownerOf is the user id of a file's owner, or -1, which is nobody's.
func ownerOf(info fs.FileInfo) int {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1
	}
	return int(stat.Uid)
}
