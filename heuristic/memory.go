package heuristic

import (
	"strings"
	"unicode/utf8"
)

// found is a result in the making: where it stands, and by how many further
// sentences it is carried on.
type found struct {
	Result
	at      span
	further int
}

// whole is what the sentences of a text add up to when it is classified.
type whole struct {
	sum       verdict
	sizes     [len(kinds)]int // runes of the sentences of a kind
	total     int             // runes of all
	idle      int             // markers that small talk takes off
	sentences int
	refused   bool // some sentence rules a verdict out
}

// addressed reports whether the word at i is set off by commas, as the name of
// the one spoken to is.
func (d *doc) addressed(i int) bool {
	return i > 0 && d.tokens[i-1].mark == comma && (i+1 == len(d.tokens) || d.tokens[i+1].mark == comma || d.tokens[i+1].mark == stop)
}

// findMemories judges the open sentence and keeps what it holds.
func (d *doc) findMemories() {
	w := &d.whole
	w.sentences++
	if d.mute || !d.statement() {
		w.refused, d.turn.talks = true, true
		return
	}
	v, vetoed, mute := d.judge()
	d.mute, d.turn.talks = mute, d.turn.talks || mute
	w.refused = w.refused || vetoed || mute || d.question && !hasCue(&v)
	if mute {
		return
	}
	at := span{d.tokens[0].start, d.tokens[len(d.tokens)-1].end}
	d.jot(&v, at, vetoed)
	if hasCue(&v) || d.want&verdicts != 0 {
		n := utf8.RuneCountInString(d.text[at.first:at.end])
		kind, markers := v.best(d.inferred)
		idle := d.idle(&v, kind, n)
		markers -= idle
		w.add(&v, n, idle)
		if c := confidence(markers, n); kind != "" && n >= MinFactChars && c >= MinConfidence {
			if d.goesOn() && d.carryOn(at, c) {
				return
			}
			d.keep(Result{Kind: kind, Confidence: c, Inferred: d.inferred}, d.rest(at))
			return
		}
	}
	if !d.question && d.elaborates(vetoed) {
		d.carryOn(at, 0)
	}
}

// idle returns the markers that small talk takes off: one for a story told in a
// few words or to the other's face, and the one of its "always" or "all", which
// exaggerate there; one for a statement with nothing concrete in it about nobody
// here, but for a problem and for a fact that names what it speaks of.
func (d *doc) idle(v *verdict, kind Kind, runes int) (n int) {
	switch k := kindIndex(kind); {
	case k < 0:
	case !v.sober[k]:
		if runes < shortStory || d.speaksOf(second) {
			n++
		}
		if v.support&hasScope != 0 {
			n++
		}
	case v.support&concrete != 0 || kind == KindProblem:
	case !d.speaksOf(first|own) && (kind != KindFact || d.anaphor()):
		n++
	}
	return n
}

// rest returns the range of bytes that a memory in the open sentence rests on:
// the clauses with its markers, and the sentence before where it opens with a word
// for something said there or leaves its subject out.
func (d *doc) rest(at span) span {
	at.first = d.clause(at.first)
	if d.before.end > 0 && (d.anaphor() || d.goesOn()) && !d.kept(d.before) {
		at.first = d.before.first
	}
	return at
}

// clause returns where the clause starts that the markers stand in: after the
// colon or the "but" that ends what comes before them.
func (d *doc) clause(start uint32) uint32 {
	lead := len(d.tokens)
	for _, h := range d.hits {
		lead = min(lead, h.first)
	}
	if lead == len(d.tokens) {
		return start
	}
	for i := lead - 1; i > 0; i-- {
		if t := &d.tokens[i]; t.mark == colon || t.mark == semicolon || t.mark == dash || t.mark == word && d.word(i) == "but" {
			first, last := &d.tokens[i+1], &d.tokens[len(d.tokens)-1]
			if first.mark != word || utf8.RuneCountInString(d.text[first.start:last.end]) < MinFactChars {
				return start
			}
			return first.start
		}
	}
	return start
}

// anaphor reports whether the sentence opens with a word for something said
// before.
func (d *doc) anaphor() bool {
	for i := range d.tokens {
		t := &d.tokens[i]
		if t.mark != word && t.mark != comma {
			continue
		}
		if t.is(third) {
			return true
		}
		switch d.word(i) {
		case "This", "That", "These", "Those", "That's", "this", "that", "these", "those", "that's":
			return true
		}
		if !t.is(opener) {
			return false
		}
	}
	return false
}

// elaborates reports whether the sentence adds to the one before: it leaves the
// subject out, has no verb, or says what follows on a condition.
func (d *doc) elaborates(vetoed bool) bool {
	if d.conditional() {
		return !d.speaksOf(second)
	}
	return !vetoed && (d.goesOn() || d.verbless())
}

