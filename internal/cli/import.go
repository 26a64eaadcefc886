package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/justfortytwo/backfill/internal/transcript"
	"github.com/justfortytwo/backfill/store"
)

// Captures are stored in transactions of this size, in captures and in bytes.
const (
	importBatch = 1000
	importBytes = 8 << 20
)

func (a *app) importCmd() *cobra.Command {
	var o transcript.Options
	var dryRun bool
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
			o.Stdin = a.stdin
			if dryRun {
				return a.importDry(cmd.Context(), paths, o)
			}
			return a.importStore(cmd.Context(), paths, o)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print what would be stored; needs no database")
	cmd.Flags().StringVar(&o.Format, "format", "", fmt.Sprintf("force a format: %v", transcript.Formats()))
	return cmd
}

func (a *app) importDry(ctx context.Context, paths []string, o transcript.Options) error {
	sum, err := transcript.Read(ctx, paths, o, func(c transcript.Capture) error {
		if a.json {
			return a.writeJSON(c)
		}
		_, err := fmt.Fprintf(a.stdout, "%s  %s  %s\n", c.ExternalID, c.Source, oneLine(c.Text, 100))
		return err //nolint:wrapcheck // stdout
	})
	if err != nil {
		return err
	}
	if a.json {
		if err := a.writeJSON(map[string]any{"summary": sum}); err != nil {
			return err
		}
	}
	return a.importEnd(sum, fmt.Sprintf("would import %s in %s", plural(sum.Captures, "capture"), plural(len(sum.Files), "file")))
}

func (a *app) importStore(ctx context.Context, paths []string, o transcript.Options) error {
	st, closePool, err := a.connect(ctx, 0)
	if err != nil {
		return err
	}
	defer closePool()
	bar := newProgress(a.stderr, "importing", true)
	o.Progress = bar.set
	w := &captureWriter{ctx: ctx, store: st}
	sum, err := transcript.Read(ctx, paths, o, w.add)
	if err == nil {
		err = w.flush()
	}
	bar.done()
	if err != nil {
		if stored := w.total.New + w.total.Changed; stored > 0 {
			return fmt.Errorf("after %s: %w; importing again resumes", plural(stored, "capture"), err)
		}
		return err
	}
	sum.Warnings = append(sum.Warnings, w.refused...)
	if a.json {
		err := a.writeJSON(map[string]any{"summary": struct {
			transcript.Summary
			New       int `json:"new"`
			Changed   int `json:"changed"`
			Unchanged int `json:"unchanged"`
		}{sum, w.total.New, w.total.Changed, w.total.Unchanged}})
		if err != nil {
			return err
		}
	}
	return a.importEnd(sum, fmt.Sprintf("%d new, %d changed, %d unchanged captures in %s",
		w.total.New, w.total.Changed, w.total.Unchanged, plural(len(sum.Files), "file")))
}

// importEnd tells people the result and every problem, and picks the exit code.
func (a *app) importEnd(sum transcript.Summary, result string) error {
	if !a.json {
		fmt.Fprintln(a.stdout, result)
	}
	for reason, n := range sum.Skips {
		fmt.Fprintf(a.stderr, "skipped %d: %s\n", n, reason)
	}
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

func (a *app) problems(level string, problems []transcript.Problem) {
	for _, p := range problems {
		where := printable(p.File)
		if p.Line > 0 {
			where = fmt.Sprintf("%s:%d", where, p.Line)
		}
		fmt.Fprintf(a.stderr, "%s: %s: %s", level, where, p.Code)
		if p.Detail != "" {
			fmt.Fprintf(a.stderr, ": %s", p.Detail)
		}
		fmt.Fprintln(a.stderr)
	}
}

// captureWriter stores captures in batches. Each batch is a transaction together
// with the work it queues, so that importing again is all it takes to resume.
type captureWriter struct {
	ctx     context.Context //nolint:containedctx // of the one import it belongs to
	store   *store.Store
	pending []store.NewCapture
	origin  []transcript.Problem // where each pending capture came from
	bytes   int
	total   store.Imported
	refused []transcript.Problem
}

func (w *captureWriter) add(c transcript.Capture) error {
	meta := c.Meta
	if c.Session != "" {
		meta = withSession(meta, c.Session)
	}
	var raw json.RawMessage
	if len(meta) > 0 {
		var err error
		if raw, err = json.Marshal(meta); err != nil {
			return fmt.Errorf("encoding meta: %w", err)
		}
	}
	w.pending = append(w.pending, store.NewCapture{
		Source: c.Source, ExternalID: c.ExternalID, Observed: c.Observed, OccurredAt: c.Date, Text: c.Text, Meta: raw,
	})
	w.origin = append(w.origin, transcript.Problem{File: c.File, Line: c.Line})
	w.bytes += len(c.Text) + len(raw)
	if len(w.pending) < importBatch && w.bytes < importBytes {
		return nil
	}
	return w.flush()
}

func withSession(meta map[string]any, session string) map[string]any {
	if _, ok := meta["session"]; ok {
		return meta
	}
	with := map[string]any{"session": session}
	maps.Copy(with, meta)
	return with
}

func (w *captureWriter) flush() error {
	done, err := w.store.Import(w.ctx, w.pending)
	if err != nil {
		return err
	}
	w.total.New += done.New
	w.total.Changed += done.Changed
	w.total.Unchanged += done.Unchanged
	for _, i := range slices.Sorted(maps.Keys(done.Refused)) {
		p := w.origin[i]
		p.Code, p.Detail = "refused", fmt.Sprintf("Postgres does not take this capture (%s)", done.Refused[i])
		w.refused = append(w.refused, p)
	}
	w.pending, w.origin, w.bytes = w.pending[:0], w.origin[:0], 0
	return nil
}
