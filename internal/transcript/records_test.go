package transcript

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func TestRecords(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, in string
		want     []string // "line:raw", "(cut)" and "(long)" appended
		err      error
	}{
		{"lines", "{\"a\":1}\r\n\n{\"b\":2}", []string{`1:{"a":1}`, `2:`, `3:{"b":2}(cut)`}, io.EOF},
		{"line over the cap", "{}\n" + strings.Repeat("x", 50) + "\n[]\n", []string{"1:{}", "2:(long)", "3:[]"}, io.EOF},
		{"last line over the cap", strings.Repeat("x", 50), []string{"1:(cut)(long)"}, io.EOF},
		{"broken first line", "{\"a\": \"b\n{\"a\":1}\n", []string{`1:{"a": "b`, `2:{"a":1}`}, io.EOF},
		{"first line cut between keys", "{\"a\":1,\n{\"a\":2}\n", []string{`1:{"a":1,`, `2:{"a":2}`}, io.EOF},
		{"line of a list", "[{\"a\":1}]\n[{\"a\":2}]\n", []string{`1:[{"a":1}]`, `2:[{"a":2}]`}, io.EOF},
		{"text with brackets", "[2026-01-01] Ann: hi\n[[x]] y\n", []string{"1:[2026-01-01] Ann: hi", "2:[[x]] y"}, io.EOF},
		{"array", "\n [ {\"a\":[1,{}]},\n null , [2],\"]\\\"\", -1.5e3]\n ", []string{`2:{"a":[1,{}]}`, "3:null", "3:[2]", `3:"]\""`, "3:-1.5e3"}, io.EOF},
		{"array over lines", "[\n{\n\"a\":1\n},\n{}\n]", []string{"2:{\n\"a\":1\n}", "5:{}"}, io.EOF},
		{"empty array", "[]", nil, io.EOF},
		{"element over the cap", `[{"a":"` + strings.Repeat("x", 50) + `"},1]`, []string{"1:(long)", "1:1"}, io.EOF},
		{"bad element costs itself", `[{"a" "b"},{]},1]`, []string{`1:{"a" "b"}`, "1:{]", "1:}", "1:1"}, io.EOF},
		{"array cut in an element", `[{"a":1},{"a":`, []string{`1:{"a":1}`}, errCut},
		{"array cut after an element", "[{\"a\":1},\n", []string{`1:{"a":1}`}, errCut},
		{"arrays one after the other", "[{}\n]\n[1]", []string{"1:{}", "3:1"}, io.EOF},
		{"array and more", "[{}\n] x", []string{"1:{}"}, errTrailing},
		{"objects over lines", "{\n\"a\":1\n}\n{\"b\":2}", []string{"1:{\n\"a\":1\n}", `4:{"b":2}`}, io.EOF},
		{"object cut", "{\n\"a\":1,\n", nil, errCut},
		{"nothing", "", nil, io.EOF},
	}
	for _, tt := range tests {
		// The second reader delivers single bytes: what is buffered must not matter.
		for _, r := range []io.Reader{strings.NewReader(tt.in), iotest.OneByteReader(strings.NewReader(tt.in))} {
			src := newSource(bufio.NewReaderSize(r, 1024), 40)
			var got []string
			var err error
			for err == nil {
				var rec record
				if rec, err = src.next(); err == nil {
					got = append(got, show(rec))
				}
			}
			require.ErrorIs(t, err, tt.err, tt.name)
			require.Equal(t, tt.want, got, tt.name)
		}
	}
}

func show(r record) string {
	s := string('0'+byte(r.line)) + ":" + string(r.raw)
	if r.cut {
		s += "(cut)"
	}
	if r.long {
		s += "(long)"
	}
	return s
}

func TestRecordsTellReadErrors(t *testing.T) {
	t.Parallel()

	boom := errors.New("boom")
	for _, head := range []string{"{\"a\":1}\n{\"a\"", `[{"a":1},{"a"`} {
		src := newSource(bufio.NewReader(io.MultiReader(strings.NewReader(head), iotest.ErrReader(boom))), 100)
		_, err := src.next()
		require.NoError(t, err)
		_, err = src.next()
		require.ErrorIs(t, err, boom)
	}
}
