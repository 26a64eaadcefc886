package heuristic

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// heard reports whether a cue is found in a text of one sentence, not denied and
// not shut out by its form.
func heard(c *cue, text string) bool {
	d := pass(text, memories)
	defer d.release()
	return slices.ContainsFunc(d.hits, func(h hit) bool { return h.cue == c })
}

func TestCueExamples(t *testing.T) {
	t.Parallel()
	for _, table := range cueTables {
		for i := range table.cues {
			c := &table.cues[i]
			require.NotEmpty(t, c.yes, c.at)
			require.NotEmpty(t, c.no, c.at)
			if !heard(c, c.yes) {
				t.Errorf("%q (%s) is not heard in %q", c.at, table.kind, c.yes)
			}
			if heard(c, c.no) {
				t.Errorf("%q (%s) is heard in %q", c.at, table.kind, c.no)
			}
		}
	}
}

// Every example of a cue that is not weak is a memory of its kind by itself or
// with further evidence; a near miss of any cue is none of that kind.
func TestCueNearMissesAreNoMemories(t *testing.T) {
	t.Parallel()
	for _, table := range cueTables {
		for i := range table.cues {
			c := &table.cues[i]
			for _, r := range Typed(c.no) {
				if r.Kind == table.kind {
					t.Errorf("%q (%s) keeps its near miss %q", c.at, table.kind, c.no)
				}
			}
		}
	}
}
