package heuristic

import (
	"slices"
	"unicode/utf8"
)

// turn is what the sentences of the open turn have in common.
type turn struct {
	at   span
	glad bool // thanks or is delighted
}

// smallTalk is the length of a turn, in runes, under which delight asks for one
// marker more.
const smallTalk = 100

// jot adds the open sentence to its turn.
func (d *doc) jot(at span) {
	t := &d.turn
	if t.at.end == 0 {
		t.at.first = at.first
	}
	t.at.end = at.end
	t.glad = t.glad || d.speaksOf(delight)
}

// closeTurn drops what a short turn says with delight and no marker to spare.
func (d *doc) closeTurn() {
	t := &d.turn
	said := func(f found) bool { return f.at.first >= t.at.first }
	if t.glad && slices.ContainsFunc(d.out, said) && utf8.RuneCountInString(d.text[t.at.first:t.at.end]) < smallTalk {
		d.out = slices.DeleteFunc(d.out, func(f found) bool { return said(f) && f.Confidence < confidence(3, 0) })
		d.whole.refused = d.whole.refused || !slices.ContainsFunc(d.out, said)
	}
	d.turn = turn{}
}
