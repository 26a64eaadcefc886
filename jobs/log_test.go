package jobs

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a stop cuts off is no news; everything else is, then too.
func TestStopHandler(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	stopping := make(chan struct{})
	log := slog.New(stopHandler{slog.NewTextHandler(&out, nil), stopping}).With("a", 1).WithGroup("g")
	log.Error("before", "err", "query: context canceled")
	close(stopping)
	log.Error("cut off", "queue", "q", "err", "query: context canceled")
	log.Error("other", "err", "connection refused")
	log.Error("none")
	require.Regexp(t, `^.*before.*\n.*other.*\n.*none.*\n$`, out.String())
}
