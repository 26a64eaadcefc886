// Package cli is the operator's command line.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/justfortytwo/backfill/internal/config"
	"github.com/justfortytwo/backfill/internal/version"
	"github.com/justfortytwo/backfill/store"
)

// Exit codes.
const (
	exitOK         = 0
	exitError      = 1
	exitUsage      = 2
	exitItemErrors = 3
)

// exit is an error that only carries an exit code: what there is to say has been
// said.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// app is one invocation.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	environ        []string
	cfg            config.Config
	url            string
	json           bool
	// asks is set when there is somebody to answer a question.
	asks bool
	// began is set when the arguments were understood: errors before that are
	// usage errors.
	began bool
}

// Run executes a command line, without the program's name, and returns the exit
// code: 0 ok, 1 error, 2 usage, 3 finished with item errors.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{stdin: &interruptible{ctx: ctx, r: stdin}, stdout: stdout, stderr: stderr, environ: os.Environ()}
	a.asks = isTerminal(stdin) && isTerminal(stderr)
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)

	cmd, err := root.ExecuteContextC(ctx)
	var code exit
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return int(code)
	case !a.began:
		fmt.Fprintf(stderr, "backfill: %s\nTry: %s --help\n", firstLine(err), cmd.CommandPath())
		return exitUsage
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(stderr, "backfill: interrupted")
		return exitError
	case store.IsOffline(err) && !errors.As(err, new(*store.ConnectError)):
		fmt.Fprintf(stderr, "backfill: %s: the connection to Postgres was lost; it is safe to try again\n", err)
		return exitError
	default:
		fmt.Fprintln(stderr, "backfill: "+err.Error())
		return exitError
	}
}

// interruptible is a reader whose Read returns when ctx ends, though nothing came.
type interruptible struct {
	ctx context.Context //nolint:containedctx // of the one invocation it belongs to
	r   io.Reader
	// buf is what is read into: the caller's p is his own again once we have
	// returned. After ctx has ended an abandoned read may still hold it.
	buf []byte
}

// Read implements io.Reader.
func (i *interruptible) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	if len(i.buf) < len(p) {
		i.buf = make([]byte, len(p))
	}
	type result struct {
		n   int
		err error
	}
	buf := i.buf[:len(p)]
	read := make(chan result, 1)
	go func() {
		n, err := i.r.Read(buf)
		read <- result{n, err}
	}()
	select {
	case r := <-read:
		return copy(p, buf[:r.n]), r.err
	case <-i.ctx.Done():
		return 0, i.ctx.Err()
	}
}

// usage reports a mistake in the arguments that only shows when they are used.
func (a *app) usage(cmd *cobra.Command, err error) error {
	fmt.Fprintf(a.stderr, "backfill: %s\nTry: %s --help\n", err, cmd.CommandPath())
	return exit(exitUsage)
}

// firstLine leaves out cobra's suggestions, which come with the help.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

const about = `backfill turns conversation captures in Postgres into candidate memories, and
tells what happened to each of them.

The database is DATABASE_URL, or else PGHOST, PGPORT, PGUSER, PGPASSWORD and
PGDATABASE. Flags beat the environment, and the environment beats the defaults.

Exit status: 0 ok, 1 error, 2 usage, 3 finished, but some items failed.`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "backfill",
		Short:         "Turn conversation captures in Postgres into candidate memories",
		Long:          about,
		SilenceErrors: true,
		SilenceUsage:  true,
		// Without a verb: the help, which is not what was asked of us.
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(a.stderr)
			_ = cmd.Help()
			return exit(exitUsage)
		},
		Args: cobra.NoArgs,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) (err error) {
			// cobra itself looks only after this
			if err := errors.Join(cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups()); err != nil {
				return err
			}
			a.began = true
			a.cfg, err = config.Load(a.environ)
			if a.url != "" {
				a.cfg.DatabaseURL = a.url
			}
			return err
		},
		Version:           func() string { v, commit := version.Get(); return v + " (" + commit + ")" }(),
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.PersistentFlags().StringVar(&a.url, "database-url", "", "Postgres URL (default $DATABASE_URL, else the PG* variables)")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "write JSON to stdout")
	root.AddCommand(
		a.migrateCmd(), a.importCmd(), a.extractCmd(), a.runCmd(), a.statusCmd(), a.runsCmd(),
		a.pauseCmd(), a.resumeCmd(), a.cancelCmd(), a.setCmd(), a.retryCmd(), a.undoCmd(), a.failuresCmd(),
		a.showCmd(), a.entitiesCmd(), a.pruneCmd(), a.doctorCmd(), a.costCmd(), a.demoCmd(), a.versionCmd(),
	)
	return root
}

// connect opens the database; the pool allows at least conns connections.
func (a *app) connect(ctx context.Context, conns int32) (*store.Store, func(), error) {
	pool, err := a.pool(ctx, conns)
	if err != nil {
		return nil, nil, err
	}
	return store.New(pool), pool.Close, nil
}

func (a *app) pool(ctx context.Context, conns int32) (*pgxpool.Pool, error) {
	return store.Connect(ctx, a.cfg.DatabaseURL, store.Options{
		AppName: "backfill", StatementTimeout: a.cfg.StatementTimeout, MaxConns: conns,
	})
}
