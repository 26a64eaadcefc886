package jobs_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/extract"
	"github.com/justfortytwo/backfill/heuristic"
	"github.com/justfortytwo/backfill/jobs"
	"github.com/justfortytwo/backfill/store"
)

// everything is a hash over all that extraction has produced, and its size.
func (b *testBundle) everything() []string {
	b.Helper()
	return query[[]string](b, `select array[
		(select count(*) || ' candidates ' || md5(string_agg(concat_ws('|', capture_id, extractor_id, ord, content, kind, salience,
			tags::text, evidence, entities::text, fingerprint), E'\n' order by capture_id, extractor_id, ord)) from backfill.staging),
		(select count(*) || ' ledger rows ' || md5(string_agg(concat_ws('|', capture_id, extractor_id, state, outcome, version), E'\n'
			order by capture_id, extractor_id)) from backfill.extraction),
		(select count(*) || ' entities ' || md5(string_agg(concat_ws('|', entity, capture_id, extractor_id, ord), E'\n'
			order by entity, capture_id, extractor_id, ord)) from backfill.entity)]`)
}

func (b *testBundle) run(mode store.Reprocess) store.Run {
	b.Helper()
	ctx := context.Background()
	id, err := b.store.CreateRun(ctx, store.NewRun{Kind: store.KindRun, Extractor: 1, Reprocess: mode})
	require.NoError(b, err)
	require.NoError(b, b.store.Plan(ctx, id))
	b.await(time.Minute, "select finished_at is not null from backfill.run where id = $1", id)
	run, err := b.store.Run(ctx, id)
	require.NoError(b, err)
	return run
}

func TestRerun(t *testing.T) {
	t.Parallel()

	t.Run("ChangesNothing", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		e, err := heuristic.New()
		require.NoError(t, err)
		b.start(config(e))
		captures := make([]store.NewCapture, 0, 3000)
		for i := range 1500 {
			captures = append(captures, store.NewCapture{
				Source: "test", ExternalID: fmt.Sprint("test:", i),
				Text: fmt.Sprintf("We decided to use Postgres %d instead of MongoDB because the reports need joins.", i),
			})
			captures = append(captures, store.NewCapture{Source: "test", ExternalID: fmt.Sprint("small:", i), Text: "Good morning!"})
		}
		var first []string
		for i := range 3 {
			done, err := b.store.Import(context.Background(), captures, i == 0)
			require.NoError(t, err)
			b.idle(time.Minute)
			if i == 0 {
				require.Equal(t, len(captures), done.New)
				first = b.everything()
				require.Contains(t, first[0], "1500 candidates")
				require.Contains(t, first[1], "3000 ledger rows")
				require.Contains(t, first[2], "3000 entities")
			} else {
				require.Equal(t, len(captures), done.Unchanged)
			}
			require.Equal(t, first, b.everything())
		}
		run := b.run(store.ReprocessAll)
		require.Equal(t, int64(len(captures)), run.Total)
		require.Equal(t, run.Total, run.Done)
		require.Equal(t, "succeeded", run.State)
		require.Equal(t, first, b.everything())
		b.requireInvariants()

		require.Zero(t, b.run(store.ReprocessMissing).Total)
		require.Zero(t, b.run(store.ReprocessStale).Total)
		require.Zero(t, b.run(store.ReprocessFailed).Total)
	})

	t.Run("StaleTakesOtherVersions", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.start(config(extractorFunc(whole)))
		b.insert("one", "two")
		b.idle(20 * time.Second)
		b.exec("update backfill.extraction set version = 'older' where capture_id = 1")
		require.Equal(t, int64(1), b.run(store.ReprocessStale).Total)
		require.Equal(t, heuristic.Version, query[string](b, "select version from backfill.extraction where capture_id = 1"))
		b.requireInvariants()
	})

	t.Run("FailuresEndARunWithErrors", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.exec("update backfill.extractor set on_insert = false")
		b.insert("good", "bad")
		cfg := config(extractorFunc(func(t extract.Turn) []extract.Candidate {
			if t.Text == "bad" {
				panic("bad")
			}
			return whole(t)
		}))
		cfg.MaxAttempts = 1
		b.start(cfg)
		run := b.run(store.ReprocessMissing)
		require.Equal(t, "finished_with_errors", run.State)
		require.Equal(t, map[store.Outcome]int64{"staged": 1, "panic": 1}, run.Outcomes)
	})

	t.Run("HandedOverCandidatesStay", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		version := "first"
		b.start(config(extractorFunc(func(t extract.Turn) []extract.Candidate {
			kept, own := whole(t)[0], whole(t)[0]
			own.Content = version
			return []extract.Candidate{kept, own}
		})))
		b.insert("kept")
		b.idle(20 * time.Second)
		claim := query[int64](b, "select max(claim) from backfill.claim_candidates('memory')")
		b.exec("select backfill.ack_candidates($1)", claim)

		version = "second"
		b.run(store.ReprocessAll)
		require.Equal(t, []string{"1 kept", "2 first", "3 second"},
			query[[]string](b, "select array_agg(ord || ' ' || content order by ord) from backfill.staging"))
		require.Equal(t, []string{"second"}, query[[]string](b, "select array_agg(content) from backfill.claim_candidates('memory')"))

		// Claimed, but not acknowledged yet: they stay as well, and what is staged
		// behind them is up next.
		version = "third"
		b.run(store.ReprocessAll)
		claim = query[int64](b, "select claim from backfill.extraction")
		b.exec("select backfill.ack_candidates($1, array[1])", claim)
		require.Equal(t, []string{"third"}, query[[]string](b, "select array_agg(content) from backfill.claim_candidates('memory')"))
	})
}

