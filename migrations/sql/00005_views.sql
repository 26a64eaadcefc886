-- Views for people: docs/sql.md shows what to ask them.

-- +goose Up

-- What stands where, per extractor, in well under 100 ms at a million captures:
-- done rows are summed from the net counts of batches, the rest is read from
-- partial indexes.
create view backfill.v_status as
select e.name as extractor, e.version, e.on_insert,
       (coalesce(b.staged + b.empty + b.skipped + b.undone, 0) + coalesce(b.first_time, 0))::bigint
           + x.retry + x.dead as captures,
       coalesce(b.staged, 0)::bigint as staged, coalesce(b.empty, 0)::bigint as empty, coalesce(b.skipped, 0)::bigint as skipped,
       coalesce(b.undone, 0)::bigint as undone,
       coalesce(b.candidates, 0)::bigint as candidates,
       coalesce(b.pending, 0)::bigint as pending, coalesce(b.leased, 0)::bigint as leased, coalesce(b.held, 0)::bigint as held,
       x.retry, x.dead,
       now() - b.oldest_due as oldest_pending,
       e.stopped_at, e.stop_reason, e.stop_fix
from backfill.extractor e
left join (
    select b.extractor_id, sum(b.staged) as staged, sum(b.empty) as empty, sum(b.skipped) as skipped, sum(b.undone) as undone, sum(b.candidates) as candidates,
           sum(b.todo) filter (where b.due is not null and b.mode = 'missing') as first_time,
           sum(b.todo) filter (where b.state = 'pending' and not b.rests) as pending,
           sum(b.todo) filter (where b.state = 'leased') as leased,
           sum(b.todo) filter (where b.state = 'pending' and b.rests) as held,
           min(b.created_at) filter (where b.due is not null and not b.rests) as oldest_due
    from (select b.*, b.due is not null and coalesce(b.run_id in (
              select r.id from backfill.run r
              where r.state in ('pausing', 'paused', 'budget_exhausted', 'deadline_reached', 'cancelling', 'failed')), false) as rests
          from backfill.batch b) b
    group by b.extractor_id
) b on b.extractor_id = e.id
-- For each extractor by itself: the planner then keeps to the partial index, also
-- before anything is analysed.
cross join lateral (
    select count(*) filter (where x.state = 'retry') as retry, count(*) filter (where x.state = 'dead') as dead
    from backfill.extraction x where x.extractor_id = e.id and x.state <> 'done'
) x
order by e.id;

-- The same question answered by counting every row of the ledger.
create view backfill.v_status_exact as
select e.name as extractor, e.version,
       (select count(*) from backfill.intake) as captures,
       x.staged, x.empty, x.skipped, x.undone, x.retry, x.queued, x.dead, x.deleted, x.stale,
       (select count(*) from backfill.intake i
        where not exists (select from backfill.extraction x
                          where x.capture_id = i.id and x.extractor_id = e.id)) as missing,
       (select count(*) from backfill.staging s where s.extractor_id = e.id) as candidates
from backfill.extractor e
cross join lateral (
    select count(*) filter (where x.state = 'done' and x.outcome = 'staged') as staged,
           count(*) filter (where x.state = 'done' and x.outcome = 'empty') as empty,
           count(*) filter (where x.state = 'done' and x.outcome = 'skipped') as skipped,
           count(*) filter (where x.state = 'done' and x.outcome = 'undone') as undone,
           count(*) filter (where x.state = 'retry') as retry,
           count(*) filter (where x.state = 'queued') as queued,
           count(*) filter (where x.state = 'dead') as dead,
           count(*) filter (where x.state = 'deleted') as deleted,
           count(*) filter (where x.state = 'done' and x.version <> e.version) as stale
    from backfill.extraction x where x.extractor_id = e.id
) x
order by e.id;

create view backfill.v_run as
select r.id as run, r.kind, e.name as extractor, r.reprocess, r.state, r.who, r.why,
       b.batches, b.open_batches, b.captures as total, b.captures - b.todo as done, b.candidates,
       (select coalesce(jsonb_object_agg(o.outcome, o.n), '{}')
        from (select k.key as outcome, sum(k.value::bigint) as n
              from backfill.batch o, jsonb_each_text(o.outcomes) k
              where o.run_id = r.id and o.outcomes <> '{}' group by k.key) o) as outcomes,
       (select sum(c.cost_microusd) / 1e6 from backfill.llm_call c where c.run_id = r.id) as cost,
       r.created_at, r.planned_at, r.finished_at, r.error, r.sort, r.filter, cardinality(r.ids) as ids, r.settings
