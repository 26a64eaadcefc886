// Command worker is the daemon: it extracts candidate memories from captures as
// they come in.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/justfortytwo/backfill/internal/daemon"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	code := daemon.Run(ctx, os.Args[1:], os.Stderr)
	stop()
	os.Exit(code)
}
