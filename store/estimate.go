package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Estimate is what a run would take, exactly, as of now.
type Estimate struct {
	Captures int64 `json:"captures"`
	Batches  int64 `json:"batches"`
	// Bytes of text in the captures.
	Bytes int64 `json:"bytes"`
	// Replaced are candidates that would make way, and Kept those that would stay
	// beside the new ones: they were handed over, or are claimed.
	Replaced int64 `json:"replaced"`
	Kept     int64 `json:"kept"`
}

// Estimate goes through what a run would take, with the statement that plans it,
// and writes nothing.
func (s *Store) Estimate(ctx context.Context, r NewRun) (Estimate, error) {
	var e Estimate
	err := s.walk(ctx, r, func(tx pgx.Tx, sc *scope, w span, most int64) (t taken, err error) {
		var bytes, replaced, kept int64
		err = tx.QueryRow(ctx, sc.pick(w, `
			select count(*), coalesce(min(p.id), 0), coalesce(max(p.id), 0), coalesce(sum(octet_length(i.text)), 0), `+candidatesOfPicked(sc)+`
			from picked p join backfill.intake i on i.id = p.id`), sc.args(w, most)).
			Scan(&t.n, &t.first, &t.last, &bytes, &replaced, &kept)
		e.Captures += t.n
		e.Batches += (t.n + int64(sc.size) - 1) / int64(sc.size)
		e.Bytes, e.Replaced, e.Kept = e.Bytes+bytes, e.Replaced+replaced, e.Kept+kept
		return t, err
	})
	return e, err
}

// candidatesOfPicked are two columns: candidates that would be replaced, and kept.
func candidatesOfPicked(sc *scope) string {
	if sc.selection().mode != "replace" {
		return "0, 0"
	}
	const staged = `
		from picked join backfill.staging s on s.capture_id = picked.id and s.extractor_id = @slot
		join backfill.extraction x on x.capture_id = s.capture_id and x.extractor_id = s.extractor_id`
	return `(select count(*) ` + staged + ` where s.ord > x.claimed_upto), (select count(*) ` + staged + ` where s.ord <= x.claimed_upto)`
}

// Picks lists the captures that a run would take, in its order.
func (s *Store) Picks(ctx context.Context, r NewRun) ([]int64, error) {
	var all []int64
	err := s.walk(ctx, r, func(tx pgx.Tx, sc *scope, w span, most int64) (taken, error) {
		rows, err := tx.Query(ctx, sc.pick(w, " select id from picked order by id "+sc.direction()), sc.args(w, most))
		if err != nil {
			return taken{}, err
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil || len(ids) == 0 {
			return taken{}, err
		}
		all = append(all, ids...)
		first, last := ids[0], ids[len(ids)-1]
		return taken{n: int64(len(ids)), first: min(first, last), last: max(first, last)}, nil
	})
	return all, err
}

// taking is one step: it says what was taken of a stretch.
type taking func(tx pgx.Tx, sc *scope, w span, most int64) (taken, error)

// walk takes the steps of the planner.
func (s *Store) walk(ctx context.Context, r NewRun, take taking) error {
	sc, err := s.scopeOf(ctx, r)
	if err != nil {
		return err
	}
	return s.walkScope(ctx, sc, step, take)
}

func (s *Store) walkScope(ctx context.Context, sc *scope, r reach, take taking) error {
	for end := false; !end; {
		err := s.inTx(ctx, func(tx pgx.Tx) error {
			if err := byIndex(ctx, tx); err != nil {
				return err
			}
			w, err := sc.next(ctx, tx, r.look)
			if err != nil {
				return err
			}
			most := sc.most(r.take)
			t, err := take(tx, sc, w, most)
			if err != nil {
				return err
			}
			end = sc.advance(w, most, t)
			return nil
		})
		if err != nil {
			return wrap("counting captures", err)
		}
	}
	return nil
}

// Pace is what the latest work of a slot took. Nil is unknown: there was none.
type Pace struct {
	// CapturesPerSecond of the last runs that were not interrupted, of all workers
	// together.
	CapturesPerSecond *float64 `db:"captures_per_second"`
	// PromptTokens of a capture are PromptBase and PromptPerByte for each byte of
	// its text; retries are counted in.
	PromptBase    *float64 `db:"prompt_base"`
	PromptPerByte *float64 `db:"prompt_per_byte"`
	// CompletionTokens of a capture.
	CompletionTokens *float64 `db:"completion_tokens"`
	// MicroUSDPerToken is for prompt and completion together, of calls that were made
	// for the current version and whose price was known.
	MicroUSDPerToken *float64 `db:"micro_usd_per_token"`
}

// Pace reads it off the last five runs and, for a slot that asks a model, off the
// last 2,000 calls.
func (s *Store) Pace(ctx context.Context, e Extractor) (Pace, error) {
	p, err := collect[Pace](ctx, s, "reading the pace of the last runs", `
		with last as (
		    select r.id from backfill.run r
		    where r.extractor_id = $1 and r.state in ('succeeded', 'finished_with_errors')
		      and exists (select from backfill.batch b where b.run_id = r.id and b.state = 'done' and b.prio = 2)
		      and not exists (select from backfill.run_event v
		                      where v.run_id = r.id and v.to_state in ('pausing', 'budget_exhausted', 'deadline_reached'))
		    order by r.id desc limit 5
		), spent as (
		    select sum(b.captures) as captures, extract(epoch from max(b.finished_at) - min(b.started_at)) as seconds
		    from last join backfill.batch b on b.run_id = last.id and b.state = 'done' and b.prio = 2 group by last.id
		), calls as (
		    select * from backfill.llm_call where $2 order by id desc limit 2000
		), captures as (
		    select octet_length(i.text) as bytes, sum(c.prompt_tokens) as prompt, sum(c.completion_tokens) as completion
		    from calls c join backfill.intake i on i.id = c.capture_id
		    group by i.id having count(c.prompt_tokens) > 0 and count(c.completion_tokens) > 0
		), fit as (
		    select avg(prompt) as mean, regr_slope(prompt, bytes) as slope, regr_intercept(prompt, bytes) as base,
		           -- A line through a few points, or one that falls, says nothing.
		           count(*) >= 20 and regr_slope(prompt, bytes) >= 0 and regr_intercept(prompt, bytes) >= 0 as usable
		    from captures
		)
		select (select (sum(captures) / nullif(sum(seconds), 0))::float8 from spent) as captures_per_second,
		       case when fit.usable then fit.base else fit.mean end::float8 as prompt_base,
		       case when fit.usable then fit.slope when fit.mean is not null then 0 end::float8 as prompt_per_byte,
		       (select avg(completion)::float8 from captures) as completion_tokens,
		       (select (sum(cost_microusd) / nullif(sum(prompt_tokens + completion_tokens), 0))::float8
		        from calls where cost_microusd is not null and prompt_version = $3) as micro_usd_per_token
		from fit`, e.ID, e.AsksModel(), e.Version)
	if err != nil {
		return Pace{}, err
	}
	return p[0], nil
}

// Tokens of the prompts and of the answers that a run would take, or nil.
func (p Pace) Tokens(e Estimate) (prompt, completion *int64) {
	if p.PromptBase == nil || p.PromptPerByte == nil || p.CompletionTokens == nil {
		return nil, nil
	}
	n := float64(e.Captures)
	in, out := int64(n**p.PromptBase+float64(e.Bytes)**p.PromptPerByte), int64(n**p.CompletionTokens)
	return &in, &out
}
