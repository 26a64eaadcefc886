package jobs

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/justfortytwo/backfill/store"
)

// group works several batches as one: one read, one transaction.
type group struct {
	*drainWorker
	slot    *slot
	batches []store.Batch
}

// writeAttempts bounds how often a transaction is repeated after a deadlock or
// the like before its batches are postponed.
const writeAttempts = 3

// run works the batches and returns those whose results Postgres refused: they
// go on in single-step mode. Results are written whenever enough have come
// together, so that memory stays flat.
func (g *group) run(ctx context.Context) (refused []store.Batch, err error) {
	if len(g.batches) == 0 {
		return nil, nil
	}
	works, owner, todo := g.share()
	for len(todo) > 0 {
		rest, err := g.extract(ctx, works, owner, todo)
		if err != nil {
			return nil, err
		}
		how := store.KeepLease
		if len(rest) > 0 && g.stopped(ctx) {
			how = store.GiveBack
		}
		for i := range works {
			works[i].Close = how
		}
		_, err = g.write(ctx, g.slot, works) // a batch whose lease is lost is left out by the fence
		if store.IsDataError(err) {
			// Nothing was written; each batch finds its culprit by itself.
			return g.left(works, owner, todo), nil
		}
		if err != nil || how == store.GiveBack {
			return nil, err
		}
		todo = rest
		for i := range works {
			works[i].Results, works[i].Gone = nil, nil
		}
	}
	return nil, nil
}

// share lays the batches out. A capture that is in several of them is worked
// once, in one that replaces if there is one.
func (g *group) share() (works []store.Work, owner map[int64]int, todo []int64) {
	works = make([]store.Work, len(g.batches))
	owner = map[int64]int{}
	for i, b := range g.batches {
		works[i] = store.Work{Lease: b.Lease, RunID: b.RunID, Replace: b.Replace}
		for _, id := range b.IDs {
			other, taken := owner[id]
			switch {
			case !taken:
				owner[id] = i
				todo = append(todo, id)
			case b.Replace && !works[other].Replace:
				owner[id] = i
				works[other].Gone = append(works[other].Gone, id)
			default:
				works[i].Gone = append(works[i].Gone, id)
			}
		}
	}
	slices.Sort(todo)
	return works, owner, todo
}

// extract fills works with the results of todo, until there is enough to write, it
// has taken long enough, or the client stops, and returns what is left.
func (g *group) extract(ctx context.Context, works []store.Work, owner map[int64]int, todo []int64) (rest []int64, err error) {
	size, next, until := 0, 0, time.Now().Add(flushAfter)
	gone := func(upto int64) {
		for ; next < len(todo) && todo[next] < upto; next++ {
			w := &works[owner[todo[next]]]
			w.Gone = append(w.Gone, todo[next])
		}
	}
	for capture, err := range g.store.Captures(ctx, todo, maxTextBytes) {
		if err != nil {
			return nil, err
		}
		if size >= flushBytes || time.Now().After(until) && next > 0 || g.stopped(ctx) {
			return todo[next:], nil
		}
		gone(capture.ID) // deleted since
		result := g.slot.result(ctx, capture)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		w := &works[owner[capture.ID]]
		w.Results = append(w.Results, result)
		for _, c := range result.Candidates {
			size += len(c.Content) + len(c.Evidence)
		}
		next++
	}
	for ; next < len(todo); next++ {
		w := &works[owner[todo[next]]]
		w.Gone = append(w.Gone, todo[next])
	}
	return nil, nil
}

// left are the batches with the captures that are still to do.
func (g *group) left(works []store.Work, owner map[int64]int, todo []int64) []store.Batch {
	left := slices.Clone(g.batches)
	for i := range left {
		left[i].IDs = nil
	}
	for _, id := range todo {
		left[owner[id]].IDs = append(left[owner[id]].IDs, id)
	}
	for i, w := range works {
		for _, id := range w.Gone {
			if owner[id] != i {
				left[i].IDs = append(left[i].IDs, id)
			}
		}
	}
	return left
}

// write commits works of one slot, again if the transaction fell victim to another
// one. It ends what it began even if ctx is cancelled by a stop.
func (w *drainWorker) write(ctx context.Context, slot *slot, works []store.Work) (store.Written, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	for attempt := 1; ; attempt++ {
		written, err := w.store.Write(ctx, store.Write{
			Extractor: slot.ID, Version: slot.Version, Works: works, Entered: slot.model != nil,
			MaxAttempts: w.cfg.MaxAttempts, Backoff: w.cfg.Backoff,
		})
		if err == nil && written.Candidates > 0 {
			w.notifier.staged(slot.Name)
		}
		if err == nil || attempt == writeAttempts || !store.IsRetryable(err) {
			return written, err
		}
		select {
		case <-ctx.Done():
			return written, errors.Join(err, ctx.Err())
		case <-time.After(time.Duration(attempt) * 50 * time.Millisecond):
		}
	}
}
