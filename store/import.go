package store

import (
	"context"
	"crypto/md5" //nolint:gosec // intake.content_hash
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// NewCapture is a capture on its way into intake.
type NewCapture struct {
	Source, ExternalID, Observed string
	// OccurredAt is zero where unknown.
	OccurredAt time.Time
	Text       string
	// Grows keeps the stored text where that begins with the new one: this is a
	// copy that ends earlier.
	Grows bool
	// Meta is a JSON object; nil is {}.
	Meta json.RawMessage
}

func (c *NewCapture) occurred() *time.Time {
	if c.OccurredAt.IsZero() {
		return nil
	}
	return &c.OccurredAt
}

// Imported counts what an import did with captures; those that were superseded
// within the call are in none of the counts.
type Imported struct {
	New, Changed, Unchanged int
	// Refused are the indexes of captures that Postgres would not take, with the
	// reason.
	Refused map[int]error
}

// numbered is a capture with its index in the call.
type numbered struct {
	*NewCapture
	n int
}

// Import upserts captures in one transaction: a known (source, external id) whose
// content differs is updated, which queues its extraction again; the same content
// changes nothing. Where an id comes twice, the last one wins. A capture that
// Postgres refuses is found by bisection and reported; the others are stored.
//
// likelyNew is a hint: captures that are all new are stored without asking for
// their ids first.
//
// Two imports of the same captures in different orders may fall victim to each
// other: then it begins again.
func (s *Store) Import(ctx context.Context, captures []NewCapture, likelyNew bool) (Imported, error) {
	for attempt := 1; ; attempt++ {
		done, err := s.importOnce(ctx, captures, likelyNew)
		if err == nil || attempt == importAttempts || IsOffline(err) || !IsRetryable(err) {
			return done, err
		}
	}
}

const importAttempts = 10

func (s *Store) importOnce(ctx context.Context, captures []NewCapture, likelyNew bool) (Imported, error) {
	total := Imported{Refused: map[int]error{}}
	latest := latest(captures)
	if likelyNew {
		// One statement is a transaction, too, without the round trips of one.
		n, err := copyCaptures(ctx, s.pool, pgx.Identifier{"backfill", "intake"}, latest)
		if !IsConflict(err) && !IsDataError(err) {
			total.New = int(n)
			return total, err
		}
	}
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		var parts partitioned
		err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) (err error) {
			parts, err = partition(ctx, tx, latest)
			return err
		})
		if IsDataError(err) { // one of them cannot even be compared: bisect finds it
			parts, err = partitioned{changed: latest}, nil
		}
		if err != nil {
			return err
		}
		total.Unchanged += parts.same
		if err := total.bisect(ctx, tx, parts.fresh, insert, upsert); err != nil {
			return err
		}
		return total.bisect(ctx, tx, parts.changed, upsert, nil)
	})
	return total, err
}

// latest keeps the last capture of each id, but not one that only ends earlier, cleaned.
func latest(captures []NewCapture) []numbered {
	type key struct{ source, id string }
	at := make(map[key]int, len(captures))
	out := make([]numbered, 0, len(captures))
	for n := range captures {
		c := captures[n]
		c.Source, c.ExternalID, c.Observed, c.Text = Clean(c.Source), Clean(c.ExternalID), Clean(c.Observed), Clean(c.Text)
		if i, seen := at[key{c.Source, c.ExternalID}]; seen && c.ExternalID != "" {
			if !c.Grows || !strings.HasPrefix(out[i].Text, c.Text) {
				out[i] = numbered{&c, n}
			}
			continue
		}
		at[key{c.Source, c.ExternalID}] = len(out)
		out = append(out, numbered{&c, n})
	}
	return out
}

// partitioned are captures by what is in intake under their ids: nothing (they
// can be copied straight into it, which is twice as fast), the same, or something
// else.
type partitioned struct {
	fresh, changed []numbered
	same           int
}

// partition compares texts by their hash, so that importing again sends no text.
func partition(ctx context.Context, tx pgx.Tx, captures []numbered) (p partitioned, err error) {
	n := len(captures)
	sources, hashes, metas := make([]string, n), make([]string, n), make([]string, n)
	ids, observed, occurred := make([]*string, n), make([]*string, n), make([]*time.Time, n)
	grows, bytes := make([]bool, n), make([]int32, n)
	for i, c := range captures {
		sum := md5.Sum([]byte(c.Text)) //nolint:gosec // intake.content_hash
		sources[i], ids[i], hashes[i] = c.Source, null(c.ExternalID), hex.EncodeToString(sum[:])
		observed[i], occurred[i], metas[i] = null(c.Observed), c.occurred(), string(object(c.Meta))
		grows[i], bytes[i] = c.Grows, int32(len(c.Text))
	}
	rows, err := tx.Query(ctx, `
		select u.n::integer, u.grows and octet_length(i.text) > u.bytes and md5(substr(convert_to(i.text, 'UTF8'), 1, u.bytes)) = u.hash
		       or i.content_hash = u.hash and i.observed is not distinct from u.observed
		       and i.occurred_at is not distinct from u.occurred_at and i.meta = u.meta::jsonb
		from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::text[],
		            $7::boolean[], $8::integer[])
		     with ordinality u(source, external_id, hash, observed, occurred_at, meta, grows, bytes, n)
		join backfill.intake i on i.source = u.source and i.external_id = u.external_id`,
		sources, ids, hashes, observed, occurred, metas, grows, bytes)
	if err != nil {
		return p, wrap("comparing captures", err)
	}
	known, same := make([]bool, n), make([]bool, n)
	var at int32
	var isSame bool
	if _, err := pgx.ForEachRow(rows, []any{&at, &isSame}, func() error {
		known[at-1], same[at-1] = true, isSame
		return nil
	}); err != nil {
		return p, wrap("comparing captures", err)
	}
	for i, c := range captures {
		switch {
		case same[i]:
			p.same++
		case known[i]:
			p.changed = append(p.changed, c)
		default:
			p.fresh = append(p.fresh, c)
		}
	}
	return p, nil
}