from backfill.run r
join backfill.extractor e on e.id = r.extractor_id
cross join lateral (
    -- Retries within the run (prio 1) are no further captures.
    select coalesce(sum(b.batches) filter (where b.prio = 2), 0)::bigint as batches, count(*) filter (where b.due is not null) as open_batches,
           coalesce(sum(b.captures) filter (where b.prio = 2), 0)::bigint as captures,
           coalesce(sum(b.todo) filter (where b.prio = 2), 0)::bigint as todo,
           coalesce(sum(b.found), 0)::bigint as candidates
    from backfill.batch b where b.run_id = r.id
) b;

-- What each night did, in one row for each extractor: found are the captures it had
-- to see to. Of these, failed were given up or wait for another attempt, and open
-- have not been worked yet.
create view backfill.v_nightly as
select r.local_date as night, v.extractor, v.run, v.state, v.total as found, v.done - f.failed as done, f.failed,
       v.total - v.done as open, v.candidates, v.cost, v.created_at as began, v.finished_at - v.created_at as took
from backfill.v_run v
join backfill.run r on r.id = v.run
cross join lateral (
    select count(*) as failed from backfill.extraction x
    where x.extractor_id = r.extractor_id and x.run_id = r.id and x.state <> 'done' and x.state in ('retry', 'queued', 'dead')
) f
where r.kind = 'nightly';

-- What is still to do, and who holds it. due is null while its run is not running.
create view backfill.v_batch as
select b.id as batch, e.name as extractor, b.version, b.state, b.mode, b.prio, b.run_id as run,
       b.todo as captures, b.attempts, b.worker, b.error, nullif(b.due, 'infinity') as due,
       b.created_at, b.started_at, b.ids
from backfill.batch b
join backfill.extractor e on e.id = b.extractor_id
where b.due is not null;

-- Captures without a result: what went wrong, and when it is tried again.
create view backfill.v_failure as
select x.capture_id, e.name as extractor, x.outcome, x.state, x.attempts, x.error,
       x.next_attempt_at, x.updated_at, x.version, x.run_id
from backfill.extraction x
join backfill.extractor e on e.id = x.extractor_id
where x.state <> 'done' and x.state in ('retry', 'queued', 'dead') and x.outcome is not null;

-- Candidates as columns, and as the one JSON value that the memory service's
-- enrich takes.
create view backfill.v_candidate as
select s.capture_id, e.name as extractor, s.ord, s.content, s.kind, s.salience, s.source, s.observed, s.date,
       s.tags, s.meta, s.evidence, s.entities, s.version, s.fallback, s.created_at,
       s.ord <= x.handed_upto as handed_over,
       jsonb_strip_nulls(jsonb_build_object(
           'content', s.content, 'salience', s.salience, 'source', s.source, 'observed', s.observed,
           'date', s.date, 'tags', to_jsonb(s.tags), 'meta', s.meta)) as candidate
from backfill.staging s
join backfill.extractor e on e.id = s.extractor_id
join backfill.extraction x on x.capture_id = s.capture_id and x.extractor_id = s.extractor_id;

create view backfill.v_entity as
select n.entity, n.capture_id, e.name as extractor, n.ord, s.content, s.kind, s.salience, s.date
from backfill.entity n
join backfill.extractor e on e.id = n.extractor_id
join backfill.staging s on s.capture_id = n.capture_id and s.extractor_id = n.extractor_id and s.ord = n.ord;

-- Calls to models by day, UTC as the daily limits are. cost is null where the price of a model is unknown.
create view backfill.v_cost as
select date_trunc('day', c.started_at, 'UTC') as day, c.endpoint,
       coalesce(c.model_returned, c.model_requested) as model,
       count(*) as calls, count(*) filter (where c.class <> 'ok') as failed,
       sum(c.prompt_tokens)::bigint as prompt_tokens, sum(c.completion_tokens)::bigint as completion_tokens,
       sum(c.cost_microusd) / 1e6 as cost,
       count(*) filter (where c.cost_microusd is null) as calls_without_cost
from backfill.llm_call c
group by 1, 2, 3;

-- +goose Down
drop view backfill.v_cost, backfill.v_entity, backfill.v_candidate, backfill.v_failure, backfill.v_batch,
    backfill.v_nightly, backfill.v_run, backfill.v_status_exact, backfill.v_status;
