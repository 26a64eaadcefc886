package jobs_test

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMemoryPage runs the consumer of docs/memory.md, where Python has psycopg.
func TestMemoryPage(t *testing.T) {
	t.Parallel()
	python := ""
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(t.Context(), name, "-c", "import psycopg").Run() == nil {
			python = name
		}
	}
	if python == "" {
		t.Skip("python3 has no psycopg")
	}
	page, err := os.ReadFile("../docs/memory.md")
	require.NoError(t, err)
	code := regexp.MustCompile("(?s)```python\n(.*?)```").FindSubmatch(page)
	require.NotNil(t, code)

	b := setup(t)
	b.start(config(extractorFunc(whole)))
	b.insert("one")
	b.idle(20 * time.Second)
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), python, "-c", string(code[1])+`
failed = False
def remember(rows):
    global failed
    print(*[(r["capture_id"], r["ord"], r["content"]) for r in rows], flush=True)
    if rows[-1]["content"] == "two" and not failed:
        failed = True
        raise OSError("away")
for _ in range(2):
    try:
        consume(remember)
    except OSError as e:
        print("again", flush=True)
`)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+b.pool.Config().ConnString())
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	b.await(20*time.Second, "select count(*) = 1 from backfill.v_candidate where handed_over")
	b.insert("two") // it listens by now; this one fails the first time
	b.await(20*time.Second, "select count(*) = 2 from backfill.v_candidate where handed_over")
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	require.Equal(t, "(1, 1, 'one')\n(2, 1, 'two')\nagain\n(2, 1, 'two')\n", out.String())
}
