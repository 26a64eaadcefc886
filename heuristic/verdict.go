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
)

// span is a range of tokens.
type span struct{ first, end int }

// verdict is what the markers of a sentence, or of a whole text, add up to.
type verdict struct {
	cues    [len(kinds)]int // distinct cues that are not weak
	lead    [len(kinds)]int // 1 + the token of the first of them
	weak    [len(kinds)]int // distinct weak cues
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
func (v *verdict) best(inferred bool) (kind Kind, markers int) {
	top := -1
	for k := range kinds {
		if v.cues[k] == 0 || inferred && kinds[k] == KindPreference {
			continue // an assistant has no preferences worth keeping
		}
		if top < 0 || v.cues[k] > v.cues[top] || v.cues[k] == v.cues[top] && v.lead[k] < v.lead[top] {
			top = k
		}
	}
	if top < 0 {
		return "", 0
	}
	return kinds[top], v.cues[top] + v.weak[top] + v.support.count()
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

// judge weighs one sentence. vetoed reports that something spoke against it,
// mute that the rest of the turn is no statement.
func (d *doc) judge(s *sentence) (v verdict, vetoed, mute bool) {
	d.hits = d.hits[:0]
	vetoes := 0
	for i := s.first; i < s.end; i++ {
		t := &d.tokens[i]
		if t.lex == nil || t.is(quoted) {
			continue
		}
		for _, c := range t.lex.cues {
			if s.question && c.mode&asks == 0 {
				continue
			}
			h, ok := c.find(d.tokens, i, s.first, s.end)
			if !ok || c.mode&denied == 0 && d.denied(h.first, s.first) {
				continue
			}
			if c.kind == "" {
				mute = mute || c.mode&wholly != 0
				vetoes++
			}
			d.hits = append(d.hits, h)
		}
	}
	conditional := d.conditional(s)
	for i, h := range d.hits {
		if h.cue.kind == "" || d.repeated(i) {
			continue
		}
		if vetoes > 0 && d.spokenAgainst(h, s) || conditional && h.cue.mode&when == 0 {
			vetoed = true
			continue
		}
		k := kindIndex(h.cue.kind)
		if h.cue.mode&weak != 0 {
			v.weak[k]++
			continue
		}
		v.cues[k]++
		if v.lead[k] == 0 || h.first < v.lead[k]-1 {
			v.lead[k] = h.first + 1
		}
		if h.cue.verb && d.hasObject(h, s) {
			v.support |= hasObject
		}
	}
	if hasCue(&v) {
		v.support |= d.support(s)
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
func (d *doc) denied(i, lo int) bool {
	for n := 0; n < 3 && i > lo; n++ {
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
func (d *doc) spokenAgainst(h hit, s *sentence) bool {
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

// conditional reports whether a sentence opens with a condition.
func (d *doc) conditional(s *sentence) bool {
	for i := s.first; i < s.end; i++ {
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

// hasObject reports whether a clause goes on after a cue with at least two words
// of content.
func (d *doc) hasObject(h hit, s *sentence) bool {
	n := 0
	for i := h.end; i < s.end && d.tokens[i].mark == word; i++ {
		if t := &d.tokens[i]; !t.is(function) || t.is(code) {
			n++
		}
	}
	return n >= 2
}

// support gathers the further evidence of a sentence.
func (d *doc) support(s *sentence) (e support) {
	for i := s.first; i < s.end; i++ {
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
		case nameWord(t) && !t.is(single) && (i > s.first || t.is(signal|caps)):
			e |= hasName
		}
	}
	return e
}

// typed judges every sentence and keeps the most confident.
func (d *doc) typed() []Result {
	d.out = d.out[:0]
	mute := false
	turn := 0
	for i := range d.sentences {
		s := &d.sentences[i]
		for turn+1 < len(d.turns) && d.tokens[s.first].start >= d.turns[turn].end {
			turn, mute = turn+1, false
		}
		if mute || !d.statement(s) {
			continue
		}
		v, _, m := d.judge(s)
		if mute = m; mute {
			continue
		}
		kind, markers := v.best(s.inferred)
		if kind == "" {
			continue
		}
		evidence, n := d.evidence(s)
		if c := confidence(markers, n); n >= MinFactChars && c >= MinConfidence {
			d.keep(Result{Kind: kind, Confidence: c, Evidence: evidence, Inferred: s.inferred})
		}
	}
	if len(d.out) == 0 {
		return nil
	}
	out := make([]Result, len(d.out))
	for i, r := range d.out {
		r.Content = content(r.Evidence)
		out[i] = r
	}
	return out
}

// keep adds a result. Past the cap the least confident goes, of equals the last.
func (d *doc) keep(r Result) {
	d.out = append(d.out, r)
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

// statement reports whether a sentence is prose. A list item must read like a
// sentence: it closes with a full stop, or speaks of somebody.
func (d *doc) statement(s *sentence) bool {
	switch s.shape {
	case prose:
		return true
	case item:
		if m := d.tokens[s.end-1].mark; m == stop {
			return true
		}
		for i := s.first; i < s.end; i++ {
			if d.tokens[i].is(first | own | second) {
				return true
			}
		}
	}
	return false
}

// evidence is the verbatim span of a sentence and its length in runes.
func (d *doc) evidence(s *sentence) (string, int) {
	e := d.text[d.tokens[s.first].start:d.tokens[s.end-1].end]
	return e, utf8.RuneCountInString(e)
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
	if d.transcript || len(d.sentences) == 0 {
		return Result{}, false
	}
	var sum verdict
	var sizes [len(kinds)]int
	total := 0
	for i := range d.sentences {
		s := &d.sentences[i]
		if !d.statement(s) {
			return Result{}, false
		}
		v, vetoed, mute := d.judge(s)
		if vetoed || mute || s.question && !hasCue(&v) {
			return Result{}, false
		}
		_, n := d.evidence(s)
		total += n
		for k := range kinds {
			if v.cues[k] > 0 {
				sizes[k] += n
			}
			sum.cues[k] += v.cues[k]
			sum.weak[k] += v.weak[k]
			if sum.lead[k] == 0 {
				sum.lead[k] = v.lead[k]
			}
		}
		sum.support |= v.support
	}
	kind, markers := sum.best(false)
	evidence := strings.TrimSpace(d.text)
	c := confidence(markers, utf8.RuneCountInString(evidence))
	if kind == "" || c < MinConfidence || sizes[kindIndex(kind)]*3 < total*2 {
		return Result{}, false
	}
	return Result{Kind: kind, Content: content(evidence), Confidence: c, Evidence: evidence}, true
}
