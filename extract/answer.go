package extract

// answer is what one group of values yields.
type answer struct {
	items []Candidate
	// index finds the item of a content.
	index                        map[string]int
	skipped, clamped, duplicates int
	// empty is set by an explicit empty list.
	empty bool
	// open is set by a value that ended before its closing mark.
	open bool
}

// found reports whether a answers at all.
func (a *answer) found() bool { return len(a.items) > 0 || a.empty || a.skipped > 0 }

func (a *answer) report() Report {
	r := Report{
		Outcome:    OutcomeUnparseable,
		Salvaged:   a.open && len(a.items) > 0,
		Skipped:    a.skipped,
		OutOfRange: a.clamped,
		Duplicates: a.duplicates,
	}
	switch {
	case len(a.items) > 0:
		r.Outcome = OutcomeOK
	case a.skipped > 0:
		r.Outcome = OutcomeInvalidItems
	case a.empty:
		r.Outcome = OutcomeEmpty
	}
	return r
}

// put adds c, or the better of two with the same content in the place of the
// first.
func (a *answer) put(c Candidate) {
	if i, ok := a.index[c.Content]; ok {
		a.duplicates++
		if c.Salience > a.items[i].Salience {
			a.items[i] = c
		}
		return
	}
	if len(a.items) == maxItems {
		a.skipped++
		return
	}
	if a.index == nil {
		a.index = make(map[string]int)
	}
	a.index[c.Content] = len(a.items)
	a.items = append(a.items, c)
}

// merge adds what a string inside a held.
func (a *answer) merge(b answer) {
	for _, c := range b.items {
		a.put(c)
	}
	a.skipped += b.skipped
	a.clamped += b.clamped
	a.duplicates += b.duplicates
	a.empty = a.empty || b.empty
	a.open = a.open || b.open
}
