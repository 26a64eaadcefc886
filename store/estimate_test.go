package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// mixed has captures in every state a run can find them in, of two sources, a day
// apart from 1 January on; those with an even id are known to have occurred then.
func mixed(t *testing.T, captures int) *testBundle {
	t.Helper()
	b := planned(t, 0)
	b.exec(`insert into backfill.intake (source, text, occurred_at, created_at)
		select case when g % 3 = 0 then 'other' else 'test' end, repeat('x', g),
		    case when g % 2 = 0 then day end, case when g % 2 = 0 then '2030-01-01' else day end
		from (select g, timestamptz '2026-01-01Z' + (g - 1) * interval '1 day' as day from generate_series(1, $1::integer) g) g`, captures)
	b.exec(`insert into backfill.extraction (capture_id, extractor_id, version, state, outcome, claimed_upto, handed_upto)
		select id, 1, case when id % 5 = 0 then 'older' else $1 end,
		    case when id % 7 = 0 then 'dead' when id % 11 = 0 then 'queued' else 'done' end,
		    case when id % 7 = 0 then 'panic' when id % 11 = 0 then null else 'staged' end,
		    case when id % 10 = 0 then 1 else 0 end, case when id % 20 = 0 then 1 else 0 end
		from backfill.intake where id % 4 <> 0`, testVersion)
	b.exec(`insert into backfill.staging (capture_id, extractor_id, ord, salience, fingerprint, content, version)
		select capture_id, 1, ord, 0.5, gen_random_uuid(), 'fact', version
		from backfill.extraction, generate_series(1, 2) ord where outcome = 'staged'`)
	// Some are on their way already.
	b.exec(`insert into backfill.batch (extractor_id, version, prio, ids, captures) values (1, $1, 0, '{[15,17],[40,44]}', 8)`, testVersion)
	return b
}

// TestEstimate: what is announced is what is planned, capture by capture and batch
// by batch, for every mode and filter; and it is what was asked for.
func TestEstimate(t *testing.T) {
	t.Parallel()
	const captures = 130
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	all := func(int64) bool { return true }
	filters := map[string]struct {
		filter Filter
		ids    []int64
		order  Order
		want   func(id int64) bool
	}{
		"none":    {want: all},
		"newest":  {order: Newest, want: all},
		"since":   {filter: Filter{Since: day(30)}, want: func(id int64) bool { return id >= 30 }},
		"until":   {filter: Filter{Until: day(30)}, want: func(id int64) bool { return id < 30 }},
		"days":    {filter: Filter{Since: day(10), Until: day(60)}, order: Newest, want: func(id int64) bool { return id >= 10 && id < 60 }},
		"source":  {filter: Filter{Sources: []string{"other"}}, want: func(id int64) bool { return id%3 == 0 }},
		"sources": {filter: Filter{Sources: []string{"other", "none"}}, want: func(id int64) bool { return id%3 == 0 }},
		"ids":     {ids: []int64{90, 3, 4, 4, 5, 7, 11, 55, 9999}, want: func(id int64) bool { return slices.Contains([]int64{3, 4, 5, 7, 11, 55, 90}, id) }},
		"ids and source": {
			ids: []int64{3, 4, 5, 6}, order: Newest, filter: Filter{Sources: []string{"other"}},
			want: func(id int64) bool { return id == 3 || id == 6 },
		},
		"no ids": {ids: []int64{}, want: func(int64) bool { return false }},
	}
	modes := map[Reprocess]func(id int64) bool{
		ReprocessMissing: func(id int64) bool { return id%4 == 0 || id%7 != 0 && id%11 == 0 },
		ReprocessFailed:  func(id int64) bool { return id%4 != 0 && id%7 == 0 },
		ReprocessStale:   func(id int64) bool { return id%4 != 0 && id%7 != 0 && id%11 != 0 && id%5 == 0 },
		ReprocessAll:     all,
	}
	open := func(id int64) bool { return id >= 15 && id <= 17 || id >= 40 && id <= 44 }
	for mode, inMode := range modes {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			b := mixed(t, captures)
			for name, f := range filters {
				for _, limit := range []int64{0, 1, 7} {
					for _, size := range []int{0, 3} {
						f.filter.Limit = limit
						r := NewRun{
							Kind: KindRun, Extractor: 1, Reprocess: mode, Filter: f.filter, IDs: f.ids, Order: f.order, Settings: Settings{BatchSize: size},
						}
						var want []int64
						for id := range int64(captures) {
							if id++; inMode(id) && f.want(id) && (mode == ReprocessAll || !open(id)) {
								want = append(want, id)
							}
						}
						if f.order == Newest {
							slices.Reverse(want)
						}
						if limit > 0 {
							want = want[:min(len(want), int(limit))]
						}
						slices.Sort(want)
						b.compare(fmt.Sprintf("%s, limit %d, batches of %d", name, limit, size), r, want)
					}
				}
			}
		})
	}
}

