package heuristic

import (
	"context"
	"fmt"
	"maps"

	"github.com/justfortytwo/backfill/extract"
)

var _ extract.SalienceExtractor = (*Extractor)(nil)

// Extractor offers the rules of this package as an [extract.SalienceExtractor].
// It needs no model and is safe for concurrent use.
type Extractor struct {
	classifyMaxChars int
}

// Option changes an [Extractor].
type Option func(*Extractor)

// WithClassifyMaxChars sets the longest free-form turn, in runes, that is
// classified as a whole where no sentence of it is a memory by itself. Default ClassifyMaxChars; <= 0 classifies none; 1 to
// MinFactChars-1 is refused, see [ValidateClassifyMaxChars].
func WithClassifyMaxChars(n int) Option {
	return func(e *Extractor) { e.classifyMaxChars = n }
}

// ValidateClassifyMaxChars refuses a classify ceiling that is positive but under
// MinFactChars: it can admit nothing, so it would read as a tight bound and act
// as an off switch.
func ValidateClassifyMaxChars(n int) error {
	if n > 0 && n < MinFactChars {
		return fmt.Errorf("classify ceiling %d is under the floor of %d characters (MinFactChars): use at least %d, or 0 to classify nothing",
			n, MinFactChars, MinFactChars)
	}
	return nil
}

// New returns an Extractor with the options applied, or the error of
// [ValidateClassifyMaxChars].
func New(opts ...Option) (*Extractor, error) {
	e := &Extractor{classifyMaxChars: ClassifyMaxChars}
	for _, o := range opts {
		o(e)
	}
	if err := ValidateClassifyMaxChars(e.classifyMaxChars); err != nil {
		return nil, err
	}
	return e, nil
}

// ExtractSalient returns the memories of a turn, most salient first:
// what [Typed] finds, or else a short free-form turn that is classified as a
// whole. Observed is "stated" for a
// user or named speaker and "inferred" for the assistant of a transcript;
// free-form text keeps the turn's own value, else o.DefaultObserved, else
// "stated". A turn that is itself inferred stays so. Source, Date and Meta are
// the turn's. The error is always nil unless ctx has ended.
func (e *Extractor) ExtractSalient(ctx context.Context, t extract.Turn, o extract.Options) ([]extract.Candidate, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	results, transcript := e.results(t.Text)
	if len(results) == 0 {
		return nil, nil
	}
	out := make([]extract.Candidate, 0, len(results))
	for _, r := range results {
		out = append(out, extract.Candidate{
			Content:  r.Content,
			Salience: r.Confidence,
			Source:   t.Source,
			Observed: observed(r, t, transcript),
			Date:     t.Date,
			Tags:     []string{string(r.Kind)},
			Meta:     maps.Clone(t.Meta),
			Kind:     string(r.Kind),
			Evidence: r.Evidence,
			Entities: Entities(r.Content),
		})
	}
	if o.DefaultObserved == "" {
		o.DefaultObserved = extract.ObservedStated
	}
	return extract.Filter(out, t, o), nil
}

func (e *Extractor) results(text string) (rs []Result, transcript bool) {
	d := pass(text, memories|verdicts)
	defer d.release()
	rs = d.typed()
	if len(rs) == 0 && classifiable(text, e.classifyMaxChars) {
		if r, ok := d.classify(); ok {
			rs = append(rs, r)
		}
	}
	return rs, d.transcript
}

// observed is empty where the turn itself and then the options decide.
func observed(r Result, t extract.Turn, transcript bool) string {
	switch {
	case r.Inferred || t.Observed == extract.ObservedInferred:
		return extract.ObservedInferred
	case transcript:
		return extract.ObservedStated
	}
	return ""
}
