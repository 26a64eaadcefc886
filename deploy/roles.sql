-- Roles for a shared database, run once by its owner after `backfill migrate up`:
--
--   psql "$DATABASE_URL" -v ON_ERROR_STOP=1 -f deploy/roles.sql
--
-- Creating them takes CREATEROLE. They cannot log in: grant them to the users that should have them, e.g.
--   grant backfill_app to my_app;
-- Workers and operators connect as the owner of the schema.

begin;

do $$
declare
    r text;
begin
    foreach r in array array['backfill_app', 'backfill_memory', 'backfill_reader'] loop
        if not exists (select from pg_roles where rolname = r) then
            execute format('create role %I nologin', r);
        end if;
    end loop;
end $$;

grant usage on schema backfill to backfill_app, backfill_memory, backfill_reader;

-- Whoever writes captures. RETURNING and ON CONFLICT need the SELECT; the work is
-- queued by triggers that run as their owner.
grant insert, select (id, source, external_id) on backfill.intake to backfill_app;

-- The memory service: takes candidates over, sees no captures.
grant select on backfill.v_candidate to backfill_memory;
grant execute on function
    backfill.claim_candidates(text, integer, interval),
    backfill.ack_candidates(bigint, bigint[]),
    backfill.release(bigint) to backfill_memory;

-- People who look. v_candidate and v_entity show what was extracted, not the
-- captures themselves.
grant select on
    backfill.v_status, backfill.v_status_exact, backfill.v_batch, backfill.v_run, backfill.v_nightly, backfill.v_failure,
    backfill.v_candidate, backfill.v_entity, backfill.v_cost to backfill_reader;

commit;
