// Package daemon is the worker: it works batches until it is told to stop, and
// serves health, metrics and River's UI meanwhile.
package daemon

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"riverqueue.com/riverui"

	"github.com/justfortytwo/backfill/internal/config"
	"github.com/justfortytwo/backfill/internal/observe"
	"github.com/justfortytwo/backfill/internal/version"
	"github.com/justfortytwo/backfill/jobs"
	"github.com/justfortytwo/backfill/migrations"
	"github.com/justfortytwo/backfill/store"
)

// stopWithin bounds a graceful stop; what takes longer is given up and done
// again after its lease.
const stopWithin = 9 * time.Second

const usage = `usage: worker [--healthcheck | --version]

worker extracts candidate memories from captures as they come in, until SIGTERM
or SIGINT. It is configured by DATABASE_URL (or the PG* variables) and BACKFILL_*,
which README.md lists. The database must have been migrated: backfill migrate up.

  --healthcheck   ask the worker on this machine how it is, and exit 0 or 1
  --version       say which build this is
`

// Run executes the worker's command line and returns the exit code: 0 after a
// stop that was asked for, 1 on an error, 2 on wrong usage.
func Run(ctx context.Context, args []string, stderr io.Writer) int {
	flags := flag.NewFlagSet("worker", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	check := flags.Bool("healthcheck", false, "")
	showVersion := flags.Bool("version", false, "")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(stderr, usage)
			return 0
		}
		fmt.Fprintf(stderr, "worker: this is not understood: %s\n%s", strings.Join(args, " "), usage)
		return 2
	}
	if *showVersion {
		v, commit := version.Get()
		fmt.Fprintf(stderr, "worker %s (%s)\n", v, commit)
		return 0
	}
	cfg, err := config.Load(os.Environ())
	if err == nil && *check {
		err = healthcheck(ctx, cfg.HTTPAddr)
	} else if err == nil {
		err = run(ctx, cfg, stderr)
	}
	if err != nil {
		fmt.Fprintln(stderr, "worker: "+err.Error())
		return 1
	}
	return 0
}

func logger(cfg config.Config, w io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: cfg.LogLevel}
	if cfg.LogFormat == "text" {
		return slog.New(slog.NewTextHandler(w, o))
	}
	return slog.New(slog.NewJSONHandler(w, o))
}

func run(ctx context.Context, cfg config.Config, stderr io.Writer) error {
	log := logger(cfg, stderr)
	quiet := cfg
	quiet.LogLevel = max(cfg.LogLevel, slog.LevelWarn) // River counts its jobs aloud
	jc, err := cfg.Jobs(logger(quiet, stderr))
	if err != nil {
		return err
	}
	pool, err := store.Connect(ctx, cfg.DatabaseURL, store.Options{
		AppName: "backfill-worker", StatementTimeout: cfg.StatementTimeout, MaxConns: jc.Conns(),
	})
	if err != nil {
		return err
	}
	defer pool.Close()
	all, err := migrations.Status(ctx, pool)
	if err != nil {
		return err
	}
	if migrations.Pending(all) > 0 {
		return store.ErrNotMigrated
	}
	if err := warnVersions(ctx, store.New(pool), jc.Slots, log); err != nil {
		return err
	}
	client, err := jobs.New(pool, jc)
	if err != nil {
		return err
	}
	stopServing, err := serve(ctx, cfg, log, store.New(pool), client.River())
	if err != nil {
		return err
	}
	// Not ctx: its end asks for a graceful stop, not for an abrupt one.
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return errors.Join(err, stopServing())
	}
	v, commit := version.Get()
	log.InfoContext(ctx, "working", "version", v, "commit", commit, "extractors", cfg.Extractors())

	<-ctx.Done()
	log.InfoContext(ctx, "stopping")
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	err = errors.Join(client.Stop(stopCtx), stopServing())
	log.InfoContext(ctx, "stopped")
	return err
}

// warnVersions says when the database has moved on: this worker would sit idle.
func warnVersions(ctx context.Context, st *store.Store, slots []jobs.Slot, log *slog.Logger) error {
	all, err := st.Status(ctx)
	if err != nil {
		return err
	}
	for _, status := range all {
		for _, slot := range slots {
			if slot.Name == status.Extractor && (status.Version == nil || *status.Version != slot.Version) {
				log.WarnContext(ctx, "the database wants another version of this extractor: this worker leaves its captures to others; install that version, or run `backfill migrate up` with this one if it is newer",
					"extractor", slot.Name, "this", slot.Version, "database", status.Version)
			}
		}
	}
	return nil
}

// serve starts the HTTP side. The default address being taken is a warning: a
// second worker on the same machine works all the same.
func serve(ctx context.Context, cfg config.Config, log *slog.Logger, st *store.Store, client *river.Client[pgx.Tx]) (stop func() error, err error) {
	if cfg.HTTPAddr == "off" {
		return func() error { return nil }, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.HTTPAddr)
	if err != nil {
		if cfg.HTTPAddrSet {
			return nil, fmt.Errorf("BACKFILL_HTTP_ADDR: %w; choose a free address, or off", err)
		}
		log.WarnContext(ctx, "no health, metrics and UI: the default address is taken; set BACKFILL_HTTP_ADDR", "address", cfg.HTTPAddr)
		return func() error { return nil }, nil
	}
	mux := http.NewServeMux()
	observe.Mount(mux, st)
	const prefix = "/riverui"
	ui, err := riverui.NewHandler(&riverui.HandlerOpts{
		Endpoints: riverui.NewEndpoints(client, nil), Logger: log, Prefix: prefix, JobListHideArgsByDefault: true,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("preparing River's UI: %w", err), listener.Close())
	}
	uiCtx, stopUI := context.WithCancel(context.WithoutCancel(ctx))
	if err := ui.Start(uiCtx); err != nil {
		stopUI()
		return nil, errors.Join(fmt.Errorf("starting River's UI: %w", err), listener.Close())
	}
	mux.Handle(prefix+"/", ui)
	mux.Handle("GET /{$}", http.RedirectHandler(prefix+"/", http.StatusFound))

	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	log.InfoContext(ctx, "serving /healthz, /metrics and /riverui", "address", listener.Addr().String())
	return func() error {
		stopUI()
		err := server.Close()
		if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
			err = errors.Join(err, serveErr)
		}
		return err
	}, nil
}

// healthcheck asks the worker on this machine, for images without a shell.
func healthcheck(ctx context.Context, addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("BACKFILL_HTTP_ADDR is %q: there is nothing to ask", addr)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	ctx, cancel := context.WithTimeout(ctx, 6*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/healthz", nil)
	if err != nil {
		return fmt.Errorf("asking %s: %w", addr, err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("no worker answers at %s", addr)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the worker at %s is not well: the database does not answer, or is not migrated", addr)
	}
	return nil
}
