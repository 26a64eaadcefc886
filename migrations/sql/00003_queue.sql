-- The queue: registration of versions, waking River, the four triggers on
-- intake, and the sweep.
--
-- Trigger functions run as their owner with a fixed search_path, so that an
-- application role needs nothing but INSERT on intake. They do without JIT, which
-- whoever inserts has on by default: it takes longer than they do.

-- +goose Up

-- Batches whose run and slot let them be worked: what is claimed, and what is asked
-- again before every call to a model.
create view backfill.workable_batch as
select b.*
from backfill.batch b
where (b.run_id is null
       or exists (select from backfill.run r
                  where r.id = b.run_id
                    and (r.state in ('planning', 'running') and coalesce((r.settings->>'deadline')::timestamptz, 'infinity') > now()
                         -- What it left behind for another attempt.
                         or r.state in ('succeeded', 'finished_with_errors'))))
  and exists (select from backfill.extractor e where e.id = b.extractor_id and e.stopped_at is null);
comment on view backfill.workable_batch is 'Batches whose run and extractor let them be worked.';

-- The one definition of "may be claimed now": the claim, its re-check when it
-- came back empty, and the sweep all read it.
create view backfill.due_batch as
select b.*
from backfill.workable_batch b
where b.due <= now()
  and (b.prio < 2 or not exists (select from backfill.hold h where h.seen_at > now() - interval '1 minute'));
comment on view backfill.due_batch is 'Batches that a worker may claim now, expired leases included.';

-- register_extractor makes p_version current for a slot, unless it is one that
-- was current before: an old binary that migrates again does not turn time
-- back. Open batches follow in the same statement. Returns the current version.
-- +goose StatementBegin
create function backfill.register_extractor(p_name text, p_version text) returns text
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_id smallint;
begin
    select id into v_id from backfill.extractor where name = p_name for update;
    if not found then
        raise exception 'there is no extractor named %', p_name using errcode = 'undefined_object';
    end if;
    insert into backfill.extractor_version (extractor_id, version) values (v_id, p_version)
    on conflict do nothing;
    if found then
        with moved as (
            update backfill.extractor set version = p_version where id = v_id
        )
        update backfill.batch b set version = p_version
        from (select id from backfill.batch where extractor_id = v_id and due is not null order by id for update) l
        where b.id = l.id;
    end if;
    return (select version from backfill.extractor where id = v_id);
end $$;
-- +goose StatementEnd

-- wake makes sure that a drain job of this queue starts after the calling
-- transaction committed: it pins one that River has not fetched yet, else it
-- inserts one. The pin is exclusive on purpose: with a shared one a single long
-- transaction stalled every other inserter. Outside read committed a pin may
-- fail to serialise, so there it always inserts.
-- +goose StatementBegin
create function backfill.wake(p_queue text, p_at timestamptz default now()) returns void
    language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set lock_timeout = '100ms' as $$
begin
    if p_at <= now() and current_setting('transaction_isolation') = 'read committed' then
        perform 1 from river.river_job
        where state = 'available' and queue = p_queue and kind = 'drain' and scheduled_at <= now()
        order by priority, scheduled_at, id limit 1
        for update skip locked;
        if found then
            return;
        end if;
    end if;
    insert into river.river_job (args, kind, max_attempts, priority, queue, state, scheduled_at)
    values ('{}', 'drain', 5, 1, p_queue, 'available', p_at);
    perform pg_notify('river.river_insert', json_build_object('queue', p_queue)::text);
end $$;
-- +goose StatementEnd

-- try_wake wakes every given queue and never fails: whoever writes captures must
-- not depend on River being healthy. The sweep finds what was not announced.
-- +goose StatementBegin
create function backfill.try_wake(p_queues text[], p_at timestamptz default now()) returns void
    language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
    v_queue text;
begin
    foreach v_queue in array p_queues loop
        perform backfill.wake(v_queue, p_at);
    end loop;
exception when others then
    raise debug 'backfill: River was not woken: %', sqlerrm;
end $$;
-- +goose StatementEnd