// compare plans a run in short steps, and then takes it back.
func (b *testBundle) compare(name string, r NewRun, want []int64) {
	b.Helper()
	before := b.contents()
	e, err := b.store.Estimate(b.Context(), r)
	require.NoError(b, err, name)
	picks, err := b.store.Picks(b.Context(), r)
	require.NoError(b, err, name)
	require.Equal(b, before, b.contents(), "%s: nothing is written", name)
	if r.Order == Newest {
		slices.Reverse(picks)
	}
	require.Equal(b, want, picks, name)

	run, err := b.store.CreateRun(b.Context(), r)
	require.NoError(b, err, name)
	candidates := query[[]int64](b, `select array[count(*) filter (where s.ord > x.claimed_upto), count(*) filter (where s.ord <= x.claimed_upto)]
		from backfill.staging s join backfill.extraction x using (capture_id, extractor_id) where s.capture_id = any ($1)`, want)
	for more := true; more; {
		more, err = b.store.planStep(b.Context(), run, step)
		require.NoError(b, err, name)
	}
	planned := query[[]int64](b, `select coalesce(array_agg(c order by c), '{}') from backfill.batch, unnest(ids) r, generate_series(lower(r), upper(r) - 1) c
		where run_id = $1`, run)
	require.Equal(b, append([]int64{}, want...), planned, name)
	if !r.Reprocess.Replaces() {
		candidates = []int64{0, 0}
	}
	require.Equal(b, Estimate{
		Captures: int64(len(want)), Batches: b.run(run).Batches, Bytes: sum(want), Replaced: candidates[0], Kept: candidates[1],
	}, e, "%s: the id is the length", name)

	b.exec("delete from backfill.batch where run_id = $1", run)
	b.exec("update backfill.extraction set state = 'dead' where state = 'queued' and outcome = 'panic'")
	b.exec("delete from backfill.run_event")
	b.exec("delete from backfill.run")
}

func sum(ids []int64) (n int64) {
	for _, id := range ids {
		n += id
	}
	return n
}

// contents is a hash of everything that a run could change.
func (b *testBundle) contents() string {
	b.Helper()
	return query[string](b, `select md5(concat(
		(select string_agg(r::text, '' order by id) from backfill.run r), (select string_agg(b::text, '' order by id) from backfill.batch b),
		(select string_agg(x::text, '' order by capture_id) from backfill.extraction x),
		(select string_agg(s::text, '' order by capture_id, ord) from backfill.staging s), (select count(*) from river.river_job),
		(select last_value from backfill.run_id_seq), (select last_value from backfill.batch_id_seq)))`)
}

// The steps a long run takes come to what one step would.
func TestEstimateSteps(t *testing.T) {
	t.Parallel()
	b := mixed(t, 130)
	for _, order := range []Order{Oldest, Newest} {
		for _, ids := range [][]int64{nil, {1, 2, 3, 20, 21, 22, 23, 24, 90, 100, 101}} {
			r := NewRun{Kind: KindRun, Extractor: 1, Reprocess: ReprocessAll, Order: order, IDs: ids}
			var want []int64
			for _, by := range []reach{step, {look: 7, take: 4}, {look: 3, take: 100}, {look: 50, take: 1}} {
				sc, err := b.store.scopeOf(t.Context(), r)
				require.NoError(t, err)
				var got []int64
				err = b.store.walkScope(t.Context(), sc, by, func(tx pgx.Tx, sc *scope, w span, most int64) (tk taken, err error) {
					var ids []int64
					err = tx.QueryRow(t.Context(), sc.pick(w, " select coalesce(array_agg(id order by id "+sc.direction()+"), '{}') from picked"), sc.args(w, most)).Scan(&ids)
					got = append(got, ids...)
					if len(ids) > 0 {
						tk = taken{n: int64(len(ids)), first: slices.Min(ids), last: slices.Max(ids)}
					}
					return tk, err
				})
				require.NoError(t, err)
				if want == nil {
					want = got
				}
				require.Equal(t, want, got)
			}
			require.NotEmpty(t, want)
		}
	}
}

// The gap is found in the indexes, without a look at the tables, once those are
// vacuumed.
func TestGapByIndex(t *testing.T) {
	t.Parallel()
	b := planned(t, 20_000)
	b.exec("insert into backfill.extraction (capture_id, extractor_id, version, state, outcome) select id, 1, $1, 'done', 'empty' from backfill.intake", testVersion)
	// Transactions elsewhere can keep a vacuum from its aim.
	require.Eventually(t, func() bool {
		b.exec("vacuum analyze backfill.intake")
		b.exec("vacuum analyze backfill.extraction")
		return query[bool](b, "select bool_and(relallvisible = relpages) from pg_class where oid in ('backfill.intake'::regclass, 'backfill.extraction'::regclass)")
	}, 20*time.Second, 100*time.Millisecond)
	for _, kind := range []string{KindRun, KindNightly} {
		sc, err := b.store.scopeOf(t.Context(), NewRun{Kind: kind, Extractor: 1, Reprocess: ReprocessMissing})
		require.NoError(t, err)
		err = b.store.walkScope(t.Context(), sc, step, func(tx pgx.Tx, sc *scope, w span, most int64) (taken, error) {
			rows, err := tx.Query(t.Context(), "explain (analyze, costs off, timing off, summary off) "+sc.pick(w, " select count(*) from picked"), sc.args(w, most))
			require.NoError(t, err)
			lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
			require.NoError(t, err)
			plan := strings.Join(lines, "\n")
			t.Log(plan)
			require.Contains(t, plan, "Index Only Scan using intake_pkey")
			require.Contains(t, plan, "Index Only Scan using extraction_pkey")
			require.NotRegexp(t, "Heap Fetches: [1-9]", plan)
			require.NotRegexp(t, "Seq Scan on (intake|extraction)", plan)
			return taken{}, nil
		})
		require.NoError(t, err)
	}
}

