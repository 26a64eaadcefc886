package cli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/internal/cli"
	"github.com/justfortytwo/backfill/internal/pgtest"
)

// TestImportWatch grows a directory while it is watched.
func TestImportWatch(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	dir := t.TempDir()
	write := func(name, text string) {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		require.NoError(t, err)
		_, err = f.WriteString(text)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	captures := func(want int) {
		t.Helper()
		require.Eventually(t, func() bool {
			var n int
			require.NoError(t, pool.QueryRow(context.Background(), "select count(*) from backfill.intake").Scan(&n))
			return n == want
		}, 20*time.Second, 10*time.Millisecond)
	}
	write("a.jsonl", `{"id": 1, "text": "first"}`+"\n")
	write("notes.txt", "not a conversation\n")
	write(".hidden.jsonl", `{"id": 99, "text": "hidden"}`+"\n")
	write("own.jsonl", `{"type":"user","uuid":"u","sessionId":"S","cwd":"/home/ann/.backfill","message":{"content":"Hi"}}`+"\n")
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".backfill"), 0o700))
	write(".backfill/own.jsonl", `{"id": 98, "text": "ours"}`+"\n")

	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr bytes.Buffer
	code := make(chan int)
	go func() {
		code <- cli.Run(ctx, []string{"import", "--watch", "--database-url", pool.Config().ConnString(), dir}, nil, &stdout, &stderr)
	}()
	captures(1)
	write("a.jsonl", `{"id": 2, "text": "seco`) // half a line, as a live file has
	write("b.jsonl", `{"id": 3, "text": "third"}`+"\n")
	captures(2)
	write("a.jsonl", `nd"}`+"\n")
	captures(3)
	cancel()
	require.Zero(t, <-code, stderr.String())
	require.Contains(t, stdout.String(), "1 new, 0 changed captures")
	require.Equal(t, 1, bytes.Count(stderr.Bytes(), []byte("notes.txt")), stderr.String())
}