func TestHandOff(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(config(extractorFunc(whole)))
	b.insert("one", "two", "three")
	b.idle(20 * time.Second)
	claim := func(limit int, lease string) int64 {
		return query[int64](b, "select coalesce(max(claim), 0) from backfill.claim_candidates('memory', $1, $2::interval)", limit, lease)
	}
	first := claim(2, "1 hour")
	second := claim(2, "0 seconds")
	require.Zero(t, claim(2, "1 hour")-second-1, "the third is up again as soon as its lease has run out")
	_, err := b.pool.Exec(context.Background(), "select backfill.ack_candidates($1)", second)
	require.ErrorContains(t, err, "lease has moved on")
	_, err = b.pool.Exec(context.Background(), "select backfill.ack_candidates($1, array[1, 3])", first)
	require.ErrorContains(t, err, "lease has moved on")
	require.Equal(t, int64(1), query[int64](b, "select backfill.ack_candidates($1, array[1])", first))
	require.Equal(t, int64(1), query[int64](b, "select backfill.release($1)", first))
	require.NotZero(t, claim(10, "1 hour"), "released: up at once")
	require.Zero(t, claim(10, "1 hour"), "everything is claimed or handed over")
}

func TestNightly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := context.Background()
	b.insert("announced")
	b.exec("alter table backfill.intake disable trigger all")
	b.insert("missed", "missed too") // as by logical replication
	b.exec("alter table backfill.intake enable trigger all")
	b.exec("update backfill.extractor set on_insert = true, active_from = 'epoch' where id = 1")
	require.Equal(t, int64(1), query[int64](b, "select backfill.size(range_agg(ids)) from backfill.batch"))

	cfg := config(extractorFunc(whole))
	cfg.Nightly, cfg.Location = cron.Every(time.Hour), time.UTC
	b.start(cfg)
	b.idle(20 * time.Second)
	b.await(20*time.Second, "select exists (select from backfill.run where kind = 'nightly' and finished_at is not null)")
	b.requireInvariants()
	require.Equal(t, int64(2), query[int64](b, "select total from backfill.v_run"), "what is queued already is left alone")

	// Once a night, whoever asks.
	night := query[time.Time](b, "select local_date from backfill.run")
	require.NoError(t, jobs.Nightly(ctx, b.store, night))
	require.Equal(t, int64(1), query[int64](b, "select count(*) from backfill.run"))
	require.NoError(t, jobs.Nightly(ctx, b.store, night.AddDate(0, 0, 1)))
	require.Equal(t, int64(2), query[int64](b, "select count(*) from backfill.run"))
}

func TestFold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(config(extractorFunc(whole)))
	for i := range 10 {
		b.insert(fmt.Sprint(i), " ")
	}
	b.idle(20 * time.Second)
	b.exec("update backfill.batch set finished_at = finished_at - interval '8 days' where id <= 9")
	for range 2 {
		_, err := b.store.Prune(context.Background(), 7*24*time.Hour)
		require.NoError(t, err)
		b.requireInvariants() // the sums hold
		require.Equal(t, int64(2), query[int64](b, "select count(*) from backfill.batch"))
	}
	require.JSONEq(t, `{"staged": 9, "skipped": 9}`, query[string](b, "select outcomes::text from backfill.batch order by finished_at limit 1"))
}

