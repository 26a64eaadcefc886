package extract

import (
	"cmp"
	"slices"
)

// Filter is what every extractor does to its candidates last, in this order:
//
//  1. drop a candidate whose Content is blank or whose Salience is NaN;
//  2. clamp Salience to [0, 1];
//  3. replace a blank Source, Observed or Date by the turn's, and an Observed
//     that is still blank by o.DefaultObserved;
//  4. drop what lies below o.MinSalience;
//  5. sort by Salience, highest first, keeping the order of equals;
//  6. keep the first o.MaxCandidates, if that is above 0.
//
// Blank means nothing but white space and invisible characters. A blank value
// that nothing replaces ends up empty. Fields that are not blank stay as they are.
//
// Filter works in place, without allocating: use the result instead of cands. It
// is idempotent.
func Filter(cands []Candidate, t Turn, o Options) []Candidate {
	kept := cands[:0]
	for _, c := range cands {
		if blank(c.Content) || c.Salience != c.Salience { // NaN differs from itself
			continue
		}
		c.Salience = min(max(c.Salience, 0), 1)
		if c.Salience < o.MinSalience {
			continue
		}
		c.Source = inherit(c.Source, t.Source)
		c.Observed = inherit(inherit(c.Observed, t.Observed), o.DefaultObserved)
		c.Date = inherit(c.Date, t.Date)
		kept = append(kept, c)
	}
	clear(cands[len(kept):])
	slices.SortStableFunc(kept, func(a, b Candidate) int {
		return cmp.Compare(b.Salience, a.Salience)
	})
	if o.MaxCandidates > 0 && len(kept) > o.MaxCandidates {
		clear(kept[o.MaxCandidates:])
		kept = kept[:o.MaxCandidates]
	}
	return kept
}

func inherit(own, from string) string {
	switch {
	case !blank(own):
		return own
	case !blank(from):
		return from
	}
	return ""
}
