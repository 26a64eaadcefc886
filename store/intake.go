package store

import (
	"context"
	"iter"
	"time"
)

// Capture is an intake row as a worker reads it.
type Capture struct {
	ID     int64
	Source string
	// Observed is empty where unknown.
	Observed string
	// OccurredAt is zero where unknown.
	OccurredAt time.Time
	// Text is empty where TooLong.
	Text    string
	TooLong bool
	// Meta is the JSON object as stored.
	Meta []byte
	// Hash identifies the text that was read.
	Hash string
}

// Captures streams the given captures in ascending order. Texts over maxBytes are
// not read. Captures that were deleted since do not appear.
func (s *Store) Captures(ctx context.Context, ids []int64, maxBytes int) iter.Seq2[Capture, error] {
	return func(yield func(Capture, error) bool) {
		rows, err := s.pool.Query(ctx, `
			select id, source, coalesce(observed, ''), case when isfinite(occurred_at) then occurred_at end,
			       case when octet_length(text) <= $2 then text else '' end, octet_length(text) > $2,
			       meta::text, content_hash
			from backfill.intake where id = any ($1) order by id`, ids, maxBytes)
		if err != nil {
			yield(Capture{}, wrap("reading captures", err))
			return
		}
		defer rows.Close()
		for rows.Next() {
			var c Capture
			var occurred *time.Time
			if err := rows.Scan(&c.ID, &c.Source, &c.Observed, &occurred, &c.Text, &c.TooLong, &c.Meta, &c.Hash); err != nil {
				yield(Capture{}, wrap("reading captures", err))
				return
			}
			if occurred != nil {
				c.OccurredAt = occurred.UTC()
			}
			if !yield(c, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(Capture{}, wrap("reading captures", err))
		}
	}
}
