package jobs_test

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// invariants are statements that return a row for everything that is wrong.
var invariants = map[string]string{
	"a capture without a ledger row in an active slot": `
		select i.id::text from backfill.intake i cross join backfill.extractor e
		where e.on_insert and not exists (
			select from backfill.extraction x where x.capture_id = i.id and x.extractor_id = e.id)`,
	"a tombstone of a capture that exists": `
		select x.capture_id::text from backfill.extraction x join backfill.intake i on i.id = x.capture_id
		where x.state = 'deleted'`,
	"a ledger row without a capture that is no tombstone": `
		select x.capture_id::text from backfill.extraction x
		where x.state <> 'deleted' and not exists (select from backfill.intake i where i.id = x.capture_id)`,
	"a candidate that nobody has taken, and whose ledger row is neither done and staged nor a fallback's": `
		select s.capture_id || ' ' || s.content from backfill.staging s
		where not exists (select from backfill.extraction x
			where x.capture_id = s.capture_id and x.extractor_id = s.extractor_id
			  and (x.state = 'done' and x.outcome = 'staged' or x.state = 'dead' and x.fallback = s.fallback
			       or s.ord <= x.claimed_upto))`,
	"a staged ledger row without a candidate": `
		select x.capture_id::text from backfill.extraction x
		where x.outcome = 'staged' and x.pruned is null and not exists (
			select from backfill.staging s where s.capture_id = x.capture_id and s.extractor_id = x.extractor_id)`,
	"a candidate that is staged twice": `
		select s.capture_id::text from backfill.staging s
		group by s.capture_id, s.extractor_id, s.fingerprint having count(*) > 1`,
	"an entity that its candidate does not name": `
		select n.entity from backfill.entity n
		where not exists (select from backfill.staging s
			where s.capture_id = n.capture_id and s.extractor_id = n.extractor_id and s.ord = n.ord and n.entity = any (s.entities))`,
	"a named entity that is not in the index": `
		select s.capture_id || ' ' || e from backfill.staging s, unnest(s.entities) e
		where not exists (select from backfill.entity n
			where n.entity = e and n.capture_id = s.capture_id and n.extractor_id = s.extractor_id and n.ord = s.ord)`,
	"an open batch": `
		select b.id || ' ' || b.state from backfill.batch b where b.due is not null`,
	"net counts that differ from the ledger": `
		select s.extractor from backfill.v_status s join backfill.v_status_exact x using (extractor)
		where (s.staged, s.empty, s.skipped, s.undone, s.dead, s.candidates) is distinct from (x.staged, x.empty, x.skipped, x.undone, x.dead, x.candidates)`,
	"something to hand over that nobody can claim": `
		select s.capture_id::text from backfill.staging s join backfill.extraction x using (capture_id, extractor_id)
		where s.ord > x.handed_upto and x.handoff_due is null`,
	"nothing to hand over that is up for claiming": `
		select x.capture_id::text from backfill.extraction x
		where x.handoff_due is not null and not exists (select from backfill.staging s
			where s.capture_id = x.capture_id and s.extractor_id = x.extractor_id and s.ord > x.handed_upto)`,
}

// requireInvariants checks what must hold whenever the system is at rest: nothing
// lost, nothing twice, nothing left over.
func (b *testBundle) requireInvariants() {
	b.Helper()
	b.exec("analyze backfill.intake, backfill.extraction, backfill.staging, backfill.entity") // or the anti-joins take minutes
	for name, sql := range invariants {
		rows, err := b.pool.Query(context.Background(), sql+" limit 5")
		require.NoError(b, err, name)
		wrong, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(b, err, name)
		require.Empty(b, wrong, name)
	}
}