// A sample is the same every time, has about the share that was asked for, and
// holds every smaller one.
func TestSample(t *testing.T) {
	t.Parallel()
	b := planned(t, 20_000)
	draw := func(share float64) []int64 {
		ids, err := b.store.Picks(t.Context(), NewRun{Kind: KindRun, Extractor: 1, Reprocess: ReprocessMissing, Filter: Filter{Sample: share}})
		require.NoError(t, err)
		return ids
	}
	one, five := draw(0.01), draw(0.05)
	require.Equal(t, one, draw(0.01))
	require.InDelta(t, 200, len(one), 50)
	require.InDelta(t, 1000, len(five), 120)
	for _, id := range one {
		require.Contains(t, five, id)
	}
	require.Len(t, draw(1), 20_000)

	run, err := b.store.CreateRun(t.Context(), NewRun{Kind: KindRun, Extractor: 1, Reprocess: ReprocessMissing, Filter: Filter{Sample: 0.01}})
	require.NoError(t, err)
	require.NoError(t, b.store.Plan(t.Context(), run))
	require.Equal(t, int64(len(one)), b.run(run).Total)
}

// What is not known is not zero.
func TestPace(t *testing.T) {
	t.Parallel()
	b := planned(t, 40)
	b.exec("update backfill.extractor set version = 'm' where id = 2")
	llm, err := b.store.Extractor(t.Context(), "llm")
	require.NoError(t, err)
	p, err := b.store.Pace(t.Context(), llm)
	require.NoError(t, err)
	require.Equal(t, Pace{}, p)
	prompt, completion := p.Tokens(Estimate{Captures: 3})
	require.Nil(t, prompt)
	require.Nil(t, completion)

	b.exec(`insert into backfill.run (kind, extractor_id, reprocess, state, finished_at) values
		('run', 2, 'all', 'succeeded', now()), ('run', 2, 'all', 'succeeded', now()), ('run', 1, 'all', 'succeeded', now())`)
	b.exec(`insert into backfill.batch (extractor_id, version, prio, state, due, run_id, captures, ids, started_at, finished_at) values
		(2, 'm', 2, 'done', null, 1, 30, '{}', now(), now() + interval '10 seconds'),
		(2, 'm', 2, 'done', null, 1, 30, '{}', now() + interval '10 seconds', now() + interval '20 seconds'),
		(2, 'm', 2, 'done', null, 2, 900, '{}', now(), now() + interval '1 second')`)
	b.exec("insert into backfill.run_event (run_id, who, from_state, to_state, reason) values (2, 'me', 'running', 'pausing', 'test')")
	// A thousand tokens of instructions, and a token for every byte; the second call
	// of a capture counts, and those without usage do not.
	b.exec("update backfill.intake set text = repeat('x', id::integer)")
	b.exec(`insert into backfill.llm_call (capture_id, class, prompt_version, prompt_tokens, completion_tokens, cost_microusd)
		select id, 'ok', case when id % 2 = 0 then 'm' else 'other' end, 1000 + id, 50, (3 - id % 2) * (1050 + id) from backfill.intake where id > 1`)
	b.exec(`insert into backfill.llm_call (capture_id, class) values (1, 'timeout')`)
	p, err = b.store.Pace(t.Context(), llm)
	require.NoError(t, err)
	require.InDelta(t, 3, *p.CapturesPerSecond, 1e-9)
	require.InDelta(t, 1000, *p.PromptBase, 1e-6)
	require.InDelta(t, 1, *p.PromptPerByte, 1e-9)
	require.InDelta(t, 3, *p.MicroUSDPerToken, 1e-9, "of this version")
	prompt, completion = p.Tokens(Estimate{Captures: 10, Bytes: 500})
	require.InDelta(t, 10_500, *prompt, 1)
	require.InDelta(t, 500, *completion, 1)

	heuristic, err := b.store.Extractor(t.Context(), "heuristic")
	require.NoError(t, err)
	p, err = b.store.Pace(t.Context(), heuristic)
	require.NoError(t, err)
	require.Equal(t, Pace{}, p, "its run had no batch")
}
