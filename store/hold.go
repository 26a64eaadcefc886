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
// are none.
func (s *Store) Regulate(ctx context.Context, t Thresholds) (string, error) {
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

// Held says why backfills are held at the moment; empty if they are not.
func (s *Store) Held(ctx context.Context) (string, error) {
	var reason string
	err := s.pool.QueryRow(ctx, "select reason from backfill.hold where seen_at > now() - interval '1 minute'").Scan(&reason)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return "", wrap("asking whether backfills are held", err)
	}
	return reason, nil
}
