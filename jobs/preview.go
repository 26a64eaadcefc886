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
		shared := &budget{store: st, daily: s.Daily}
		x, err := s.Model(shared)
		if err != nil {
			return nil, err
		}
		shared.endpoint = x.Client().Endpoint()
		s.Extractor = x
	}
	return (&slot{Slot: s}).result, nil
}
