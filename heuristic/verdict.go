package heuristic

// kinds are the kinds in the order that decides a draw of equal positions.
var kinds = [...]Kind{KindDecision, KindPreference, KindProblem, KindHowto, KindFact}

// Lengths that add to a score, in runes: what is said at length rests on less.
const (
	longSentence     = 200
	veryLongSentence = 500
	shortStory       = 80 // a story told in less is small talk
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

// solid is the evidence that can be checked, concrete what ties a statement to
// something.
const (
	solid    = hasNumber | hasTime | hasName | hasCode
	concrete = solid | hasReason | hasContrast
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
		if top < 0 || v.before(k, top) {
			top = k
		}
	}
	if top < 0 {
		return "", 0
	}
	return kinds[top], v.cues[top] + v.weak[top] + v.support.count()
}

// add takes in the verdict on a further sentence.
func (v *verdict) add(o *verdict) {
	for k := range kinds {
		v.cues[k] += o.cues[k]
		v.weak[k] += o.weak[k]
		v.sober[k] = v.sober[k] || o.sober[k]
		if v.lead[k] == 0 {
			v.lead[k] = o.lead[k]
		}
	}
	v.support |= o.support
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
	d.classes = 0
	for i := range d.tokens {
		t := &d.tokens[i]
		d.classes |= t.class
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
			if try.bits&bits == 0 && try.class&d.classes == 0 {
				continue
			}
			c := try.cue
			if d.question && c.mode&asks == 0 || !c.possible(bits, d.classes) {
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
		if n := d.object(h); n > 1 && h.cue.mode&story == 0 || n > 2 && h.cue.verb {
			v.support |= hasObject
		}
	}
	if hasCue(&v) {
		v.support |= d.support()
	} else if vetoes == 0 && !conditional && !d.question && d.states() {
		if e := d.support(); (e & solid).count() > 1 {
			k := kindIndex(KindFact)
			v.cues[k], v.lead[k], v.sober[k], v.support = 1, 1, true, e
		}
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
		if o.cue.kind != "" || o.cue.mode&h.cue.mode&opinion != 0 {
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

// object counts the words of content with which a clause goes on after a cue, and
// those the cue leaves room for.
func (d *doc) object(h hit) (n int) {
	from := h.end
	if h.cue.roomy {
		from = h.first + 1
	}
	for i := from; i < len(d.tokens) && (i < h.end || d.tokens[i].mark == word); i++ {
		if t := &d.tokens[i]; t.mark == word && (!t.is(function) || t.is(code|caps)) {
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
		case t.is(upper|caps|signal|tool) && !t.is(single|function) && (i > 0 || t.is(signal|caps)) && !d.addressed(i):
			e |= hasName
		}
	}
	return e
}

// states reports whether the sentence says something of a third party, which
// beside solid evidence is a marker of a fact: no cue names every verb.
func (d *doc) states() bool {
	return !d.speaksOf(first|second|negation) && d.says()
}

// inEnglish reports whether the sentence is in English: no other language has had
// more votes so far, and a fifth of its words are function words of English. Rules
// that no cue speaks for ask this, as "was", "will" and "in" are words elsewhere.
func (d *doc) inEnglish() bool {
	words, votes := 0, 0
	for i := range d.tokens {
		if t := &d.tokens[i]; t.mark == word {
			words++
			if t.lex != nil && t.lex.votes&0xff != 0 {
				votes++
			}
		}
	}
	return votes*5 >= words && d.tongue() == english
}

// says reports whether the sentence is English and has a verb that shows, or
// speaks of us.
func (d *doc) says() bool {
	for i := range d.tokens {
		t := &d.tokens[i]
		if t.mark == word && !t.is(quoted) && (t.is(first|auxil|past) || i > 0 && d.thirdPerson(i)) {
			return d.inEnglish()
		}
	}
	return false
}
