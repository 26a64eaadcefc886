package cli_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/internal/cli"
	"github.com/justfortytwo/backfill/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// mayBeEmpty stands above a query whose result depends on what went wrong.
const mayBeEmpty = "<!-- may be empty -->"

// TestSQLPage goes through docs/sql.md from top to bottom on a database of its
// own: it runs the commands and queries, which must find something, and compares
// the columns of the output that the page shows.
func TestSQLPage(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	db, err := pgconn.Connect(t.Context(), url)
	require.NoError(t, err)
	defer db.Close(context.Background())

	var columns []string // of the latest query
	for _, b := range blocks(read(t, "../../docs/sql.md")) {
		switch b.lang {
		case "sh":
			for line := range strings.Lines(b.text) {
				for _, args := range commands(line) {
					code, stderr := run(t.Context(), url, args)
					require.Contains(t, []int{0, 3}, code, "docs/sql.md:%d: %s", b.line, stderr)
				}
			}
		case "sql":
			columns = execute(t, db, b)
		case "text":
			header, _, _ := strings.Cut(b.text, "\n")
			require.Equal(t, columns, strings.Fields(strings.ReplaceAll(header, "|", " ")), "docs/sql.md:%d", b.line)
		}
	}
}

// execute runs the statements of a block and returns the columns of the first.
func execute(t *testing.T, db *pgconn.PgConn, b block) (columns []string) {
	t.Helper()
	results := db.Exec(t.Context(), b.text)
	for results.NextResult() {
		r := results.ResultReader()
		if columns == nil {
			for _, f := range r.FieldDescriptions() {
				columns = append(columns, f.Name)
			}
		}
		tag, err := r.Close()
		require.NoError(t, err, "docs/sql.md:%d", b.line)
		if b.above != mayBeEmpty {
			require.NotZero(t, tag.RowsAffected(), "docs/sql.md:%d has no result", b.line)
		}
	}
	require.NoError(t, results.Close(), "docs/sql.md:%d", b.line)
	return columns
}

// TestQuotedCommands gives every command line that the pages quote to the CLI: none
// may be wrong usage. Nothing comes of them, since there is no database to reach.
func TestQuotedCommands(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, page := range append(pages, "../../README.md") {
		for line := range strings.Lines(read(t, page)) {
			for _, args := range commands(line) {
				code, stderr := run(ctx, "postgres://nobody@localhost:1/none", args)
				require.NotEqual(t, 2, code, "%s quotes %q: %s", page, args, stderr)
			}
		}
	}
}

// TestDeployedCommands does the same with what the examples in deploy start.
func TestDeployedCommands(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	found := 0
	for pattern, starts := range map[string]*regexp.Regexp{
		"../../deploy/systemd/*.service": regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/backfill (.*)$`),
		"../../deploy/kubernetes/*.yaml": regexp.MustCompile(`(?m)^ +args: \[(.*)\]$`),
	} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, f := range files {
			for _, m := range starts.FindAllStringSubmatch(read(t, f), -1) {
				found++
				code, stderr := run(ctx, "postgres://nobody@localhost:1/none", strings.Fields(strings.ReplaceAll(m[1], ",", " ")))
				require.Equal(t, 1, code, "%s starts %q: %s", f, m[1], stderr)
			}
		}
	}
	require.Equal(t, 4, found)
}

func read(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	return string(text)
}

func run(ctx context.Context, url string, args []string) (code int, stderr string) {
	var b bytes.Buffer
	code = cli.Run(ctx, append(args, "--database-url", url), strings.NewReader(""), io.Discard, &b)
	return code, b.String()
}

// block is a fenced block of a page.
type block struct {
	line       int // of the opening fence, from 1
	above      string
	lang, text string
}

func blocks(page string) []block {
	var all []block
	open, above := false, ""
	for i, line := range strings.Split(page, "\n") {
		lang, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && !open:
			all = append(all, block{line: i + 1, above: above, lang: lang})
			open = true
		case fence:
			open = false
		case open:
			all[len(all)-1].text += line + "\n"
		}
		above = line
	}
	return all
}

// quoted finds command lines: one that is a line of its own, or code within text.
var quoted = regexp.MustCompile("(?:^\\s*(?:\\$ )?|`)(?:bin/)?backfill ([a-z-][^`\n]*)")

// commands are the arguments of the command lines in a line of a page. What is for
// the shell is cut off, brackets around what is optional are left out, and a|b
// makes two of one.
func commands(line string) [][]string {
	found := quoted.FindAllStringSubmatch(line, -1)
	all := make([][]string, 0, len(found))
	for _, m := range found {
		variants := [][]string{nil}
		for word := range strings.FieldsSeq(m[1]) {
			if strings.ContainsAny(word[:1], "#|<>&;") {
				break
			}
			if word = strings.Trim(word, "[]"); word == "RUN" || word == "CAPTURE" {
				word = "7"
			}
			var longer [][]string
			for _, v := range variants {
				for w := range strings.SplitSeq(word, "|") {
					longer = append(longer, append(slices.Clip(v), w))
				}
			}
			variants = longer
		}
		all = append(all, variants...)
	}
	return all
}
