package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/justfortytwo/backfill/heuristic"
	"github.com/justfortytwo/backfill/internal/pgtest"
	"github.com/justfortytwo/backfill/jobs"
)

// memory is a candidate as a memory service takes it over. Capture, Extractor and
// Ord name it for good: whoever writes it under that key may write it twice.
type memory struct {
	Claim     int64    `db:"claim"`
	Capture   int64    `db:"capture_id"`
	Extractor string   `db:"extractor"`
	Ord       int16    `db:"ord"`
	Content   string   `db:"content"`
	Salience  float32  `db:"salience"`
	Tags      []string `db:"tags"`
}

// consume takes candidates over until ctx ends. It hears of new ones within a
// second, and looks for itself every minute: a notification is a hint.
func consume(ctx context.Context, db *pgx.Conn, remember func(context.Context, memory) error) error {
	if _, err := db.Exec(ctx, "listen backfill_candidates"); err != nil {
		return err
	}
	for {
		for more := true; more; {
			var err error
			if more, err = takeOver(ctx, db, remember); err != nil {
				return err
			}
		}
		wait, cancel := context.WithTimeout(ctx, time.Minute)
		_, err := db.WaitForNotification(wait)
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && wait.Err() == nil {
			return err // the connection is gone: connect again
		}
	}
}

// takeOver claims what waits, up to a hundred captures, and says which of them were
// remembered. It reports whether there may be more.
func takeOver(ctx context.Context, db *pgx.Conn, remember func(context.Context, memory) error) (more bool, err error) {
	rows, err := db.Query(ctx, `
		select claim, capture_id, extractor, ord, content, salience, tags
		from backfill.claim_candidates('memory', 100, '5 minutes')`)
	if err != nil {
		return false, err
	}
	memories, err := pgx.CollectRows(rows, pgx.RowToStructByName[memory])
	if err != nil || len(memories) == 0 {
		return false, err
	}
	claim := memories[0].Claim
	failed := map[int64]bool{}
	for _, m := range memories {
		if err := remember(ctx, m); err != nil {
			failed[m.Capture] = true
		}
	}
	var done []int64
	for _, m := range memories {
		if !failed[m.Capture] {
			done = append(done, m.Capture)
		}
	}
	if len(done) > 0 {
		// Refused if it took longer than the lease and somebody else has them now:
		// then they are written twice, under the same key.
		if _, err := db.Exec(ctx, "select backfill.ack_candidates($1, $2)", claim, done); err != nil {
			return false, err
		}
	}
	if len(failed) == 0 {
		return true, nil
	}
	// The rest is up again at once, for us with the next notification.
	_, err = db.Exec(ctx, "select backfill.release($1)", claim)
	return false, err
}

// A memory service needs nothing of this module: SQL, a connection that listens,
// and the role backfill_memory.
func Example_memoryService() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	pool, done := pgtest.Example()
	defer done()

	// Somewhere else: a worker, and an application that inserts what was said.
	extractor, err := heuristic.New()
	must(err)
	worker, err := jobs.New(pool, jobs.Config{
		Slots:  []jobs.Slot{{ID: 1, Name: "heuristic", Version: heuristic.Version, Extractor: extractor}},
		Logger: slog.New(slog.DiscardHandler),
	})
	must(err)
	must(worker.Start(context.Background()))
	defer func() { must(worker.Stop(context.Background())) }()

	// The memory service.
	db, err := pgx.ConnectConfig(ctx, pool.Config().ConnConfig)
	must(err)
	defer db.Close(context.Background())
	go say(ctx, pool, "We decided to ship on Fridays because support is quiet then.")
	attempts := 0
	consumed := make(chan error, 1)
	go func() {
		consumed <- consume(ctx, db, func(_ context.Context, m memory) error {
			if attempts++; attempts == 1 {
				say(ctx, pool, "I prefer tea over coffee in the morning, and always without sugar.")
				return errors.New("the memory's own database is away")
			}
			fmt.Println(m.Tags[0]+":", m.Content)
			return nil
		})
	}()
	for handedOver := 0; handedOver < 2; {
		must(pool.QueryRow(ctx, "select count(*) from backfill.v_candidate where handed_over").Scan(&handedOver))
	}
	cancel()
	fmt.Println("stopped:", errors.Is(<-consumed, context.Canceled))
	// Output:
	// decision: We decided to ship on Fridays because support is quiet then.
	// preference: I prefer tea over coffee in the morning, and always without sugar.
	// stopped: true
}

// say stores what was said, as any program may.
func say(ctx context.Context, pool *pgxpool.Pool, text string) {
	_, err := pool.Exec(ctx, "insert into backfill.intake (source, text) values ('example', $1)", text)
	must(err)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
