package heuristic

import (
	"strings"
	"unicode/utf8"
)

// kinds are the kinds in the order that decides a draw of equal positions.
var kinds = [...]Kind{KindDecision, KindPreference, KindProblem, KindHowto, KindFact}

// Lengths that add to a score, in runes: what is said at length rests on less.
const (
	longSentence     = 200
	veryLongSentence = 500
	shortStory       = 60 // a story told in less is small talk
)

// verdict is what the markers of a sentence, or of a whole text, add up to.
type verdict struct {
	cues    [len(kinds)]int  // distinct cues that are not weak
	lead    [len(kinds)]int  // 1 + the token of the first of them
	weak    [len(kinds)]int  // distinct weak cues
	sober   [len(kinds)]bool // some of them tell no story
	support support
}

// support is the set of further evidence found: each is one marker.
type support uint16

const (
	hasReason support = 1 << iota
	hasContrast
	hasNumber
	hasTime
	hasName
	hasCode
	hasScope  // always, never, every
	hasObject // a cue that says what somebody did, with its object
	hasOwner  // my, our
)

func (s support) count() int {
	n := 0
	for ; s != 0; s &= s - 1 {
		n++
	}
	return n
}

// best returns the kind the cues speak for most and its number of markers.
func (v *verdict) best(inferred, chat bool) (kind Kind, markers int) {
	top := -1
	for k := range kinds {
		if v.cues[k] == 0 || inferred && kinds[k] == KindPreference {
			continue // an assistant has no preferences worth keeping
		}
		if top < 0 || v.before(k, top) {
			top = k
		}
	}
	if top < 0 {
		return "", 0
	}
	markers = v.cues[top] + v.weak[top] + v.support.count()
	if chat && !v.sober[top] {
		markers--
	}
	return kinds[top], markers
}

// before reports whether kind k speaks louder than kind j: cues that tell no story
// first, then more cues, then the earlier one.
func (v *verdict) before(k, j int) bool {
	if v.sober[k] != v.sober[j] {
		return v.sober[k]
	}
	if v.cues[k] != v.cues[j] {
		return v.cues[k] > v.cues[j]
	}
	return v.lead[k] < v.lead[j]
}

// confidence turns a number of distinct markers and a length in runes into
// min(1, score/5).
func confidence(markers, length int) float64 {
	score := markers
	if length >= longSentence {
		score++
	}
	if length >= veryLongSentence {
		score++
	}
	return min(1, float64(score)/5)
}

// judge weighs the open sentence. vetoed reports that something spoke against
// it, mute that the rest of the turn is no statement.
func (d *doc) judge() (v verdict, vetoed, mute bool) {
	d.hits = d.hits[:0]
	var bits uint64
	var classes class
	for i := range d.tokens {
		t := &d.tokens[i]
		classes |= t.class
		if t.lex != nil {
			bits |= t.lex.bit
		}
	}
	vetoes := 0
	for i := range d.tokens {
		t := &d.tokens[i]
		if t.lex == nil || t.is(quoted) {
			continue
		}
		for k := range t.lex.cues {
			try := &t.lex.cues[k]
			if try.bits&bits == 0 && try.class&classes == 0 {
				continue
			}
			c := try.cue
			if d.question && c.mode&asks == 0 || !c.possible(bits, classes) {
				continue
			}
			h, ok := c.find(d.tokens, i)
			if !ok || c.mode&denied == 0 && d.denied(h.first) {
				continue
			}
			if c.kind == "" {
				mute = mute || c.mode&wholly != 0
				vetoes++
			}
			d.hits = append(d.hits, h)
		}
	}
	conditional := d.conditional()
	for i, h := range d.hits {
		if h.cue.kind == "" || d.repeated(i) {
			continue
		}
		if vetoes > 0 && d.spokenAgainst(h) || conditional && h.cue.mode&when == 0 {
			vetoed = true
			continue
		}
		k := kindIndex(h.cue.kind)
		if h.cue.mode&weak != 0 {
			v.weak[k]++
			continue
		}
		v.cues[k]++
		v.sober[k] = v.sober[k] || h.cue.mode&story == 0
		if v.lead[k] == 0 || h.first < v.lead[k]-1 {
			v.lead[k] = h.first + 1
		}
		if n := d.object(h); h.cue.verb && (n > 2 || n == 2 && h.cue.mode&story == 0) {
			v.support |= hasObject
		}
	}
	if hasCue(&v) {
		v.support |= d.support()
	}
	return v, vetoed || vetoes > 0 || conditional && !hasCue(&v), mute
}

