package cli_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDemo(t *testing.T) {
	t.Parallel()
	d := setup(t)
	counts := regexp.MustCompile(`(?m)^(\d+) captures, (\d+) new\n(\d+) candidates, (\d+) new$`)

	first := d.cli("demo").ok().out
	found := counts.FindStringSubmatch(first)
	require.NotNil(t, found, first)
	require.Equal(t, found[1], found[2], "all of them are new")
	require.Equal(t, found[3], found[4])
	require.NotEqual(t, "0", found[3])
	require.Regexp(t, `(?m)^heuristic \S+: [1-9]\d* staged, [1-9]\d* empty, 0 skipped, 0 waiting for a retry, 0 dead$`, first)
	require.Regexp(t, `(?m)^by kind: \d+ \w+, \d+ \w+`, first)
	require.Regexp(t, `(?m)^top entities: .+\(\d+\), `, first)
	require.Len(t, regexp.MustCompile(`(?m)^  \w+ +[01]\.\d\d  \S`).FindAllString(first, -1), 10)
	require.Contains(t, first, "select * from backfill.v_status;")

	second := d.cli("demo").ok().out
	require.Contains(t, second, "\n"+found[1]+" captures, 0 new\n"+found[3]+" candidates, 0 new\n")

	own := d.cli("demo", "--json", file(t, "own.jsonl", decision)).ok().object()
	require.InDelta(t, 1, own["new_captures"], 0)
	require.InDelta(t, 1, own["new_candidates"], 0)

	r := d.cli("demo", "missing.jsonl")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.out, "0 new", "what is there is shown all the same")
	require.Contains(t, r.err, "error: missing.jsonl: missing")
}

func TestDemoStop(t *testing.T) {
	t.Chdir(t.TempDir())
	require.Equal(t, "it is not running\n", backfill(t, "", "demo", "--stop").ok().out)
}
