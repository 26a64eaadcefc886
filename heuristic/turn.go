package heuristic

import (
	"slices"
	"unicode/utf8"
)

// turn is what the sentences of the open turn have in common.
type turn struct {
	at    span
	glad  bool // thanks or is delighted
	talks bool // speaks to somebody, asks, exclaims, or holds what is no statement
	note  note
}

// smallTalk is the length of a turn, in runes, under which delight asks for one
// marker more.
const smallTalk = 100

// jot adds the open sentence to its turn.
func (d *doc) jot(v *verdict, at span, vetoed bool) {
	t := &d.turn
	if t.at.end == 0 {
		t.at.first = at.first
	}
	t.at.end = at.end
	t.glad = t.glad || d.speaksOf(delight)
	t.talks = t.talks || d.question || d.text[at.end-1] == '!' || d.speaksOf(second)
	if d.want&memories != 0 && !t.glad && !t.talks && !d.inferred {
		d.note(*v, at, vetoed)
	}
}

// closeTurn drops what a short turn says with delight and no marker to spare, and
// keeps a turn that is a note where no sentence of it is a memory by itself.
func (d *doc) closeTurn() {
	t := &d.turn
	said := func(f found) bool { return f.at.first >= t.at.first }
	switch {
	case !slices.ContainsFunc(d.out, said):
		if kind, c := d.noted(); kind != "" && !t.glad && !t.talks {
			d.keep(Result{Kind: kind, Confidence: c}, t.note.at)
		}
	case t.glad && utf8.RuneCountInString(d.text[t.at.first:t.at.end]) < smallTalk:
		d.out = slices.DeleteFunc(d.out, func(f found) bool { return said(f) && f.Confidence < confidence(3, 0) })
		d.whole.refused = d.whole.refused || !slices.ContainsFunc(d.out, said)
	}
	d.turn = turn{}
}
