package jobs

import (
	"context"
	"log/slog"
	"strings"
)

// stopHandler drops what River reports of its own work being cut off by a stop that
// was asked for.
type stopHandler struct {
	slog.Handler

	stopping <-chan struct{}
}

// Handle implements [slog.Handler].
func (h stopHandler) Handle(ctx context.Context, r slog.Record) error {
	select {
	case <-h.stopping:
		cutOff := false
		r.Attrs(func(a slog.Attr) bool {
			cutOff = a.Key == "err" && strings.HasSuffix(a.Value.String(), context.Canceled.Error())
			return !cutOff
		})
		if cutOff {
			return nil
		}
	default:
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (h stopHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return stopHandler{h.Handler.WithAttrs(attrs), h.stopping}
}

// WithGroup implements [slog.Handler].
func (h stopHandler) WithGroup(name string) slog.Handler {
	return stopHandler{h.Handler.WithGroup(name), h.stopping}
}
