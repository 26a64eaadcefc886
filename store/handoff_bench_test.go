package store

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/internal/pgtest"
)

const (
	benchCaptures  = 50_000 // with two candidates each
	benchConsumers = 2
	benchClaim     = 500 // captures at once
)

// BenchmarkHandOff measures two consumers that claim, read and acknowledge all
// candidates, against a floor on the same tables: two readers that have shared the
// captures out beforehand, SELECT theirs and UPDATE the same columns, without
// leases, locks or a look at what is waiting. It reports medians.
func BenchmarkHandOff(b *testing.B) {
	var rates, floors, ratios []float64
	for b.Loop() {
		rate := benchHandOff(b, func(ctx context.Context, conn *pgx.Conn, _ int) (int, error) {
			total := 0
			for {
				var claim int64
				n, err := readAll(ctx, conn, &claim, "select * from backfill.claim_candidates('bench', $1)", benchClaim)
				if err != nil || n == 0 {
					return total, err
				}
				total += n
				if _, err := conn.Exec(ctx, "select backfill.ack_candidates($1)", claim); err != nil {
					return total, err
				}
			}
		})
		floor := benchHandOff(b, func(ctx context.Context, conn *pgx.Conn, consumer int) (int, error) {
			total := 0
			for from := consumer * benchClaim; from < benchCaptures; from += benchConsumers * benchClaim {
				n, err := readAll(ctx, conn, new(int64), `
					select 0::bigint, s.capture_id, 'heuristic', s.ord, s.content, s.kind, s.salience, s.source, s.observed,
					       s.date, s.tags, s.meta, s.evidence, s.entities, s.version
					from backfill.staging s where s.capture_id > $1 and s.capture_id <= $2`, from, from+benchClaim)
				if err != nil {
					return total, err
				}
				total += n
				if _, err := conn.Exec(ctx, `
					update backfill.extraction set handed_upto = 2, claimed_upto = 2, handed_to = 'bench', handed_at = now(), handoff_due = null
					where capture_id > $1 and capture_id <= $2`, from, from+benchClaim); err != nil {
					return total, err
				}
			}
			return total, nil
		})
		rates, floors, ratios = append(rates, rate), append(floors, floor), append(ratios, rate/floor)
	}
	b.ReportMetric(0, "ns/op") // a round is no operation
	for unit, v := range map[string][]float64{"handoff-candidates/s": rates, "floor-candidates/s": floors, "handoff/floor": ratios} {
		slices.Sort(v)
		b.ReportMetric(v[len(v)/2], unit)
	}
}

// benchHandOff has consumers take every candidate of a new database, and returns
// candidates per second.
func benchHandOff(b *testing.B, consume func(ctx context.Context, conn *pgx.Conn, consumer int) (int, error)) float64 {
	b.Helper()
	ctx := context.Background()
	pool := pgtest.New(b)
	exec := func(sql string, args ...any) {
		_, err := pool.Exec(ctx, sql, args...)
		require.NoError(b, err)
	}
	exec(`insert into backfill.extraction (capture_id, extractor_id, version, state, outcome, handoff_due)
		select g, 1, '1', 'done', 'staged', now() from generate_series(1, $1::integer) g`, benchCaptures)
	exec(`insert into backfill.staging (capture_id, extractor_id, ord, salience, fingerprint, content, kind, source, observed, tags, meta, evidence, entities, version)
		select g, 1, o, 0.5, gen_random_uuid(), 'We decided to use Postgres ' || g || ' instead of MongoDB because the reports need joins.', 'decision',
		    'bench', 'stated', '{decision}', '{"session": "s1"}', 'We decided to use Postgres ' || g || ' instead of MongoDB', '{postgres,mongodb}', '1'
		from generate_series(1, $1::integer) g, generate_series(1, 2) o`, benchCaptures)
	exec("vacuum analyze backfill.extraction, backfill.staging")
	exec("checkpoint")

	began := time.Now()
	got := make([]int, benchConsumers)
	var wg sync.WaitGroup
	for i := range benchConsumers {
		wg.Go(func() {
			err := pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) (err error) {
				got[i], err = consume(ctx, conn.Conn(), i)
				return err
			})
			if err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	require.Equal(b, 2*benchCaptures, got[0]+got[1])
	return 2 * benchCaptures / took.Seconds()
}

// readAll reads every column of every row, as a consumer does.
func readAll(ctx context.Context, conn *pgx.Conn, claim *int64, sql string, args ...any) (n int, err error) {
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		return 0, err
	}
	var c StagedCandidate
	_, err = pgx.ForEachRow(rows, []any{
		claim, &c.CaptureID, &c.Extractor, &c.Ord, &c.Content, &c.Kind, &c.Salience, &c.Source, &c.Observed,
		&c.Date, &c.Tags, &c.Meta, &c.Evidence, &c.Entities, &c.Version,
	}, func() error { n++; return nil })
	return n, err
}
