//go:build unix

// Package e2e tests the built programs from outside: their command lines, signals
// and output, and what they leave in a database that several of them work on.
package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/justfortytwo/backfill/internal/pgtest"
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "backfill-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	build = sync.OnceValues(func() (string, error) { return dir, buildInto(dir) })
	code := pgtest.M{M: m}.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// build builds both programs once and returns the directory they are in.
var build func() (dir string, err error)

func buildInto(dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", "build", "-o", dir+string(filepath.Separator), "../../cmd/...").CombinedOutput()
	if err != nil {
		return errors.Join(fmt.Errorf("building the programs: %w", err), errors.New(string(out)))
	}
	return nil
}
