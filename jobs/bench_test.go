package jobs_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/extract"
	"github.com/justfortytwo/backfill/heuristic"
	"github.com/justfortytwo/backfill/internal/pgtest"
	"github.com/justfortytwo/backfill/jobs"
	"github.com/justfortytwo/backfill/migrations"
	"github.com/justfortytwo/backfill/store"
)

const (
	benchCaptures = 20_000
	// One job per capture is so much slower that a part of them tells its pace.
	benchJobs = 2_000
)

// BenchmarkDrain measures draining against two other ways to the same rows, each
// round one after the other on databases of their own, so that the ratios hold on
// a machine whose speed drifts:
//
//   - floor: nothing but binary COPYs of the very rows the drain has written,
//     encoded beforehand, a transaction for each thousand captures, on two
//     connections;
//   - jobs: a River job for each capture that extracts it and inserts its rows.
//
// It reports medians over the rounds.
func BenchmarkDrain(b *testing.B) {
	e, err := heuristic.New()
	require.NoError(b, err)
	texts := corpus(benchCaptures)
	var drains, floors, perJobs, toFloor, toJobs, walToFloor []float64
	for b.Loop() {
		pool := pgtest.New(b)
		drain, drainWAL := benchDrain(b, pool, e, texts)
		floor, floorWAL := benchFloor(b, pool)
		perJob := benchPerJob(b, pgtest.New(b), e, texts[:benchJobs])
		drains, floors, perJobs = append(drains, drain), append(floors, floor), append(perJobs, perJob)
		toFloor, toJobs = append(toFloor, drain/floor), append(toJobs, drain/perJob)
		walToFloor = append(walToFloor, drainWAL/floorWAL)
	}
	b.ReportMetric(0, "ns/op") // a round is no operation
	for unit, v := range map[string][]float64{
		"drain-captures/s": drains, "floor-captures/s": floors, "jobs-captures/s": perJobs,
		"drain/floor": toFloor, "drain/jobs": toJobs, "drain/floor-WAL": walToFloor,
	} {
		slices.Sort(v)
		b.ReportMetric(v[len(v)/2], unit)
	}
}

// benchDrain returns captures per second and bytes of WAL per capture.
func benchDrain(b *testing.B, pool *pgxpool.Pool, e extract.SalienceExtractor, texts []string) (rate, wal float64) {
	b.Helper()
	ctx := context.Background()
	_, err := pool.CopyFrom(ctx, pgx.Identifier{"backfill", "intake"}, []string{"source", "text"},
		pgx.CopyFromSlice(len(texts), func(i int) ([]any, error) { return []any{"bench", texts[i]}, nil }))
	require.NoError(b, err)
	settle(b, pool)
	cfg := config(e)
	cfg.Workers = 3 // two for the backlog, one kept for live turns
	client, err := jobs.New(pool, cfg)
	require.NoError(b, err)
	from, began := lsn(b, pool), time.Now()
	require.NoError(b, client.Start(ctx))
	st := store.New(pool)
	for {
		n, err := st.Unfinished(ctx, 1, heuristic.Version)
		require.NoError(b, err)
		if n == 0 {
			break
		}
		<-time.After(5 * time.Millisecond)
	}
	took := time.Since(began)
	wal = lsn(b, pool) - from
	require.NoError(b, client.Stop(ctx))
	return float64(len(texts)) / took.Seconds(), wal / float64(len(texts))
}

// benchFloor copies the rows that the drain wrote into empty tables of the same
// shape.
func benchFloor(b *testing.B, pool *pgxpool.Pool) (rate, wal float64) {
	b.Helper()
	ctx := context.Background()
	tables := []string{"extraction", "staging", "entity"}
	type chunk [3][]byte
	chunks := make([]chunk, benchCaptures/1000)
	for t, table := range tables {
		_, err := pool.Exec(ctx, fmt.Sprintf("create table backfill.floor_%s (like backfill.%s including all)", table, table))
		require.NoError(b, err)
		for i := range chunks {
			var buf bytes.Buffer
			conn, err := pool.Acquire(ctx)
			require.NoError(b, err)
			_, err = conn.Conn().PgConn().CopyTo(ctx, &buf, fmt.Sprintf(
				"copy (select * from backfill.%s where capture_id > %d and capture_id <= %d order by 1, 2, 3) to stdout binary", table, i*1000, (i+1)*1000))
			conn.Release()
			require.NoError(b, err)
			chunks[i][t] = buf.Bytes()
		}
	}
	settle(b, pool)
	from, began := lsn(b, pool), time.Now()
	work := make(chan chunk, len(chunks))
	for _, c := range chunks {
		work <- c
	}
	close(work)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for c := range work {
				err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
					for t, table := range tables {
						if _, err := tx.Conn().PgConn().CopyFrom(ctx, bytes.NewReader(c[t]), "copy backfill.floor_"+table+" from stdin binary"); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	return benchCaptures / took.Seconds(), (lsn(b, pool) - from) / benchCaptures
}

// captureArgs is the job of the obvious design: one for each capture.
type captureArgs struct {
	ID int64 `json:"id"`
}

func (captureArgs) Kind() string { return "capture" }

type captureWorker struct {
	river.WorkerDefaults[captureArgs]
	pool *pgxpool.Pool
	e    extract.SalienceExtractor
}

func (w *captureWorker) Work(ctx context.Context, job *river.Job[captureArgs]) error {
	return pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		var text string
		if err := tx.QueryRow(ctx, "select text from backfill.intake where id = $1", job.Args.ID).Scan(&text); err != nil {
			return err
		}
		found, err := w.e.ExtractSalient(ctx, extract.Turn{Text: text, Source: "bench"}, extract.Options{})
		if err != nil {
			return err
		}
		batch := &pgx.Batch{}
		batch.Queue("insert into backfill.extraction (capture_id, extractor_id, state, outcome, version) values ($1, 1, 'done', 'staged', '1')", job.Args.ID)
		for i, c := range found {
			batch.Queue(`insert into backfill.staging (capture_id, extractor_id, ord, content, kind, salience, source, observed, tags, evidence, fingerprint, entities, version)
				values ($1, 1, $2, $3, $4, $5, $6, $7, $8, $9, gen_random_uuid(), $10, '1')`,
				job.Args.ID, i+1, c.Content, c.Kind, c.Salience, c.Source, c.Observed, c.Tags, c.Evidence, append([]string{}, c.Entities...))
			for _, n := range c.Entities {
				batch.Queue("insert into backfill.entity values ($1, 1, $2, $3)", job.Args.ID, i+1, n)
			}
		}
		return tx.SendBatch(ctx, batch).Close()
	})
}

