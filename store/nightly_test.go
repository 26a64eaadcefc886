package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What the nightly takes up again is what may go better this time; the row of the
// night says what came of it.
func TestNightly(t *testing.T) {
	t.Parallel()
	b := planned(t, 17)
	// 1 to 12 have failed each in its way, 13 waits for its next attempt, 14 is missing.
	outcomes := []Outcome{Unparseable, Refused, Truncated, ProviderError, Panic, TooLong, DataError, Crashed, Staged, Empty, Skipped, Undone}
	for i, o := range outcomes {
		b.exec(`insert into backfill.extraction (capture_id, extractor_id, version, state, outcome, attempts)
			values ($1, 1, 'older', case when $2 in ('staged', 'empty', 'skipped', 'undone') then 'done' else 'dead' end, $2, 5)`, i+1, string(o))
	}
	b.exec(`insert into backfill.extraction (capture_id, extractor_id, version, state, outcome, next_attempt_at)
		values (13, 1, 'older', 'retry', 'panic', now() + interval '1 hour')`)
	// The model that is asked now has had its say about these.
	b.exec(`insert into backfill.extraction (capture_id, extractor_id, version, state, outcome, attempts)
		values (15, 1, $1, 'dead', 'refused', 1), (16, 1, $1, 'dead', 'unparseable', 3), (17, 1, $1, 'dead', 'truncated', 3)`, testVersion)
	run, err := b.store.CreateRun(t.Context(), NewRun{
		Kind: KindNightly, Extractor: 1, Reprocess: ReprocessMissing, LocalDate: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC),
	})
	require.NoError(t, err)
	require.NoError(t, b.store.Plan(t.Context(), run))
	require.Equal(t, []int64{1, 2, 3, 4, 5, 14}, query[[]int64](b, `
		select array_agg(c order by c) from backfill.batch, unnest(ids) r, generate_series(lower(r), upper(r) - 1) c where run_id = $1`, run))
	require.Equal(t, int64(5), query[int64](b, "select count(*) from backfill.extraction where state = 'queued' and attempts = 0"), "with all attempts before them")

	night := "select concat_ws(' ', night, extractor, state, found, done, failed, open, candidates) from backfill.v_nightly"
	require.Equal(t, "2026-03-01 heuristic running 6 0 0 6 0", query[string](b, night))
	results := map[int64]Result{
		1: {Outcome: Staged, Candidates: []Candidate{{Content: "fact"}}}, 2: {Outcome: Refused},
		3: {Outcome: ProviderError, Retry: true}, 4: {Outcome: Empty},
	}
	for _, batch := range b.claim(2) {
		work := Work{Lease: batch.Lease, RunID: batch.RunID}
		for _, id := range batch.IDs {
			r := results[id]
			r.CaptureID, r.Hash = id, query[string](b, "select content_hash from backfill.intake where id = $1", id)
			work.Results = append(work.Results, r)
		}
		_, err := b.store.Write(t.Context(), Write{
			Extractor: 1, Version: testVersion, Works: []Work{work}, MaxAttempts: 2, Backoff: func(int16) time.Duration { return time.Hour },
		})
		require.NoError(t, err)
	}
	require.Equal(t, "2026-03-01 heuristic running 6 2 2 2 1", query[string](b, night))
}
