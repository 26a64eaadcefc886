// Package pglocal runs a Postgres server on this machine for the demo and the
// tests.
//
// # Who may connect
//
// A local server still has to be closed to the other users of the machine: its
// superuser can run programs as the account that owns the server. So the unix
// socket, which asks for no password, lives in a folder only that account may
// enter. TCP is open for a persistent server alone, on 127.0.0.1, with a
// generated password kept beside the data; [Server.URL] carries it, and
// [Server.Psql] uses the socket so that nothing secret is typed or listed.
//
// # Root
//
// Postgres refuses to run as root. Started by root, the server runs as the
// account postgres, or nobody where that does not exist. Such an account cannot
// enter a folder below a private home; the data of a persistent server then
// lives under /var/lib/backfill, and the file "location" in Config.Dir says
// where.
package pglocal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// MinVersion is the oldest major version of Postgres that Start accepts, the
// oldest the product supports.
const MinVersion = 15

// superuser is the role every connection uses.
const superuser = "postgres"

// Bounds of one step. A start includes initdb and crash recovery, a download is
// about 25 MB, a stop writes one checkpoint.
const (
	startTimeout = 90 * time.Second
	fetchTimeout = 2 * time.Minute
	stopTimeout  = time.Minute
)

// ErrNotFound is wrapped by the error of [Start] when this machine has no usable
// Postgres and none could be downloaded. Its text names the ways out.
var ErrNotFound = errors.New("no Postgres 15 or newer to run here")

// Config says which server to start.
type Config struct {
	// Dir is the folder of a persistent server. It is created when missing and
	// belongs to this package alone. Required, unless Temporary.
	Dir string

	// Temporary starts a server without durability that ends with this process,
	// however that ends. Its data is in a folder of its own below $TMPDIR or, when
	// that is not set, in memory where there is room (Linux), else below /tmp.
	Temporary bool

	// Database is created when it does not exist. Empty creates none beside
	// the built-in postgres.
	Database string

	// BinDirs are the only folders searched for initdb, pg_ctl and postgres, in
	// this order. Nil searches PATH, pg_config and the places packages install
	// to, and downloads Postgres when none of them has it.
	BinDirs []string

	// Settings are server settings (postgresql.conf names) that override the
	// defaults of this package. A server that already runs keeps its own.
	Settings map[string]string

	// Log receives a line for each step that takes long, such as a download.
	// Nil discards them.
	Log io.Writer

	base string // replaces sharedDir or $TMPDIR
}

func (c *Config) validate() error {
	switch {
	case c.Temporary && c.Dir != "":
		return errors.New("pglocal: Dir is set for a temporary server, which picks its own folder")
	case !c.Temporary && c.Dir == "":
		return errors.New("pglocal: Dir is empty; name the folder of the server")
	}
	return nil
}

// Server is a running server.
type Server struct {
	// Reused reports that Start found the server running.
	Reused bool

	// DataDir is the data directory, LogFile the server's log. Both belong to
	// the account that runs the server.
	DataDir, LogFile string

	bin      string // folder of the binaries; empty when reused
	sockets  string // folder of the unix socket
	port     int
	password string // empty for a temporary server
	end      func(context.Context) error
}

// Start starts the server cfg describes, or finds it running, and returns when
// it accepts connections. A persistent server keeps running after this process;
// starts and stops of one Dir wait for each other. The error of a server that
// did not come up ends with the last lines of its log.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.Log == nil {
		cfg.Log = io.Discard
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout+fetchTimeout)
	defer cancel()

	start := startPersistent
	if cfg.Temporary {
		start = startTemporary
	}
	s, err := start(ctx, &cfg)
	if err != nil {
		return nil, fmt.Errorf("starting a local Postgres: %w", err)
	}
	return s, nil
}

// URL is the connection URL of a database, as pgx, psql and other clients read
// it. An empty name means postgres. It carries the password of a persistent
// server.
func (s *Server) URL(database string) string {
	if s.password == "" {
		return s.socketURL(database)
	}
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(superuser, s.password),
		Host:     net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)),
		Path:     "/" + cmp.Or(database, "postgres"),
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

func (s *Server) socketURL(database string) string {
	u := url.URL{
		Scheme: "postgres",
		User:   url.User(superuser),
		Path:   "/" + cmp.Or(database, "postgres"),
		// libpq reads a plus sign as itself, so a space has to be %20.
		RawQuery: "host=" + url.PathEscape(s.sockets) + "&port=" + strconv.Itoa(s.port) + "&sslmode=disable",
	}
	return u.String()
}

// Psql is the shell command that opens a database through the socket, without a
// password. An empty name means postgres.
func (s *Server) Psql(database string) string {
	psql := "psql"
	if _, err := exec.LookPath(psql); err != nil && s.bin != "" {
		if own := filepath.Join(s.bin, psql); isFile(own) {
			psql = own
		}
	}
	return shellJoin(psql, "-h", s.sockets, "-p", strconv.Itoa(s.port), "-U", superuser, cmp.Or(database, "postgres"))
}

// Stop ends the server and returns when it is gone. A temporary server's data
// goes with it. A second call does nothing.
func (s *Server) Stop(ctx context.Context) error {
	if err := s.end(ctx); err != nil {
		return fmt.Errorf("stopping the local Postgres: %w", err)
	}
	return nil
}

// Stop ends the persistent server of a folder, whichever process started it,
// and reports whether one was running.
func Stop(ctx context.Context, dir string) (stopped bool, err error) {
	stopped, err = stopPersistent(ctx, dir, sharedDir)
	if err != nil {
		return stopped, fmt.Errorf("stopping the local Postgres of %s: %w", dir, err)
	}
	return stopped, nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// shellJoin writes words as one POSIX shell command line.
func shellJoin(words ...string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@+"
	quoted := make([]string, len(words))
	for i, w := range words {
		if w == "" || strings.Trim(w, plain) != "" {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		quoted[i] = w
	}
	return strings.Join(quoted, " ")
}
