-- Hand-off to the memory service. The lease lives on the ledger row, so staging
-- stays immutable. What was handed over may be pruned once it is old. plpgsql with custom plans: as SQL functions these were seven
-- times slower.

-- +goose Up

-- Every candidate that may not be staged again as it is: those that are there, and
-- those that were pruned.
create view backfill.known_candidate as
select capture_id, extractor_id, ord, fingerprint from backfill.staging
union all
select x.capture_id, x.extractor_id, p.ord::smallint, p.fingerprint
from backfill.extraction x, unnest(x.pruned) with ordinality p (fingerprint, ord)
where x.pruned is not null;

-- claim_candidates leases up to p_max captures for p_consumer and returns those
-- of their candidates that were not handed over yet. Whoever does not
-- acknowledge within p_lease loses them to the next caller.
-- +goose StatementBegin
create function backfill.claim_candidates(
    p_consumer text, p_max integer default 100, p_lease interval default '5 minutes')
    returns table (claim bigint, capture_id bigint, extractor text, ord smallint, content text, kind text,
                   salience real, source text, observed text, date text, tags text[], meta jsonb,
                   evidence text, entities text[], version text)
    language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
    set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
declare
    v_claim bigint := nextval('backfill.claim_seq');
begin
    if coalesce(p_consumer, '') = '' or coalesce(p_max, 0) < 1 or coalesce(p_lease, '-1 second') < interval '0' then
        raise exception 'claim_candidates takes the name of a consumer, a number from 1 on, and a lease that is not negative'
            using errcode = 'invalid_parameter_value';
    end if;
    return query
    with due as materialized (
        select x.capture_id, x.extractor_id
        from backfill.extraction x
        where x.handoff_due <= now()
        order by x.handoff_due, x.capture_id, x.extractor_id
        limit p_max for update skip locked
    ), leased as (
        update backfill.extraction x
        set claim = v_claim, handed_to = p_consumer, handoff_due = now() + p_lease,
            claimed_upto = (select max(s.ord) from backfill.staging s
                            where s.capture_id = x.capture_id and s.extractor_id = x.extractor_id)
        from due
        where x.capture_id = due.capture_id and x.extractor_id = due.extractor_id
        returning x.capture_id, x.extractor_id, x.handed_upto
    )
    select v_claim, s.capture_id, e.name, s.ord, s.content, s.kind, s.salience, s.source, s.observed,
           s.date, s.tags, s.meta, s.evidence, s.entities, s.version
    from leased l
    join backfill.staging s
      on s.capture_id = l.capture_id and s.extractor_id = l.extractor_id and s.ord > l.handed_upto
    join backfill.extractor e on e.id = s.extractor_id
    order by s.capture_id, s.extractor_id, s.ord;
end $$;
-- +goose StatementEnd

-- ack_candidates records that the captures of a claim (all of them by default)
-- were taken over, and returns how many. It is refused as a whole when one of
-- them is no longer held under this claim: the lease ran out and another
-- consumer has them. Candidates that were staged meanwhile are up next.
-- +goose StatementBegin
create function backfill.ack_candidates(p_claim bigint, p_capture_ids bigint[] default null) returns bigint
    language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
    set plan_cache_mode = force_custom_plan as $$
declare
    v_held  bigint;
    v_asked bigint := (select count(distinct c) from unnest(p_capture_ids) c);
begin
    with acked as (
        update backfill.extraction x
        set handed_upto = x.claimed_upto, handed_at = now(), claim = null,
            handoff_due = case when exists (
                select from backfill.staging s
                where s.capture_id = x.capture_id and s.extractor_id = x.extractor_id and s.ord > x.claimed_upto) then now() end
        where x.claim = p_claim and (p_capture_ids is null or x.capture_id = any (p_capture_ids))
        returning x.capture_id
    )
    select count(distinct capture_id) into v_held from acked;
    if v_held = 0 or v_held < v_asked then
        raise exception 'claim % does not hold these captures: its lease has moved on', p_claim
            using errcode = 'object_not_in_prerequisite_state',
                  hint = 'Claim again and write the candidates idempotently.';
    end if;
    return v_held;
end $$;
-- +goose StatementEnd

-- release gives the captures of a claim back at once, and returns how many.
-- +goose StatementBegin
create function backfill.release(p_claim bigint) returns bigint
    language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
    set plan_cache_mode = force_custom_plan as $$
declare
    v_released bigint;
begin
    update backfill.extraction set handoff_due = now(), claim = null
    where claim = p_claim;
    get diagnostics v_released = row_count;
    return v_released;
end $$;
-- +goose StatementEnd

revoke execute on function backfill.claim_candidates, backfill.ack_candidates, backfill.release from public;

-- +goose Down
drop function backfill.claim_candidates, backfill.ack_candidates, backfill.release;
drop view backfill.known_candidate;