// goesOn reports whether the sentence goes on with the subject of the one
// before, which it leaves out: "Wants to …", "Will start …".
func (d *doc) goesOn() bool {
	t := &d.tokens[0]
	if t.mark != word || t.is(first|own|second|third) {
		return false
	}
	w := d.word(0)
	if t.is(auxil|gerund) || w == "Want" || w == "Need" {
		return true
	}
	if n := len(w) - 1; n > 2 && w[n] == 's' {
		var buf [maxWord]byte
		b := appendLower(buf[:0], w)
		return classOf(b[:n])&(command|do|ask) != 0
	}
	return false
}

// verbless reports whether the sentence, up to its first dash, has no verb that
// shows and speaks of nobody: a fragment that gives the reason or the detail of
// what was said.
func (d *doc) verbless() bool {
	if d.tokens[0].is(first | own | second | third) {
		return false
	}
	n := 0
	for i := range d.tokens {
		t := &d.tokens[i]
		if n > 1 && (t.mark == dash || t.mark == semicolon) {
			return true
		}
		if t.mark == word {
			if t.is(auxil|past|first|second|third) && !t.is(code) || i == 0 && t.is(opener) || t.contracted() {
				return false
			}
			n++
		}
	}
	return n > 2
}

// speaksOf reports whether a word of the sentence, which has been judged, is of a
// class.
func (d *doc) speaksOf(c class) bool { return d.classes&c != 0 }

func (w *whole) add(v *verdict, runes, idle int) {
	w.total += runes
	w.idle += idle
	for k := range kinds {
		if v.cues[k] > 0 {
			w.sizes[k] += runes
		}
	}
	w.sum.add(v)
}

// typed returns the memories found.
func (d *doc) typed() []Result {
	if len(d.out) == 0 {
		return nil
	}
	out := make([]Result, len(d.out))
	for i, f := range d.out {
		f.Evidence = d.text[f.at.first:f.at.end]
		f.Content = content(f.Evidence)
		out[i] = f.Result
	}
	return out
}

// keep adds a result that rests on a range of bytes. Past the cap the least
// confident goes, of equals the last.
func (d *doc) keep(r Result, at span) {
	d.out = append(d.out, found{r, at, 0})
	if len(d.out) <= MaxPerExchange {
		return
	}
	least := len(d.out) - 1
	for i := least; i >= 0; i-- {
		if d.out[i].Confidence < d.out[least].Confidence {
			least = i
		}
	}
	d.out = append(d.out[:least], d.out[least+1:]...)
}

// kept reports whether a sentence is part of the last result.
func (d *doc) kept(s span) bool {
	n := len(d.out)
	return n > 0 && d.out[n-1].at.end == s.end
}

// maxFurther bounds the sentences that a memory is carried on by.
const maxFurther = 2

// carryOn adds the open sentence, of a confidence of its own, to the memory in the
// one before. It reports whether there is one.
func (d *doc) carryOn(at span, confidence float64) bool {
	if d.before.end == 0 || !d.kept(d.before) {
		return false
	}
	last := &d.out[len(d.out)-1]
	if last.further == maxFurther {
		return false
	}
	last.at.end = at.end
	last.Confidence = max(last.Confidence, confidence)
	last.further++
	return true
}

// statement reports whether the open sentence is prose. A list item must read
// like a sentence: it closes with a full stop, or speaks of somebody.
func (d *doc) statement() bool {
	switch d.shape {
	case prose:
		return true
	case item:
		if d.tokens[len(d.tokens)-1].mark == stop {
			return true
		}
		for i := range d.tokens {
			if d.tokens[i].is(first | own | second) {
				return true
			}
		}
	default:
	}
	return false
}

// content is evidence on one line.
func content(evidence string) string {
	for i := range len(evidence) {
		if c := evidence[i]; c < ' ' || c == ' ' && i > 0 && evidence[i-1] == ' ' {
			return strings.Join(strings.Fields(evidence), " ")
		}
	}
	return evidence
}

// classifiable reports whether a text has the length of one durable fact.
func classifiable(text string, maxChars int) bool {
	if maxChars < MinFactChars || len(text) < MinFactChars {
		return false
	}
	text = strings.TrimSpace(text)
	if len(text) > maxChars*utf8.UTFMax {
		return false
	}
	n := utf8.RuneCountInString(text)
	return n >= MinFactChars && n <= maxChars
}

// classify judges the text as a whole: the markers of all sentences count
// together, the verdict must be unhedged, and sentences of the kind must make up
// most of the text.
func (d *doc) classify() (Result, bool) {
	w := &d.whole
	if d.transcript || w.sentences == 0 || w.refused {
		return Result{}, false
	}
	kind, markers := w.sum.best(false)
	if kind == KindFact {
		markers -= w.idle // a turn of small talk is one as a whole
	}
	evidence := strings.TrimSpace(d.text)
	c := confidence(markers, utf8.RuneCountInString(evidence))
	if kind == "" || c < MinConfidence || w.sizes[kindIndex(kind)]*3 < w.total*2 {
		return Result{}, false
	}
	return Result{Kind: kind, Content: content(evidence), Confidence: c, Evidence: evidence}, true
}
