-- Runs: their state machine, and what each change of state does to their batches.
--
-- Whoever changes run.state, a worker, the CLI or a person in psql, goes through
-- the same triggers: a run that is to be planned is announced to the workers, a
-- change of state must be in run_edge, and it is logged, as is a change of the
-- settings. The state alone says whether a batch may be worked; the run's batches
-- follow it afterwards, in short transactions, however many they are.

-- +goose Up

-- Where a capture falls in [0, 1), the same every time and everywhere: a sample
-- takes those below its share, so a smaller sample is a part of a larger one.
create function backfill.draw(capture_id bigint) returns double precision
    language sql immutable strict parallel safe
return ('x' || left(md5(capture_id::text), 8))::bit(32)::bigint / 4294967296.0::double precision;

-- Every allowed change of state, with its reason. All others are refused.
create table backfill.run_edge (
    from_state text not null,
    to_state   text not null,
    reason     text not null,
    primary key (from_state, to_state)
);
insert into backfill.run_edge (from_state, to_state, reason) values
    ('planning', 'running', 'every capture is in a batch'),
    ('planning', 'pausing', 'a pause was asked for'),
    ('planning', 'cancelling', 'a cancellation was asked for'),
    ('planning', 'budget_exhausted', 'its budget is spent'),
    ('planning', 'deadline_reached', 'its time is up'),
    ('planning', 'failed', 'it could not be planned, or too many captures failed'),
    ('running', 'pausing', 'a pause was asked for'),
    ('running', 'cancelling', 'a cancellation was asked for'),
    ('running', 'succeeded', 'every capture has a final result'),
    ('running', 'finished_with_errors', 'every capture was worked, and some failed'),
    ('running', 'budget_exhausted', 'its budget is spent'),
    ('running', 'deadline_reached', 'its time is up'),
    ('running', 'failed', 'too many captures failed'),
    ('pausing', 'paused', 'nothing is in work any more'),
    ('pausing', 'running', 'it was resumed'),
    ('pausing', 'planning', 'it was resumed before it was planned'),
    ('pausing', 'cancelling', 'a cancellation was asked for'),
    ('paused', 'running', 'it was resumed'),
    ('paused', 'planning', 'it was resumed before it was planned'),
    ('paused', 'cancelling', 'a cancellation was asked for'),
    ('budget_exhausted', 'running', 'it was resumed'),
    ('budget_exhausted', 'planning', 'it was resumed before it was planned'),
    ('budget_exhausted', 'cancelling', 'a cancellation was asked for'),
    ('deadline_reached', 'running', 'it was resumed'),
    ('deadline_reached', 'planning', 'it was resumed before it was planned'),
    ('deadline_reached', 'cancelling', 'a cancellation was asked for'),
    ('succeeded', 'cancelling', 'its failures are not to be tried again'),
    ('finished_with_errors', 'cancelling', 'its failures are not to be tried again'),
    ('cancelling', 'cancelled', 'nothing is in work any more');

-- What happened to a run. Where the state stays, something else was changed, and
-- reason says what.
create table backfill.run_event (
    id         bigint generated always as identity primary key,
    at         timestamptz not null default clock_timestamp(),
    run_id     bigint not null references backfill.run,
    who        text not null,
    from_state text not null,
    to_state   text not null,
    reason     text not null
);
create index run_event_run on backfill.run_event (run_id);

-- who is on record for a change: the caller may name himself in the setting
-- backfill.who.
create function backfill.who() returns text
    language sql stable
return coalesce(nullif(current_setting('backfill.who', true), ''), session_user);

-- wake_planner makes sure that a worker plans what is in state planning. It never
-- fails: the workers also look by themselves, every minute.
-- +goose StatementBegin
create function backfill.wake_planner() returns void
    language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '100ms' as $$
begin
    insert into river.river_job (args, kind, max_attempts, priority, queue, state, scheduled_at)
    values ('{}', 'plan', 1, 1, 'plan', 'available', now());
    perform pg_notify('river.river_insert', json_build_object('queue', 'plan')::text);
exception when others then
    raise debug 'backfill: River was not woken: %', sqlerrm;
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
create function backfill.run_created() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform backfill.wake_planner();
    return null;
end $$;
-- +goose StatementEnd
create trigger run_created after insert on backfill.run
    for each row when (new.state = 'planning') execute function backfill.run_created();

