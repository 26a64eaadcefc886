package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// staged records that captures were extracted in a run, with as many candidates
// each as their number.
func (b *testBundle) staged(captures int) (run int64) {
	b.Helper()
	run = b.createRun(ReprocessMissing)
	require.NoError(b, b.store.Plan(b.Context(), run))
	results := make([]Result, 0, captures)
	for i := range captures {
		r := Result{CaptureID: int64(i + 1), Outcome: Staged}
		for j := range i + 1 {
			r.Candidates = append(r.Candidates, Candidate{
				Content: "fact", Salience: 0.5, Entities: []string{"name", "other"}, Fingerprint: [16]byte{byte(i), byte(j)},
			})
		}
		results = append(results, r)
	}
	for _, batch := range b.claim(100) {
		work := Work{Lease: batch.Lease, RunID: batch.RunID}
		for _, id := range batch.IDs {
			work.Results = append(work.Results, results[id-1])
		}
		_, err := b.store.Write(b.Context(), Write{Extractor: 1, Version: testVersion, Works: []Work{work}, MaxAttempts: 1})
		require.NoError(b, err)
	}
	require.NoError(b, b.store.SettleRun(b.Context(), run))
	return run
}

// requireCounts compares the sums of batches with the rows.
func (b *testBundle) requireCounts() {
	b.Helper()
	require.True(b, query[bool](b, `
		select (s.staged, s.empty, s.skipped, s.undone, s.candidates) = (x.staged, x.empty, x.skipped, x.undone, x.candidates)
		from backfill.v_status s join backfill.v_status_exact x using (extractor) where extractor = 'heuristic'`), "net counts")
}

func TestPrune(t *testing.T) {
	t.Parallel()
	b := planned(t, 5)
	run := b.staged(5)
	candidates := "select array_agg(capture_id || '.' || ord order by capture_id, ord) from backfill.staging"
	require.Len(t, query[[]string](b, candidates), 1+2+3+4+5)
	// 1 was handed over long ago, 2 just now, 3 is claimed, 4 is free; of 5 there are
	// further ones behind what was handed over long ago.
	b.exec(`update backfill.extraction set handed_upto = case capture_id when 5 then 3 else capture_id end, handed_at = now() - interval '40 days',
		claimed_upto = case capture_id when 5 then 3 else capture_id end,
		handoff_due = case when capture_id = 5 then now() end where capture_id in (1, 2, 5)`)
	b.exec("update backfill.extraction set handed_at = now() where capture_id = 2")
	b.exec("update backfill.extraction set claim = 7, claimed_upto = 3, handoff_due = now() + interval '1 hour' where capture_id = 3")

	const age = 30 * 24 * time.Hour
	before := b.run(run)
	want := Pruned{Captures: 2, Candidates: 4, Waiting: 3 + 4 + 2, Younger: 2}
	would, err := b.store.Prunable(t.Context(), age)
	require.NoError(t, err)
	require.Equal(t, want, would)
	require.Len(t, query[[]string](b, candidates), 15, "looking removes nothing")
	done, err := b.store.Prune(t.Context(), age)
	require.NoError(t, err)
	require.Equal(t, want, done)
	require.Equal(t, []string{"2.1", "2.2", "3.1", "3.2", "3.3", "4.1", "4.2", "4.3", "4.4", "5.4", "5.5"}, query[[]string](b, candidates))
	require.Zero(t, query[int64](b, `select count(*) from backfill.entity n where not exists (
		select from backfill.staging s where (s.capture_id, s.extractor_id, s.ord) = (n.capture_id, n.extractor_id, n.ord))`))
	require.Equal(t, int64(5), query[int64](b, "select count(*) from backfill.extraction where state = 'done' and outcome = 'staged'"))
	require.Equal(t, before, b.run(run))
	b.requireCounts()
	again, err := b.store.Prune(t.Context(), age)
	require.NoError(t, err)
	require.Equal(t, Pruned{Waiting: want.Waiting, Younger: want.Younger}, again)

	// What was pruned is known: it is not staged again, and what is new is numbered
	// behind it.
	redo := b.createRun(ReprocessAll)
	require.NoError(t, b.store.Plan(t.Context(), redo))
	for _, batch := range b.claim(100) {
		work := Work{Lease: batch.Lease, RunID: batch.RunID, Replace: true, Gone: batch.IDs}
		for _, id := range batch.IDs {
			if id == 5 {
				hash := query[string](b, "select content_hash from backfill.intake where id = 5")
				work.Results = []Result{{CaptureID: 5, Hash: hash, Outcome: Staged, Candidates: []Candidate{
					{Content: "fact", Fingerprint: [16]byte{4, 2}}, {Content: "new", Fingerprint: [16]byte{99}},
				}}}
			}
		}
		_, err := b.store.Write(t.Context(), Write{Extractor: 1, Version: testVersion, Works: []Work{work}, MaxAttempts: 1})
		require.NoError(t, err)
	}
	require.Equal(t, []string{`4.new {"supersedes": [1, 2]}`},
		query[[]string](b, "select array_agg(ord || '.' || content || ' ' || meta::text) from backfill.staging where capture_id = 5"))
	b.requireCounts()

	// Forgotten is forgotten.
	b.exec("delete from backfill.intake where id = 5")
	require.Equal(t, int64(0), query[int64](b, "select count(*) from backfill.known_candidate where capture_id = 5"))
	b.requireCounts()
}

