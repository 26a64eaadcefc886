// Package heuristic distils conversation prose into durable, classified facts
// without a model.
//
// It is driven by readable tables of cues and deliberately conservative: a miss
// just means no extra memory, never a wrong one. One pass cuts the text into
// tokens, sentences and clauses and looks every word up once; Typed, Classify
// and Entities all read that result. No regular expression is involved and the
// work is linear in the length of the text.
//
// A sentence is a memory when at least two distinct markers speak for it: cues
// of its kind ("we decided", "root cause") and further evidence such as a
// reason, a contrast, a number, a date or a name. A question, a hedge, a
// condition, reported speech, a quotation or a request over somebody's text
// speaks against it and wins; only a verdict ("too slow") may be thought.
package heuristic

// The limits of the extraction contract. Lengths are in runes, never bytes: a
// byte bound would put prose outside ASCII over a ceiling, or over a floor, at a
// third of the nominal length.
const (
	// ClassifyMaxChars bounds a classifiable write, in runes: one durable fact
	// is terse, longer content is session history even when it holds cues.
	ClassifyMaxChars = 400
	// MinFactChars floors an extractable sentence and a classifiable write, in
	// runes: below it there is too little text to be a fact. It is exported
	// because it bounds the useful range of a classify ceiling.
	MinFactChars = 20
	// MinConfidence gates an extraction. Confidence is min(1, score/5) where
	// score counts distinct markers plus a length bonus, so a lone marker in a
	// short sentence (0.2) is dropped while two distinct markers, or one in a
	// longer sentence, pass.
	MinConfidence = 0.3
	// MaxEntities caps the entities of one text, keeping the first in reading
	// order, so that one long transcript cannot flood the entity index.
	MaxEntities = 12
	// MaxPerExchange caps the extractions of one exchange, keeping the most
	// confident, so that one rambling turn cannot flood the store.
	MaxPerExchange = 5
)

// Version is the version of the rules. It changes whenever the same text may
// give another result; results of an older version are stale.
const Version = "1"

// Kind labels an extracted memory; it doubles as the memory's first tag.
type Kind string

// The kinds of memory. Where as many cues speak for two of them, the one that is
// spoken for first wins, then the one listed first.
const (
	KindDecision   Kind = "decision"
	KindPreference Kind = "preference"
	KindProblem    Kind = "problem"
	KindHowto      Kind = "howto"
	KindFact       Kind = "fact"
)

// Result is one memory found in a text.
type Result struct {
	Kind Kind
	// Content is the memory: the sentence without speaker labels, list marks
	// and line breaks.
	Content string
	// Confidence is within [MinConfidence, 1].
	Confidence float64
	// Evidence is the verbatim span of the input that Content rests on.
	Evidence string
	// Inferred reports that the assistant of a transcript said it.
	Inferred bool
}

// Typed extracts the memories of a text in reading order, at most
// MaxPerExchange. The text is free-form prose or an exchange in transcript form:
// turns as "Role: text" where Role is User, Assistant or a speaker's name,
// separated by a blank line.
func Typed(text string) []Result {
	d := pass(text, memories)
	defer d.release()
	return d.typed()
}

// Classify labels a whole write whose caller picked no kind, bounded by
// ClassifyMaxChars. See [ClassifyWith].
func Classify(text string) (Kind, bool) { return ClassifyWith(text, ClassifyMaxChars) }

// ClassifyWith labels a whole write of at most maxChars runes. It is stricter
// than [Typed] because the verdict covers the full text: it must be short,
// prose, no transcript, free of hedges and questions, mostly made of sentences
// of that kind, and pass MinConfidence. False means no confident call. maxChars
// <= 0 declines every write, since a ceiling of zero admits nothing.
func ClassifyWith(text string, maxChars int) (Kind, bool) {
	if !classifiable(text, maxChars) {
		return "", false
	}
	d := pass(text, verdicts)
	defer d.release()
	r, ok := d.classify()
	return r.Kind, ok
}

// Entities returns the named-entity keys of a text in reading order, each once,
// at most MaxEntities: runs of capitalised words, in lower case and without
// possessive endings ("Charlotte's Web" is "charlotte web"). It trusts evidence
// of capitals only, because noisy entities poison every consumer:
//
//   - a run that opens a sentence counts when it has two words, or its first
//     word is also seen capitalised inside a sentence, or that word carries its
//     own casing signal (an inner capital or a digit: "iPhone", "Qwen3"), or the
//     words around it show a name: a verb, a possessive, a list, a form of
//     address, or an entry of the list of known names;
//   - function words, greetings, months and weekdays split a run; so do commas;
//     initials, particles and "of" after an institution join one;
//   - a number or a single letter never opens a run.
//
// Lower-case nouns ("pottery") are out of scope, but for a short list of products
// that are written so ("sqlite"), and so is code. English words and rules apply
// to English text only; the language is told by its function words and script.
func Entities(text string) []string {
	d := pass(text, names)
	defer d.release()
	return d.entities()
}