-- run_changed enforces run_edge.
-- +goose StatementBegin
create function backfill.run_changed() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_reason text := (select reason from backfill.run_edge where from_state = old.state and to_state = new.state);
begin
    if v_reason is null then
        raise exception 'run % is %: it cannot become %', old.id, old.state, new.state
            using errcode = 'object_not_in_prerequisite_state',
                  hint = 'From here it can become: ' || coalesce(
                      (select string_agg(to_state, ', ' order by to_state) from backfill.run_edge where from_state = old.state),
                      'nothing, it has ended') || '.';
    end if;
    if new.state in ('succeeded', 'finished_with_errors') and exists (select from backfill.batch where run_id = new.id and due is not null) then
        raise exception 'run % has open batches: it cannot become %', old.id, new.state using errcode = 'object_not_in_prerequisite_state',
            hint = 'It ends by itself when they are done.';
    end if;
    insert into backfill.run_event (run_id, who, from_state, to_state, reason)
    values (old.id, backfill.who(), old.state, new.state, v_reason);

    if new.state = 'cancelling' then
        new.finished_at := null;
    end if;
    if new.state in ('succeeded', 'finished_with_errors', 'cancelled', 'failed') then
        new.finished_at := now();
    end if;
    if new.state in ('planning', 'running') then
        new.error := null; -- what stopped it before
    end if;
    if new.state = 'planning' then
        perform backfill.wake_planner();
    end if;
    return new;
end $$;
-- +goose StatementEnd
create trigger run_changed before update of state on backfill.run
    for each row when (old.state is distinct from new.state) execute function backfill.run_changed();

-- +goose StatementBegin
create function backfill.run_set() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    insert into backfill.run_event (run_id, who, from_state, to_state, reason)
    select new.id, backfill.who(), new.state, new.state,
           string_agg(format('%s: %s → %s', replace(key, '_', '-'),
                             coalesce(old.settings->>key, 'none'), coalesce(new.settings->>key, 'none')), ', ' order by key)
    from jsonb_object_keys(old.settings || new.settings) key
    where old.settings->key is distinct from new.settings->key;
    return null;
end $$;
-- +goose StatementEnd
create trigger run_set after update of settings on backfill.run
    for each row when (old.settings is distinct from new.settings) execute function backfill.run_set();

-- follow_run makes a run's pending batches follow its state, ten thousand at most and
-- those that nobody has locked, and returns how many there were; it is called until
-- there are none. No claim goes by what it does:
--
--   - those of a run that rests are parked, due never, so that claims need not pass
--     them on their way; they are due again when it goes on;
--   - those of a run that ends before it is done are closed without a result: a later
--     run over what is missing finds their captures. What the run found dead is dead
--     again, and what it had entered and not answered is not on record any more.
-- +goose StatementBegin
create function backfill.follow_run(p_run bigint) returns bigint
    language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
    v_state text;
    v_ids   bigint[];
    v_moved bigint;
begin
    -- Locked, or batches were parked while the run is resumed.
    select state into v_state from backfill.run where id = p_run for share;
    if v_state in ('cancelling', 'cancelled', 'failed') then
        select array_agg(id) into v_ids from (
            select id, sum(captures) over (order by id) - captures as before from (
                select id, captures from backfill.batch
                where run_id = p_run and due is not null and (state = 'pending' or v_state <> 'cancelling' and due <= now())
                order by id limit 10000) b) b
        where before < 100000;
        with dropped as (
            update backfill.batch b set state = 'cancelled', due = null, finished_at = now()
            from (select id from backfill.batch
                  where id = any (v_ids) and due is not null and (state = 'pending' or v_state <> 'cancelling' and due <= now())
                  order by id for update skip locked) l
            where b.id = l.id
            returning b.id, b.extractor_id, b.run_id, b.version, b.at, b.ids
        ), lost as (
            -- Whoever had a capture in hand and vanished may have asked a model.
            insert into backfill.llm_call (capture_id, batch_id, run_id, prompt_version, class)
            select d.at, d.id, d.run_id, d.version, 'lost'
            from dropped d join backfill.extractor e on e.id = d.extractor_id and e.name = 'llm'
            where d.at is not null
        ), captures as (
            select d.extractor_id, c as id from dropped d, unnest(d.ids) r, generate_series(lower(r), upper(r) - 1) c
        ), forgotten as (
            delete from backfill.extraction x using captures c
            where x.capture_id = c.id and x.extractor_id = c.extractor_id and x.state = 'queued' and x.outcome is null
        ), given_up as (
            update backfill.extraction x set state = 'dead', next_attempt_at = null
            from captures c
            where x.capture_id = c.id and x.extractor_id = c.extractor_id and x.state = 'queued' and x.outcome is not null
        )
        select count(*) into v_moved from dropped;
    else
        with moved as (
            update backfill.batch b set due = case when l.due = 'infinity' then now() else 'infinity' end
            from (select id, due from backfill.batch
                  where run_id = p_run and state = 'pending'
                    and (due = 'infinity') = (v_state not in ('pausing', 'paused', 'budget_exhausted', 'deadline_reached'))
                  order by id limit 10000 for update skip locked) l
            where b.id = l.id
            returning b.id
        )
        select count(*) into v_moved from moved;
    end if;
    return v_moved;
end $$;
-- +goose StatementEnd

