package store

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Thresholds are the health of the database from which on backfills are held. Zero
// values hold nothing.
type Thresholds struct {
	// Transaction is the age of the oldest open transaction of this database that
	// the user may see.
	Transaction time.Duration
	// ReplicaLag is how far the slowest replica is behind.
	ReplicaLag time.Duration
	// Autovacuum holds while one of our tables is being vacuumed.
	Autovacuum bool
	// SQL is a statement that returns true to hold. It runs read-only, for five
	// seconds at most.
	SQL string
}

// Regulate looks at the database's health and holds or releases backfills: no batch
// of a run is claimed while they are held. It returns the reasons, empty if there
// are none. Without any threshold it leaves to others what they hold.
func (s *Store) Regulate(ctx context.Context, t Thresholds) (string, error) {
	if t == (Thresholds{}) {
		return "", nil
	}
	reasons, err := s.unwell(ctx, t)
	reason := strings.Join(reasons, ", ")
	if _, holdErr := s.pool.Exec(ctx, `
		with released as (
			delete from backfill.hold where $1 = ''
		)
		insert into backfill.hold (reason) select $1 where $1 <> ''
		on conflict (one) do update set reason = excluded.reason, seen_at = now(),
		    since = case when hold.seen_at > now() - interval '1 minute' then hold.since else now() end`, reason); holdErr != nil {
		return reason, errors.Join(err, wrap("holding backfills", holdErr))
	}
	return reason, err
}

// unwell lists what is over its threshold. What could not be asked holds nothing.
func (s *Store) unwell(ctx context.Context, t Thresholds) (reasons []string, err error) {
	var transaction, lag time.Duration
	var vacuums []string
	err = s.pool.QueryRow(ctx, `
		select coalesce((select max(now() - xact_start) from pg_stat_activity
		                 where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()), interval '0'),
		       coalesce((select max(replay_lag) from pg_stat_replication), interval '0'),
		       array(select c.relname::text from pg_stat_progress_vacuum v join pg_class c on c.oid = v.relid
		             where v.datname = current_database() and c.relnamespace = 'backfill'::regnamespace order by 1)`).
		Scan(&transaction, &lag, &vacuums)
	if err != nil {
		err = wrap("looking at the database's health", err)
	}
	if t.Transaction > 0 && transaction > t.Transaction {
		reasons = append(reasons, "a transaction is open for "+transaction.Round(time.Second).String())
	}
	if t.ReplicaLag > 0 && lag > t.ReplicaLag {
		reasons = append(reasons, "replica lag "+lag.Round(time.Second).String())
	}
	if t.Autovacuum && len(vacuums) > 0 {
		reasons = append(reasons, "vacuum of "+strings.Join(vacuums, ", "))
	}
	if t.SQL != "" {
		hold, sqlErr := s.ask(ctx, t.SQL)
		if sqlErr != nil {
			err = errors.Join(err, sqlErr)
		}
		if hold {
			reasons = append(reasons, "BACKFILL_HOLD_SQL says so")
		}
	}
	return reasons, err
}

func (s *Store) ask(ctx context.Context, sql string) (yes bool, err error) {
	err = pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "set local statement_timeout = '5s'"); err != nil {
			return err
		}
		return tx.QueryRow(ctx, sql).Scan(&yes)
	})
	if err != nil {
		return false, errors.New("BACKFILL_HOLD_SQL failed: it has to return one boolean (" + Code(err) + ")")
	}
	return yes, nil
}

// Blocked is why nothing of a run may be claimed now, and how fast it went before.
type Blocked struct {
	// Rate is how many captures a second were in batches that were finished in the
	// last minute, since the run was last started or resumed.
	Rate float64 `db:"rate"`
	// Working is set while a batch of it is in hand: then nothing is blocked.
	Working bool `db:"working"`
	// StopReason and StopFix are its slot's, where that is stopped.
	StopReason *string `db:"stop_reason"`
	StopFix    *string `db:"stop_fix"`
	// Hold is why all backfills are held.
	Hold *string `db:"hold"`
	// SeenWorker is when a worker last did anything; nil when none did within the last
	// hour.
	SeenWorker *time.Time `db:"seen_worker"`
	// Untaken is how long a batch of it has been due, nil if none is, and Version the
	// one that a worker needs to take it.
	Untaken *time.Duration `db:"untaken"`
	Version *string        `db:"version"`
	// Error is why a batch of it was put off, and Again how long that will take.
	Error *string        `db:"error"`
	Again *time.Duration `db:"again"`
}

// Blocked says why a run does not move.
func (s *Store) Blocked(ctx context.Context, run int64) (Blocked, error) {
	b, err := collect[Blocked](ctx, s, "asking what holds the run up", `
		select exists (select from backfill.batch l where l.run_id = r.id and l.state = 'leased' and l.due > now()) as working,
		       e.stop_reason, e.stop_fix, `+seenWorker+` as seen_worker,
		       now() - d.due as untaken, d.version,
		       (select h.reason from backfill.hold h where h.seen_at > now() - interval '1 minute') as hold,
		       p.error, p.due - now() as again,
		       (select coalesce(sum(b.captures), 0) from backfill.batch b
		        where b.run_id = r.id and b.prio = 2 and b.state = 'done' and b.finished_at > began.at)
		           / greatest(extract(epoch from now() - began.at), 1)::float8 as rate
		from backfill.run r
		join backfill.extractor e on e.id = r.extractor_id
		cross join lateral (
			select greatest(now() - interval '1 minute', r.created_at, (
				select max(v.at) from backfill.run_event v
				where v.run_id = r.id and v.from_state not in ('planning', 'running') and v.to_state in ('planning', 'running'))) as at
		) began
		left join lateral (
			select b.due, b.version from backfill.batch b
			where b.extractor_id = r.extractor_id and b.prio = 2 and b.run_id = r.id and b.due <= now()
			order by b.due, b.id limit 1
		) d on true
		left join lateral (
			-- Others may be due, and left alone all the same: who put this one off knows of
			-- the pause that the endpoint asked for.
			select b.error, b.due from backfill.batch b
			where b.run_id = r.id and b.state = 'pending' and b.error is not null and b.due > now() and b.due < 'infinity'
			order by b.due, b.id limit 1
		) p on true
		where r.id = $1`, run)
	if err != nil {
		return Blocked{}, err
	}
	if len(b) == 0 {
		return Blocked{}, ErrNoRun
	}
	return b[0], nil
}

// Held is what workers have in hand of a run.
type Held struct {
	Batches int64  `db:"batches"`
	Workers string `db:"workers"`
	// Until is how long their leases last at most, if nobody extends them.
	Until time.Duration `db:"until"`
	// SeenWorker is when a worker last did anything; nil when none did within the last
	// hour.
	SeenWorker *time.Time `db:"seen_worker"`
}

// Held counts the batches of a run whose leases have not run out.
func (s *Store) Held(ctx context.Context, run int64) (Held, error) {
	h, err := collect[Held](ctx, s, "asking what is in work", `
		select count(*) as batches, coalesce(string_agg(distinct worker, ', ' order by worker), '') as workers,
		       coalesce(max(due) - now(), interval '0') as until, `+seenWorker+` as seen_worker
		from backfill.batch where run_id = $1 and state = 'leased' and due > now()`, run)
	if err != nil {
		return Held{}, err
	}
	return h[0], nil
}
