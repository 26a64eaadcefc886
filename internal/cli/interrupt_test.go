package cli_test

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/internal/cli"
)

// TestInterruptedRead ends verbs that wait for a stdin on which nothing comes.
func TestInterruptedRead(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"extract"}, {"extract", "--jsonl"}, {"import", "--dry-run", "-"}} {
		ctx, cancel := context.WithCancel(t.Context())
		stdin, w := io.Pipe()
		var stdout, stderr bytes.Buffer
		code := make(chan int)
		go func() { code <- cli.Run(ctx, args, stdin, &stdout, &stderr) }()
		_, err := io.WriteString(w, "{")
		require.NoError(t, err, "it reads") // a pipe's write ends when it was read
		cancel()
		require.Equal(t, 1, <-code, args)
		require.Contains(t, stderr.String(), "interrupted", args)
		require.NoError(t, w.Close())
	}
}