-- fail_run ends a run with more failures than its max_error_rate allows, from fifty
-- results on. Says whether it did.
-- +goose StatementBegin
create function backfill.fail_run(p_run bigint) returns boolean
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_rate   numeric;
    v_failed bigint;
    v_all    bigint;
begin
    select (settings->'max_error_rate')::numeric into v_rate
    from backfill.run where id = p_run and state in ('planning', 'running');
    if v_rate is null then
        return false;
    end if;
    select coalesce(sum(o.value::bigint) filter (where o.key not in ('staged', 'empty', 'skipped')), 0), coalesce(sum(o.value::bigint), 0)
    into v_failed, v_all
    from backfill.batch b, jsonb_each_text(b.outcomes) o where b.run_id = p_run;
    if v_all < 50 or v_failed <= v_rate * v_all then
        return false;
    end if;
    update backfill.run set state = 'failed', error = format('%s of %s results were failures: over max-error-rate', v_failed, v_all)
    where id = p_run and state in ('planning', 'running');
    return found;
end $$;
-- +goose StatementEnd

-- settle_run moves a run on that has come to rest: running without an open batch
-- it has ended (a capture that waits for its next attempt does not hold it up);
-- pausing without a leased one it has paused, cancelling without an open one it is
-- cancelled. Says whether anything changed. The run row is locked first: a planner
-- that adds batches holds it.
--
-- Leases that ran out do not count. With p_force, for a run that is pausing or
-- cancelling, those that did not are taken away as well. Should their worker be
-- alive after all, its fence refuses the result, and what it did is done again.
-- +goose StatementBegin
create function backfill.settle_run(p_run bigint, p_force boolean default false) returns boolean
    language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
    v_state   text;
    v_slot    smallint;
    v_workers text;
begin
    if backfill.fail_run(p_run) then
        return true;
    end if;
    if not p_force and exists (select from backfill.batch b where b.run_id = p_run and b.state = 'leased' and b.due > now()) then
        return false;
    end if;
    if p_force then
        select state, extractor_id into v_state, v_slot from backfill.run where id = p_run for update;
    else
        select state, extractor_id into v_state, v_slot from backfill.run where id = p_run for update skip locked;
    end if;
    if v_state in ('pausing', 'cancelling') then
        -- A claim that is under way has not seen the state; those after it do.
        perform pg_advisory_xact_lock(hashtextextended('backfill claims', v_slot));
        -- A worker that vanished does not hold the run up. Its attempt counts: the
        -- capture in hand may be the reason.
        with taken as (
            update backfill.batch b set state = 'pending', due = 'infinity', lease_no = b.lease_no + 1
            from (select id, due > now() as held from backfill.batch
                  where run_id = p_run and state = 'leased' and (p_force or due <= now()) order by id for update) l
            where b.id = l.id
            returning b.worker, l.held
        )
        select string_agg(distinct worker, ', ' order by worker) into v_workers from taken where held;
        if v_workers is not null then
            insert into backfill.run_event (run_id, who, from_state, to_state, reason)
            values (p_run, backfill.who(), v_state, v_state, 'leases were taken from ' || v_workers);
        end if;
        if v_state = 'cancelling' then
            perform backfill.follow_run(p_run); -- what was given back since
        end if;
        if exists (select from backfill.batch b where b.run_id = p_run and (b.state = 'leased' or b.due is not null and v_state = 'cancelling')) then
            return false;
        end if;
        update backfill.run set state = case v_state when 'pausing' then 'paused' else 'cancelled' end where id = p_run;
        return true;
    end if;
    if v_state is distinct from 'running'
       or exists (select from backfill.batch b where b.run_id = p_run and b.due is not null) then
        return false;
    end if;
    update backfill.run r
    set state = case when exists (
            select from backfill.extraction x
            where x.run_id = p_run and x.extractor_id = r.extractor_id and x.state in ('retry', 'queued', 'dead'))
            -- Failures to replace leave the ledger as it is.
            or exists (select from backfill.batch b where b.run_id = p_run and b.mode = 'replace'
                       and b.outcomes ?| array['unparseable', 'refused', 'truncated', 'too_long', 'provider_error', 'data_error', 'panic', 'crashed'])
            then 'finished_with_errors' else 'succeeded' end
    where r.id = p_run;
    return true;
end $$;
-- +goose StatementEnd

revoke execute on function backfill.draw, backfill.who, backfill.wake_planner, backfill.run_created, backfill.run_changed,
    backfill.run_set, backfill.follow_run, backfill.fail_run, backfill.settle_run from public;

-- +goose Down
drop trigger run_set on backfill.run;
drop trigger run_changed on backfill.run;
drop trigger run_created on backfill.run;
drop function backfill.settle_run, backfill.fail_run, backfill.follow_run, backfill.run_set, backfill.run_changed, backfill.run_created,
    backfill.wake_planner, backfill.who;
drop table backfill.run_event;
drop table backfill.run_edge;
drop function backfill.draw;
