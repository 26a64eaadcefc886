package extract

// WithNonce makes the marker lines predictable.
func WithNonce(s string) Option {
	return func(e *ModelExtractor) { e.nonce = func() string { return s } }
}

// ParseSteps returns the outcome of raw, the steps it took and the most it may
// take.
func ParseSteps(raw string) (o Outcome, taken, limit int) {
	text := trim(clean(raw[:min(len(raw), maxInput)]))
	b := newBudget(len(text))
	limit = b.steps
	a := read(text, b)
	return a.report().Outcome, limit - b.steps, limit
}

// ParseWithin is Parse with so many steps, unfiltered.
func ParseWithin(raw string, steps int) []Candidate {
	a := read(trim(clean(raw)), &budget{steps: steps})
	return a.items
}
