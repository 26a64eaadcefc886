package heuristic

import (
	"slices"
	"strings"
)

// lexeme is an entry of the lexicon: what is known of a word form, and the cues
// that are tried where it occurs.
type lexeme struct {
	form  string
	class class
	cues  []*cue
}

// lexicon holds the folded form of every word the rules know. It is a hash
// table with open addressing over the hash the tokeniser makes on its way, never
// more than a quarter full.
var lexicon = newTable(buildLexicon())

type wordTable struct {
	slots []*lexeme
	mask  uint64
}

func newTable(lex map[string]*lexeme) wordTable {
	size := 1
	for size < 4*len(lex) {
		size *= 2
	}
	t := wordTable{make([]*lexeme, size), uint64(size - 1)}
	for form, l := range lex {
		i := hash(form) & t.mask
		for t.slots[i] != nil {
			i = (i + 1) & t.mask
		}
		t.slots[i] = l
	}
	return t
}

// find returns the entry of a folded form, or nil.
func (t *wordTable) find(folded []byte, h uint64) *lexeme {
	for i := h & t.mask; ; i = (i + 1) & t.mask {
		if l := t.slots[i]; l == nil || l.form == string(folded) {
			return l
		}
	}
}

const (
	hashStart = 14695981039346656037
	hashPrime = 1099511628211
)

// hash is FNV-1a with its high half folded in, for the low bits pick the slot.
func hash[T string | []byte](s T) uint64 {
	h := uint64(hashStart)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * hashPrime
	}
	return h ^ h>>32
}

func buildLexicon() map[string]*lexeme {
	lex := make(map[string]*lexeme, 4096)
	entry := func(form string) *lexeme {
		l := lex[form]
		if l == nil {
			l = &lexeme{form: form}
			lex[form] = l
		}
		return l
	}
	for _, g := range wordClasses {
		for form := range strings.FieldsSeq(g.words) {
			entry(form).class |= g.class
		}
	}
	for _, v := range irregularVerbs {
		for _, form := range v[1:] {
			entry(form).class |= past
		}
	}
	id := 0
	for _, t := range cueTables {
		for i := range t.cues {
			c := &t.cues[i]
			c.kind, c.id = t.kind, id
			id++
			c.compile(entry)
		}
	}
	for form, l := range lex { // the endings that lookup reads off other words
		switch {
		case l.class&noVerb != 0:
		case len(form) > 4 && strings.HasSuffix(form, "ed"):
			l.class |= past
		case len(form) > 5 && strings.HasSuffix(form, "ing"):
			l.class |= gerund
		}
	}
	byClass(lex)
	return lex
}

// hang makes a cue be tried at the word.
func (l *lexeme) hang(c *cue) {
	if !slices.Contains(l.cues, c) {
		l.cues = append(l.cues, c)
	}
}

// byClass hangs the cues that open with a word class on every word of the class.
func byClass(lex map[string]*lexeme) {
	for _, t := range cueTables {
		for i := range t.cues {
			c := &t.cues[i]
			if e := c.elems[c.anchor]; e.class != 0 {
				for _, l := range lex {
					if l.class&e.class != 0 {
						l.hang(c)
					}
				}
			}
		}
	}
}

// inflect returns the forms of a regular or listed irregular verb or noun.
func inflect(base string) []string {
	forms := []string{base}
	for _, v := range irregularVerbs {
		if v[0] == base {
			forms = append(forms, v[1:]...)
			break
		}
	}
	stem, last := base[:len(base)-1], base[len(base)-1]
	before := base[len(base)-2]
	switch {
	case last == 'e':
		return append(forms, base+"s", base+"d", stem+"ing")
	case last == 'y' && !vowel(before):
		return append(forms, stem+"ies", stem+"ied", base+"ing")
	case last == 's' || last == 'x' || last == 'z' || strings.HasSuffix(base, "ch") || strings.HasSuffix(base, "sh"):
		return append(forms, base+"es", base+"ed", base+"ing")
	}
	forms = append(forms, base+"s", base+"ed", base+"ing")
	if !vowel(last) && last != 'w' && last != 'y' && vowel(before) && len(base) > 2 && !vowel(base[len(base)-3]) {
		forms = append(forms, base+string(last)+"ed", base+string(last)+"ing")
	}
	return forms
}

func vowel(c byte) bool { return strings.IndexByte("aeiou", c) >= 0 }
