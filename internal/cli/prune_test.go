package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPrune(t *testing.T) {
	t.Parallel()
	d := setup(t)
	d.insert(3)
	require.Zero(t, d.cli("run", "--local").code)
	d.exec("select backfill.ack_candidates(max(claim)) from backfill.claim_candidates('memory', 2)")
	d.exec("update backfill.extraction set handed_at = now() - interval '2 days' where capture_id = 1")

	for args, says := range map[string]string{
		"":      "required flag",
		"30":    "2d or 12h",
		"d":     "2d or 12h",
		"-1d":   "2d or 12h",
		"0h":    "2d or 12h",
		"1e9d":  "2d or 12h",
		"2h30":  "2d or 12h",
		"soon":  "2d or 12h",
		"1.5d":  "2d or 12h",
		"1d 2h": "2d or 12h",
	} {
		if args == "" {
			d.cli("prune").fails(2, says)
			continue
		}
		d.cli("prune", "--older-than", args).fails(2, says)
	}
	d.cli("prune", "--older-than", "1d", "--yes", "--dry-run").fails(2, "dry-run yes")

	would := "would remove 1 candidate of 1 capture; 0 closed batches summed up\nkept 2 candidates: 1 not handed over, 1 handed over since\n"
	require.Equal(t, would, d.cli("prune", "--older-than", "1d", "--dry-run").ok().out)
	require.Equal(t, would, d.cli("prune", "--older-than", "47h59m", "--dry-run").ok().out)
	require.Contains(t, d.cli("prune", "--older-than", "3d", "--dry-run").ok().out, "would remove 0 candidates")
	d.cli("prune", "--older-than", "1d").fails(1, "removes 1 candidate of 1 capture for good", "--yes", "--dry-run")
	require.Equal(t, int64(3), query[int64](d, "select count(*) from backfill.staging"), "nothing is gone yet")

	require.Equal(t, "removed 1 candidate of 1 capture; 0 closed batches summed up\nkept 2 candidates: 1 not handed over, 1 handed over since\n",
		d.cli("prune", "--older-than", "24h", "--yes").ok().out)
	require.Equal(t, int64(2), query[int64](d, "select count(*) from backfill.staging"))
	require.Equal(t, map[string]any{"captures": 0.0, "candidates": 0.0, "batches": 0.0, "waiting": 1.0, "younger": 1.0},
		d.cli("prune", "--older-than", "24h", "--json").ok().object(), "there is nothing left to confirm")

	// Extracting everything again brings nothing back.
	require.Zero(t, d.cli("run", "--local", "--reprocess", "all").code)
	require.Equal(t, int64(2), query[int64](d, "select count(*) from backfill.staging"))
	require.Contains(t, d.cli("status", "--json").ok().out, `"staged":3,"empty":0,"skipped":0,"undone":0,"candidates":2`)
}