func hasCue(v *verdict) bool { return v.cues != [len(kinds)]int{} }

func kindIndex(k Kind) int {
	for i := range kinds {
		if kinds[i] == k {
			return i
		}
	}
	return -1
}

// denied reports whether a negation stands among the three words before the
// token at i.
func (d *doc) denied(i int) bool {
	for n := 0; n < 3 && i > 0; n++ {
		i--
		if d.tokens[i].mark != word {
			return false
		}
		if d.tokens[i].is(negation) {
			return true
		}
	}
	return false
}

// repeated reports whether hit i is no marker of its own: its cue has been
// counted, or a cue of the same kind covers the same words or more.
func (d *doc) repeated(i int) bool {
	h := d.hits[i]
	for j, o := range d.hits {
		switch {
		case j == i || o.cue.kind != h.cue.kind:
		case o.cue == h.cue:
			if j < i {
				return true
			}
		case o.first <= h.first && o.end >= h.end && o.cue.mode&weak <= h.cue.mode&weak:
			if o.end-o.first > h.end-h.first || o.cue.mode&weak < h.cue.mode&weak || j < i {
				return true
			}
		}
	}
	return false
}

// spokenAgainst reports whether a veto reaches a hit: it stands in the same
// stretch between semicolons and dashes, or before it where it only reaches
// forward.
func (d *doc) spokenAgainst(h hit) bool {
	for _, o := range d.hits {
		if o.cue.kind != "" {
			continue
		}
		if o.cue.mode&fronted != 0 && o.first >= h.end {
			continue
		}
		if !d.parted(min(h.first, o.first), max(h.first, o.first)) {
			return true
		}
	}
	return false
}

// parted reports whether a semicolon or dash stands in tokens[lo:hi].
func (d *doc) parted(lo, hi int) bool {
	for i := lo; i < hi; i++ {
		if m := d.tokens[i].mark; m == semicolon || m == dash {
			return true
		}
	}
	return false
}

// conditional reports whether the sentence opens with a condition.
func (d *doc) conditional() bool {
	for i := range d.tokens {
		t := &d.tokens[i]
		if t.mark != word && t.mark != comma {
			continue
		}
		if t.mark == word && !t.is(opener) {
			return t.is(condition)
		}
	}
	return false
}

// object counts the words of content with which a clause goes on after a cue.
func (d *doc) object(h hit) (n int) {
	for i := h.end; i < len(d.tokens) && d.tokens[i].mark == word; i++ {
		if t := &d.tokens[i]; !t.is(function) || t.is(code) {
			n++
		}
	}
	return n
}

// support gathers the further evidence of the sentence.
func (d *doc) support() (e support) {
	for i := range d.tokens {
		t := &d.tokens[i]
		if t.mark != word || t.is(quoted) {
			continue
		}
		switch {
		case t.is(code):
			e |= hasCode
		case t.is(digit | numeral):
			e |= hasNumber
		case t.is(month|weekday|timeWord) && (!t.is(month) || t.is(upper)):
			e |= hasTime
		case t.is(own):
			e |= hasOwner
		case t.is(reason):
			e |= hasReason
		case t.is(contrast):
			e |= hasContrast
		case t.is(scope):
			e |= hasScope
		case t.is(upper|caps|signal|tool) && !t.is(single|function) && (i > 0 || t.is(signal|caps)):
			e |= hasName
		}
	}
	return e
}

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
	sentences int
	refused   bool // some sentence rules a verdict out
}

