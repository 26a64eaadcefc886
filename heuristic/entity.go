package heuristic

import "strings"

func (d *doc) entities() []string {
	var out []string
	clear(d.seen)
	clear(d.inside)
	for i := range d.sentences {
		s := &d.sentences[i]
		for j := s.first; j < s.end; j++ {
			if t := &d.tokens[j]; t.is(upper) && nameWord(t) && !d.opens(s, j) {
				d.inside[t.hash] = true
			}
		}
	}
	for i := range d.sentences {
		s := &d.sentences[i]
		if s.shape == heading || s.shape == tableHeader {
			continue
		}
		d.eachSpan(s, func(lo, hi int) bool {
			if !d.trusted(s, lo, hi) {
				return true
			}
			key := d.key(lo, hi)
			if key != "" && !d.seen[key] {
				d.seen[key] = true
				out = append(out, key)
			}
			return len(out) < MaxEntities
		})
		if len(out) == MaxEntities {
			break
		}
	}
	return out
}

// eachSpan calls f for every run of name words of a sentence until it returns
// false.
func (d *doc) eachSpan(s *sentence, f func(lo, hi int) bool) {
	for i := s.first; i < s.end; i++ {
		if !nameWord(&d.tokens[i]) || d.tokens[i].is(numeric) || d.tokens[i].is(single) && !d.tokens[i].is(signal) {
			continue
		}
		lo := i
		if t := &d.tokens[i]; d.opens(s, i) && t.lex != nil && !t.is(signal|feast) && !d.inside[t.hash] {
			continue // a common word in the capitals of a sentence start
		}
		for i++; i < s.end && (nameWord(&d.tokens[i]) || feastDay(&d.tokens[i-1], &d.tokens[i])); i++ {
		}
		if !f(lo, i) {
			return
		}
		i--
	}
}

// nameWord reports whether a token may belong to a name.
func nameWord(t *token) bool {
	if t.mark != word || t.is(code|function) || t.is(uncased) {
		return false
	}
	if t.is(month | weekday | unit) {
		return false
	}
	return t.is(upper | caps | numeric | signal)
}

// feastDay reports whether a weekday belongs to the word before: Black Friday.
func feastDay(before, day *token) bool {
	return before.is(feast) && before.is(upper) && day.is(weekday) && day.is(upper)
}

// trusted reports whether capitals are evidence for tokens[lo:hi]: anywhere but
// at the start of a sentence they are.
func (d *doc) trusted(s *sentence, lo, hi int) bool {
	t := &d.tokens[lo]
	return s.shape == table || !d.opens(s, lo) || hi-lo > 1 || t.is(signal) || d.inside[t.hash]
}

// opens reports whether the token at i is the first word of its sentence, or the
// first after an opening interjection, quotation mark or colon.
func (d *doc) opens(s *sentence, i int) bool {
	for i--; i >= s.first; i-- {
		switch d.tokens[i].mark {
		case quote, colon, other, bracket:
			continue
		}
		return false
	}
	return true
}

// key is the normal form of a name: lower case, straight apostrophes, no
// possessive endings.
func (d *doc) key(lo, hi int) string {
	var b strings.Builder
	for i := lo; i < hi; i++ {
		if i > lo {
			b.WriteByte(' ')
		}
		t := &d.tokens[i]
		b.WriteString(strings.ToLower(d.text[t.start:t.base]))
	}
	return strings.ReplaceAll(b.String(), "’", "'")
}