// TestPlanJob: the workers plan a run whose creator has gone, or was somebody in psql.
func TestPlanJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec("update backfill.extractor set on_insert = false")
	b.insert("one", "two", "three")
	_, err := b.store.CreateRun(context.Background(), store.NewRun{Kind: store.KindRun, Extractor: 1, Reprocess: store.ReprocessMissing})
	require.NoError(t, err)
	b.start(config(extractorFunc(whole)))
	b.await(20*time.Second, "select state = 'succeeded' from backfill.run")
	require.Equal(t, int64(3), query[int64](b, "select count(*) from backfill.staging"))

	b.exec("insert into backfill.run (kind, extractor_id, reprocess) values ('run', 1, 'all')")
	b.await(20*time.Second, "select state = 'succeeded' from backfill.run where id = 2")
	require.Equal(t, int64(3), query[int64](b, "select total from backfill.v_run where run = 2"))
	require.Equal(t, int64(3), query[int64](b, "select count(*) from backfill.staging"))
}

// TestStale: after a new version, a run over what is stale touches exactly the
// captures of the old one. What was handed over stays, and is named by what
// supersedes it.
func TestStale(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := context.Background()
	said := "first"
	b.start(config(extractorFunc(func(t extract.Turn) []extract.Candidate {
		same, own := whole(t)[0], whole(t)[0]
		own.Content = t.Text + " " + said
		own.Meta = map[string]any{"why": "test"}
		return []extract.Candidate{same, own}
	})))
	b.insert("one", "two", "three", "four", "five")
	b.idle(20 * time.Second)
	b.exec("update backfill.extraction set version = 'older' where capture_id in (1, 2, 3)")
	b.exec("update backfill.staging set version = 'older' where capture_id in (1, 2, 3)")
	// One was handed over, one is claimed; four is current.
	b.exec("select backfill.ack_candidates(max(claim)) from backfill.claim_candidates('memory', 1)")
	b.exec("select count(*) from backfill.claim_candidates('memory', 1)")
	untouched := `select md5(string_agg(x::text, '')) from backfill.extraction x where capture_id >= 4`
	before := query[string](b, untouched)

	said = "second"
	spec := store.NewRun{Kind: store.KindRun, Extractor: 1, Reprocess: store.ReprocessStale}
	e, err := b.store.Estimate(ctx, spec)
	require.NoError(t, err)
	require.Equal(t, []int64{3, 2, 4}, []int64{e.Captures, e.Replaced, e.Kept})
	run := b.run(store.ReprocessStale)
	require.Equal(t, int64(3), run.Total)
	require.Equal(t, map[store.Outcome]int64{"staged": 3}, run.Outcomes)
	require.Equal(t, before, query[string](b, untouched))
	require.Zero(t, query[int64](b, "select stale from backfill.v_status_exact where extractor = 'heuristic'"))
	require.Equal(t, []string{
		"1.1 one {}", `1.2 one first {"why": "test"}`, `1.3 one second {"why": "test", "supersedes": [2]}`,
		"2.1 two {}", `2.2 two first {"why": "test"}`, `2.3 two second {"why": "test", "supersedes": [2]}`,
		"3.1 three {}", `3.2 three second {"why": "test"}`,
	}, query[[]string](b, `select array_agg(capture_id || '.' || ord || ' ' || content || ' ' || meta order by capture_id, ord) from backfill.staging where capture_id <= 3`))
	b.requireInvariants()

	all := b.everything()
	require.Zero(t, b.run(store.ReprocessStale).Total)
	require.Equal(t, all, b.everything())
}

// Failures wait four times as long each time, and do not return in step.
func TestBackoff(t *testing.T) {
	t.Parallel()
	for attempts, about := range map[int16]time.Duration{1: time.Minute, 2: 4 * time.Minute, 3: 16 * time.Minute, 4: 64 * time.Minute} {
		seen := map[time.Duration]bool{}
		for range 100 {
			d := jobs.Backoff(attempts)
			require.GreaterOrEqual(t, d, about*8/10, attempts)
			require.LessOrEqual(t, d, about*12/10, attempts)
			seen[d] = true
		}
		require.Greater(t, len(seen), 50)
	}
	require.Positive(t, jobs.Backoff(1000))
}