// Prune goes on where a chunk ends, and past rows that somebody holds.
func TestPruneChunks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const captures = 2*pruneCaptures + 1
	b.exec(`insert into backfill.extraction (capture_id, extractor_id, version, state, outcome, handed_upto, claimed_upto, handed_at)
		select g, 1, '', 'done', 'staged', 1, 1, now() - interval '2 days' from generate_series(1, $1::integer) g`, captures)
	b.exec(`insert into backfill.staging (capture_id, extractor_id, ord, salience, fingerprint, content, version)
		select g, 1, 1, 0.5, gen_random_uuid(), 'a fact', '' from generate_series(1, $1::integer) g`, captures)
	tx, err := b.pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "select from backfill.extraction where capture_id = 1 for update")
	require.NoError(t, err)
	done, err := b.store.Prune(t.Context(), 24*time.Hour)
	require.NoError(t, err)
	require.Equal(t, int64(captures-1), done.Candidates)
	require.NoError(t, tx.Rollback(t.Context()))
	done, err = b.store.Prune(t.Context(), 24*time.Hour)
	require.NoError(t, err)
	require.Equal(t, int64(1), done.Candidates)
}

// The batches of old runs are summed up, and nobody sees it.
func TestPruneBatches(t *testing.T) {
	t.Parallel()
	b := planned(t, 7)
	old := b.staged(7)
	cancelled := b.createRun(ReprocessAll)
	require.NoError(t, b.store.Plan(t.Context(), cancelled))
	require.NoError(t, b.store.CancelRun(t.Context(), cancelled, Change{Who: "me"}))
	young := b.createRun(ReprocessMissing)
	require.NoError(t, b.store.Plan(t.Context(), young))
	open := b.createRun(ReprocessAll)
	require.NoError(t, b.store.Plan(t.Context(), open))
	b.exec("update backfill.batch set finished_at = finished_at - interval '2 days' where run_id <> $1", young)
	b.exec("update backfill.run set finished_at = finished_at - interval '2 days' where id <> $1", young)

	runs := func() []Run {
		all, err := b.store.Runs(t.Context(), 10)
		require.NoError(t, err)
		return all
	}
	before := runs()
	require.Equal(t, int64(4), b.run(old).Batches)
	require.Equal(t, int64(1+2+3+4+5+6+7), b.run(old).Candidates)
	require.Zero(t, b.run(cancelled).Done)
	status, err := b.store.Status(t.Context())
	require.NoError(t, err)
	would, err := b.store.Prunable(t.Context(), 24*time.Hour)
	require.NoError(t, err)
	require.Equal(t, int64(4+4), would.Batches)
	for _, want := range []int64{would.Batches, 0} {
		done, err := b.store.Prune(t.Context(), 24*time.Hour)
		require.NoError(t, err)
		require.Equal(t, want, done.Batches)
		require.Equal(t, before, runs())
		after, err := b.store.Status(t.Context())
		require.NoError(t, err)
		for i := range after {
			after[i].OldestPending, status[i].OldestPending = nil, nil
		}
		require.Equal(t, status, after)
		require.Equal(t, int64(1+1+4), query[int64](b, "select count(*) from backfill.batch"), "the open ones stay")
		b.requireCounts()
	}
}

// Whoever deletes a capture takes the ledger row first, as workers and Prune do: so
// one waits for the other, and none is the victim of a deadlock.
func TestDeleteOrder(t *testing.T) {
	t.Parallel()
	b := planned(t, 1)
	b.staged(1)
	tx, err := b.pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	_, err = tx.Exec(t.Context(), "select from backfill.extraction where capture_id = 1 for no key update")
	require.NoError(t, err)
	deleted := make(chan error, 1)
	go func() {
		_, err := b.pool.Exec(t.Context(), "delete from backfill.intake where id = 1")
		deleted <- err
	}()
	require.Eventually(t, func() bool {
		return query[bool](b, "select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')")
	}, 10*time.Second, 5*time.Millisecond)
	_, err = tx.Exec(t.Context(), "delete from backfill.entity where capture_id = 1")
	require.NoError(t, err)
	require.NoError(t, tx.Commit(t.Context()))
	require.NoError(t, <-deleted)
	require.Zero(t, query[int64](b, "select count(*) from backfill.staging"))
}
