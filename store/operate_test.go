package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What a run that is cancelled has not done is not done after it either: failures
// that it was to try again are dead as before, and a capture that a vanished worker
// had in hand has no result.
func TestCancelLeavesNothingToDo(t *testing.T) {
	t.Parallel()
	b := planned(t, 4)
	b.exec(`insert into backfill.extraction (capture_id, extractor_id, version, state, outcome, attempts)
		select id, 1, $1, 'dead', 'refused', 5 from backfill.intake where id <= 2`, testVersion)
	for _, mode := range []Reprocess{ReprocessFailed, ReprocessMissing} {
		require.NoError(t, b.store.Plan(t.Context(), b.createRun(mode)))
	}
	claimed := b.claim(2)
	require.Len(t, claimed, 2)
	for _, c := range claimed {
		_, err := b.store.Enter(t.Context(), c.Lease, c.IDs[0], time.Minute)
		require.NoError(t, err)
	}
	b.exec("update backfill.batch set due = now() - interval '1 second'")
	for _, c := range claimed {
		require.NoError(t, b.store.CancelRun(t.Context(), *c.RunID, Change{Who: "test"}))
		require.Equal(t, "cancelled", b.run(*c.RunID).State)
	}
	_, err := b.store.Sweep(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"1 dead refused", "2 dead refused"}, query[[]string](b, `
		select array_agg(concat_ws(' ', capture_id, state, outcome) order by capture_id) from backfill.extraction`))
	require.Zero(t, query[int64](b, "select count(*) from backfill.batch where due is not null"))
	require.NoError(t, b.store.Plan(t.Context(), b.createRun(ReprocessMissing)))
	require.Equal(t, int64(2), query[int64](b, "select sum(backfill.size(ids))::bigint from backfill.batch where due is not null"), "a later run finds what is missing")
}
