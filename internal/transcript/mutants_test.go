//go:build mutants

package transcript

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mutants are single mistakes that importers are known for: what stands in a file,
// and what might have stood there.
var mutants = []struct{ name, file, now, then string }{
	{"the current node is not asked for", "chatgpt.go", "f.follow(links, c.current, line)", `f.follow(links, "", line)`},
	{"the oldest branch", "thread.go", "links[b].date.Compare(links[a].date)", "links[a].date.Compare(links[b].date)"},
	{"ids count messages", "chatgpt.go", "id := cmp.Or(n.id, n.key)", `id := strings.Repeat("i", i)`},
	{"dates are not carried on", "chatgpt.go", "conv.carry = true", "conv.carry = false"},
	{"what is said to the memory", "chatgpt.go", `n.recipient != "all"`, `n.recipient == "python"`},
	{"text beside blocks", "claudeai.go", "if len(m.content) == 0 {", "if len(m.content) >= 0 {"},
	{"only one name of messages", "claudeai.go", `[]string{"chat_messages", "messages"}`, `[]string{"chat_messages"}`},
	{"side chains", "claudecode.go", "case l.sidechain:", "case l.sidechain && l.meta:"},
	{"subagents' files", "claudecode.go", `strings.HasPrefix(path.Base(name), "agent-")`, `strings.HasPrefix(path.Base(name), "agents-")`},
	{"summaries", "claudecode.go", "case l.summary:", "case l.summary && l.failed:"},
	{"slash commands", "claudecode.go", "if strings.HasPrefix(text, prefix) {", "if text == prefix {"},
	{"reminders of the program", "claudecode.go", "typed := withoutInjected(text)", "typed := text"},
	{"queued prompts are lost", "claudecode.go", `l.attached == "queued_command"`, `l.attached == "queued"`},
	{"both layers", "codex.go", `if t.event == "" && s.events[t.Role] {`, `if t.event == "" && s.events["-"] {`},
	{"context of the program", "codex.go", "if t.Role == RoleUser && isCodexContext(text) {", "if t.Role == RoleAssistant && isCodexContext(text) {"},
	{"records, and not lines, are counted", "codex.go", "t.ExternalID = fmt.Sprintf(\"%s:L%d\", s.c.session, t.line)", "t.ExternalID = fmt.Sprintf(\"%s:L%d\", s.c.session, len(s.held))"},
	{"what was taken back", "gemini.go", "s.rewind(rewindTo)", "s.f.skip(rewindTo)"},
	{"system prompts", "skip.go", "return \"\", skipSystem", "return RoleUser, \"\""},
	{"labels in code", "plaintext.go", "if !fenced &&", "if"},
	{"the first of an id wins", "same.go", "if !c.Grows || im.begins(c.Text, prev) {", "if im.begins(c.Text, prev) {"},
	{"milliseconds are seconds", "date.go", "micros = f * 1e3", "micros = f * 1e6"},
	{"no date is today", "exchange.go", "\treturn t\n}", "\tif t.IsZero() {\n\t\tt = time.Now()\n\t}\n\treturn t\n}"},
	{"any number is a date", "date.go", "t.Year() < 1995 || t.Year() > 2100", "t.Year() < 1"},
	{"chains ignore who speaks", "exchange.go", `h.Write([]byte(who + "\x00" + t.Text))`, `h.Write([]byte("\x00" + t.Text))`},
	{"exchanges have their last turn's id", "exchange.go", "if i == 0 || chained {", "if i >= 0 {"},
	{"one prompt an exchange", "exchange.go", "if last != nil && !joins && (last.Role == RoleAssistant ||", "if last != nil && !joins && (last.Role == RoleUser || last.Role == RoleAssistant ||"},
	{"an open prompt is complete", "exchange.go", "out.Complete = c.last().Role != RoleUser", "out.Complete = true"},
	{"NUL", "clean.go", `strings.ReplaceAll(s, "\x00", "\uFFFD")`, `strings.ReplaceAll(s, "\x01", "\uFFFD")`},
	{"lines of 64 KB", "records.go", "case len(l.buf)+len(part) > l.max:", "case len(l.buf)+len(part) > 64<<10:"},
	{"no limit of a text", "native.go", "if len(text) > f.im.o.MaxText {", "if len(text) > 1<<40 {"},
	{"half a line is bad JSON", "file.go", "case rec.cut:\n\t\tf.warn(\"truncated_last_line\"", "case rec.cut && rec.long:\n\t\tf.warn(\"truncated_last_line\""},
	{"the byte order mark stays", "container.go", "r.Discard(3)", "r.Discard(0)"},
	{"the first member of a gzip", "container.go", "f.read(im.unpacking().limit(gz))", "gz.Multistream(false)\n\t\tf.read(im.unpacking().limit(gz))"},
	{"hidden files", "walk.go", "case hidden(filepath.ToSlash(name)):", `case hidden("x"):`},
	{"unsupported files are no problem", "file.go", "default:\n\t\tf.warn(code, 0, detail)", "default:"},
}

// TestMutants: each of mutants is noticed by a case of TestCases. It builds the
// package once for each, from a copy of the file.
func TestMutants(t *testing.T) {
	t.Parallel()

	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()

			source, err := os.ReadFile(m.file)
			require.NoError(t, err)
			require.Equal(t, 1, strings.Count(string(source), m.now), "%s holds this once: %s", m.file, m.now)
			dir := t.TempDir()
			mutant := write(t, dir, m.file, strings.Replace(string(source), m.now, m.then, 1))
			file, err := filepath.Abs(m.file)
			require.NoError(t, err)
			overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{file: mutant}})
			require.NoError(t, err)
			out, err := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-ldflags=-s -w", "-overlay", write(t, dir, "overlay.json", string(overlay)), "-run", "^TestCases$", ".").CombinedOutput()
			require.Error(t, err, "nothing noticed")
			require.Contains(t, string(out), "--- FAIL: TestCases/", "does not build")
		})
	}
}
