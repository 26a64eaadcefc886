// Package extract is the salience contract: what a turn and a candidate memory
// are, how an extractor is called, and what is done to every answer before it
// counts.
//
// It holds no SDK, no database and no memory store. A host injects an
// [LLMClient] and gets a [ModelExtractor] from [New]; package heuristic offers
// the same [SalienceExtractor] without a model.
package extract

import "context"

// Values of Turn.Observed and Candidate.Observed.
const (
	// ObservedStated marks what the speaker said.
	ObservedStated = "stated"
	// ObservedInferred marks what was concluded, or said by the assistant.
	ObservedInferred = "inferred"
)

// Turn is one conversational turn, or one exchange in transcript form
// ("User: …" and "Assistant: …" paragraphs). Only Text is required.
type Turn struct {
	Text string `json:"text"`
	// Source names where the turn comes from, such as "owner" or "claude-code".
	Source string `json:"source,omitempty"`
	// Observed is ObservedStated, ObservedInferred or empty (unknown).
	Observed string `json:"observed,omitempty"`
	// Date is kept as given; empty means unknown, never now.
	Date string         `json:"date,omitempty"`
	Meta map[string]any `json:"meta,omitempty"`
}

// Candidate is one distilled, scored memory. Content to Meta map one to one onto
// the memory service's EnrichmentCandidate; Kind, Evidence and Entities are what
// this project adds.
type Candidate struct {
	// Content is never blank.
	Content string `json:"content"`
	// Salience is within [0, 1].
	Salience float64        `json:"salience"`
	Source   string         `json:"source,omitempty"`
	Observed string         `json:"observed,omitempty"`
	Date     string         `json:"date,omitempty"`
	Tags     []string       `json:"tags,omitempty"`
	Meta     map[string]any `json:"meta,omitempty"`
	// Kind is decision, preference, problem, fact or howto; empty when nothing
	// decided it. Where set it is also the first tag.
	Kind string `json:"kind,omitempty"`
	// Evidence is the verbatim span of the turn that Content rests on.
	Evidence string `json:"evidence,omitempty"`
	// Entities are the named-entity keys of Content, in reading order.
	Entities []string `json:"entities,omitempty"`
}

// Options are the post-filters of an extraction. The zero value filters nothing.
type Options struct {
	// MinSalience drops candidates below it, within [0, 1]. Default 0: no floor.
	MinSalience float64
	// MaxCandidates keeps the most salient ones. Default 0: no cap.
	MaxCandidates int
	// DefaultObserved is the last fallback where neither the model nor the turn
	// says how a memory was observed. Default empty.
	DefaultObserved string
}

// SalienceExtractor turns a turn into scored candidates, most salient first.
// An error means the extractor could not run (the client failed); an answer that
// holds nothing usable is an empty result, not an error.
type SalienceExtractor interface {
	ExtractSalient(ctx context.Context, t Turn, o Options) ([]Candidate, error)
}

// Request is one completion asked of an [LLMClient].
type Request struct {
	// System is the framing, Prompt the user message that holds the turn.
	System, Prompt string
	// MaxOutput caps the answer in tokens. Default 0: the client decides.
	MaxOutput int
}

// Finish says why a completion ended.
type Finish string

// Finish values, in the words of the OpenAI API.
const (
	FinishStop          Finish = "stop"
	FinishLength        Finish = "length"
	FinishContentFilter Finish = "content_filter"
	FinishToolCalls     Finish = "tool_calls"
	FinishUnknown       Finish = ""
)

// Usage counts tokens as the endpoint reported them; nil means it did not say.
type Usage struct {
	PromptTokens, CachedTokens, CompletionTokens, ReasoningTokens *int
}

// Completion is a model's answer.
type Completion struct {
	Text   string
	Finish Finish
	Usage  Usage
	// Model and RequestID are what the endpoint returned, for the audit trail.
	Model, RequestID string
}

// LLMClient is the injected completion seam: text in, text out. Its errors are
// the only ones an extraction can have.
type LLMClient interface {
	Complete(ctx context.Context, r Request) (Completion, error)
}
