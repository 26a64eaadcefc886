package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/justfortytwo/backfill/extract"
	"github.com/justfortytwo/backfill/extract/llm"
)

// extractor is the one of that name, for use without a database.
func (a *app) extractor(cmd *cobra.Command, name string) (extract.SalienceExtractor, error) {
	switch name {
	case "heuristic":
		return a.cfg.Heuristic()
	case "llm":
		x, err := a.cfg.LLM.Extractor(nil)
		if err != nil {
			return nil, err
		}
		return patient{x}, nil
	}
	return nil, a.usage(cmd, fmt.Errorf("--extractor %q is not known: use heuristic or llm", name))
}

// patient asks again where a worker would: up to three times after an answer that
// cannot be read, and after the pause that an endpoint asks for, if that is short.
type patient struct{ *llm.Extractor }

// shortWait is the longest pause that somebody at a terminal sits through.
const shortWait = 30 * time.Second

// ExtractSalient implements [extract.SalienceExtractor].
func (p patient) ExtractSalient(ctx context.Context, t extract.Turn, o extract.Options) ([]extract.Candidate, error) {
	for attempt := 1; ; attempt++ {
		got, err := p.Extract(ctx, t, o, attempt)
		bad, ok := errors.AsType[*llm.Error](err)
		if !ok || attempt == 3 {
			return got.Candidates, err
		}
		switch wait := bad.RetryAfter; {
		case bad.Kind == llm.BadOutput:
		case bad.Kind == llm.RetryLater && wait <= shortWait:
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(max(wait, time.Second)):
			}
		default:
			return nil, hinted(bad)
		}
	}
}

// hinted adds what to do.
func hinted(e *llm.Error) error {
	if fix := e.Fix(); fix != "" {
		return fmt.Errorf("%w: %s", e, fix)
	}
	return e
}

// probe asks the model, if one is configured, for a tiny completion.
func (a *app) probe(ctx context.Context) []finding {
	if a.cfg.LLM.Model == "" {
		return nil
	}
	x, err := a.cfg.LLM.Extractor(nil)
	if err != nil {
		return []finding{{fails, "model", "it is not configured", err.Error()}}
	}
	p, err := x.Client().Probe(ctx)
	where := p.Model + " at " + p.Endpoint
	if err != nil {
		bad, _ := errors.AsType[*llm.Error](err)
		f := finding{fails, "model", where + ": " + err.Error(), "try again later: the endpoint is busy or away"}
		if bad != nil && bad.Fix() != "" {
			f.Do = bad.Fix()
		}
		return []finding{f}
	}
	if p.Returned != "" && p.Returned != p.Model {
		where += " (as " + p.Returned + ")"
	}
	return []finding{{fine, "model", fmt.Sprintf("%s answered in %s; takes %s", where, p.Latency.Round(time.Millisecond), takes(p.Shape)), ""}}
}

// takes lists the features of requests that an endpoint has accepted.
func takes(s llm.Shape) string {
	var features []string
	for _, f := range []struct {
		name string
		on   bool
	}{
		{s.Format, s.Format != ""},
		{s.TokenField, s.TokenField != ""},
		{"temperature", s.Temperature},
		{"reasoning_effort", s.ReasoningEffort},
		{"chat_template_kwargs", s.NoThinking},
	} {
		if f.on {
			features = append(features, f.name)
		}
	}
	if len(features) == 0 {
		return "nothing but the prompt"
	}
	return strings.Join(features, ", ")
}

func (a *app) costCmd() *cobra.Command {
	var days int
	cmd := &cobra.Command{
		Use:   "cost",
		Short: "Show what calls to models have used and cost, by day",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if days < 1 {
				return a.usage(cmd, fmt.Errorf("--days is %d: use at least 1", days))
			}
			st, closePool, err := a.connect(cmd.Context(), 0)
			if err != nil {
				return err
			}
			defer closePool()
			all, err := st.Costs(cmd.Context(), time.Now().AddDate(0, 0, 1-days).Truncate(24*time.Hour))
			if err != nil {
				return err
			}
			if a.json {
				return writeJSONLines(a, all)
			}
			if len(all) == 0 {
				fmt.Fprintln(a.stderr, "no calls to a model in that time")
				return nil
			}
			return table(a.stdout, "DAY MODEL ENDPOINT CALLS FAILED PROMPT COMPLETION COST", func(row func(...any)) {
				for _, c := range all {
					cost := "unknown"
					if c.Cost != nil {
						cost = dollars(*c.Cost)
					}
					if c.Cost != nil && c.CallsWithoutCost > 0 {
						cost += fmt.Sprintf(" + %s of unknown cost", plural(c.CallsWithoutCost, "call"))
					}
					row(c.Day.Format(time.DateOnly), deref(c.Model), deref(c.Endpoint), c.Calls, c.Failed, deref(c.PromptTokens), deref(c.CompletionTokens), cost)
				}
			})
		},
	}
	cmd.Flags().IntVar(&days, "days", 30, "how many days back")
	return cmd
}