func benchPerJob(b *testing.B, pool *pgxpool.Pool, e extract.SalienceExtractor, texts []string) (rate float64) {
	b.Helper()
	ctx := context.Background()
	_, err := pool.Exec(ctx, "update backfill.extractor set on_insert = false")
	require.NoError(b, err)
	_, err = pool.CopyFrom(ctx, pgx.Identifier{"backfill", "intake"}, []string{"source", "text"},
		pgx.CopyFromSlice(len(texts), func(i int) ([]any, error) { return []any{"bench", texts[i]}, nil }))
	require.NoError(b, err)
	workers := river.NewWorkers()
	river.AddWorker(workers, &captureWorker{pool: pool, e: e})
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Schema: migrations.RiverSchema, Workers: workers, Queues: map[string]river.QueueConfig{"capture": {MaxWorkers: 8}},
		FetchCooldown: time.Millisecond,
	})
	require.NoError(b, err)
	params := make([]river.InsertManyParams, len(texts))
	for i := range params {
		params[i] = river.InsertManyParams{Args: captureArgs{ID: int64(i + 1)}, InsertOpts: &river.InsertOpts{Queue: "capture"}}
	}
	done, cancel := client.Subscribe(river.EventKindJobCompleted)
	defer cancel()
	began := time.Now()
	_, err = client.InsertManyFast(ctx, params)
	require.NoError(b, err)
	require.NoError(b, client.Start(ctx))
	for range texts {
		<-done
	}
	took := time.Since(began)
	require.NoError(b, client.Stop(ctx))
	return float64(len(texts)) / took.Seconds()
}

// settle writes out what came before, so that it is not on this account.
func settle(b *testing.B, pool *pgxpool.Pool) {
	b.Helper()
	_, err := pool.Exec(context.Background(), "vacuum analyze backfill.intake")
	require.NoError(b, err)
	_, err = pool.Exec(context.Background(), "checkpoint")
	require.NoError(b, err)
}

func lsn(b *testing.B, pool *pgxpool.Pool) (bytes float64) {
	b.Helper()
	require.NoError(b, pool.QueryRow(context.Background(), "select (pg_current_wal_insert_lsn() - '0/0')::float8").Scan(&bytes))
	return bytes
}

// corpus is conversation-like captures of 650 bytes on average, about a third of
// which hold something durable.
func corpus(n int) []string {
	rng := rand.New(rand.NewPCG(1, 2))
	people := strings.Fields("Nadia Elias Priya Tomas Ingrid Kofi Lena Marek Aiko Ruben")
	tools := strings.Fields("Postgres Redis Kafka Grafana Terraform Ansible nginx SQLite Vault Nomad")
	filler := []string{
		"Thanks, that makes sense.", "Can you look at the log once more?", "I am not sure what happened there.",
		"The build took a while again and then went through.", "Let me paste the output in a moment.",
		"That could be it, or it could be the cache.", "Maybe we should look at it tomorrow.",
		"What would you do in this case?", "It prints the same thing as before, only slower.",
	}
	durable := []string{
		"We decided to use %[2]s instead of %[3]s because the reports need joins.",
		"%[1]s prefers short answers and wants the command first.",
		"The deploy failed because %[2]s ran out of disk, fixed by rotating the logs.",
		"%[2]s listens on port %[4]d in production and is restarted every %[5]d days.",
		"To restart %[2]s, first drain it, then run the migration, finally start the new one.",
	}
	pick := func(from []string) string { return from[rng.IntN(len(from))] }
	texts := make([]string, n)
	for i := range texts {
		var user, assistant strings.Builder
		for user.Len() < 150+rng.IntN(200) {
			fmt.Fprintf(&user, "%s ", pick(filler))
		}
		if rng.IntN(3) == 0 {
			fmt.Fprintf(&user, pick(durable)+" ", pick(people), pick(tools), pick(tools), 1000+rng.IntN(9000), 1+rng.IntN(90))
		}
		for assistant.Len() < 200+rng.IntN(300) {
			fmt.Fprintf(&assistant, "%s ", pick(filler))
		}
		texts[i] = fmt.Sprintf("User: %s(%d)\n\nAssistant: %s", user.String(), i, assistant.String())
	}
	return texts
}