type counts struct{ added, changed int }

// storing is a way to store captures: insert or upsert.
type storing func(context.Context, pgx.Tx, []numbered) (counts, error)

// bisect stores captures, or halves them until the one that Postgres refuses
// stands alone. onConflict, if any, is for those that exist by now.
func (total *Imported) bisect(ctx context.Context, tx pgx.Tx, captures []numbered, how, onConflict storing) error {
	if len(captures) == 0 {
		return nil
	}
	var done counts
	err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) (err error) {
		done, err = how(ctx, tx, captures)
		return err
	})
	switch {
	case err == nil:
		total.New += done.added
		total.Changed += done.changed
		total.Unchanged += len(captures) - done.added - done.changed
		return nil
	case IsConflict(err) && onConflict != nil:
		// Another import was faster with some of them.
		return total.bisect(ctx, tx, captures, onConflict, nil)
	case !IsDataError(err):
		return err
	case len(captures) == 1:
		total.Refused[captures[0].n] = errors.New(Code(err))
		return nil
	}
	half := len(captures) / 2
	if err := total.bisect(ctx, tx, captures[:half], how, onConflict); err != nil {
		return err
	}
	return total.bisect(ctx, tx, captures[half:], how, onConflict)
}

func insert(ctx context.Context, tx pgx.Tx, captures []numbered) (counts, error) {
	n, err := copyCaptures(ctx, tx, pgx.Identifier{"backfill", "intake"}, captures)
	return counts{added: int(n)}, err
}

func upsert(ctx context.Context, tx pgx.Tx, captures []numbered) (done counts, err error) {
	if _, err := tx.Exec(ctx, `
		create temporary table if not exists incoming (
		    source text, external_id text, observed text, occurred_at timestamptz, text text, meta jsonb, grows boolean
		) on commit delete rows`); err != nil {
		return done, wrap("preparing the import", err)
	}
	if _, err := tx.Exec(ctx, "truncate incoming"); err != nil {
		return done, wrap("preparing the import", err)
	}
	if _, err := copyCaptures(ctx, tx, pgx.Identifier{"incoming"}, captures, "grows"); err != nil {
		return done, err
	}
	// Rows that are stored already are left out beforehand: they would use up an
	// id each. xmax tells an insert from an update.
	err = tx.QueryRow(ctx, `
		with changed as (
			select n.* from incoming n left join backfill.intake i on i.source = n.source and i.external_id = n.external_id
			where i.id is null
			   or (i.observed, i.occurred_at, i.text, i.meta) is distinct from (n.observed, n.occurred_at, n.text, n.meta)
			      and not (n.grows and starts_with(i.text, n.text))
		), stored as (
			insert into backfill.intake as i (source, external_id, observed, occurred_at, text, meta)
			select source, external_id, observed, occurred_at, text, meta from changed
			on conflict (source, external_id) do update
				set observed = excluded.observed, occurred_at = excluded.occurred_at, text = excluded.text, meta = excluded.meta
				where (i.observed, i.occurred_at, i.text, i.meta)
				      is distinct from (excluded.observed, excluded.occurred_at, excluded.text, excluded.meta)
			returning xmax = 0 as new
		)
		select count(*) filter (where new), count(*) filter (where not new) from stored`).Scan(&done.added, &done.changed)
	if err != nil {
		return done, wrap("storing captures", err)
	}
	return done, nil
}

// copier is a transaction, or the pool.
type copier interface {
	CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error)
}

// copyCaptures copies captures into intake, or into a table that has further
// columns: "grows".
func copyCaptures(ctx context.Context, to copier, table pgx.Identifier, captures []numbered, further ...string) (int64, error) {
	n, err := to.CopyFrom(ctx, table, append([]string{"source", "external_id", "observed", "occurred_at", "text", "meta"}, further...),
		pgx.CopyFromSlice(len(captures), func(i int) ([]any, error) {
			c := captures[i]
			return []any{c.Source, null(c.ExternalID), null(c.Observed), c.occurred(), c.Text, object(c.Meta), c.Grows}[:6+len(further)], nil
		}))
	if err != nil {
		return 0, wrap("storing captures", err)
	}
	return n, nil
}
