package config

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/justfortytwo/backfill/extract/llm"
	"github.com/justfortytwo/backfill/jobs"
	"github.com/justfortytwo/backfill/migrations"
)

// LLM is the part of the environment that is about a model. Without Model there is
// none. The fields are those of [llm.Config], which has their defaults.
type LLM struct {
	Model             string        `env:"BACKFILL_LLM_MODEL"`
	BaseURL           string        `env:"OPENAI_BASE_URL"`
	APIKey            llm.Key       `env:"OPENAI_API_KEY"`
	AzureAPIVersion   string        `env:"OPENAI_API_VERSION"`
	Timeout           time.Duration `env:"BACKFILL_LLM_TIMEOUT"`
	MaxOutput         int           `env:"BACKFILL_LLM_MAX_OUTPUT"`
	Temperature       float32       `env:"BACKFILL_LLM_TEMPERATURE"`
	ReasoningEffort   string        `env:"BACKFILL_LLM_REASONING_EFFORT"`
	NoThinking        bool          `env:"BACKFILL_LLM_NO_THINKING"`
	Concurrency       int           `env:"BACKFILL_LLM_WORKERS"`
	RequestsPerMinute float64       `env:"BACKFILL_LLM_RPM"`
	TokensPerMinute   float64       `env:"BACKFILL_LLM_TPM"`
	ChunkTokens       int           `env:"BACKFILL_LLM_CHUNK_TOKENS"`
	Prices            llm.Prices    `env:"BACKFILL_LLM_PRICES"`
	RedactContacts    bool          `env:"BACKFILL_REDACT_CONTACTS"`
	DailyTokens       int64         `env:"BACKFILL_LLM_DAILY_TOKENS"`
	DailyCost         float64       `env:"BACKFILL_LLM_DAILY_COST"`
}

// llmSlot and llmName are the slot of captures that a model is asked about.
const (
	llmSlot = 2
	llmName = "llm"
)

// ErrNoModel says that no model is configured.
var ErrNoModel = errors.New("BACKFILL_LLM_MODEL is not set: name the model to ask, such as gpt-5-mini; docs/llm.md has recipes")

// Config is what package llm takes, without a budget.
func (l LLM) Config() llm.Config {
	return llm.Config{
		BaseURL: l.BaseURL, APIKey: l.APIKey, Model: l.Model, AzureAPIVersion: l.AzureAPIVersion, Timeout: l.Timeout, MaxOutput: l.MaxOutput,
		Temperature: l.Temperature, ReasoningEffort: l.ReasoningEffort, NoThinking: l.NoThinking, Concurrency: l.Concurrency,
		RequestsPerMinute: l.RequestsPerMinute, TokensPerMinute: l.TokensPerMinute, Prices: l.Prices, ChunkTokens: l.ChunkTokens,
		RedactContacts: l.RedactContacts,
	}
}

// Extractor asks the model, within the budget; nil is no budget.
func (l LLM) Extractor(b llm.Budget) (*llm.Extractor, error) {
	if l.Model == "" {
		return nil, ErrNoModel
	}
	cfg := l.Config()
	cfg.Budget = b
	client, err := llm.New(cfg)
	if err != nil {
		return nil, err
	}
	return llm.NewExtractor(client), nil
}

func (l LLM) validate() error {
	switch {
	case l.DailyTokens < 0:
		return fmt.Errorf("BACKFILL_LLM_DAILY_TOKENS is %d: use 0 for no limit", l.DailyTokens)
	case !(l.DailyCost >= 0 && l.DailyCost < 1e9): // so that NaN is none either
		return fmt.Errorf("BACKFILL_LLM_DAILY_COST is %v: use dollars, or 0 for no limit", l.DailyCost)
	case l.DailyTokens > 0 && l.DailyTokens < l.Config().Largest():
		return fmt.Errorf("BACKFILL_LLM_DAILY_TOKENS is %d: one request may take %d, so that none could be made", l.DailyTokens, l.Config().Largest())
	case l.DailyCost > 0 && l.Config().Unpriced():
		return errors.New("BACKFILL_LLM_DAILY_COST is set and the price of the model is not: set BACKFILL_LLM_PRICES")
	}
	return nil
}

// extractor is what is registered for the model.
func (l LLM) extractor() migrations.Extractor {
	return migrations.Extractor{Name: llmName, Version: l.Config().Version()}
}

func (c Config) llmSlot() (jobs.Slot, error) {
	h, err := c.Heuristic()
	if err != nil {
		return jobs.Slot{}, err
	}
	l := c.LLM
	slot := jobs.Slot{
		ID: llmSlot, Name: llmName, Version: l.Config().Version(), Model: l.Extractor, Options: c.Options(),
		Fallback: h, FallbackName: "heuristic",
		// One more than requests at once, for live turns.
		Workers: l.Config().Requests() + 1,
	}
	if l.DailyTokens > 0 {
		slot.Daily.Tokens = &l.DailyTokens
	}
	if l.DailyCost > 0 {
		micro := int64(math.Round(l.DailyCost * 1e6))
		slot.Daily.MicroUSD = &micro
	}
	return slot, nil
}
