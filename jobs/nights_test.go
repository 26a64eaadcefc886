package jobs_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/robfig/cron/v3"
	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/jobs"
)

// TestNights has four workers live through thirty nights in which the clocks change
// and leaders are killed: each night is run once, and finds what nobody was told of.
func TestNights(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		from time.Time // noon of the day before the first night
		at   string
		// When the night begins on the day on which the clocks change.
		change time.Time
	}{
		// 02:30 does not exist.
		"spring": {time.Date(2026, 3, 14, 12, 0, 0, 0, berlin), "30 2 * * *", time.Date(2026, 3, 29, 3, 0, 0, 0, berlin)},
		// 02:30 comes twice: this is the first.
		"autumn": {time.Date(2026, 10, 10, 12, 0, 0, 0, berlin), "30 2 * * *", time.Date(2026, 10, 25, 0, 30, 0, 0, time.UTC)},
		"03:00":  {time.Date(2026, 10, 10, 12, 0, 0, 0, berlin), "0 3 * * *", time.Date(2026, 10, 25, 2, 0, 0, 0, time.UTC)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrew(setup(t), tt.at, tt.from)
			for night := range 30 {
				date := tt.from.AddDate(0, 0, night+1)
				begins := time.Date(date.Year(), date.Month(), date.Day(), 2, 30, 0, 0, berlin)
				if tt.at == "0 3 * * *" {
					begins = begins.Add(30 * time.Minute)
				}
				if date.YearDay() == tt.change.YearDay() {
					begins = tt.change
				}
				lost := c.lose(night)

				c.now.Store(new(begins.Add(-time.Second)))
				c.tick()
				require.Equal(t, night, c.nights(), "before %s", begins)

				c.now.Store(new(begins))
				switch night % 7 {
				case 2:
					c.killLeader()
				case 5:
					c.killPlanner()
				}
				c.tick()
				c.rest()
				require.Equal(t, lost, query[int64](c.testBundle, "select coalesce(sum(total), 0)::bigint from backfill.v_run where kind = 'nightly' and run = (select max(id) from backfill.run)"))
				// Later that night, when 02:30 comes again in autumn.
				c.now.Store(new(begins.Add(time.Hour)))
				c.tick()
				require.Equal(t, night+1, c.nights(), "after %s", begins)
			}
			c.requireInvariants()
			require.Equal(t, []int64{31, 31}, query[[]int64](c.testBundle,
				"select array[count(distinct local_date), count(*) filter (where state = 'succeeded')] from backfill.run"))
		})
	}
}

// crew is four workers on one database, each with a pool of its own, whose nightly
// goes by one clock.
type crew struct {
	*testBundle

	now  atomic.Pointer[time.Time]
	cfg  jobs.Config
	kill map[string]func() // by the name of the worker
	last int               // number of the worker hired last
}

func newCrew(b *testBundle, at string, now time.Time) *crew {
	b.Helper()
	c := &crew{testBundle: b, kill: map[string]func(){}, cfg: config(extractorFunc(whole))}
	c.now.Store(&now)
	schedule, err := cron.ParseStandard(at)
	require.NoError(b, err)
	c.cfg.Nightly, c.cfg.Location, c.cfg.Now = schedule, now.Location(), func() time.Time { return *c.now.Load() }
	c.cfg.Workers, c.cfg.Lease, c.cfg.SoftStop = 2, time.Second, time.Millisecond
	require.NoError(b, jobs.Nightly(context.Background(), b.store, now)) // the day before
	for range 4 {
		c.hire()
	}
	return c
}

// hire starts a worker.
func (c *crew) hire() {
	c.Helper()
	c.last++
	cfg := c.cfg
	cfg.Name = fmt.Sprint("worker-", c.last)
	pc, err := pgxpool.ParseConfig(c.pool.Config().ConnString())
	require.NoError(c, err)
	pc.MaxConns = cfg.Conns()
	pool, err := pgxpool.NewWithConfig(context.Background(), pc)
	require.NoError(c, err)
	client, err := jobs.New(pool, cfg)
	require.NoError(c, err)
	ctx, cancel := context.WithCancel(context.Background())
	require.NoError(c, client.Start(ctx))
	c.kill[cfg.Name] = sync.OnceFunc(func() {
		cancel()
		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		defer cancel()
		_ = client.Stop(ctx)
		pool.Close()
	})
	c.Cleanup(c.kill[cfg.Name])
}

// killWhoever kills the worker that the query names, as soon as it names one.
func (c *crew) killWhoever(sql string) {
	c.Helper()
	c.await(30*time.Second, "select ("+sql+") is not null")
	c.kill[query[string](c.testBundle, sql)]()
}

// killLeader kills River's leader, who holds the schedules, while everybody ticks.
func (c *crew) killLeader() {
	c.Helper()
	c.announce()
	c.killWhoever("select max(leader_id) from river.river_leader")
	c.hire()
}

// killPlanner kills whoever is planning the night's run.
func (c *crew) killPlanner() {
	c.Helper()
	ctx := context.Background()
	tx, err := c.pool.Begin(ctx)
	require.NoError(c, err)
	_, err = tx.Exec(ctx, "lock table backfill.batch in exclusive mode") // holds the planner up
	require.NoError(c, err)
	c.announce()
	c.killWhoever("select max(attempted_by[cardinality(attempted_by)]) from river.river_job where kind = 'nightly' and state = 'running'" +
		" and exists (select from backfill.run where state = 'planning')")
	require.NoError(c, tx.Rollback(ctx))
	c.hire()
}

// announce has every worker tick.
func (c *crew) announce() {
	c.Helper()
	c.exec(`insert into river.river_job (args, kind, max_attempts, queue, state)
		select '{}', 'nightly', 1, 'nightly', 'available' from generate_series(1, 4)`)
	c.exec(`select pg_notify('river.river_insert', '{"queue": "nightly"}')`)
}

// tick has every worker tick, and waits until they have.
func (c *crew) tick() {
	c.Helper()
	c.announce()
	c.await(30*time.Second, "select not exists (select from river.river_job where kind = 'nightly' and finalized_at is null)")
}

// rest waits until the night's run has ended, whoever plans it.
func (c *crew) rest() {
	c.Helper()
	c.exec("select backfill.wake_planner()") // the minute has passed
	c.await(time.Minute, "select not exists (select from backfill.run where finished_at is null)")
	c.idle(time.Minute)
}

// nights is the number of nights that were run.
func (c *crew) nights() int {
	c.Helper()
	return query[int](c.testBundle, "select count(*) - 1 from backfill.run")
}

// lose inserts captures, on two nights of three such that no worker hears of, and
// returns the number of those.
func (c *crew) lose(night int) int64 {
	c.Helper()
	ctx := context.Background()
	insert := "insert into backfill.intake (source, text) select 'test', 'night " + fmt.Sprint(night) + ", ' || n from generate_series(1, 2) n"
	steps := [][]string{
		{"set local session_replication_role = replica", insert}, // as by logical replication
		{insert, "delete from backfill.batch where due is not null"},
		{insert},
	}[night%3]
	require.NoError(c, pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
		for _, sql := range steps {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	}))
	if night%3 == 2 {
		return 0
	}
	return 2
}