-- Insert: batches for every slot that extracts on insert. A capture that comes back
-- under the id of a deleted one loses its tombstone; new ids are beyond all
-- tombstones, so that looking for some costs one step into an index.
-- +goose StatementBegin
create function backfill.intake_inserted() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
    v_first  bigint;
    v_last   bigint;
    v_queues text[];
begin
    select min(id), max(id) into v_first, v_last from new_rows;
    if exists (select from backfill.extraction where capture_id between v_first and v_last and state = 'deleted') then
        delete from backfill.extraction x using new_rows n where x.capture_id = n.id and x.state = 'deleted';
    end if;
    with numbered as (
        select id, row_number() over (order by id) - 1 as n from new_rows
    ), islands as (
        -- Consecutive ids of one batch become one range.
        select e.id as extractor_id, e.name, e.version, n.n / e.batch_size as chunk,
               int8range(min(n.id), max(n.id), '[]') as r, count(*) as captures
        from numbered n cross join backfill.extractor e
        where e.on_insert and e.version is not null
        group by e.id, n.n / e.batch_size, n.id - n.n
    ), queued as (
        insert into backfill.batch (extractor_id, version, prio, mode, ids, captures)
        select extractor_id, version, 0, 'missing', range_agg(r), sum(captures)
        from islands group by extractor_id, version, chunk
        returning extractor_id
    )
    select array_agg(e.name) into v_queues
    from backfill.extractor e where e.id in (select extractor_id from queued);
    if v_queues is not null then
        perform backfill.try_wake(v_queues);
    end if;
    return null;
end $$;
-- +goose StatementEnd
create trigger intake_inserted after insert on backfill.intake
    referencing new table as new_rows
    for each statement execute function backfill.intake_inserted();

-- Update: where the text changed, the capture is extracted anew and its result
-- replaced, in every slot that extracts on insert, has recorded the capture, or
-- has it in hand right now. A reply that is still growing is debounced for two
-- seconds, thirty at most.
-- +goose StatementBegin
create function backfill.intake_updated() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
    v_ids    bigint[];
    v_due    timestamptz := now() + interval '2 seconds';
    v_queues text[];
begin
    if exists (select from new_rows n where not exists (select from old_rows o where o.id = n.id)) then
        raise exception 'the id of a capture cannot be changed' using errcode = 'feature_not_supported';
    end if;
    select array_agg(n.id) into v_ids
    from new_rows n join old_rows o on o.id = n.id
    where n.text is distinct from o.text;
    if v_ids is null then
        return null;
    end if;

    with changed as (
        select e.id as extractor_id, e.name, e.version, e.batch_size, c.id
        from unnest(v_ids) as c(id) cross join backfill.extractor e
        where e.version is not null
          and (e.on_insert
               or exists (select from backfill.extraction x
                          where x.capture_id = c.id and x.extractor_id = e.id and x.state <> 'deleted')
               or exists (select from backfill.batch b
                          where b.extractor_id = e.id and b.due > now() and b.due < 'infinity'
                            and b.state = 'leased' and b.ids @> c.id))
    ), delayed as (
        -- Only a batch that nobody has claimed and that holds this capture alone
        -- may be put off; the row lock keeps it from being claimed before our
        -- new text is visible.
        update backfill.batch b set due = v_due
        from (select b.id, c.extractor_id
              from changed c join backfill.batch b on b.extractor_id = c.extractor_id
              where cardinality(v_ids) = 1 and b.prio = 0 and b.due > now() and b.due < 'infinity'
                and b.state = 'pending' and b.mode = 'replace'
                and b.created_at > now() - interval '30 seconds'
                and b.ids = int8multirange(int8range(c.id, c.id, '[]'))
              for update of b skip locked) d
        where b.id = d.id
        returning b.extractor_id
    ), numbered as (
        select extractor_id, name, version, id,
               (row_number() over (partition by extractor_id order by id) - 1) / batch_size as chunk
        from changed where extractor_id not in (select extractor_id from delayed)
    ), queued as (
        insert into backfill.batch (extractor_id, version, prio, mode, due, ids, captures)
        select extractor_id, version, 0, 'replace', v_due, range_agg(int8range(id, id, '[]')), count(*)
        from numbered group by extractor_id, version, chunk
        returning extractor_id
    )
    select array_agg(distinct name) into v_queues from changed;
    if v_queues is not null then
        perform backfill.try_wake(v_queues, v_due);
    end if;
    return null;
