package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestImport(t *testing.T) {
	t.Parallel()
	d := setup(t)
	// Bytes that Postgres would refuse are named with file and line, and their
	// neighbours are stored.
	path := file(t, "turns.jsonl",
		decision,
		"{\"id\":\"raw\",\"text\":\"raw \x00 NUL\"}",
		"{\"id\":\"cut\",\"text\":\"cut \xff byte\"}",
		"{cut short",
		preference)
	r := d.cli("import", path)
	require.Zero(t, r.code, "bad records are warnings")
	require.Equal(t, "3 new, 0 changed, 0 unchanged captures in 1 file\n", r.out)
	require.Equal(t, "warning: "+path+":2: bad_json: not valid JSON\n"+
		"warning: "+path+":3: invalid_utf8: bytes that are not UTF-8 were replaced by U+FFFD\n"+
		"warning: "+path+":4: bad_json: not valid JSON\n", r.err)
	require.Equal(t, "cut \uFFFD byte", query[string](d, "select text from backfill.intake where external_id = 'native:cut'"))

	r = d.cli("import", path, "--json")
	summary := r.object()["summary"].(map[string]any)
	for key, n := range map[string]float64{"captures": 3, "new": 0, "changed": 0, "unchanged": 3} {
		require.InDelta(t, n, summary[key], 0, key)
	}
	require.Len(t, summary["warnings"], 3)
	requireKeys(t, summary["warnings"].([]any)[0].(map[string]any), "file", "code", "line", "detail?")
	require.Empty(t, summary["errors"])

	// A turn that has changed is extracted again.
	before := query[int64](d, "select sum(captures) from backfill.batch")
	changed := file(t, "turns.jsonl", strings.Replace(decision, "joins", "views", 1), preference)
	require.Equal(t, "0 new, 1 changed, 1 unchanged captures in 1 file\n", d.cli("import", changed).ok().out)
	require.Equal(t, before+1, query[int64](d, "select sum(captures) from backfill.batch"))

	// Beside a file that cannot be read the rest is imported: 3, partly done.
	missing := filepath.Join(t.TempDir(), "missing.jsonl")
	other := file(t, "other.jsonl", smallTalk)
	r = d.cli("import", missing, other)
	require.Equal(t, 3, r.code)
	require.Contains(t, r.out, "1 new, 0 changed, 0 unchanged captures")
	require.Equal(t, "error: "+missing+": missing: no such file or directory: check the path\n", r.err)

	// Standard input, and what a directory holds beside conversations.
	r = backfill(t, `{"text":"from a pipe"}`, "--database-url", d.url, "import", "-")
	require.Equal(t, "1 new, 0 changed, 0 unchanged captures in 1 file\n", r.ok().out)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.jsonl"), []byte(`{"text":"in a folder"}`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b.txt"), []byte("prose, and no conversation"), 0o600))
	r = d.cli("import", dir)
	require.Zero(t, r.code)
	require.Contains(t, r.out, "1 new")
	require.Contains(t, r.err, "warning: "+filepath.Join(dir, "b.txt")+": unsupported_format")
}

// What Postgres alone can refuse is found, named by file and line, and stops
// nothing else.
func TestImportRefused(t *testing.T) {
	t.Parallel()
	d := setup(t)
	d.exec("alter table backfill.intake add constraint short check (text <> 'refuse me')")
	path := file(t, "turns.jsonl", decision, `{"text":"refuse me"}`, preference)
	r := d.cli("import", path)
	require.Zero(t, r.code)
	require.Equal(t, "2 new, 0 changed, 0 unchanged captures in 1 file\n", r.out)
	require.Equal(t, "warning: "+path+":2: refused: Postgres does not take this capture (SQLSTATE 23514)\n", r.err)
}

func TestImportDryRun(t *testing.T) {
	t.Parallel()
	path := file(t, "turns.jsonl",
		`{"id":1,"text":"one","source":"owner","observed":"stated","date":"2026-01-31T10:00:00+01:00","meta":{"session":"x","n":1}}`, `{"id":2,"text":"two"}`, `{bad`)
	r := backfill(t, "", "import", "--dry-run", path)
	require.Zero(t, r.code)
	require.Equal(t, "native:1  owner  one\nnative:2  native  two\nwould import 2 captures in 1 file\n", r.out)

	r = backfill(t, "", "import", "--dry-run", "--json", path)
	require.Zero(t, r.code)
	lines := r.objects()
	require.Len(t, lines, 3)
	for _, c := range lines[:2] {
		requireKeys(t, c, "external_id", "source", "observed", "date", "text", "session?", "turn_ids", "turns", "complete", "meta?")
		for _, turn := range c["turns"].([]any) {
			requireKeys(t, turn.(map[string]any), "external_id", "role", "speaker?", "text", "date")
		}
	}
	require.Equal(t, "2026-01-31T09:00:00Z", lines[0]["date"])
	require.Equal(t, "x", lines[0]["session"])
	require.Equal(t, []any{"native:1"}, lines[0]["turn_ids"])
	require.Nil(t, lines[1]["date"], "unknown")
	requireKeys(t, lines[2], "summary")
	summary := lines[2]["summary"].(map[string]any)
	require.Len(t, summary["warnings"], 1)
	require.InDelta(t, 3, summary["warnings"].([]any)[0].(map[string]any)["line"], 0)
	require.Empty(t, summary["errors"])
}

func TestImportSettings(t *testing.T) {
	t.Parallel()
	text := file(t, "chat.txt", "[2024-05-01 10:22] User: Hi", "[2024-05-01 10:23] Assistant: Yes.")
	r := backfill(t, "", "import", "--dry-run", "--json", "--tz", "Europe/Berlin", text).ok()
	require.Equal(t, "2024-05-01T08:22:00Z", r.objects()[0]["date"])
	backfill(t, "", "import", "--dry-run", "--tz", "Middle-earth", text).fails(2, `--tz "Middle-earth"`, "Europe/Berlin")

	chat := file(t, "chat.json", `{"uuid":"c","chat_messages":[{"uuid":"m","sender":"human","text":"","attachments":[{"extracted_content":"A document."}]}]}`)
	require.Contains(t, backfill(t, "", "import", "--dry-run", chat).err, "attachment")
	require.Contains(t, backfill(t, "", "import", "--dry-run", "--attachments", chat).ok().out, "A document.")
}

func TestImportNothing(t *testing.T) {
	t.Parallel()
	junk := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(junk, "notes.txt"), []byte("prose, and no conversation\n"), 0o600))
	for _, tt := range []struct{ path, says string }{
		{filepath.Join(junk, "missing.jsonl"), "missing: no such file or directory"},
		{filepath.Join(junk, "notes.txt"), "unsupported_format: "},
		{t.TempDir(), "no_usable_file: "},
		{file(t, "empty.jsonl"), "empty_file: "},
	} {
		r := backfill(t, "", "import", "--dry-run", tt.path)
		require.Equal(t, 1, r.code, tt.path)
		require.Equal(t, 1, strings.Count(r.err, "\n"), r.err)
		require.Contains(t, r.err, "error: "+tt.path+": "+tt.says)
	}
	r := backfill(t, "", "import", "--dry-run", junk)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "warning: "+filepath.Join(junk, "notes.txt")+": unsupported_format")
	require.Contains(t, r.err, "error: "+junk+": no_usable_file")
}
