package cli

import (
	"context"
	"fmt"
	"maps"
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
	// seen are the files as they were stored, reading those of this look.
	seen, reading map[string]stamp
	told          map[transcript.Problem]bool
	away          bool
}

// importWatch imports paths and then whatever changes in them, until ctx ends.
func (a *app) importWatch(ctx context.Context, paths []string, o transcript.Options) error {
	st, closePool, err := a.connect(ctx, 0)
	if err != nil {
		return err
	}
	defer closePool()
	w := &watcher{app: a, store: st, o: o, seen: map[string]stamp{}, told: map[transcript.Problem]bool{}}
	w.o.Leave = func(path string, size int64, modified time.Time) bool {
		now := stamp{size, modified}
		if w.seen[path] == now {
			return true
		}
		w.reading[path] = now
		return false
	}
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

// look imports the files that have changed since they were stored. Files are read
// whole: what is stored already is recognised and costs no write. While the
// database is away it tries again.
func (w *watcher) look(ctx context.Context, paths []string) error {
	w.reading = map[string]stamp{}
	sum, total, err := readInto(ctx, w.store, paths, w.o)
	if store.IsOffline(err) || store.IsRetryable(err) {
		if !w.away && ctx.Err() == nil {
			fmt.Fprintf(w.stderr, "warning: %s; trying again\n", err)
		}
		w.away = true
		return nil
	}
	if err != nil {
		return err
	}
	w.away = false
	maps.Copy(w.seen, w.reading)
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
