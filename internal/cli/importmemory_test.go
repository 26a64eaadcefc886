package cli_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/internal/cli"
)

// TestImportMemory reads large records in a process of its own, which stays below
// 150 MB whatever the format.
func TestImportMemory(t *testing.T) {
	t.Parallel()
	const child = "BACKFILL_TEST_IMPORT"
	if os.Getenv(child) != "" {
		code := cli.Run(t.Context(), []string{"import", "--dry-run", "-"}, os.Stdin, io.Discard, os.Stderr)
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			code = -1
		}
		_, peak, _ := strings.Cut(string(status), "VmHWM:")
		fmt.Fprint(os.Stdout, strings.Fields(peak)[0])
		os.Exit(code)
	}
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("no /proc")
	}
	words := strings.Repeat("The boat leaves at nine, and the yard opens on Monday. ", 10_000)
	role := func(i int, roles ...string) string { return roles[i%2] }
	tests := []struct {
		name  string
		write func(w io.Writer)
	}{
		{"chatgpt", func(w io.Writer) {
			for n := range 6 {
				fmt.Fprintf(w, `{"conversation_id":"c%d","current_node":"59","mapping":{"0":{}`, n)
				for i := 1; i < 60; i++ {
					fmt.Fprintf(w, `,"%d":{"parent":"%d","message":{"author":{"role":%q},"content":{"content_type":"text","parts":["%s"]}}}`, i, i-1, role(i, "user", "assistant"), words)
				}
				fmt.Fprintln(w, "}}")
			}
		}},
		{"gemini-cli", func(w io.Writer) {
			fmt.Fprintln(w, `{"sessionId":"S","startTime":"2026-05-22T15:00:00Z"}`)
			for i := range 200 {
				fmt.Fprintf(w, `{"id":"%d","type":%q,"content":"%s"}`+"\n", i, role(i, "user", "gemini"), words)
			}
		}},
		{"native", func(w io.Writer) {
			for i := range 6 {
				fmt.Fprintf(w, `{"id":%d,"text":"%s","meta":{"k":"%s"}}`+"\n", i, words, strings.Repeat(words, 58))
			}
		}},
	}
	for _, tt := range tests {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestImportMemory$")
		cmd.Env = append(os.Environ(), child+"=1")
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		go func() {
			w := bufio.NewWriter(in)
			tt.write(w)
			_ = w.Flush()
			_ = in.Close()
		}()
		out, err := cmd.Output()
		require.NoError(t, err, tt.name)
		var kb int
		_, err = fmt.Sscan(string(out), &kb)
		require.NoError(t, err)
		t.Logf("%s: %d MB", tt.name, kb*1024/1_000_000)
		require.Less(t, kb*1024, 150_000_000, tt.name)
	}
}
