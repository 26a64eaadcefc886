package store

import "context"

// StopSlot keeps a slot's work from being claimed, by whomever, until
// [Store.ReleaseSlot]: its endpoint refuses every request. reason is a class and a
// code, fix is what an operator can do. The first reason stands.
func (s *Store) StopSlot(ctx context.Context, slot int16, reason, fix string) error {
	if _, err := s.pool.Exec(ctx, `
		update backfill.extractor set stopped_at = coalesce(stopped_at, now()), stop_reason = $2, stop_fix = $3,
		    probe_at = coalesce(probe_at, now() + interval '10 minutes')
		where id = $1`, slot, reason, fix); err != nil {
		return wrap("stopping the queue", err)
	}
	return nil
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
