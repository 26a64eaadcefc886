package transcript

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding/unicode"
)

const twoTurns = "{\"text\":\"one\"}\n{\"text\":\"two\"}\n"

func TestEncodings(t *testing.T) {
	t.Parallel()

	utf16 := func(order unicode.Endianness) string {
		s, err := unicode.UTF16(order, unicode.UseBOM).NewEncoder().String(twoTurns)
		require.NoError(t, err)
		return s
	}
	for name, in := range map[string]string{
		"UTF-8":       twoTurns,
		"UTF-8 BOM":   "\xef\xbb\xbf" + twoTurns,
		"UTF-16 LE":   utf16(unicode.LittleEndian),
		"UTF-16 BE":   utf16(unicode.BigEndian),
		"gzip":        gzipped(t, twoTurns),
		"gzip UTF-16": gzipped(t, utf16(unicode.LittleEndian)),
		"array":       `[{"text":"one"},{"text":"two"}]`,
	} {
		captures, sum := readText(t, Options{}, in)
		require.Equal(t, []string{"one", "two"}, texts(captures), name)
		require.Equal(t, 0, sum.Exit(), name)
		require.Empty(t, sum.Warnings, name)
	}
	for _, bom := range []string{"\xff\xfe\x00\x00", "\x00\x00\xfe\xff"} {
		_, sum := readText(t, Options{}, bom+"{\x00\x00\x00")
		require.Equal(t, []string{"unsupported_encoding"}, codes(sum.Errors))
		require.Equal(t, 1, sum.Exit())
	}
}

func TestBrokenGzip(t *testing.T) {
	t.Parallel()

	long := incompressible()
	whole := gzipped(t, long)
	flipped := []byte(whole)
	flipped[len(flipped)-8] ^= 0xff // the checksum
	tests := []struct {
		name, in, code string
		exit           int
	}{
		{"cut", whole[:len(whole)/2], "truncated", 3},
		{"cut in the header", whole[:5], "truncated", 1},
		{"checksum", string(flipped), "corrupt", 3},
		{"no second member", whole + "something else", "corrupt", 3},
	}
	for _, tt := range tests {
		captures, sum := readText(t, Options{}, tt.in)
		require.Equal(t, []string{tt.code}, codes(sum.Errors), tt.name)
		require.Equal(t, tt.exit, sum.Exit(), tt.name)
		require.Equal(t, tt.exit == 3, len(captures) > 0, tt.name)
		require.Equal(t, tt.code, sum.Files[0].Reason, tt.name)
		require.Empty(t, sum.Warnings, tt.name)
	}

	captures, sum := readText(t, Options{MaxUnpacked: 1000}, whole)
	require.Equal(t, []string{"too_large"}, codes(sum.Errors))
	require.NotEmpty(t, captures)
}

