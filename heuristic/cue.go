package heuristic

import (
	"slices"
	"strings"
)

// cue is one row of a table: a phrase that speaks for a kind of memory, or
// against any.
//
// A phrase is a list of elements: a word; a|b, one of several; verb~, any form
// of a verb or noun; @class, a word of a class; #, a number; _, any word; …, up
// to ten words; ^ before the first, the start of a clause; !a|b, not followed by
// these; : and , are themselves. Adverbs and auxiliaries may stand between elements.
type cue struct {
	at   string
	yes  string // a text in which the cue speaks
	no   string // a near miss in which it does not
	mode mode

	kind   Kind
	elems  []elem
	anchor int  // the element by which the cue is found
	start  bool // ^
	verb   bool // says what a subject does
	roomy  bool // holds … where an object stands; for facts and decisions that is mostly small talk
	needs  []need
}

// need is what one element of a cue asks of its sentence, at the least: one of
// its words, by their bits, or of its classes. Most cues are ruled out by it
// before they are tried.
type need struct {
	bits  uint64
	class class
}

// mode changes how a cue is heard.
type mode uint16

const (
	weak    mode = 1 << iota // speaks only beside a cue of the same kind that is not weak
	asks                     // speaks in a question too
	when                     // speaks in a condition too
	denied                   // speaks after a negation too
	wholly                   // a veto on the rest of the text
	fronted                  // a veto on what follows it only
	story                    // tells of somebody's life: asks for more of an object
	acts                     // says what a subject does, as @i and verb~ do: counts its object
	opinion                  // a verdict, which "I think" does not weaken; of a veto: one of thinking
)

type elem struct {
	words []*lexeme
	class class
	mark  mark
	op    op
}

type op uint8

const (
	match op = iota
	anyWord
	gap
	unless
)

// classNames are the @classes of cue phrases.
var classNames = map[string]class{
	"@i": first, "@my": own, "@you": second, "@he": third, "@the": determin, "@be": auxil, "@kin": kin,
	"@past": past, "@do": do, "@ask": ask, "@work": work, "@ing": gerund, "@not": negation, "@time": timeWord, "@day": weekday | month, "@unit": unit, "#": numeral,
}

// words makes an entry for every word of the phrase.
func (c *cue) words(entry func(string) *lexeme) {
	d := cue{at: c.at}
	d.compile(entry)
}

// compile reads the phrase.
func (c *cue) compile(entry func(string) *lexeme) {
	longest := 0
	c.anchor, c.verb = -1, c.mode&acts != 0
	for f := range strings.FieldsSeq(c.at) {
		var e elem
		if f == "^" {
			c.start = true
			continue
		}
		if rest, ok := strings.CutPrefix(f, "!"); ok {
			e.op, f = unless, rest
		}
		width := 0
		for w := range strings.SplitSeq(f, "|") {
			switch class, named := classNames[w]; {
			case w == "_":
				e.op = anyWord
			case w == "…":
				e.op, c.roomy = gap, c.kind != KindFact && c.kind != KindDecision
			case w == ":":
				e.mark = colon
			case w == ",":
				e.mark = comma
			case named:
				e.class |= class
				c.verb = c.verb || class == first
			case strings.HasSuffix(w, "~"):
				w = strings.TrimSuffix(w, "~")
				for _, form := range inflect(w) {
					e.words = append(e.words, entry(form))
				}
				c.verb = true
				width = max(width, len(w))
			default:
				e.words = append(e.words, entry(w))
				width = max(width, len(w))
			}
		}
		if e.op == match && e.class == 0 && width > longest {
			longest, c.anchor = width, len(c.elems)
		}
		c.elems = append(c.elems, e)
	}
	for i := 0; c.anchor < 0; i++ { // no element of words alone: the first of a class
		if e := &c.elems[i]; e.op == match && e.class != 0 {
			c.anchor = i
		}
	}
	for i, e := range c.elems {
		if i == c.anchor || e.op != match || e.mark != word {
			continue
		}
		n := need{class: e.class}
		for _, l := range e.words {
			n.bits |= l.bit
		}
		c.needs = append(c.needs, n)
	}
}

// possible reports whether a sentence of these words and classes may hold the
// cue.
func (c *cue) possible(bits uint64, classes class) bool {
	for i := range c.needs {
		if n := &c.needs[i]; n.bits&bits == 0 && n.class&classes == 0 {
			return false
		}
	}
	return true
}

func (e *elem) accepts(t *token) bool {
	if t.mark != word {
		return t.mark == e.mark
	}
	if e.op == anyWord {
		return true
	}
	if t.class&e.class != 0 {
		return true
	}
	return slices.Contains(e.words, t.lex)
}

// hit is a cue found in a sentence: tokens[first:end].
type hit struct {
	cue        *cue
	first, end int
}

const (
	maxFillers = 2
	maxGap     = 10
)

// find tries a cue on the token at i, which its anchor accepts.
func (c *cue) find(tokens []token, i int) (hit, bool) {
	from, ok := c.walk(tokens, i, -1, -1)
	if !ok || c.start && !startsClause(tokens, from) {
		return hit{}, false
	}
	to, ok := c.walk(tokens, i, len(tokens), 1)
	return hit{c, from, to + 1}, ok
}

// walk matches the elements from the anchor to one end of the phrase against the
// tokens from i on, and returns the last token it used.
func (c *cue) walk(tokens []token, i, limit, step int) (int, bool) {
	gapLeft := 0
	for k := c.anchor + step; k >= 0 && k < len(c.elems); k += step {
		e := &c.elems[k]
		switch e.op {
		case gap:
			gapLeft = maxGap
			continue
		case unless:
			if j := i + step; j != limit {
				probe := elem{words: e.words, class: e.class}
				if probe.accepts(&tokens[j]) {
					return 0, false
				}
			}
			continue
		default:
		}
		fillers := 0
		for {
			i += step
			if i == limit {
				return 0, false
			}
			if e.accepts(&tokens[i]) && (k > 0 || gapLeft == 0 || !c.start || tokens[i].is(clauseStart)) {
				break
			}
			if tokens[i].mark != word {
				return 0, false
			}
			switch {
			case gapLeft > 0:
				gapLeft--
			case tokens[i].is(filler) && fillers < maxFillers:
				fillers++
			default:
				return 0, false
			}
		}
		gapLeft = 0
	}
	return i, true
}

// startsClause reports whether the word at i opens its clause, adverbs before it
// aside.
func startsClause(tokens []token, i int) bool {
	for ; i >= 0 && tokens[i].mark == word; i-- {
		if tokens[i].is(clauseStart) {
			return true
		}
		if i == 0 || !tokens[i-1].is(filler|opener) {
			return false
		}
	}
	return false
}
