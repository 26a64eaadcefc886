package jobs

import (
	"context"
	"log/slog"

	"github.com/justfortytwo/backfill/store"
)

// MaxTextBytes is the longest text that is extracted.
const MaxTextBytes = maxTextBytes

// Preview extracts a capture as a worker would, redaction included, and writes nothing
// but what a model is paid for it. A model is asked once.
type Preview func(context.Context, store.Capture) store.Result

// NewPreview prepares the slot's extractor or model. log hears what nobody else does.
func NewPreview(st *store.Store, s Slot, log *slog.Logger) (Preview, error) {
	if s.Model != nil {
		x, err := newModel(st, s, log)
		if err != nil {
			return nil, err
		}
		s.Extractor = x
	}
	return (&slot{Slot: s}).result, nil
}
