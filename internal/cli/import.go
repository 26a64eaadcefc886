package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/justfortytwo/backfill/internal/transcript"
	"github.com/justfortytwo/backfill/store"
)

// Captures are stored in transactions of this size, in captures and in bytes. 1,000
// captures were a tenth slower, and 5,000 no faster.
const (
	importBatch = 2000
	importBytes = 8 << 20
)

// importMemory is where the collector works harder to keep an import below 150 MB:
// records of 32 MiB come and go, several at once. Smaller ones never get there.
const importMemory = 96 << 20

func (a *app) importCmd() *cobra.Command {
	var o transcript.Options
	var dryRun, watch bool
	var zone string
	cmd := &cobra.Command{
		Use:   "import PATH...",
		Short: "Store conversations from files, directories or stdin (-) as captures",
		Long: `Store conversations as captures: files, directories (recursively) or - for stdin,
plain or compressed. The format is detected by content. Importing the same thing
again changes nothing; a conversation that has grown is updated and extracted anew.

Every file that was not imported is named with the reason. A record that cannot be
read is a warning and its neighbours are imported.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, paths []string) error {
			if debug.SetMemoryLimit(-1) == math.MaxInt64 { // not set by GOMEMLIMIT
				debug.SetMemoryLimit(importMemory)
			}
			o.Stdin = a.stdin
			if o.Format != "" && !slices.Contains(transcript.Formats(), o.Format) {
				return a.usage(cmd, fmt.Errorf("--format %q is not known: use one of %s", o.Format, strings.Join(transcript.Formats(), ", ")))
			}
			var err error
			if o.Zone, err = time.LoadLocation(zone); err != nil {
				return a.usage(cmd, fmt.Errorf("--tz %q is not known: use an IANA name such as Europe/Berlin", zone))
			}
			switch {
			case dryRun:
				return a.importDry(cmd.Context(), paths, o)
			case watch:
				return a.importWatch(cmd.Context(), paths, o)
			}
			return a.importStore(cmd.Context(), paths, o)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print what would be stored; needs no database")
	cmd.Flags().BoolVar(&watch, "watch", false, "go on importing what is added to these files and directories")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "watch")
	cmd.Flags().StringVar(&o.Format, "format", "", fmt.Sprintf("force a format: %v", transcript.Formats()))
	cmd.Flags().BoolVar(&o.Attachments, "attachments", false, "include the text of documents attached to prompts (claude.ai)")
	cmd.Flags().StringVar(&zone, "tz", "UTC", "zone of dates in plain text that have none")
	return cmd
}

func (a *app) importStore(ctx context.Context, paths []string, o transcript.Options) error {
	st, closePool, err := a.connect(ctx, 0)
	if err != nil {
		return err
	}
	defer closePool()
	bar := newProgress(a.stderr, "importing", true)
	o.Progress = bar.set
	sum, total, err := readInto(ctx, st, paths, o)
	bar.done()
	if err != nil {
		if stored := total.New + total.Changed; stored > 0 {
			return fmt.Errorf("after %s: %w; importing again resumes", plural(stored, "capture"), err)
		}
		return err
	}
	if a.json {
		err := a.writeJSON(map[string]any{"summary": struct {
			transcript.Summary
			New       int `json:"new"`
			Changed   int `json:"changed"`
			Unchanged int `json:"unchanged"`
		}{sum, total.New, total.Changed, total.Unchanged}})
		if err != nil {
			return err
		}
	}
	return a.importEnd(sum, fmt.Sprintf("%d new, %d changed, %d unchanged captures in %s",
		total.New, total.Changed, total.Unchanged, plural(len(sum.Files), "file")))
}

// importEnd tells people the result and every problem, and picks the exit code.
func (a *app) importEnd(sum transcript.Summary, result string) error {
	if !a.json && sum.Exit() != exitError { // else there is no result
		fmt.Fprintln(a.stdout, result)
	}
	for _, reason := range slices.Sorted(maps.Keys(sum.Skips)) {
		fmt.Fprintf(a.stderr, "skipped %d: %s\n", sum.Skips[reason], reason)
	}
	a.unread(sum)
	a.problems("warning", sum.Warnings)
	if sum.Unlisted > 0 {
		fmt.Fprintf(a.stderr, "warning: and %d more\n", sum.Unlisted)
	}
	a.problems("error", sum.Errors)
	if code := sum.Exit(); code != exitOK {
		return exit(code)
	}
	return nil
}

// unread names files that were not imported and are no problem, such as empty ones.
func (a *app) unread(sum transcript.Summary) {
	told := map[string]bool{}
	for _, p := range slices.Concat(sum.Warnings, sum.Errors) {
		told[p.File] = true
	}
	for _, f := range sum.Files {
		if f.Reason != "" && !told[f.Path] {
			fmt.Fprintf(a.stderr, "skipped: %s: %s\n", printable(f.Path), f.Reason)
		}
	}
}

func (a *app) problems(level string, problems []transcript.Problem) {
	for _, p := range problems {
		where := printable(p.File)
		if p.Line > 0 {
			where = fmt.Sprintf("%s:%d", where, p.Line)
		}
		fmt.Fprintf(a.stderr, "%s: %s: %s", level, where, p.Code)
		if p.Detail != "" {
			fmt.Fprintf(a.stderr, ": %s", oneLine(p.Detail, 500))
		}
		fmt.Fprintln(a.stderr)
	}
}

// captureWriter stores captures in batches, while the next ones are being read.
// Each batch is a transaction together with the work it queues, so that importing
// again is all it takes to resume.
type captureWriter struct {
	store   *store.Store
	pending captureBatch
	batches chan captureBatch
	// failed is closed when err is set; done when the last batch is through.
	failed, done chan struct{}
	err          error
	total        store.Imported
	refused      []transcript.Problem
	// likelyNew is how the last batch was: imports are mostly all new or all known.
	likelyNew bool
}

type captureBatch struct {
	captures []store.NewCapture
	origin   []transcript.Problem // where each capture came from
	bytes    int
}

func newCaptureWriter(ctx context.Context, st *store.Store) *captureWriter {
	w := &captureWriter{store: st, batches: make(chan captureBatch), failed: make(chan struct{}), done: make(chan struct{}), likelyNew: true}
	go func() {
		defer close(w.done)
		for b := range w.batches {
			if w.err != nil {
				continue
			}
			if w.err = w.write(ctx, b); w.err != nil {
				close(w.failed)
			}
		}
	}()
	return w
}

// add takes a capture. Its error is that of an earlier batch.
func (w *captureWriter) add(c transcript.Capture) error {
	meta := c.Meta
	if c.Session != "" && !c.Placed {
		meta = withSession(meta, c.Session)
	}
	var raw json.RawMessage
	if len(meta) > 0 {
		var err error
		if raw, err = json.Marshal(meta); err != nil {
			return fmt.Errorf("encoding meta: %w", err)
		}
	}
	b := &w.pending
	b.captures = append(b.captures, store.NewCapture{
		Source: c.Source, ExternalID: c.ExternalID, Observed: c.Observed, OccurredAt: c.Date, Text: c.Text, Grows: c.Grows, Meta: raw,
	})
	b.origin = append(b.origin, transcript.Problem{File: c.File, Line: c.Line})
	b.bytes += len(c.Text) + len(raw)
	if len(b.captures) < importBatch && b.bytes < importBytes {
		return nil
	}
	return w.send()
}

func (w *captureWriter) send() error {
	select {
	case w.batches <- w.pending:
		w.pending = captureBatch{}
		return nil
	case <-w.failed:
		return w.err
	}
}

// close stores what is pending and waits for everything to be stored.
func (w *captureWriter) close() error {
	if len(w.pending.captures) > 0 {
		_ = w.send() // its error is w.err
	}
	close(w.batches)
	<-w.done
	return w.err
}

func (w *captureWriter) write(ctx context.Context, b captureBatch) error {
	done, err := w.store.Import(ctx, b.captures, w.likelyNew)
	if err != nil {
		return err
	}
	w.likelyNew = done.New == len(b.captures)
	w.total.New += done.New
	w.total.Changed += done.Changed
	w.total.Unchanged += done.Unchanged
	for _, i := range slices.Sorted(maps.Keys(done.Refused)) {
		p := b.origin[i]
		p.Code, p.Detail = "refused", fmt.Sprintf("Postgres does not take this capture (%s)", done.Refused[i])
		w.refused = append(w.refused, p)
	}
	return nil
}

func withSession(meta map[string]any, session string) map[string]any {
	if _, ok := meta["session"]; ok {
		return meta
	}
	with := map[string]any{"session": session}
	maps.Copy(with, meta)
	return with
}

// readInto imports paths. The summary holds what Postgres refused as well.
func readInto(ctx context.Context, st *store.Store, paths []string, o transcript.Options) (transcript.Summary, store.Imported, error) {
	w := newCaptureWriter(ctx, st)
	sum, err := transcript.Read(ctx, paths, o, w.add)
	if closeErr := w.close(); err == nil {
		err = closeErr
	}
	sum.Warnings = append(sum.Warnings, w.refused...)
	return sum, w.total, err
}
