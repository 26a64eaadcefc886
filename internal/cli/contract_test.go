package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Wrong arguments are wrong usage, whichever way they are wrong.
func TestUsageOfArguments(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		says string
	}{
		{[]string{"migrate"}, "migrate up|status|down"},
		{[]string{"run", "--wait", "--local"}, "wait local"},
		{[]string{"run", "--nightly", "--reprocess", "all"}, "nightly reprocess"},
	} {
		backfill(t, "", tt.args...).fails(2, tt.says)
	}
}

// run --json writes one line: of the plan, or of the end that was waited for.
func TestRunOneLine(t *testing.T) {
	t.Parallel()
	d := setup(t)
	d.insert(3)
	end := d.cli("run", "--json", "--local").ok().object()
	requireKeys(t, end, "run", "state", "batches", "captures", "candidates", "outcomes", "cost")
	require.Equal(t, "succeeded", end["state"])
}

func TestNoRun(t *testing.T) {
	t.Parallel()
	setup(t).cli("status", "999").fails(1, "`backfill runs` lists them")
}

func TestDemoStopJSON(t *testing.T) {
	t.Chdir(t.TempDir())
	require.Equal(t, map[string]any{"stopped": false}, backfill(t, "", "demo", "--stop", "--json").ok().object())
}

// A line without a text is a mistake, not a capture in which nothing was found.
func TestExtractNoText(t *testing.T) {
	t.Parallel()
	r := backfill(t, "null\n{\"id\":1}\n{\"id\":2,\"content\":\"x\"}\n"+decision, "extract", "--jsonl")
	require.Equal(t, 3, r.code)
	require.Equal(t, "d", r.object()["id"])
	require.Contains(t, r.err, "error: -:1: ")
	require.Contains(t, r.err, "error: -:2: ")
	require.Contains(t, r.err, "error: -:3: ")
}
