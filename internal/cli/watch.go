package cli

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/justfortytwo/backfill/internal/transcript"
	"github.com/justfortytwo/backfill/store"
)

// watchPoll is how often a watched directory is looked at. Polling works on every
// file system, and a walk over thousands of files takes milliseconds.
const watchPoll = time.Second

// stamp tells whether a file has changed since it was read.
type stamp struct {
	size int64
	mod  time.Time
}

// watcher imports files as they grow.
type watcher struct {
	*app
	store *store.Store
	o     transcript.Options
	seen  map[string]stamp
	told  map[transcript.Problem]bool
}

// importWatch imports paths and then whatever changes in them, until ctx ends.
func (a *app) importWatch(ctx context.Context, paths []string, o transcript.Options) error {
	st, closePool, err := a.connect(ctx, 0)
	if err != nil {
		return err
	}
	defer closePool()
	w := &watcher{app: a, store: st, o: o, seen: map[string]stamp{}, told: map[transcript.Problem]bool{}}
	tick := time.NewTicker(watchPoll)
	defer tick.Stop()
	for {
		if err := w.look(ctx, paths); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// look imports the files that have changed since the last look. Files are read
// whole: what is stored already is recognised and costs no write.
func (w *watcher) look(ctx context.Context, paths []string) error {
	var changed []string
	for _, path := range paths {
		err := filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
			switch {
			case err != nil && file == path:
				return fmt.Errorf("watching %s: %w", path, err)
			case err != nil:
				return nil //nolint:nilerr // it went away, or cannot be read: perhaps next time
			case file != path && strings.HasPrefix(d.Name(), "."):
				if d.IsDir() {
					return filepath.SkipDir
				}
				return nil
			case !d.Type().IsRegular():
				return nil
			}
			info, err := d.Info()
			if err != nil {
				return nil //nolint:nilerr // it went away
			}
			if now := (stamp{info.Size(), info.ModTime()}); w.seen[file] != now {
				w.seen[file] = now
				changed = append(changed, file)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if len(changed) == 0 {
		return nil
	}
	sum, total, err := readInto(ctx, w.store, changed, w.o)
	if err != nil {
		return err
	}
	w.tell(sum, total)
	return nil
}

// tell reports what is new, and each problem once.
func (w *watcher) tell(sum transcript.Summary, total store.Imported) {
	if total.New+total.Changed > 0 {
		if w.json {
			_ = w.writeJSON(map[string]int{"new": total.New, "changed": total.Changed}) // stdout is gone: nobody listens
		} else {
			fmt.Fprintf(w.stdout, "%s  %d new, %d changed captures\n", time.Now().Format(time.TimeOnly), total.New, total.Changed)
		}
	}
	fresh := func(problems []transcript.Problem) []transcript.Problem {
		var out []transcript.Problem
		for _, p := range problems {
			if !w.told[p] {
				w.told[p] = true
				out = append(out, p)
			}
		}
		return out
	}
	w.problems("warning", fresh(sum.Warnings))
	// Whatever else lies in the directory is no error here.
	w.problems("warning", fresh(sum.Errors))
}
