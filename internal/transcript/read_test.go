package transcript

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExit(t *testing.T) {
	t.Parallel()

	type problem struct{ where, code string }
	dir := t.TempDir()
	good := write(t, dir, "good.jsonl", twoTurns)
	write(t, dir, "folder/sub/good.txt", `{"text":"three"}`)
	write(t, dir, "folder/empty.jsonl", "")
	write(t, dir, "folder/blank.jsonl", " \n\n")
	write(t, dir, "folder/prose.md", "# Notes\n\n```\n{\"text\":\"a sample\"}\n```\n")
	write(t, dir, "folder/.git/config", "x")
	write(t, dir, "barren/a.txt", "prose")
	write(t, dir, "barren/b.json", `{"name":"x"}`)
	empty := write(t, dir, "empty.jsonl", "")
	prose := write(t, dir, "prose.txt", "Dear diary: nothing.")
	cut := write(t, dir, "cut.json", `[{"text":"four"},{"text":"fi`)
	half := write(t, dir, "half.json", "{\n\"text\": \"a\",\n")
	begun := write(t, dir, "begun.jsonl", `{"text":"a`)
	toml := write(t, dir, "x.toml", "[[a]\nb = [[\n")
	blank := write(t, dir, "blank-turns.jsonl", `{"text":" "}`)
	sqlite := write(t, dir, "state.vscdb", "SQLite format 3\x00")
	require.NoError(t, os.Symlink(good, filepath.Join(dir, "link.jsonl")))
	require.NoError(t, os.Symlink(filepath.Join(dir, "folder"), filepath.Join(dir, "linked")))

	tests := []struct {
		name     string
		paths    []string
		captures int
		exit     int
		warnings []problem
		errors   []problem
	}{
		{name: "a file", paths: []string{good}, captures: 2},
		{
			name: "a directory", paths: []string{filepath.Join(dir, "folder")}, captures: 1,
			warnings: []problem{{"prose.md", "unsupported_format"}},
		},
		{name: "links that are named", paths: []string{filepath.Join(dir, "link.jsonl"), filepath.Join(dir, "linked")}, captures: 3, warnings: []problem{{"prose.md", "unsupported_format"}}},
		{name: "the same file twice", paths: []string{good, good}, captures: 2},
		{name: "unsupported", paths: []string{prose}, exit: 1, errors: []problem{{"prose.txt", "unsupported_format"}}},
		{name: "a database", paths: []string{sqlite}, exit: 1, errors: []problem{{"state.vscdb", "unsupported_format"}}},
		{name: "unsupported beside a good one", paths: []string{prose, good}, captures: 2, exit: 3, errors: []problem{{"prose.txt", "unsupported_format"}}},
		{name: "empty", paths: []string{empty}, exit: 1, errors: []problem{{"empty.jsonl", "empty_file"}}},
		{name: "missing", paths: []string{filepath.Join(dir, "nope")}, exit: 1, errors: []problem{{"nope", "missing"}}},
		{name: "brackets of another kind", paths: []string{toml}, exit: 1, errors: []problem{{"x.toml", "unsupported_format"}}},
		{name: "cut array", paths: []string{cut}, captures: 1, exit: 3, errors: []problem{{"cut.json", "truncated"}}},
		{name: "cut object", paths: []string{half}, exit: 1, errors: []problem{{"half.json", "truncated"}}},
		{name: "cut only line", paths: []string{begun}, exit: 1, errors: []problem{{"begun.jsonl", "truncated"}}},
		{name: "recognised without a turn", paths: []string{blank}, warnings: []problem{{"blank-turns.jsonl", "bad_record"}, {"blank-turns.jsonl", "no_turns"}}},
		{
			name: "a directory without conversations", paths: []string{filepath.Join(dir, "barren")}, exit: 1,
			warnings: []problem{{"a.txt", "unsupported_format"}, {"b.json", "unsupported_format"}},
			errors:   []problem{{"barren", "no_usable_file"}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			captures, sum := readAll(t, Options{}, tt.paths...)
			list := func(problems []Problem) (out []problem) {
				for _, p := range problems {
					require.NotEmpty(t, p.Detail)
					out = append(out, problem{filepath.Base(p.File), p.Code})
				}
				return out
			}
			require.Len(t, captures, tt.captures)
			require.Equal(t, tt.exit, sum.Exit())
			require.Equal(t, tt.warnings, list(sum.Warnings))
			require.Equal(t, tt.errors, list(sum.Errors))
		})
	}
}

