package jobs_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/extract"
	"github.com/justfortytwo/backfill/heuristic"
	"github.com/justfortytwo/backfill/jobs"
	"github.com/justfortytwo/backfill/store"
)

func TestDrain(t *testing.T) {
	t.Parallel()

	t.Run("EveryCaptureGetsItsOutcome", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		e, err := heuristic.New()
		require.NoError(t, err)
		b.start(config(e))
		b.insert("We decided to use Postgres instead of MongoDB because the reports need joins.", "ok", " \n ")
		b.idle(20 * time.Second)
		b.requireInvariants()
		require.Equal(t, []string{"staged", "empty", "skipped"}, query[[]string](b, "select array_agg(outcome order by capture_id) from backfill.extraction"))
		require.Equal(t, "decision", query[string](b, "select kind from backfill.staging"))
		require.Contains(t, query[[]string](b, "select entities from backfill.staging"), "postgres")
	})

	t.Run("ACopyIsCutIntoBatchesAndWokenOnce", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		const n = 50_000
		_, err := b.pool.CopyFrom(context.Background(), pgx.Identifier{"backfill", "intake"}, []string{"source", "text"},
			pgx.CopyFromSlice(n, func(i int) ([]any, error) { return []any{"test", fmt.Sprint("capture ", i)}, nil }))
		require.NoError(t, err)
		require.Equal(t, int64(50), query[int64](b, "select count(*) from backfill.batch where captures = 1000 and prio = 0"))
		require.Equal(t, int64(1), query[int64](b, "select count(*) from river.river_job where kind = 'drain' and state = 'available'"))
		b.start(config(extractorFunc(whole)))
		b.idle(2 * time.Minute)
		b.requireInvariants()
		require.Equal(t, int64(n), query[int64](b, "select count(*) from backfill.staging"))
	})

	t.Run("ACaptureInTwoBatchesIsWorkedOnce", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.insert("one", "two", "three")
		b.exec(`insert into backfill.batch (extractor_id, version, prio, mode, ids, captures)
			select extractor_id, version, prio, 'replace', '{[2,4)}', 2 from backfill.batch`)
		var calls atomic.Int64
		b.start(config(extractorFunc(func(t extract.Turn) []extract.Candidate { calls.Add(1); return whole(t) })))
		b.idle(20 * time.Second)
		b.requireInvariants()
		require.Equal(t, int64(3), calls.Load())
	})

	t.Run("BatchesOfAnotherVersionAreLeftAlone", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.insert("old")
		b.exec("select backfill.register_extractor('heuristic', 'another')")
		b.insert("new")
		b.start(config(extractorFunc(whole)))
		b.await(20*time.Second, "select exists (select from river.river_job where kind = 'drain' and state = 'completed')")
		require.Equal(t, []string{"another pending", "another pending"}, query[[]string](b, "select array_agg(version || ' ' || state) from backfill.batch"))
	})

	t.Run("ALiveTurnPassesARun", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.exec("update backfill.extractor set on_insert = false, batch_size = 1")
		b.insert("old 1", "old 2", "old 3", "old 4")
		b.exec("update backfill.extractor set on_insert = true where id = 1")
		run, err := b.store.CreateRun(context.Background(), store.NewRun{Kind: store.KindRun, Extractor: 1, Reprocess: store.ReprocessMissing})
		require.NoError(t, err)
		require.NoError(t, b.store.Plan(context.Background(), run))
		// Every drain that may work the run is held up in it.
		entered, release := make(chan struct{}, 10), make(chan struct{})
		cfg := config(extractorFunc(func(t extract.Turn) []extract.Candidate {
			if strings.HasPrefix(t.Text, "old") {
				entered <- struct{}{}
				<-release
			}
			return whole(t)
		}))
		cfg.Workers = 2
		b.start(cfg)
		<-entered
		b.insert("live")
		b.await(20*time.Second, "select exists (select from backfill.staging where content = 'live')")
		close(release)
		b.await(20*time.Second, "select finished_at is not null from backfill.run")
		b.requireInvariants()
	})
}

