package heuristic

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// heard reports whether a cue counts in a text: it is found, not denied, and no
// sentence form shuts it out.
func heard(c *cue, text string) bool {
	d := read(text)
	defer d.release()
	for i := range d.sentences {
		s := &d.sentences[i]
		if !d.statement(s) {
			continue
		}
		d.judge(s)
		for _, h := range d.hits {
			if h.cue == c {
				return true
			}
		}
	}
	return false
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