func TestEveryFileIsListed(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	write(t, dir, "b/good.jsonl", twoTurns)
	write(t, dir, "a.txt", "prose")
	write(t, dir, ".hidden/x.jsonl", twoTurns)
	write(t, dir, "empty", "")
	require.NoError(t, os.Symlink("b", filepath.Join(dir, "z")))
	_, sum := readAll(t, Options{}, dir)
	require.Equal(t, []File{
		{Path: filepath.Join(dir, ".hidden"), Reason: "hidden_file"},
		{Path: filepath.Join(dir, "a.txt"), Reason: "unsupported_format"},
		{Path: filepath.Join(dir, "b/good.jsonl"), Format: "native", Captures: 2, Turns: 2},
		{Path: filepath.Join(dir, "empty"), Reason: "empty_file"},
		{Path: filepath.Join(dir, "z"), Reason: "symlink_skipped"},
	}, sum.Files)

	_, sum = readAll(t, Options{}, filepath.Join(dir, ".hidden"), t.TempDir())
	require.Equal(t, 2, sum.Captures)
	require.Equal(t, "no conversation in it: looked at 0 files", sum.Errors[0].Detail)
}

// TestNamesInBytes: names of files are bytes.
func TestNamesInBytes(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "gr\xfcn"), 0o755); err != nil {
		t.Skip("a file system whose names are text")
	}
	write(t, dir, "gr\xfcn/\xe4.jsonl", twoTurns)
	captures, sum := readAll(t, Options{}, dir)
	require.Equal(t, []string{"one", "two"}, texts(captures))
	require.Equal(t, []File{{Path: filepath.Join(dir, "gr\xfcn/\xe4.jsonl"), Format: "native", Captures: 2, Turns: 2}}, sum.Files)
	require.Equal(t, 0, sum.Exit())
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}

	dir := t.TempDir()
	write(t, dir, "ok.jsonl", twoTurns)
	locked := write(t, dir, "locked/x.jsonl", twoTurns)
	require.NoError(t, os.Chmod(filepath.Dir(locked), 0))
	t.Cleanup(func() { require.NoError(t, os.Chmod(filepath.Dir(locked), 0o755)) })
	_, sum := readAll(t, Options{}, dir)
	require.Equal(t, []string{"unreadable"}, codes(sum.Errors))
	require.Equal(t, 3, sum.Exit())
}

func TestForcedFormat(t *testing.T) {
	t.Parallel()

	slack := `{"type":"message","user":"U1","text":"hi","ts":"1700000000.000100"}`
	captures, _ := readText(t, Options{Format: "native"}, slack)
	require.Equal(t, []string{"hi"}, texts(captures))

	_, sum := readText(t, Options{Format: "native"}, "prose")
	require.Equal(t, []string{"unsupported_format"}, codes(sum.Errors))

	_, err := Read(t.Context(), nil, Options{Format: "nativ"}, nil)
	require.ErrorContains(t, err, `unknown format "nativ": use one of`)
}

func TestRecordOverTheCap(t *testing.T) {
	t.Parallel()

	long := `{"text":"` + strings.Repeat("x", 100) + `"}`
	captures, sum := readText(t, Options{MaxRecord: 50}, long+"\n"+twoTurns+long)
	require.Len(t, captures, 2)
	require.Equal(t, []Problem{{File: "-", Code: "record_too_long", Line: 1}, {File: "-", Code: "record_too_long", Line: 4}}, places(sum.Warnings))
	require.Equal(t, 0, sum.Exit())

	_, sum = readText(t, Options{MaxRecord: 50}, long)
	require.Equal(t, []string{"record_too_long"}, codes(sum.Errors))
}

