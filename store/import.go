package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// NewCapture is a capture on its way into intake.
type NewCapture struct {
	Source, ExternalID, Observed string
	// OccurredAt is zero where unknown.
	OccurredAt time.Time
	Text       string
	// Meta is a JSON object; nil is {}.
	Meta json.RawMessage
}

// Imported counts what an import did with captures.
type Imported struct {
	New, Changed, Unchanged int
	// Refused are the indexes of captures that Postgres would not take, with the
	// reason.
	Refused map[int]error
}

// Import upserts captures in one transaction: a known (source, external id) whose
// content differs is updated, which queues its extraction again; the same content
// changes nothing. Where an id comes twice, the last one wins. A capture that
// Postgres refuses is found by bisection and reported; the others are stored.
func (s *Store) Import(ctx context.Context, captures []NewCapture) (Imported, error) {
	total := Imported{Refused: map[int]error{}}
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `
			create temporary table if not exists incoming (
			    n integer, source text, external_id text, observed text, occurred_at timestamptz, text text, meta jsonb
			) on commit delete rows`); err != nil {
			return wrap("preparing the import", err)
		}
		return s.bisect(ctx, tx, captures, 0, &total)
	})
	return total, err
}

// bisect imports captures, whose first has the given index, or halves them until
// the one that Postgres refuses stands alone.
func (s *Store) bisect(ctx context.Context, tx pgx.Tx, captures []NewCapture, first int, total *Imported) error {
	if len(captures) == 0 {
		return nil
	}
	var part Imported
	err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) (err error) {
		part, err = upsert(ctx, tx, captures)
		return err
	})
	switch {
	case err == nil:
		total.New, total.Changed, total.Unchanged = total.New+part.New, total.Changed+part.Changed, total.Unchanged+part.Unchanged
		return nil
	case !IsDataError(err):
		return err
	case len(captures) == 1:
		total.Refused[first] = errors.New(Code(err))
		return nil
	}
	half := len(captures) / 2
	if err := s.bisect(ctx, tx, captures[:half], first, total); err != nil {
		return err
	}
	return s.bisect(ctx, tx, captures[half:], first+half, total)
}

func upsert(ctx context.Context, tx pgx.Tx, captures []NewCapture) (Imported, error) {
	var done Imported
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"incoming"},
		[]string{"n", "source", "external_id", "observed", "occurred_at", "text", "meta"},
		pgx.CopyFromSlice(len(captures), func(i int) ([]any, error) {
			c := captures[i]
			var occurred *time.Time
			if !c.OccurredAt.IsZero() {
				occurred = &c.OccurredAt
			}
			return []any{i, Clean(c.Source), null(Clean(c.ExternalID)), null(Clean(c.Observed)), occurred, Clean(c.Text), object(c.Meta)}, nil
		}))
	if err != nil {
		return done, wrap("sending captures", err)
	}
	// Rows that are stored already are left out beforehand: they would use up an
	// id each. xmax tells an insert from an update.
	err = tx.QueryRow(ctx, `
		with latest as (
			select distinct on (source, coalesce(external_id, n::text), external_id is null) * from incoming
			order by source, coalesce(external_id, n::text), external_id is null, n desc
		), changed as (
			select l.* from latest l left join backfill.intake i on i.source = l.source and i.external_id = l.external_id
			where (i.observed, i.occurred_at, i.text, i.meta) is distinct from (l.observed, l.occurred_at, l.text, l.meta)
		), stored as (
			insert into backfill.intake as i (source, external_id, observed, occurred_at, text, meta)
			select source, external_id, observed, occurred_at, text, meta from changed order by n
			on conflict (source, external_id) do update
				set observed = excluded.observed, occurred_at = excluded.occurred_at, text = excluded.text, meta = excluded.meta
				where (i.observed, i.occurred_at, i.text, i.meta)
				      is distinct from (excluded.observed, excluded.occurred_at, excluded.text, excluded.meta)
			returning xmax = 0 as new
		)
		select count(*) filter (where new), count(*) filter (where not new) from stored`).Scan(&done.New, &done.Changed)
	if err != nil {
		return done, wrap("storing captures", err)
	}
	if _, err := tx.Exec(ctx, "delete from incoming"); err != nil {
		return done, fmt.Errorf("clearing the import table: %w", err)
	}
	done.Unchanged = len(captures) - done.New - done.Changed
	return done, nil
}