// TestPoison puts captures that go wrong, each in its own way, among 999
// neighbours.
func TestPoison(t *testing.T) {
	t.Parallel()
	texts := func(poison ...string) []string {
		all := make([]string, 0, 1000)
		for i := range 1000 - len(poison) {
			all = append(all, fmt.Sprint("neighbour ", i))
		}
		return append(all[:500], append(poison, all[500:]...)...)
	}
	outcomes := func(b *testBundle) map[string]int64 {
		rows, err := b.pool.Query(context.Background(), "select outcome || ' ' || state, count(*) from backfill.extraction group by 1")
		require.NoError(b, err)
		got := map[string]int64{}
		var k string
		var n int64
		_, err = pgx.ForEachRow(rows, []any{&k, &n}, func() error { got[k] = n; return nil })
		require.NoError(b, err)
		return got
	}

	t.Run("PanicIsRetriedThenDead", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		const secret = "my key is hunter2"
		cfg := config(extractorFunc(func(t extract.Turn) []extract.Candidate {
			if t.Text == secret {
				panic(t.Text)
			}
			return whole(t)
		}))
		cfg.MaxAttempts = 3
		b.insert(texts(secret)...)
		b.start(cfg)
		b.await(time.Minute, `select exists (select from backfill.extraction where state = 'dead')
			and not exists (select from backfill.batch where due is not null)`)
		b.requireInvariants()
		require.Equal(t, map[string]int64{"staged done": 999, "panic dead": 1}, outcomes(b))
		require.Equal(t, int16(3), query[int16](b, "select attempts from backfill.extraction where state = 'dead'"))
		require.Equal(t, int64(0), query[int64](b, `select count(*) from (
			select x::text as t from backfill.extraction x union all select b::text from backfill.batch b
			union all select j::text from river.river_job j) all_rows where t like '%hunter2%'`), "text of a capture outside intake")

		// Tried again once the cause is gone.
		b.exec("update backfill.intake set meta = '{}'") // touches no text: queues nothing
		run, err := b.store.CreateRun(context.Background(), store.NewRun{Kind: store.KindRun, Extractor: 1, Reprocess: store.ReprocessFailed})
		require.NoError(t, err)
		require.NoError(t, b.store.Plan(context.Background(), run))
		require.Equal(t, int32(1), query[int32](b, "select captures from backfill.batch where run_id = $1", run))
	})

	t.Run("UnstorableCandidatesAreStagedClean", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.insert(texts("NUL", "cut rune")...)
		b.start(config(extractorFunc(func(t extract.Turn) []extract.Candidate {
			c := whole(t)
			switch t.Text {
			case "NUL":
				c[0].Content, c[0].Entities = "a\x00b", []string{"n\x00l", "n\x00l"}
				c[0].Meta = map[string]any{"k\x00": []any{"v\x00"}}
			case "cut rune":
				c[0].Content, c[0].Evidence, c[0].Tags = "caf\xc3", "\xa9t", []string{"fact\xff"}
			}
			return c
		})))
		b.idle(time.Minute)
		b.requireInvariants()
		require.Equal(t, map[string]int64{"staged done": 1000}, outcomes(b))
		require.Equal(t, int64(1), query[int64](b, `select count(*) from backfill.staging where content = E'a\uFFFDb' and meta = E'{"k\uFFFD": ["v\uFFFD"]}'`))
		require.Equal(t, int64(1), query[int64](b, `select count(*) from backfill.staging where content = E'caf\uFFFD'`))
	})

	t.Run("SecretsAreRedacted", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		token := "ghp_" + strings.Repeat("aB3dE5gH7j", 4)[:36]
		b.exec("insert into backfill.intake (source, text, meta) values ('test', $1, jsonb_build_object('title', $2::text, 'session', 'S1'))",
			"The deploy token is "+token+" and it lives in the vault.", "rotate "+token)
		b.start(config(extractorFunc(func(t extract.Turn) []extract.Candidate {
			c := whole(t)
			c[0].Entities = append(c[0].Entities, strings.ToLower(token), token)
			return c
		})))
		b.idle(20 * time.Second)
		b.requireInvariants()
		require.NotZero(t, query[int16](b, "select redactions from backfill.extraction"))
		require.Equal(t, "rotate [REDACTED:token] S1", query[string](b, "select (meta->>'title') || ' ' || (meta->>'session') from backfill.staging"))
		require.Equal(t, int64(0), query[int64](b, `select count(*) from (
			select s::text as t from backfill.staging s union all select n::text from backfill.entity n) all_rows where t like '%' || $1 || '%'`, token))
	})

	t.Run("LongTexts", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		e, err := heuristic.New()
		require.NoError(t, err)
		b.insert(texts(strings.Repeat("We decided to use Postgres because it is boring. ", 5<<20/49), strings.Repeat("x", 9<<20))...)
		b.start(config(e))
		b.idle(2 * time.Minute)
		b.requireInvariants()
		got := outcomes(b)
		require.Equal(t, int64(1), got["too_long dead"], got)
		require.Equal(t, int64(1), got["staged done"], got)
		require.Equal(t, int64(998), got["empty done"], got)
	})

	t.Run("ARefusedRowIsSetAside", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.exec("alter table backfill.staging add constraint no_poison check (content <> 'poison')")
		b.insert(texts("poison")...)
		b.start(config(extractorFunc(whole)))
		b.idle(time.Minute)
		b.requireInvariants()
		require.Equal(t, map[string]int64{"staged done": 999, "data_error dead": 1}, outcomes(b))
		require.Equal(t, "SQLSTATE 23514", query[string](b, "select error from backfill.extraction where state = 'dead'"))
	})
}