func TestReadStops(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	write(t, dir, "a.jsonl", twoTurns)
	write(t, dir, "b.jsonl", `{"text":"three"}`)
	boom := errors.New("boom")
	var calls int
	sum, err := Read(t.Context(), []string{dir}, Options{}, func(Capture) error {
		calls++
		return boom
	})
	require.ErrorIs(t, err, boom)
	require.Equal(t, 1, calls)
	require.Empty(t, sum.Errors)

	ctx, cancel := context.WithCancel(t.Context())
	sum, err = Read(ctx, []string{dir}, Options{}, func(Capture) error {
		cancel()
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 2, sum.Captures) // what of a.jsonl was in memory
	require.Empty(t, sum.Errors)
}

func TestProgress(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	write(t, dir, "a.jsonl", twoTurns)
	write(t, dir, "b.jsonl.gz", gzipped(t, twoTurns))
	write(t, dir, "c.zip", zipped(t, entry{name: "c.json", data: twoTurns}))
	var last, size int64
	readAll(t, Options{Progress: func(read, total int64) {
		require.GreaterOrEqual(t, read, last)
		last, size = read, total
	}}, dir)
	require.Positive(t, size)
	require.GreaterOrEqual(t, last, size)
}

func TestWarningsAreBounded(t *testing.T) {
	t.Parallel()

	in := twoTurns + strings.Repeat("{\n", maxWarnings+5)
	captures, sum := readText(t, Options{}, in)
	require.Len(t, captures, 2)
	require.Len(t, sum.Warnings, maxWarnings)
	require.Equal(t, 5, sum.Unlisted)
}

func TestProblemsHoldNoText(t *testing.T) {
	t.Parallel()

	secret := "kumquat"
	_, sum := readText(t, Options{MaxText: 20}, twoTurns+strings.Join([]string{
		`{"text":"` + secret, `{"text":"x","date":"` + secret + `"}`, `{"text":"x","meta":"` + secret + `"}`,
		`{"text":["` + secret + `"]}`, `["` + secret + `"]`, `{"text":"` + secret + strings.Repeat(".", 20) + `"}`,
		`{"text":"x","source":["` + secret + `"]}`, "{\"text\":\"" + secret + "\xff\"}", secret,
	}, "\n"))
	require.Len(t, sum.Warnings, 9)
	for _, p := range sum.Warnings {
		require.NotContains(t, fmt.Sprint(p), secret)
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()

	captures, _ := readText(t, Options{}, `{"id":"a","text":"x"}
{"id":"b","text":"y","date":"2026-01-05T10:00:00.5+01:00","meta":{"session":"s"}}`)
	for i, want := range []string{
		`{"external_id":"native:a","source":"native","observed":"","date":null,"text":"x","turn_ids":["native:a"],
		  "turns":[{"external_id":"native:a","role":"turn","text":"x","date":null}],"complete":true}`,
		`{"external_id":"native:b","source":"native","observed":"","date":"2026-01-05T09:00:00.5Z","text":"y","session":"s","turn_ids":["native:b"],
		  "turns":[{"external_id":"native:b","role":"turn","text":"y","date":"2026-01-05T09:00:00.5Z"}],"complete":true,"meta":{"session":"s"}}`,
	} {
		got, err := json.Marshal(captures[i])
		require.NoError(t, err)
		require.JSONEq(t, want, string(got))
	}
}

// TestMemory is not parallel: it measures the heap of the process.
func TestMemory(t *testing.T) { //nolint:paralleltest // it measures the heap
	const mib = 1 << 20
	element := `{"text":"` + strings.Repeat("word ", 1000) + `"}`
	n := 24 * mib / len(element)
	tests := []struct {
		name     string
		in       io.Reader
		captures int
		limit    uint64
	}{
		{"array on one line", repeated(`[{"text":"first"},`, element+",", n, `{"text":"last"}]`), 3, 16 * mib},
		{"lines", repeated("{\"text\":\"first\"}\n", element+"\n", n, `{"text":"last"}`), 3, 16 * mib},
		{"one line under the cap", repeated("{\"text\":\"first\"}\n{\"text\":\"", "x", 20*mib, "\"}\n{\"text\":\"last\"}"), 2, 128 * mib},
		{"one line over the cap", repeated("{\"text\":\"first\"}\n{\"text\":\"", element, 2*n, "\"}\n{\"text\":\"last\"}"), 2, 128 * mib},
	}
	for _, tt := range tests {
		runtime.GC()
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		before, peak := mem.HeapInuse, uint64(0)
		var captures int
		var sampled int64
		_, err := Read(t.Context(), []string{stdinPath}, Options{Stdin: tt.in, Progress: func(read, _ int64) {
			if read-sampled < mib {
				return
			}
			sampled = read
			runtime.ReadMemStats(&mem)
			peak = max(peak, mem.HeapInuse)
		}}, func(Capture) error {
			captures++
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, tt.captures, captures, tt.name)
		t.Logf("%s: %d MiB", tt.name, (max(peak, before)-before)/mib)
		require.Less(t, peak, before+tt.limit, tt.name)
	}
}

// repeated is head, n times body, and tail.
func repeated(head, body string, n int, tail string) io.Reader {
	return io.MultiReader(strings.NewReader(head), &repeater{body: body, left: n}, strings.NewReader(tail))
}

type repeater struct {
	body string
	left int
	rest string
}

func (r *repeater) Read(p []byte) (int, error) {
	var n int
	for n < len(p) {
		if r.rest == "" {
			if r.left == 0 {
				break
			}
			r.left--
			r.rest = r.body
		}
		c := copy(p[n:], r.rest)
		r.rest = r.rest[c:]
		n += c
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// TestHalfLine finds a live session of which only half a line is there: a warning
// in a directory, where others are imported, and an error where it was asked for.
func TestHalfLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	half := filepath.Join(dir, "half.jsonl")
	require.NoError(t, os.WriteFile(half, []byte(`{"type":"user","uuid":"q`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "whole.jsonl"), []byte(`{"text":"whole"}`+"\n"), 0o600))
	captures, sum := readAll(t, Options{}, dir)
	require.Len(t, captures, 1)
	require.Zero(t, sum.Exit())
	require.Len(t, sum.Warnings, 1)
	require.Equal(t, "truncated_last_line", sum.Warnings[0].Code)
	_, sum = readAll(t, Options{}, half)
	require.Equal(t, 1, sum.Exit())
}
