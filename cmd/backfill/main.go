// Command backfill is the operator's tool: migrate, import, run, inspect.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/justfortytwo/backfill/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	code := cli.Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
