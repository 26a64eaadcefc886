package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// session is a session log of Claude Code; turns are "uuid text", and uuids that
// begin with an a are the assistant's.
func session(id string, turns ...string) string {
	var b strings.Builder
	for _, turn := range turns {
		uuid, text, _ := strings.Cut(turn, " ")
		role := "user"
		if uuid[0] == 'a' {
			role = "assistant"
		}
		fmt.Fprintf(&b, `{"type":%q,"uuid":%q,"sessionId":%q,"cwd":"/w","timestamp":"2026-01-12T09:00:00Z","message":{"id":%q,"content":[{"type":"text","text":%q}]}}`+"\n",
			role, uuid, id, uuid, text)
	}
	return b.String()
}

// TestImportAgain: files that have not changed change nothing, in any order, alone
// or together, and a dry run says what is stored.
func TestImportAgain(t *testing.T) {
	t.Parallel()
	shared := []string{"u1 Where is the boat?", "a1 In the yard.", "u2 And the oars?", "a2 Behind the door."}
	chats := func(more ...string) string {
		return strings.Join(append(more,
			`{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Yes"}]}`,
			`{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Yes"},{"role":"user","content":"Why?"},{"role":"assistant","content":"So."}]}`), "\n") + "\n"
	}
	tests := []struct {
		name string
		// files are a directory's, by name.
		files    map[string]string
		captures int
	}{
		{"a resumed session", map[string]string{"a.jsonl": session("A", shared...), "b.jsonl": session("B", shared...) + session("B", "u3 Thanks.", "a3 Sure.")}, 3},
		{"a session that its copy is behind of", map[string]string{"a.jsonl": session("A", shared[:3]...), "b.jsonl": session("B", shared...)}, 2},
		{"forks of an open prompt", map[string]string{
			"a.jsonl": session("A", "u1 Where is the boat?", "u2 In the yard?", "a2 Yes."),
			"b.jsonl": session("B", "u1 Where is the boat?", "u3 Or at sea?"),
		}, 1},
		{"conversations without ids", map[string]string{"a.jsonl": chats(), "b.jsonl": chats(`{"messages":[{"role":"user","content":"New"},{"role":"assistant","content":"Line"}]}`)}, 3},
		{"native", map[string]string{"a.jsonl": `{"id":1,"text":"first"}` + "\n" + `{"id":1,"text":"1st"}` + "\n"}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := setup(t)
			dir := t.TempDir()
			paths := []string{dir}
			for name, data := range tt.files {
				path := filepath.Join(dir, name)
				require.NoError(t, os.WriteFile(path, []byte(data), 0o600))
				paths = append(paths, path)
			}
			require.Len(t, dryRun(t, 0, dir), tt.captures)
			require.Zero(t, d.cli("import", dir).code)
			require.EqualValues(t, tt.captures, query[int64](d, "select count(*) from backfill.intake"))
			rows := "select string_agg(ctid::text || xmin::text, ',' order by id) from backfill.intake"
			before := query[string](d, rows)
			if tt.name == "forks of an open prompt" {
				paths = paths[:1] // by itself each is taken at its word
			}
			for range 2 {
				for _, path := range paths {
					require.Contains(t, d.cli("import", path).out, "0 new, 0 changed", path)
				}
			}
			require.Equal(t, before, query[string](d, rows))
		})
	}
}