// TestChange changes captures while a worker has them in hand.
func TestChange(t *testing.T) {
	t.Parallel()
	// held starts a worker that reads the capture and then waits.
	held := func(b *testBundle) (release func()) {
		entered, gate := make(chan struct{}), make(chan struct{})
		var once atomic.Bool
		b.insert("first text")
		b.start(config(extractorFunc(func(t extract.Turn) []extract.Candidate {
			if once.CompareAndSwap(false, true) {
				close(entered)
				<-gate
			}
			return whole(t)
		})))
		<-entered
		return func() { close(gate) }
	}

	t.Run("UpdateWhileLeased", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		release := held(b)
		b.exec("update backfill.intake set text = 'second text'")
		release()
		b.idle(20 * time.Second)
		b.requireInvariants()
		require.Equal(t, "second text", query[string](b, "select content from backfill.staging"))
	})

	t.Run("UpdateOfARecordedCaptureInASlotThatIsNotLive", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.start(config(extractorFunc(whole)))
		b.insert("first text")
		b.idle(20 * time.Second)
		b.exec("update backfill.extractor set on_insert = false")
		b.exec("update backfill.intake set text = 'second text'")
		b.await(20*time.Second, "select exists (select from backfill.staging where content = 'second text')")
		b.idle(20 * time.Second)
		require.Equal(t, int64(1), query[int64](b, "select count(*) from backfill.staging"))
	})

	t.Run("DeleteWhileLeased", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		release := held(b)
		b.exec("delete from backfill.intake")
		release()
		b.idle(20 * time.Second)
		b.requireInvariants()
		require.Equal(t, int64(0), query[int64](b, `select count(*) from (
			select s::text as t from backfill.staging s union all select n::text from backfill.entity n
			union all select x::text from backfill.extraction x) all_rows where t like '%first text%'`))
		require.Equal(t, "deleted", query[string](b, "select state from backfill.extraction where extractor_id = 1"))
	})

	t.Run("ADeletedCaptureComesBackUnderItsID", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.start(config(extractorFunc(whole)))
		b.insert("one", "two")
		b.idle(20 * time.Second)
		b.exec("delete from backfill.intake where id = 1")
		b.exec("insert into backfill.intake (id, source, text) values (1, 'test', 'one again')")
		b.idle(20 * time.Second)
		b.requireInvariants()
		require.Equal(t, "one again", query[string](b, "select content from backfill.staging where capture_id = 1"))
	})

	t.Run("ALostLeaseWritesNothing", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		release := held(b)
		// Somebody else claims the batch and is done with it.
		b.exec("update backfill.batch set lease_no = lease_no + 1, state = 'cancelled', due = null")
		stopped := b.start(config(extractorFunc(whole))) // a second worker changes nothing
		release()
		b.insert("later")
		b.await(20*time.Second, "select exists (select from backfill.staging where content = 'later')")
		stopped()
		require.Equal(t, int64(1), query[int64](b, "select count(*) from backfill.extraction"))
	})

	t.Run("AGrowingReplyIsDebounced", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.start(config(extractorFunc(whole)))
		b.insert("0")
		b.idle(20 * time.Second)
		for i := 1; i <= 20; i++ {
			b.exec("update backfill.intake set text = $1", fmt.Sprint(i))
		}
		b.idle(20 * time.Second)
		b.requireInvariants()
		require.Equal(t, "20", query[string](b, "select content from backfill.staging"))
		require.Less(t, query[int64](b, "select count(*) from backfill.batch where mode = 'replace'"), int64(5))
	})
}

