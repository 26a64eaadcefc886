package jobs

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/justfortytwo/backfill/store"
)

// notifyEvery is the least time between two notifications of a process: a commit
// that notifies waits for every other one in the cluster.
const notifyEvery = 200 * time.Millisecond

// notifier tells listeners that slots have new candidates: at once when it has been
// quiet, else when notifyEvery has passed. It never speaks before the candidates are
// committed, and always after the last of them.
type notifier struct {
	store *store.Store
	log   *slog.Logger

	mu      sync.Mutex
	slots   map[string]bool // to be announced
	pending *time.Timer     // set while there are any
	next    time.Time       // not before
}

// staged says that candidates of a slot were committed.
func (n *notifier) staged(slot string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.slots[slot] = true
	if n.pending == nil {
		n.pending = time.AfterFunc(time.Until(n.next), n.send)
	}
}

// send announces what there is to announce.
func (n *notifier) send() {
	n.mu.Lock()
	slots := slices.Sorted(maps.Keys(n.slots))
	clear(n.slots)
	n.pending, n.next = nil, time.Now().Add(notifyEvery)
	n.mu.Unlock() // a slow database does not hold up whoever stages
	if len(slots) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := n.store.NotifyCandidates(ctx, slots); err != nil {
		n.log.WarnContext(ctx, "new candidates were not announced: listeners hear of them from the next sweep", "error", err)
	}
}
