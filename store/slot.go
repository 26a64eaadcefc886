package store

import "context"

// StopSlot keeps a slot's work from being claimed, by whomever, until
// [Store.ReleaseSlot]: its endpoint refuses every request. reason is a class and a
// code, fix is what an operator can do, capture the one in hand, 0 for none.
//
// Where the same capture has stopped the slot within the last hour, and the slot was
// released since and the capture not answered, it is the capture that is refused: then
// the slot goes on, and again is true.
func (s *Store) StopSlot(ctx context.Context, slot int16, capture int64, reason, fix string) (again bool, err error) {
	tag, err := s.pool.Exec(ctx, `
		update backfill.extractor set stopped_at = coalesce(stopped_at, now()), stop_reason = $3, stop_fix = $4,
		    probe_at = coalesce(probe_at, now() + interval '10 minutes'), stop_capture = coalesce(nullif($2, 0), stop_capture), last_stop = now()
		where id = $1 and (stopped_at is not null or stop_capture is distinct from $2 or last_stop < now() - interval '1 hour'
		                   or exists (select from backfill.llm_call c where c.capture_id = $2 and c.class = 'ok' and c.started_at > last_stop))`,
		slot, capture, reason, fix)
	if err != nil {
		return false, wrap("stopping the queue", err)
	}
	return tag.RowsAffected() == 0, nil
}

// ReleaseSlot lets a stopped slot go on.
func (s *Store) ReleaseSlot(ctx context.Context, slot int16) error {
	if _, err := s.pool.Exec(ctx, `
		with released as (
			update backfill.extractor set stopped_at = null, stop_reason = null, stop_fix = null, probe_at = null
			where id = $1 and stopped_at is not null returning name
		)
		select backfill.wake(name) from released`, slot); err != nil {
		return wrap("resuming the queue", err)
	}
	return nil
}

// ProbeSlot has a stopped slot's endpoint probed at once rather than when its time
// has come. It does nothing for one that is not stopped.
func (s *Store) ProbeSlot(ctx context.Context, slot int16) error {
	if _, err := s.pool.Exec(ctx, `
		with stopped as (
			update backfill.extractor set probe_at = now() where id = $1 and stopped_at is not null returning id
		)
		select backfill.sweep() from stopped`, slot); err != nil {
		return wrap("asking for a probe", err)
	}
	return nil
}
