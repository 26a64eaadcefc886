package store

import (
	"context"
	"time"
)

// Health is what the doctor looks at beside the migrations.
type Health struct {
	// ServerVersion is the number Postgres gives, such as 150004.
	ServerVersion int `db:"server_version"`
	// SeenWorker is when a River client last worked or led; nil when none did
	// within the last hour.
	SeenWorker *time.Time `db:"seen_worker"`
	// Due is the number of captures that could be worked now, DueFor how long the
	// oldest of them has been waiting.
	Due    int64         `db:"due"`
	DueFor time.Duration `db:"due_for"`
	// OtherVersion counts captures queued for a version that is not current.
	OtherVersion int64 `db:"other_version"`
	// Expired counts leases that ran out: their workers vanished.
	Expired int64 `db:"expired"`
	// Dead counts captures that were given up.
	Dead int64 `db:"dead"`
	// Planning counts runs that have been planning for over an hour.
	Planning int64 `db:"planning"`
	// Resting counts runs that stopped at a bound and wait to be resumed.
	Resting int64 `db:"resting"`
	// FailedJobs counts River jobs that failed in the last day.
	FailedJobs int64 `db:"failed_jobs"`
}

const seenWorker = `greatest((select max(attempted_at) from river.river_job),
	(select max(elected_at) from river.river_leader where expires_at > now()))`

// Health reads it.
func (s *Store) Health(ctx context.Context) (Health, error) {
	h, err := collect[Health](ctx, s, "examining the database", `
		select current_setting('server_version_num')::integer as server_version,
		    `+seenWorker+` as seen_worker,
		    coalesce((select sum(todo) from backfill.due_batch), 0)::bigint as due,
		    coalesce((select now() - min(due) from backfill.due_batch), interval '0') as due_for,
		    coalesce((select sum(b.todo) from backfill.batch b join backfill.extractor e on e.id = b.extractor_id
		              where b.due is not null and b.version is distinct from e.version), 0)::bigint as other_version,
		    (select count(*) from backfill.due_batch where state = 'leased') as expired,
		    (select count(*) from backfill.extraction where state = 'dead') as dead,
		    (select count(*) from backfill.run where state = 'planning' and created_at < now() - interval '1 hour') as planning,
		    (select count(*) from backfill.run where state in ('budget_exhausted', 'deadline_reached')) as resting,
		    (select count(*) from river.river_job where state = 'discarded' and finalized_at > now() - interval '1 day') as failed_jobs`)
	if err != nil {
		return Health{}, err
	}
	return h[0], nil
}

// Overdue are captures that should have an outcome by now.
type Overdue struct {
	Captures int64         `db:"captures"`
	Oldest   time.Duration `db:"oldest"`
}

// Overdue counts captures, in the care of the nightly, that were stored longer ago
// than age and have no outcome yet: missing, queued, or waiting for another attempt.
func (s *Store) Overdue(ctx context.Context, age time.Duration) (Overdue, error) {
	o, err := collect[Overdue](ctx, s, "looking for old captures", `
		with open as materialized (
		    -- Without a look at the captures themselves: by index only.
		    select i.id, e.id as extractor_id
		    from backfill.intake i cross join backfill.extractor e
		    where e.active_from is not null and e.version is not null
		      and not exists (select from backfill.extraction x where x.capture_id = i.id and x.extractor_id = e.id)
		    union all
		    select x.capture_id, x.extractor_id from backfill.extraction x where x.state in ('retry', 'queued')
		)
		select count(distinct i.id) as captures, coalesce(max(now() - i.created_at), interval '0') as oldest
		from open o join backfill.intake i on i.id = o.id
		join backfill.extractor e on e.id = o.extractor_id and i.created_at >= e.active_from
		where i.created_at < now() - $1::interval`, age)
	if err != nil {
		return Overdue{}, err
	}
	return o[0], nil
}
