package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/justfortytwo/backfill/extract"
	"github.com/justfortytwo/backfill/internal/config"
	"github.com/justfortytwo/backfill/jobs"
	"github.com/justfortytwo/backfill/store"
)

// estimate is what a run would take and cost. Nil is unknown.
type estimate struct {
	store.Estimate
	TokensIn  *int64 `json:"tokens_in"`
	TokensOut *int64 `json:"tokens_out"`
	// Rough is set where there were no calls of the slot to go by.
	Rough bool `json:"rough"`
	// Cost is in US dollars.
	Cost    *float64 `json:"cost"`
	Minutes *float64 `json:"minutes"`
}

func (a *app) estimate(ctx context.Context, st *store.Store, e store.Extractor, spec store.NewRun) (estimate, error) {
	var out estimate
	var err error
	if out.Estimate, err = st.Estimate(ctx, spec); err != nil {
		return out, err
	}
	pace, err := st.Pace(ctx, e)
	if err != nil {
		return out, err
	}
	if pace.CapturesPerSecond != nil {
		minutes := float64(out.Captures) / *pace.CapturesPerSecond / 60
		out.Minutes = &minutes
	}
	if !e.AsksModel() {
		out.TokensIn, out.TokensOut, out.Cost = new(int64), new(int64), new(float64)
		return out, nil
	}
	if out.TokensIn, out.TokensOut = pace.Tokens(out.Estimate); out.TokensIn == nil {
		in, answers := a.cfg.LLM.Config().Rough(out.Captures, out.Bytes)
		out.TokensIn, out.TokensOut, out.Rough = &in, &answers, true
	}
	out.Cost = a.cost(out, pace)
	return out, nil
}

// cost goes by what calls of this version cost, or else by the configured price.
func (a *app) cost(e estimate, pace store.Pace) *float64 {
	if pace.MicroUSDPerToken != nil {
		cost := float64(*e.TokensIn+*e.TokensOut) * *pace.MicroUSDPerToken / 1e6
		return &cost
	}
	in, out := int(*e.TokensIn), int(*e.TokensOut)
	micro := a.cfg.LLM.Prices.Cost(a.cfg.LLM.Model, extract.Usage{PromptTokens: &in, CompletionTokens: &out})
	if micro == nil {
		return nil
	}
	cost := float64(*micro) / 1e6
	return &cost
}

// costs is "about $0.12", or "unknown".
func (e estimate) costs() string {
	if e.Cost == nil {
		return "unknown"
	}
	if *e.Cost > 0 && *e.Cost < 0.01 {
		return "under $0.01"
	}
	if e.Rough {
		return fmt.Sprintf("roughly $%.2f", *e.Cost)
	}
	return fmt.Sprintf("about $%.2f", *e.Cost)
}

// dryRun says what a run would take.
func (a *app) dryRun(ctx context.Context, st *store.Store, x store.Extractor, spec store.NewRun) error {
	e, err := a.estimate(ctx, st, x, spec)
	if err != nil {
		return err
	}
	if a.json {
		return a.writeJSON(e)
	}
	fmt.Fprintf(a.stdout, "would take %s in %s, %s of text\n", plural(e.Captures, "capture"), plural(e.Batches, "batch"), size(e.Bytes))
	if spec.Reprocess.Replaces() {
		fmt.Fprintf(a.stdout, "would replace %s; %d more stay: they were handed over, or are claimed\n", plural(e.Replaced, "candidate"), e.Kept)
	}
	if x.AsksModel() {
		tokens := fmt.Sprintf("about %d in, %d out", *e.TokensIn, *e.TokensOut)
		if e.Rough {
			tokens = fmt.Sprintf("roughly %d in, %d out: there is no call to go by, a run with --limit 20 makes some", *e.TokensIn, *e.TokensOut)
		}
		fmt.Fprintf(a.stdout, "tokens: %s\ncost: %s\n", tokens, e.costs())
	}
	time := "unknown: there is no run to go by"
	if e.Minutes != nil {
		time = fmt.Sprintf("about %.0f min at the pace of the last runs", math.Ceil(*e.Minutes))
	}
	fmt.Fprintf(a.stdout, "time: %s\n", time)
	return nil
}

// size is a number of bytes for people.
func size(bytes int64) string {
	switch {
	case bytes < 10<<10:
		return plural(bytes, "byte")
	case bytes < 10<<20:
		return fmt.Sprintf("%d KiB", bytes>>10)
	default:
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
}

// confirmRun shows the price of replacing results of a model, and asks.
func (a *app) confirmRun(ctx context.Context, st *store.Store, x store.Extractor, spec store.NewRun) error {
	e, err := a.estimate(ctx, st, x, spec)
	if err != nil || e.Captures == 0 {
		return err
	}
	what := fmt.Sprintf("extracting %s again replaces %s; its cost is %s", plural(e.Captures, "capture"), plural(e.Replaced, "candidate"), e.costs())
	if !a.asks {
		return errors.New(what + ": add --yes to do it")
	}
	fmt.Fprintf(a.stderr, "%s. Go on? [y/N] ", what)
	answer, err := bufio.NewReader(a.stdin).ReadString('\n')
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if yes := strings.ToLower(strings.TrimSpace(answer)); err != nil || yes != "y" && yes != "yes" {
		return errors.New("nothing was done")
	}
	return nil
}

// preview shows the candidates of the captures that a run would take.
func (a *app) preview(ctx context.Context, st *store.Store, cfg jobs.Config, x store.Extractor, spec store.NewRun) error {
	for _, slot := range cfg.Slots {
		if slot.ID == x.ID {
			ids, err := st.Picks(ctx, spec)
			if err != nil {
				return err
			}
			preview, err := jobs.NewPreview(st, slot, a.logger())
			if err != nil {
				return err
			}
			return a.previewOf(ctx, st, preview, ids)
		}
	}
	return fmt.Errorf("--print needs the %s extractor here: %w", x.Name, config.ErrNoModel)
}

func (a *app) previewOf(ctx context.Context, st *store.Store, preview jobs.Preview, ids []int64) error {
	for c, err := range st.Captures(ctx, ids, jobs.MaxTextBytes) {
		if err != nil {
			return err
		}
		r := preview(ctx, c)
		if a.json {
			found := make([]extract.Candidate, len(r.Candidates))
			for i, c := range r.Candidates {
				found[i] = extract.Candidate{
					Content: c.Content, Salience: float64(c.Salience), Source: c.Source, Observed: c.Observed, Date: c.Date, Tags: c.Tags,
					Kind: c.Kind, Evidence: c.Evidence, Entities: c.Entities,
				}
			}
			if err := a.writeJSON(map[string]any{"capture": c.ID, "outcome": r.Outcome, "candidates": found}); err != nil {
				return err
			}
			continue
		}
		if len(r.Candidates) == 0 {
			fmt.Fprintf(a.stdout, "%-8d %s\n", c.ID, strings.TrimSpace(string(r.Outcome)+"  "+r.Error))
		}
		for _, f := range r.Candidates {
			fmt.Fprintf(a.stdout, "%-8d %-10s %.2f  %s\n", c.ID, f.Kind, f.Salience, oneLine(f.Content, 200))
		}
	}
	return ctx.Err()
}
