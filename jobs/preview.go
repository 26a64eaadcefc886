package jobs

import (
	"context"

	"github.com/justfortytwo/backfill/store"
)

// MaxTextBytes is the longest text that is extracted.
const MaxTextBytes = maxTextBytes

// Preview extracts a capture as a worker would, redaction included, and writes nothing
// but what a model is paid for it. A model is asked once.
type Preview func(context.Context, store.Capture) store.Result

// NewPreview prepares the slot's extractor or model.
func NewPreview(st *store.Store, s Slot) (Preview, error) {
	if s.Model != nil {
		x, err := newModel(st, s)
		if err != nil {
			return nil, err
		}
		s.Extractor = x
	}
	return (&slot{Slot: s}).result, nil
}