// TestStop stops a client in the middle of a batch.
func TestStop(t *testing.T) {
	t.Parallel()
	b := setup(t)
	texts := make([]string, 1000)
	for i := range texts {
		texts[i] = fmt.Sprint("capture ", i)
	}
	b.insert(texts...)
	entered, gate := make(chan struct{}), make(chan struct{})
	var calls atomic.Int64
	stop := b.start(config(extractorFunc(func(t extract.Turn) []extract.Candidate {
		if calls.Add(1) == 300 {
			close(entered)
			<-gate
		}
		return whole(t)
	})))
	<-entered
	time.AfterFunc(100*time.Millisecond, func() { close(gate) })
	began := time.Now()
	stop()
	require.Less(t, time.Since(began), 5*time.Second)
	require.Equal(t, int64(300), query[int64](b, "select count(*) from backfill.extraction"), "what was done is kept")
	require.Equal(t, int32(0), query[int32](b, "select attempts from backfill.batch"), "the attempt is given back")
	require.Equal(t, "pending", query[string](b, "select state from backfill.batch"))
	require.Equal(t, int64(700), query[int64](b, "select backfill.size(ids) from backfill.batch"))

	b.start(config(extractorFunc(whole)))
	b.idle(20 * time.Second)
	b.requireInvariants()
	require.Equal(t, int64(1000), query[int64](b, "select count(*) from backfill.staging"))
}

// A queue that goes on is worked also by whoever did not hear that it does; one that
// somebody keeps paused is not.
func TestQueueGoesOnUnheard(t *testing.T) {
	t.Parallel()
	b := setup(t)
	client, err := jobs.New(b.pool, config(extractorFunc(whole)))
	require.NoError(t, err)
	require.NoError(t, client.Start(context.Background()))
	t.Cleanup(func() { require.NoError(t, client.Stop(context.Background())) })
	b.insert("one")
	b.idle(20 * time.Second)
	events, unsubscribe := client.River().Subscribe(river.EventKindQueuePaused)
	defer unsubscribe()
	require.NoError(t, client.River().QueuePause(t.Context(), "heuristic", nil))
	<-events
	b.await(20*time.Second, "select not exists (select from river.river_job where kind = 'drain' and state = 'running')")
	b.insert("two")
	require.Never(t, func() bool { return query[bool](b, "select count(*) > 1 from backfill.extraction") }, 7*time.Second, 100*time.Millisecond)
	b.exec("update river.river_queue set paused_at = null where name = 'heuristic'") // and nobody is told
	b.idle(20 * time.Second)
}
