package jobs

import (
	"context"

	"github.com/justfortytwo/backfill/store"
)

// MaxTextBytes is the longest text that is extracted.
const MaxTextBytes = maxTextBytes

// Preview extracts one capture as a worker would, redaction included, and writes
// nothing.
func Preview(ctx context.Context, s Slot, c store.Capture) store.Result {
	return (&slot{Slot: s}).result(ctx, c)
}
