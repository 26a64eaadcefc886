package transcript

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSameID reads files in which one id has several texts: a copy that goes on
// longer takes the place of the shorter, and another text is named.
func TestSameID(t *testing.T) {
	t.Parallel()

	prompt := func(session, id, text string) string {
		return fmt.Sprintf(`{"type":"user","uuid":%q,"sessionId":%q,"timestamp":"2026-01-12T09:00:00Z","message":{"content":%q}}`, id, session, text) + "\n"
	}
	open := prompt("A", "u", "Hi")
	one := open + prompt("A", "v", "Is the ferry late?")
	other := prompt("B", "u", "Hi") + prompt("B", "w", "And now?")
	answered := one + answerPart("a", "m", "By an hour.")
	const textOfOne, textOfOther = "User: Hi\n\nUser: Is the ferry late?", "User: Hi\n\nUser: And now?"
	const answer = "\n\nAssistant: By an hour."
	tests := []struct {
		name      string
		files     []string
		want      []string // what is yielded
		conflicts []string
	}{
		{"a copy", []string{one, one}, []string{textOfOne}, nil},
		{"ends earlier", []string{answered, one, open}, []string{textOfOne + answer}, nil},
		{"goes on", []string{open, one, answered}, []string{"User: Hi", textOfOne, textOfOne + answer}, nil},
		{"shorter fork", []string{one, other}, []string{textOfOne}, []string{"1"}},
		{"longer fork", []string{other, one}, []string{textOfOther}, []string{"1"}},
		{"of the same length", []string{one, prompt("B", "u", "Hi") + prompt("B", "w", "Is the ferry here?")}, []string{textOfOne}, []string{"1"}},
		{"a fork among copies", []string{open, answered, other, one, open}, []string{"User: Hi", textOfOne + answer}, []string{"2"}},
		{"within a file", []string{answered + prompt("C", "x", "So.") + prompt("D", "u", "Hi") + prompt("D", "w", "And now?")}, []string{textOfOne + answer, "User: So.", "User: And now?"}, nil},
	}
	for _, tt := range tests {
		dir := t.TempDir()
		for i, data := range tt.files {
			write(t, dir, fmt.Sprint(i), data)
		}
		captures, sum := readAll(t, Options{}, dir)
		require.Equal(t, tt.want, texts(captures), tt.name)
		conflicts := make([]string, 0, len(sum.Warnings))
		for _, p := range sum.Warnings {
			require.Equal(t, "id_conflict", p.Code, tt.name)
			require.Equal(t, 1, p.Line, tt.name)
			conflicts = append(conflicts, filepath.Base(p.File))
		}
		require.ElementsMatch(t, tt.conflicts, conflicts, tt.name)
		require.Equal(t, 0, sum.Exit())

		turns, ids := map[string]int{}, 0
		for _, c := range captures {
			if turns[c.ExternalID] == 0 {
				ids++
			}
			turns[c.ExternalID] = len(c.Turns)
		}
		total := 0
		for _, n := range turns {
			total += n
		}
		require.Equal(t, []int{ids, total}, []int{sum.Captures, sum.Turns}, tt.name)
	}

	// In an archive, and beside one.
	dir := t.TempDir()
	write(t, dir, "a.zip", zipped(t, entry{name: "x.jsonl", data: answered}))
	write(t, dir, "b.jsonl", one)
	write(t, dir, "c.jsonl", other)
	_, sum := readAll(t, Options{}, dir)
	require.Equal(t, []Problem{{File: "c.jsonl", Code: "id_conflict", Line: 1}}, places(sum.Warnings))
	require.Contains(t, sum.Warnings[0].Detail, filepath.Join(dir, "a.zip"))
}

// TestSameIDLast: where captures do not grow, the last one of an id wins.
func TestSameIDLast(t *testing.T) {
	t.Parallel()

	captures, sum := readText(t, Options{}, `{"id":1,"text":"a longer text"}
{"id":1,"text":"short"}
{"id":1,"text":"short"}
`)
	require.Equal(t, []string{"a longer text", "short"}, texts(captures))
	require.Equal(t, map[string]int{skipReplaced: 1, skipDuplicate: 1}, sum.Skips)
	require.Equal(t, 1, sum.Captures)
	require.Empty(t, sum.Warnings)
}

// TestSamePlace: without ids a session is a place, and that of the conversation
// which says more counts.
func TestSamePlace(t *testing.T) {
	t.Parallel()

	short := `{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Yes"}]}`
	long := `{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Yes"},{"role":"user","content":"Why?"}]}`
	captures, sum := readText(t, Options{}, short+"\n"+long+"\n"+short+"\n")
	require.Equal(t, []string{"L1", "L2", "L2"}, []string{captures[0].Session, captures[1].Session, captures[2].Session})
	require.True(t, captures[0].Placed)
	require.Equal(t, 2, sum.Captures)
	require.Equal(t, map[string]int{skipDuplicate: 2, skipDuplicateLine: 1}, sum.Skips)

	captures, _ = readText(t, Options{}, `{"id":"x","messages":[{"role":"user","content":"Hi"}]}`)
	require.False(t, captures[0].Placed)
}