end $$;
-- +goose StatementEnd
create trigger intake_updated after update on backfill.intake
    referencing old table as old_rows new table as new_rows
    for each statement execute function backfill.intake_updated();

-- Delete: a tombstone for every slot first, so that a worker in mid-batch cannot
-- bring the deleted text back, then what was derived from it.
-- +goose StatementBegin
create function backfill.intake_deleted() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
    -- without statistics, the planner would rather read all of entity
    set enable_hashjoin = off set enable_mergejoin = off set enable_material = off as $$
declare
    v_ids bigint[];
begin
    select array_agg(id order by id) into v_ids from old_rows;
    if v_ids is null then
        return null;
    end if;
    -- A worker that is writing its result comes before us or after us, not between.
    insert into backfill.extraction (capture_id, extractor_id, state, version, attempts)
    select c.id, e.id, 'deleted', coalesce(e.version, ''), 0
    from unnest(v_ids) as c(id) cross join backfill.extractor e
    order by c.id, e.id
    on conflict (capture_id, extractor_id) do nothing;
    -- Ledger rows before candidates, as workers do: or they and we wait for each other.
    perform from backfill.extraction where capture_id = any (v_ids) order by capture_id, extractor_id for update;
    delete from backfill.entity t
    using (select s.capture_id, s.extractor_id, s.ord, unnest(s.entities) as entity
           from backfill.staging s where s.capture_id = any (v_ids)) s
    where t.entity = s.entity and t.capture_id = s.capture_id
      and t.extractor_id = s.extractor_id and t.ord = s.ord;
    -- The closed batch carries the change to the net counts.
    with known as (
        select capture_id, extractor_id, state, outcome from backfill.extraction
        where capture_id = any (v_ids) and state <> 'deleted'
    ), deleted as (
        update backfill.extraction x
        set state = 'deleted', outcome = null, error = null, next_attempt_at = null, handoff_due = null, claim = null, pruned = null, updated_at = now()
        from known k where x.capture_id = k.capture_id and x.extractor_id = k.extractor_id
        returning k.extractor_id, case when k.state = 'done' then k.outcome end as was
    ), dropped as (
        delete from backfill.staging where capture_id = any (v_ids) returning extractor_id
    )
    insert into backfill.batch (extractor_id, version, prio, state, due, finished_at, ids, captures, staged, empty, skipped, undone, candidates)
    select e.id, e.version, 0, 'done', null, now(), '{}', 0,
           -count(*) filter (where d.was = 'staged'), -count(*) filter (where d.was = 'empty'), -count(*) filter (where d.was = 'skipped'),
           -count(*) filter (where d.was = 'undone'),
           -(select count(*) from dropped where dropped.extractor_id = e.id)
    from deleted d join backfill.extractor e on e.id = d.extractor_id
    group by e.id;
    return null;
end $$;
-- +goose StatementEnd
create trigger intake_deleted after delete on backfill.intake
    referencing old table as old_rows
    for each statement execute function backfill.intake_deleted();

-- Truncate gives no rows to leave tombstones for.
-- +goose StatementBegin
create function backfill.intake_truncated() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
begin
    if exists (select from backfill.extraction where state <> 'deleted')
       or exists (select from backfill.staging)
       or exists (select from backfill.batch where due is not null) then
        raise exception 'backfill.intake cannot be truncated while extractions depend on it'
            using errcode = 'dependent_objects_still_exist',
                  hint = 'DELETE the captures instead: their candidates go with them.';
    end if;
    return null;
end $$;
-- +goose StatementEnd
create trigger intake_truncated before truncate on backfill.intake
    for each statement execute function backfill.intake_truncated();

