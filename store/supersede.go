package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// supersede names, in the meta of new candidates, those they stand for: what was
// handed over of their capture and was not found again. They are named by their ord,
// {"supersedes": [1, 3]}, since capture and extractor are the same.
func supersede(ctx context.Context, tx pgx.Tx, extractor int16, found, replaced []row) error {
	again := map[fingerprint]bool{}
	for _, r := range found {
		for _, c := range r.Candidates {
			again[fingerprint{r.CaptureID, c.Fingerprint}] = true
		}
	}
	var captures []int64
	for _, r := range replaced {
		if r.firstOrd > 1 && len(r.Candidates) > 0 {
			captures = append(captures, r.CaptureID)
		}
	}
	if len(captures) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, `
		select s.capture_id, s.fingerprint, s.ord
		from backfill.known_candidate s join backfill.extraction x using (capture_id, extractor_id)
		where s.extractor_id = $1 and s.capture_id = any ($2) and s.ord <= x.claimed_upto order by s.ord`, extractor, captures)
	if err != nil {
		return wrap("reading superseded candidates", err)
	}
	superseded := map[int64][]int16{}
	var f fingerprint
	var ord int16
	_, err = pgx.ForEachRow(rows, []any{&f.capture, &f.content, &ord}, func() error {
		if !again[f] {
			superseded[f.capture] = append(superseded[f.capture], ord)
		}
		return nil
	})
	if err != nil {
		return wrap("reading superseded candidates", err)
	}
	for _, r := range replaced {
		if ords := superseded[r.CaptureID]; len(ords) > 0 {
			// They are this row's own: [Write.replace] has copied them.
			for i := range r.Candidates {
				if err := r.Candidates[i].supersede(ords); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (c *Candidate) supersede(ords []int16) error {
	meta := map[string]json.RawMessage{}
	err := json.Unmarshal(object(c.Meta), &meta)
	if err == nil {
		meta["supersedes"], err = json.Marshal(ords)
	}
	if err == nil {
		c.Meta, err = json.Marshal(meta)
	}
	if err != nil {
		return fmt.Errorf("adding to meta: %w", err)
	}
	return nil
}
