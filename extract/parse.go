package extract

import (
	"html"
	"maps"
	"strings"
)

// Limits of one [Parse].
const (
	maxInput = 4 << 20 // bytes read; an answer has a few kilobytes
	maxDepth = 64      // nesting of one value
	maxLevel = 8       // wrappers, arrays and strings around an item
	maxItems = 1000    // distinct candidates kept
	maxNodes = 1 << 17 // values of one bracketed value: what bounds the memory
	// stepsPerByte bounds the work. Valid JSON takes 1 to 3, once more for each
	// string it is encoded in; the rest is for values that are tried, fail and
	// are read again as prose.
	stepsPerByte = 12
)

// Outcome says what [Parse] made of an answer. "Nothing to remember" and "not
// understood" are never the same value.
type Outcome string

// Outcome values.
const (
	// OutcomeOK: at least one valid item, whether or not the filters kept it.
	OutcomeOK Outcome = "ok"
	// OutcomeEmpty: an explicit empty list. The model found nothing worth keeping.
	OutcomeEmpty Outcome = "empty"
	// OutcomeInvalidItems: items, but none with usable content and salience.
	OutcomeInvalidItems Outcome = "invalid_items"
	// OutcomeUnparseable: text, but neither items nor an empty list.
	OutcomeUnparseable Outcome = "unparseable"
	// OutcomeBlank: no text at all.
	OutcomeBlank Outcome = "blank"
)

// Report is what [Parse] noticed on the way.
type Report struct {
	Outcome Outcome
	// Salvaged is set when a value of the answer never closed, as in one that was
	// cut, and its complete items were kept.
	Salvaged bool
	// Skipped counts items without usable content or salience, and valid ones
	// past the first 1,000.
	Skipped int
	// OutOfRange counts items whose salience was clamped to [0, 1].
	OutOfRange int
	// Duplicates counts items dropped because their content came up before.
	Duplicates int
}

// Parse reads the candidates out of a model's answer. It never fails: what
// cannot be read is skipped and shows in the Report.
//
// The answer asked for is a JSON array of objects, bare or as the only member of
// an object. Parse also finds it behind prose, code fences and reasoning, cut at
// any point, in several pieces, wrapped once more, encoded as a string, or in the
// dialects models drift into (single quotes, comments, missing commas). Where an
// answer holds several groups of values with prose between them, the last group
// with a valid item counts, fenced ones first.
//
// An item needs a content that is not blank and a salience: a finite number, or
// a string that holds a number, a percentage, a fraction or one of the words
// high (0.8), medium (0.5) and low (0.2). Source, observed, date, tags, meta and
// evidence (or quote) are optional, and dropped when they are of the wrong type;
// a date also when it is not ISO 8601. Any other key is ignored, so that a hostile turn
// cannot set fields a later stage obeys. Meta is the turn's overlaid by the
// model's. Of equal contents the most salient is kept. [Filter] runs last.
//
// At most 4 MiB of raw are read, and the work is linear in what is read.
func Parse(raw string, t Turn, o Options) ([]Candidate, Report) {
	cands, rep := parse(raw, t)
	return Filter(cands, t, o), rep
}

// parse is Parse without the filters.
func parse(raw string, t Turn) ([]Candidate, Report) {
	text := trim(clean(raw[:min(len(raw), maxInput)]))
	if text == "" {
		return nil, Report{Outcome: OutcomeBlank}
	}
	a := read(text, newBudget(len(text)))
	for i := range a.items {
		c := &a.items[i]
		meta := maps.Clone(t.Meta)
		if meta == nil {
			meta = c.Meta
		} else {
			maps.Copy(meta, c.Meta)
		}
		c.Meta = meta
	}
	return a.items, a.report()
}

// read takes text as it stands and, when that yields nothing, once more with its
// quotes unescaped. There is no second reading of an answer that ends inside a
// value: its escaped quotes belong to a memory that was cut.
func read(text string, b *budget) answer {
	a, cut := readText(text, 0, b)
	if a.found() || cut {
		return a
	}
	switch {
	case strings.Contains(text, "&quot;"), strings.Contains(text, "&#34;"):
		a, _ = readText(html.UnescapeString(text), 0, b)
	case strings.Contains(text, `\"`):
		a, _ = readText(unescape(text), 0, b)
	}
	return a
}

// budget counts the steps left for one Parse, over all its readings.
type budget struct{ steps int }

func newBudget(size int) *budget { return &budget{steps: stepsPerByte*size + 4096} }