-- sweep puts failed captures whose time has come back into the queue, moves runs on
-- that have come to rest or to their deadline, has stopped slots probed, and wakes
-- every queue with work that is due. Returns the number of captures that are retried.
-- +goose StatementBegin
create function backfill.sweep() returns bigint
    language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
    v_retried bigint;
    v_queue   text;
begin
    -- What was cancelled is not tried again by itself.
    update backfill.extraction x set state = 'dead', next_attempt_at = null
    from backfill.run r
    where x.state = 'retry' and r.id = x.run_id and r.state in ('cancelling', 'cancelled', 'failed');

    with due as (
        select x.capture_id, x.extractor_id
        from backfill.extraction x
        where x.state = 'retry' and x.next_attempt_at <= now()
        order by x.capture_id, x.extractor_id
        limit 10000 for update skip locked
    ), flipped as (
        update backfill.extraction x set state = 'queued', next_attempt_at = null
        from due where x.capture_id = due.capture_id and x.extractor_id = due.extractor_id
        returning x.capture_id, x.extractor_id, x.run_id
    ), numbered as (
        -- They stay their run's, also when it has ended: its bounds hold for them, and
        -- what they cost is on its account.
        select f.capture_id, e.id as extractor_id, e.version, f.run_id,
               (row_number() over (partition by e.id, f.run_id order by f.capture_id) - 1) / e.batch_size as chunk
        from flipped f
        join backfill.extractor e on e.id = f.extractor_id
    ), queued as (
        insert into backfill.batch (extractor_id, version, prio, mode, run_id, ids, captures)
        select extractor_id, version, 1, 'missing', run_id, range_agg(int8range(capture_id, capture_id, '[]')), count(*)
        from numbered group by extractor_id, version, run_id, chunk
        returning captures
    )
    select coalesce(sum(captures), 0) into v_retried from queued;

    -- An insert that was under way while a version was registered did not see it.
    update backfill.batch b set version = l.version
    from (select b.id, e.version from backfill.batch b join backfill.extractor e on e.id = b.extractor_id
          where b.due is not null and b.version <> e.version and (b.state = 'pending' or b.due <= now())
          order by b.id for update of b skip locked) l
    where b.id = l.id;

    update backfill.run set state = 'deadline_reached'
    where state in ('planning', 'running') and (settings->>'deadline')::timestamptz <= now();
    perform backfill.follow_run(r.id), backfill.settle_run(r.id) from backfill.run r
    where r.finished_at is null
       or r.id in (select b.run_id from backfill.batch b where b.due is not null and b.run_id is not null);

    -- A stopped slot is probed every ten minutes, by a worker that has it.
    with due as (
        update backfill.extractor set probe_at = now() + interval '10 minutes'
        where stopped_at is not null and probe_at <= now()
          and not exists (select from river.river_job j where j.kind = 'probe' and j.state = 'available')
        returning id
    )
    insert into river.river_job (args, kind, max_attempts, priority, queue, state, scheduled_at)
    select jsonb_build_object('slot', id), 'probe', 1, 1, 'probe', 'available', now() from due;

    for v_queue in
        select e.name from backfill.extractor e
        where exists (select from backfill.due_batch b where b.extractor_id = e.id)
    loop
        perform backfill.wake(v_queue);
    end loop;
    return v_retried;
end $$;
-- +goose StatementEnd

revoke execute on function backfill.register_extractor, backfill.wake, backfill.try_wake, backfill.sweep,
    backfill.intake_inserted, backfill.intake_updated, backfill.intake_deleted, backfill.intake_truncated from public;

-- +goose Down
drop trigger intake_truncated on backfill.intake;
drop trigger intake_deleted on backfill.intake;
drop trigger intake_updated on backfill.intake;
drop trigger intake_inserted on backfill.intake;
drop function backfill.intake_truncated, backfill.intake_deleted, backfill.intake_updated, backfill.intake_inserted,
    backfill.sweep, backfill.try_wake, backfill.wake, backfill.register_extractor;
drop view backfill.due_batch, backfill.workable_batch;
