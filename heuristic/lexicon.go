package heuristic

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// lexeme is an entry of the lexicon: what is known of a word form, and the cues
// that are tried where it occurs.
type lexeme struct {
	head, tail uint64 // the first sixteen bytes of form, as folded.words gives them
	form       string

	class class
	votes uint64 // for the languages it is a function word of, see tongue
	bit   uint64 // of the sentence's set of words, see cue.needs
	cues  []trial
}

// trial is a cue that is tried at a word, unless the sentence lacks what one of
// its other elements needs.
type trial struct {
	need
	cue *cue
}

// lexicon holds the folded form of every word the rules know. It is built for the
// first text, so that programs without one start faster.
var lexicon wordTable

var loadLexicon = sync.OnceFunc(func() { lexicon = newTable(buildLexicon()) })

// wordTable is a hash table with open addressing over the hash the tokeniser
// makes on its way, never more than a quarter full. A slot holds a part of the
// hash and the number of an entry in sixteen bits each, so that the table stays
// in the cache: most words of a text are looked up only to be found absent or
// common.
type wordTable struct {
	slots   []uint32
	entries []lexeme // from 1 on
	mask    uint32
}

func newTable(entries []lexeme) wordTable {
	size := 1
	for size < 4*len(entries) {
		size *= 2
	}
	t := wordTable{make([]uint32, size), entries, uint32(size - 1)}
	for n := 1; n < len(entries); n++ {
		h := hash(entries[n].form)
		i := mix(h) & t.mask
		for t.slots[i] != 0 {
			i = (i + 1) & t.mask
		}
		t.slots[i] = h&^0xffff | uint32(n)
	}
	return t
}

// find returns the entry of a word, or nil.
func (t *wordTable) find(f *folded) *lexeme {
	head, tail := f.words()
	for i := mix(f.hash) & t.mask; ; i = (i + 1) & t.mask {
		s := t.slots[i]
		if s == 0 {
			return nil
		}
		if (s^f.hash)>>16 != 0 {
			continue
		}
		l := &t.entries[s&0xffff]
		if l.head == head && l.tail == tail && len(l.form) == f.n && (f.n <= 16 || l.form == string(f.bytes())) {
			return l
		}
	}
}

const (
	hashStart = 2166136261
	hashPrime = 16777619
)

// hash is FNV-1a.
func hash(s string) uint32 {
	h := uint32(hashStart)
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * hashPrime
	}
	return h
}

// mix folds the high bits of a hash in, for the low bits pick the slot.
func mix(h uint32) uint32 { return h ^ h>>15 }

// buildLexicon lists the entries, from 1 on. Cues point into the list.
func buildLexicon() []lexeme {
	forms := make(map[string]*lexeme, 8192)
	entry := func(form string) *lexeme {
		l := forms[form]
		if l == nil {
			l = &lexeme{form: form, bit: 1 << (mix(hash(form)) % 64)}
			forms[form] = l
		}
		return l
	}
	for _, g := range slices.Concat(wordClasses, nameClasses) {
		for form := range strings.FieldsSeq(g.words) {
			entry(form).class |= g.class
		}
	}
	for t, words := range functionWords {
		for form := range strings.FieldsSeq(words) {
			entry(form).votes |= 1 << (8 * t)
		}
	}
	for _, v := range irregularVerbs {
		for _, form := range v[1:] {
			entry(form).class |= past
		}
	}
	for _, t := range cueTables {
		for i := range t.cues {
			t.cues[i].words(entry)
		}
	}
	entries := make([]lexeme, 1, len(forms)+1)
	for _, form := range slices.Sorted(maps.Keys(forms)) {
		l := *forms[form]
		f := fold([]byte(form))
		l.head, l.tail = f.words()
		switch { // the endings that lookup reads off other words
		case l.class&noVerb != 0:
		case len(form) > 4 && strings.HasSuffix(form, "ed"):
			l.class |= past
		case len(form) > 5 && strings.HasSuffix(form, "ing"):
			l.class |= gerund
		}
		entries = append(entries, l)
		forms[form] = &entries[len(entries)-1]
	}
	for _, t := range cueTables {
		for i := range t.cues {
			c := &t.cues[i]
			c.kind = t.kind
			c.compile(entry)
			hang(c, entries)
		}
	}
	return entries
}

// hang makes a cue be tried at the words its anchor accepts.
func hang(c *cue, entries []lexeme) {
	t := trial{need{^uint64(0), ^class(0)}, c}
	if len(c.needs) > 0 {
		t.need = c.needs[0]
	}
	at := func(l *lexeme) {
		if n := len(l.cues); n == 0 || l.cues[n-1].cue != c {
			l.cues = append(l.cues, t)
		}
	}
	anchor := &c.elems[c.anchor]
	for _, l := range anchor.words {
		at(l)
	}
	if anchor.class == 0 {
		return // or every start would go through the lexicon for every cue
	}
	for i := range entries {
		if l := &entries[i]; l.class&anchor.class != 0 {
			at(l)
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