func TestZip(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name     string
		entries  []entry
		texts    []string
		errors   []string
		warnings []string
		files    map[string]string // entry to reason
		exit     int
	}{
		{
			name:    "sorted entries by content",
			entries: []entry{{name: "b/2.txt", data: `{"text":"two"}`}, {name: "a.json", data: `[{"text":"one"}]`}, {name: "b/"}, {name: "pic.png", data: "\x89PNG"}},
			texts:   []string{"one", "two"},
			files:   map[string]string{"a.json": "", "b/2.txt": "", "pic.png": "unsupported_format"},
		},
		{
			name: "only conversations*.json where there are any",
			entries: []entry{
				{name: "x/conversations-001.json", data: `[{"text":"two"}]`},
				{name: "x/conversations-000.json", data: `[{"text":"one"}]`},
				{name: "x/notes.json", data: `[{"text":"no"}]`},
				{name: "__MACOSX/._conversations.json", data: "\x00\x05"},
			},
			texts: []string{"one", "two"},
			files: map[string]string{"x/conversations-000.json": "", "x/conversations-001.json": "", "x/notes.json": "not_conversations", "__MACOSX/._conversations.json": "hidden_file"},
		},
		{
			name:    "names that lead out",
			entries: []entry{{name: "../up.json", data: twoTurns}, {name: "/abs.json", data: twoTurns}, {name: `..\win.json`, data: twoTurns}, {name: "ok.json", data: twoTurns}},
			texts:   []string{"one", "two"},
			errors:  []string{"unsafe_name", "unsafe_name", "unsafe_name"},
			files:   map[string]string{"../up.json": "unsafe_name", "/abs.json": "unsafe_name", `..\win.json`: "unsafe_name", "ok.json": ""},
			exit:    3,
		},
		{
			name:    "encrypted",
			entries: []entry{{name: "conversations.json", data: `[{"text":"one"}]`, flags: 1}},
			errors:  []string{"encrypted"},
			files:   map[string]string{"conversations.json": "encrypted"},
			exit:    1,
		},
		{
			name:    "nothing usable",
			entries: []entry{{name: "a.txt", data: "prose"}, {name: "inner.zip", data: zipped(t, entry{name: "a.json", data: twoTurns})}, {name: "empty.json"}},
			errors:  []string{"unsupported_format"},
			files:   map[string]string{"a.txt": "unsupported_format", "inner.zip": "nested_archive", "empty.json": "empty_file", "": "unsupported_format"},
			exit:    1,
		},
		{
			name:    "names in another encoding",
			entries: []entry{{name: "gr\xfc\xdfe.json", data: twoTurns}},
			texts:   []string{"one", "two"},
			files:   map[string]string{"gr\xfc\xdfe.json": ""},
		},
		{
			name:   "no entries",
			errors: []string{"unsupported_format"},
			files:  map[string]string{"": "unsupported_format"},
			exit:   1,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			data := zipped(t, tt.entries...)
			path := write(t, t.TempDir(), "export.zip", data)
			captures, sum := readAll(t, Options{}, path)
			require.Equal(t, tt.texts, texts(captures))
			require.Equal(t, tt.errors, codes(sum.Errors))
			require.Empty(t, sum.Warnings)
			require.Equal(t, tt.exit, sum.Exit())
			files := map[string]string{}
			for _, f := range sum.Files {
				files[strings.TrimPrefix(f.Path[len(path):], "/")] = f.Reason
			}
			require.Equal(t, tt.files, files)

			piped, _ := readText(t, Options{}, data)
			require.Equal(t, tt.texts, texts(piped))
		})
	}
}

// TestZipWayOut: what is known not to be read is told to whoever has it in an archive.
func TestZipWayOut(t *testing.T) {
	t.Parallel()

	for says, e := range map[string]entry{
		"WhatsApp": {name: "_chat.txt", data: "[31/12/23, 22:10:05] Ann: Hi\n"},
		"Slack":    {name: "general/2026-01-31.json", data: `[{"type":"message","user":"U1","text":"hi","ts":"1700000000.000100"}]`},
		"within":   {name: "inner.zip", data: zipped(t, entry{name: "a.json", data: twoTurns})},
	} {
		_, sum := readText(t, Options{}, zipped(t, entry{name: "a.txt", data: "prose"}, e))
		require.Equal(t, []string{"unsupported_format"}, codes(sum.Errors), says)
		require.Contains(t, sum.Errors[0].Detail, "-/"+e.name+": ")
		require.Contains(t, sum.Errors[0].Detail, says)
	}
}

// TestZipNames: the notations of archivers are names like others, what leads out is not.
func TestZipNames(t *testing.T) {
	t.Parallel()

	for name, ok := range map[string]bool{
		"./proj/s.jsonl": true, "a//b.jsonl": true, `proj\s.jsonl`: true, "a/./b.jsonl": true,
		"../s.jsonl": false, "a/../../s.jsonl": false, `..\s.jsonl`: false, "/etc/s.jsonl": false, `C:\s.jsonl`: false, "C:/s.jsonl": false,
	} {
		captures, sum := readText(t, Options{}, zipped(t, entry{name: name, data: twoTurns}))
		if ok {
			require.Equal(t, []string{"one", "two"}, texts(captures), name)
			require.Empty(t, sum.Errors, name)
		} else {
			require.Empty(t, captures, name)
			require.Contains(t, codes(sum.Errors), "unsafe_name", name)
		}
	}
}

