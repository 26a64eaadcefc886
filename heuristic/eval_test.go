package heuristic

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// row is a labelled text of testdata. The texts were written for this project.
type row struct {
	ID       string              `json:"id"`
	Text     string              `json:"text"`
	Task     string              `json:"task"` // probes: entities or classify
	Durable  bool                `json:"durable"`
	Kind     string              `json:"kind"`
	Alt      []string            `json:"alt"` // kinds that are right too
	Entities []string            `json:"entities"`
	Optional []string            `json:"optional"` // entities that are neither right nor wrong
	Aliases  map[string][]string `json:"aliases"`
}

func rows(t *testing.T, name string) (rs []row) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	require.NoError(t, err)
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var r row
		require.NoError(t, json.Unmarshal(sc.Bytes(), &r))
		rs = append(rs, r)
	}
	require.NotEmpty(t, rs)
	return rs
}

// score is precision, recall and their harmonic mean.
type score struct{ hit, wrong, missed float64 }

func (s score) precision() float64 { return s.hit / max(1, s.hit+s.wrong) }
func (s score) recall() float64    { return s.hit / max(1, s.hit+s.missed) }
func (s score) f1() float64        { return 2 * s.hit / max(1, 2*s.hit+s.wrong+s.missed) }

// canonical is how names are compared: without articles, possessives and dots.
func canonical(s string) string {
	s = strings.ReplaceAll(strings.ToLower(s), "’", "'")
	words := strings.Fields(s)
	for i, w := range words {
		words[i] = strings.TrimSuffix(w, "'s")
	}
	return strings.TrimPrefix(strings.Trim(strings.Join(words, " "), ". "), "the ")
}

func scoreEntities(rs []row) (s score) {
	for _, r := range rs {
		found := map[string]bool{}
		for _, e := range Entities(r.Text) {
			e = canonical(e)
			i := slices.IndexFunc(r.Entities, func(g string) bool {
				return canonical(g) == e || slices.ContainsFunc(r.Aliases[g], func(a string) bool { return canonical(a) == e })
			})
			switch {
			case i >= 0:
				found[r.Entities[i]] = true
			case !slices.ContainsFunc(r.Optional, func(o string) bool { return canonical(o) == e }):
				s.wrong++
			}
		}
		s.hit += float64(len(found))
		s.missed += float64(len(r.Entities) - len(found))
	}
	return s
}

// scoreMemories scores whether a text holds a memory; kinds is the share of the
// right kind among the hits.
func scoreMemories(rs []row) (s score, kinds float64) {
	for _, r := range rs {
		got := Typed(r.Text)
		switch {
		case r.Durable && len(got) > 0:
			s.hit++
			if slices.ContainsFunc(got, func(g Result) bool {
				return string(g.Kind) == r.Kind || slices.Contains(r.Alt, string(g.Kind))
			}) {
				kinds++
			}
		case r.Durable:
			s.missed++
		case len(got) > 0:
			s.wrong++
		}
	}
	return s, kinds / max(1, s.hit)
}

// The floors stand just under what the rules reach, so that a change that costs
// quality is seen.
func TestQuality(t *testing.T) {
	t.Parallel()
	tests := []struct {
		file                          string
		precision, recall, kinds      float64 // of memories
		entityPrecision, entityRecall float64
	}{
		{"own_turns.jsonl", .97, .90, .97, .93, .93},
		{"plain_turns.jsonl", .99, .99, .97, .98, .94},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			t.Parallel()
			rs := rows(t, tt.file)
			m, kinds := scoreMemories(rs)
			e := scoreEntities(rs)
			t.Logf("memories P %.3f R %.3f F1 %.3f kind %.3f", m.precision(), m.recall(), m.f1(), kinds)
			t.Logf("entities P %.3f R %.3f F1 %.3f", e.precision(), e.recall(), e.f1())
			require.GreaterOrEqual(t, m.precision(), tt.precision)
			require.GreaterOrEqual(t, m.recall(), tt.recall)
			require.GreaterOrEqual(t, kinds, tt.kinds)
			require.GreaterOrEqual(t, e.precision(), tt.entityPrecision)
			require.GreaterOrEqual(t, e.recall(), tt.entityRecall)
		})
	}
}

func TestProbes(t *testing.T) {
	t.Parallel()
	right := 0
	for _, r := range rows(t, "probes.jsonl") {
		var ok bool
		if r.Task == "entities" {
			s := scoreEntities([]row{r})
			ok = s.wrong == 0 && s.missed == 0
		} else {
			kind, _ := Classify(r.Text)
			got := Typed(r.Text)
			if r.Durable {
				ok = string(kind) == r.Kind || slices.ContainsFunc(got, func(g Result) bool { return string(g.Kind) == r.Kind })
			} else {
				ok = kind == "" && len(got) == 0
			}
		}
		if ok {
			right++
		} else {
			t.Logf("%s: %s", r.ID, r.Text)
		}
	}
	require.GreaterOrEqual(t, right, 84)
}
