package extract

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
)

// MetaUngrounded is the Meta key set to true on a candidate whose Evidence does
// not occur in the turn.
const MetaUngrounded = "ungrounded"

// UngroundedFactor is what the salience of such a candidate is multiplied with.
// A half takes the firmest memory (0.9 by the prompt's scale) to just above a
// minor detail (0.4): kept for review, behind everything that is grounded, and
// out by a MinSalience of 0.5. The figure is a choice, not a measurement.
const UngroundedFactor = 0.5

// kinds are the values of Candidate.Kind a model is asked for.
var kinds = []string{"decision", "preference", "problem", "fact", "howto"}

// ModelExtractor is the [SalienceExtractor] that asks a model. It is safe for
// concurrent use if its client is.
type ModelExtractor struct {
	client LLMClient
	system string
	// nonce returns a fresh string nobody can guess, to delimit the turn with.
	nonce func() string
}

var _ SalienceExtractor = (*ModelExtractor)(nil)

// Option changes a [ModelExtractor].
type Option func(*ModelExtractor)

// WithSystemPrompt replaces [SystemPrompt], the default. [Parse] must be able to
// read what the new prompt asks for.
func WithSystemPrompt(s string) Option {
	return func(e *ModelExtractor) { e.system = s }
}

// New returns an extractor that completes by c.
func New(c LLMClient, opts ...Option) *ModelExtractor {
	e := &ModelExtractor{client: c, system: SystemPrompt, nonce: rand.Text}
	for _, opt := range opts {
		opt(e)
	}
	return e
}

// Result is an extraction with its audit trail.
type Result struct {
	// Candidates are filtered, most salient first.
	Candidates []Candidate
	Report     Report
	// Completion is the client's, unchanged.
	Completion Completion
}

// ExtractSalient implements [SalienceExtractor]. Its only error is the client's.
func (e *ModelExtractor) ExtractSalient(ctx context.Context, t Turn, o Options) ([]Candidate, error) {
	r, err := e.Extract(ctx, t, o)
	return r.Candidates, err
}

// Extract asks the model once for the memories in t and reads its answer by the
// rules of [Parse]. Beyond those it moves the first tag that names a kind to the
// front and into Kind, and checks each Evidence against the turn: one that is not
// [Grounded] marks its candidate ([MetaUngrounded]) and lowers its salience
// ([UngroundedFactor]) before the filters run.
//
// A blank turn is not sent: its outcome is [OutcomeEmpty]. The error is the
// client's, wrapped; the Completion is then what the client returned with it.
func (e *ModelExtractor) Extract(ctx context.Context, t Turn, o Options) (Result, error) {
	if blank(t.Text) {
		return Result{Report: Report{Outcome: OutcomeEmpty}}, nil
	}
	answer, err := e.client.Complete(ctx, Request{System: e.system, Prompt: frame(t, e.nonce())})
	if err != nil {
		return Result{Completion: answer}, fmt.Errorf("ask the model for memories: %w", err)
	}
	cands, report := parse(answer.Text, t)
	turn := fold(t.Text)
	for i := range cands {
		c := &cands[i]
		c.takeKind()
		if c.Evidence != "" && !strings.Contains(turn, fold(c.Evidence)) {
			c.Salience *= UngroundedFactor
			if c.Meta == nil {
				c.Meta = make(map[string]any, 1)
			}
			c.Meta[MetaUngrounded] = true
		}
	}
	return Result{Candidates: Filter(cands, t, o), Report: report, Completion: answer}, nil
}

// takeKind moves the first tag that names a kind to the front and into Kind.
func (c *Candidate) takeKind() {
	for _, tag := range c.Tags {
		kind := strings.ToLower(tag)
		if !slices.Contains(kinds, kind) {
			continue
		}
		topics := slices.DeleteFunc(c.Tags, func(tag string) bool { return strings.EqualFold(tag, kind) })
		c.Kind, c.Tags = kind, append([]string{kind}, topics...)
		return
	}
}

// Grounded reports whether evidence is a quote from text, whatever the case of
// its letters and the white space between its words. Blank evidence is none.
func Grounded(evidence, text string) bool {
	return !blank(evidence) && strings.Contains(fold(text), fold(evidence))
}

// fold lowers s and makes all white space in it single spaces.
func fold(s string) string { return strings.Join(strings.Fields(strings.ToLower(s)), " ") }
