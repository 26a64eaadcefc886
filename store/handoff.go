package store

import "context"

// CandidateChannel is what a memory service listens to: its payload is the name of
// a slot that has candidates to hand over.
const CandidateChannel = "backfill_candidates"

// NotifyCandidates tells listeners that these slots have new candidates.
func (s *Store) NotifyCandidates(ctx context.Context, slots []string) error {
	if _, err := s.pool.Exec(ctx, "select pg_notify($1, slot) from unnest($2::text[]) slot", CandidateChannel, slots); err != nil {
		return wrap("announcing candidates", err)
	}
	return nil
}

// NotifyWaiting tells listeners if candidates are up for claiming. It makes up for
// what a vanished worker did not announce, and for claims whose lease ran out.
func (s *Store) NotifyWaiting(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, `
		select pg_notify($1, e.name)
		from (select extractor_id from backfill.extraction where handoff_due <= now()
		      order by handoff_due limit 1) x
		join backfill.extractor e on e.id = x.extractor_id`, CandidateChannel)
	if err != nil {
		return wrap("announcing candidates", err)
	}
	return nil
}
