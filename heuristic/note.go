package heuristic

import "unicode/utf8"

// note is what the sentences add up to that open a turn which speaks to nobody:
// what none of them shows alone they may show together.
type note struct {
	sum      verdict
	at       span
	states   int  // sentences that state something, at most noteLength
	opinions int  // those of them that say "I think"
	over     bool // those that follow add nothing
}

const (
	noteLength = 2  // sentences; what follows only goes on
	shortNote  = 80 // runes; what is said in less rests on too little
)

// note adds the open sentence to the note.
func (d *doc) note(v verdict, at span, vetoed bool) {
	n := &d.turn.note
	if n.over {
		return
	}
	thought := vetoed && d.thinks()
	switch {
	case !vetoed && n.states > 0 && !d.says() && d.verbless():
		n.at.end = at.end // a detail of what was stated
		n.sum.support |= d.support()
		return
	case vetoed && !thought || !d.says():
		n.over = n.states > 0
		return
	}
	if n.states == 0 {
		n.at.first = at.first
	}
	n.at.end = at.end
	n.states++
	n.over = n.states == noteLength
	if thought {
		n.opinions++
	}
	if !hasCue(&v) {
		v.support = d.support()
	}
	for k := range kinds {
		if !v.sober[k] {
			v.cues[k] = 0
		}
	}
	n.sum.add(&v)
}

// noted returns the kind of the note and its confidence, or nothing if it is none.
// Without a cue it is an opinion, or a fact if anything in it is concrete.
func (d *doc) noted() (kind Kind, c float64) {
	n := &d.turn.note
	runes := utf8.RuneCountInString(d.text[n.at.first:n.at.end])
	if n.states < noteLength || runes < shortNote {
		return "", 0
	}
	kind, markers := n.sum.best(false)
	switch {
	case kind != "":
	case n.opinions > 0:
		kind, markers = KindPreference, n.sum.support.count()
	case n.sum.support&concrete != 0:
		kind, markers = KindFact, n.sum.support.count()
	}
	if c = confidence(markers+n.opinions, runes); c < MinConfidence {
		return "", 0
	}
	return kind, c
}

// thinks reports whether "I think" and its like are all that speaks against the
// sentence, which tells neither what to do nor what may be, and nothing of us: an
// opinion, where more is said for it.
func (d *doc) thinks() bool {
	thought, selves := false, 0
	for _, h := range d.hits {
		if h.cue.kind == "" && h.cue.mode&opinion == 0 {
			return false
		}
		thought = thought || h.cue.kind == ""
	}
	for i := range d.tokens {
		if d.tokens[i].is(first) {
			selves++
		}
		switch d.word(i) {
		case "can", "could", "may", "might", "must", "ought", "should", "would":
			return false
		}
	}
	return thought && selves == 1
}
