package llm

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/justfortytwo/backfill/extract"
)

// Price is in US dollars per million tokens.
type Price struct {
	// Input, CachedInput and Output tokens. CachedInput is the part of a prompt
	// that the endpoint took from its cache.
	Input, CachedInput, Output float64
}

// Prices are prices by model. The name "*" stands for every other model.
type Prices map[string]Price

// UnmarshalText implements [encoding.TextUnmarshaler]. It reads
// "model=input/output" or "model=input/cached/output", separated by commas, such
// as "gpt-5-mini=0.25/0.025/2, *=0/0".
func (p *Prices) UnmarshalText(text []byte) error {
	out := Prices{}
	for entry := range strings.SplitSeq(string(text), ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		model, list, _ := strings.Cut(entry, "=")
		var sums []float64
		for s := range strings.SplitSeq(list, "/") {
			sum, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
			if err != nil || sum < 0 || math.IsInf(sum, 0) || math.IsNaN(sum) {
				sums = nil
				break
			}
			sums = append(sums, sum)
		}
		price := Price{}
		switch len(sums) {
		case 2:
			price = Price{Input: sums[0], CachedInput: sums[0], Output: sums[1]}
		case 3:
			price = Price{Input: sums[0], CachedInput: sums[1], Output: sums[2]}
		}
		if model = strings.TrimSpace(model); model == "" || len(sums) < 2 || len(sums) > 3 {
			return fmt.Errorf("price %q: use model=input/output or model=input/cached/output, in dollars per million tokens", entry)
		}
		out[model] = price
	}
	*p = out
	return nil
}

// Cost is what u costs with model, in millionths of a dollar, or nil if the
// price or the number of tokens is unknown.
func (p Prices) Cost(model string, u extract.Usage) *int64 {
	price, ok := p[model]
	if !ok {
		price, ok = p["*"]
	}
	if !ok || u.PromptTokens == nil || u.CompletionTokens == nil {
		return nil
	}
	cached := 0
	if u.CachedTokens != nil {
		cached = min(*u.CachedTokens, *u.PromptTokens)
	}
	// Dollars per million tokens are millionths of a dollar per token.
	cost := int64(math.Round(price.Input*float64(*u.PromptTokens-cached) + price.CachedInput*float64(cached) + price.Output*float64(*u.CompletionTokens)))
	return &cost
}