// findMemories judges the open sentence and keeps what it holds.
func (d *doc) findMemories() {
	w := &d.whole
	w.sentences++
	if d.mute || !d.statement() {
		w.refused = true
		return
	}
	v, vetoed, mute := d.judge()
	d.mute = mute
	w.refused = w.refused || vetoed || mute || d.question && !hasCue(&v)
	if mute {
		return
	}
	at := span{d.tokens[0].start, d.tokens[len(d.tokens)-1].end}
	n := utf8.RuneCountInString(d.text[at.first:at.end])
	if d.want&verdicts != 0 {
		w.add(&v, n)
	}
	if d.want&memories == 0 {
		return
	}
	kind, markers := v.best(d.inferred, d.speaksOfYou() || n < shortStory)
	c := confidence(markers, n)
	switch {
	case kind != "" && n >= MinFactChars && c >= MinConfidence:
		if d.anaphor() && d.before.end > 0 && !d.kept(d.before) {
			at.first = d.before.first // what "it" or "they" stands for
		}
		d.keep(Result{Kind: kind, Confidence: c, Inferred: d.inferred}, at)
	case !vetoed && !d.question && d.goesOn():
		d.carryOn(at)
	}
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
		if !t.is(opener) {
			switch d.word(i) {
			case "This", "That", "These", "Those", "That's", "this", "that", "these", "those", "that's":
				return true
			}
			return false
		}
	}
	return false
}

// goesOn reports whether the sentence goes on with the subject of the one
// before, which it leaves out: "Wants to …", "Will start …".
func (d *doc) goesOn() bool {
	t := &d.tokens[0]
	if t.mark != word || t.is(first|own|second|third) {
		return false
	}
	w := d.word(0)
	if t.is(auxil|gerund) || w == "Want" || w == "Need" || d.verbless() {
		return true
	}
	if n := len(w) - 1; n > 2 && w[n] == 's' {
		var buf [maxWord]byte
		b := appendLower(buf[:0], w)
		return classOf(b[:n])&(command|do|ask) != 0
	}
	return false
}

// verbless reports whether the sentence has no verb that shows, and speaks of
// nobody: a fragment that gives the reason or the detail of what was said.
func (d *doc) verbless() bool {
	n := 0
	for i := range d.tokens {
		if t := &d.tokens[i]; t.mark == word {
			if t.is(auxil|past|first|second|third) && !t.is(code) || i == 0 && t.is(opener) {
				return false
			}
			n++
		}
	}
	return n > 2
}

func (d *doc) speaksOfYou() bool {
	for i := range d.tokens {
		if d.tokens[i].is(second) {
			return true
		}
	}
	return false
}

func (w *whole) add(v *verdict, runes int) {
	w.total += runes
	for k := range kinds {
		if v.cues[k] > 0 {
			w.sizes[k] += runes
		}
		w.sum.cues[k] += v.cues[k]
		w.sum.weak[k] += v.weak[k]
		w.sum.sober[k] = w.sum.sober[k] || v.sober[k]
		if w.sum.lead[k] == 0 {
			w.sum.lead[k] = v.lead[k]
		}
	}
	w.sum.support |= v.support
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

// carryOn adds the open sentence to the memory in the one before.
func (d *doc) carryOn(at span) {
	if d.before.end == 0 || !d.kept(d.before) {
		return
	}
	if last := &d.out[len(d.out)-1]; last.further < maxFurther {
		last.at.end = at.end
		last.further++
	}
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
	}
	return false
}

// content is evidence on one line.
func content(evidence string) string {
	if strings.ContainsAny(evidence, "\n\t") || strings.Contains(evidence, "  ") {
		return strings.Join(strings.Fields(evidence), " ")
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
	kind, markers := w.sum.best(false, false)
	evidence := strings.TrimSpace(d.text)
	c := confidence(markers, utf8.RuneCountInString(evidence))
	if kind == "" || c < MinConfidence || w.sizes[kindIndex(kind)]*3 < w.total*2 {
		return Result{}, false
	}
	return Result{Kind: kind, Content: content(evidence), Confidence: c, Evidence: evidence}, true
}