// TestLateBeginning: what comes before the first record of a format does not hide it.
func TestLateBeginning(t *testing.T) {
	t.Parallel()

	for name, before := range map[string]string{
		"blank lines":       strings.Repeat("\n", 300),
		"records of others": strings.Repeat(`{"type":"noise"}`+"\n", 100),
	} {
		captures, _ := readText(t, Options{}, before+`{"text":"one"}`+"\n"+`{"text":"two"}`+"\n")
		require.Equal(t, []string{"one", "two"}, texts(captures), name)
	}
	captures, _ := readText(t, Options{}, strings.Repeat("A line of a preamble.\n", 80)+"User: first question\n\nAssistant: first answer\n\nUser: second question\n\nAssistant: second answer\n")
	require.Len(t, captures, 2)
}

// TestBombs: what expands out of all proportion is named and given up.
func TestBombs(t *testing.T) {
	t.Parallel()

	bomb := `{"text":"before"}` + "\n" + strings.Repeat(" ", 40<<20) + "\n" + `{"text":"after"}`
	half := bomb[:len(bomb)/2]
	tests := []struct {
		name, in string
		texts    []string
		errors   []string
	}{
		{"zip", zipped(t, entry{name: "a.jsonl", data: bomb}, entry{name: "b.jsonl", data: twoTurns}), []string{"before", "one", "two"}, []string{"zip_bomb"}},
		{"gzip", gzipped(t, bomb), []string{"before"}, []string{"zip_bomb"}},
		{"entries that add up", zipped(t, entry{name: "a.jsonl", data: half}, entry{name: "b.jsonl", data: half}), []string{"before"}, []string{"zip_bomb"}},
		{"below a record's size", zipped(t, entry{name: "a.jsonl", data: half}), []string{"before"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			captures, sum := readAll(t, Options{}, write(t, t.TempDir(), "export", tt.in))
			require.Equal(t, tt.texts, texts(captures))
			require.Equal(t, tt.errors, codes(sum.Errors))
			piped, _ := readText(t, Options{}, tt.in)
			require.Equal(t, tt.texts, texts(piped))
		})
	}

	many := make([]entry, maxEntries+1)
	for i := range many {
		many[i].name = strconv.Itoa(i)
	}
	_, sum := readText(t, Options{}, zipped(t, many...))
	require.Equal(t, []string{"too_large"}, codes(sum.Errors))
	require.Contains(t, sum.Errors[0].Detail, "100000 files")
}

func TestBrokenZip(t *testing.T) {
	t.Parallel()

	whole := zipped(t, entry{name: "a.json", data: twoTurns})
	_, sum := readText(t, Options{}, whole[:len(whole)-10])
	require.Equal(t, []string{"corrupt"}, codes(sum.Errors))
	require.Equal(t, 1, sum.Exit())

	bomb := zipped(t, entry{name: "a.json", data: incompressible()}, entry{name: "b.json", data: twoTurns})
	captures, sum := readText(t, Options{MaxUnpacked: 2000}, bomb)
	require.Equal(t, []string{"too_large", "too_large"}, codes(sum.Errors))
	require.NotEmpty(t, captures)
}

type entry struct {
	name, data string
	flags      uint16
}

func zipped(t *testing.T, entries ...entry) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		if e.data == "" {
			h.Method = zip.Store
		}
		f, err := w.CreateHeader(h)
		require.NoError(t, err)
		h.Flags |= e.flags // into the directory, which is what readers use
		if e.data != "" {
			_, err = f.Write([]byte(e.data))
			require.NoError(t, err)
		}
	}
	require.NoError(t, w.Close())
	return b.String()
}

func gzipped(t *testing.T, s string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(s))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.String()
}

func texts(captures []Capture) []string {
	var out []string //nolint:prealloc // nil without captures
	for _, c := range captures {
		out = append(out, c.Text)
	}
	return out
}

func write(t *testing.T, dir, name, data string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(data), 0o600))
	return path
}

// incompressible is lines enough to fill several blocks of a compressed file.
func incompressible() string {
	var b strings.Builder
	for i := range 2000 {
		b.WriteString(`{"text":"` + contentID(string(rune(i+1))) + "\"}\n")
	}
	return b.String()
}
