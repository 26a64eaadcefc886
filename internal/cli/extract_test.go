package cli_test

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/internal/cli"
)

func TestExtract(t *testing.T) {
	t.Parallel()
	const text = "We decided to use Postgres instead of MongoDB because the reports need joins."
	require.Regexp(t, `^decision   [01]\.\d\d  `+text+"\n$", backfill(t, text, "extract").ok().out)
	c := backfill(t, text, "extract", "--json").ok().object()
	require.Equal(t, text, c["content"])
	require.Equal(t, []any{"decision"}, c["tags"])

	r := backfill(t, "Good morning!", "extract")
	require.Zero(t, r.code)
	require.Empty(t, r.out)
	require.Equal(t, "nothing durable found\n", r.err)
	require.Zero(t, backfill(t, "cut \xe2\x82 and \x00", "extract").code)
}

// One line is written per line read, in order.
func TestExtractLines(t *testing.T) {
	t.Parallel()
	long := `{"id":"long","text":"` + strings.Repeat("Good morning! ", 400_000) + `"}`
	r := backfill(t, strings.Join([]string{decision, long, `{"id":{"deep":[1]},"text":""}`, `{"text":"no id"}` + "\r", preference}, "\n"), "extract", "--jsonl").ok()
	lines := r.objects()
	require.Len(t, lines, 5)
	for _, l := range lines {
		requireKeys(t, l, "id", "classify", "entities", "candidates")
		require.NotNil(t, l["entities"])
		require.NotNil(t, l["candidates"])
		for _, c := range l["candidates"].([]any) {
			requireKeys(t, c.(map[string]any), "kind", "content", "salience", "source?", "observed", "date?", "tags", "evidence", "entities?", "meta?")
		}
	}
	require.Equal(t, "d", lines[0]["id"])
	require.Equal(t, "decision", lines[0]["classify"])
	require.Equal(t, []any{"postgres", "mongodb"}, lines[0]["entities"])
	first := lines[0]["candidates"].([]any)[0].(map[string]any)
	require.Equal(t, "2026-01-31T10:00:00Z", first["date"])
	require.Equal(t, "owner", first["source"])
	require.Equal(t, "long", lines[1]["id"])
	require.Equal(t, map[string]any{"deep": []any{1.0}}, lines[2]["id"])
	require.Empty(t, lines[2]["candidates"])
	require.Nil(t, lines[3]["id"])
	require.Empty(t, lines[3]["classify"])
	require.Equal(t, "p", lines[4]["id"])
}

// A bad line is named, and its neighbours are worked.
func TestExtractBadLines(t *testing.T) {
	t.Parallel()
	const isNot = `: this is not a JSON object such as {"id": 1, "text": "…"}` + "\n"
	r := backfill(t, strings.Join([]string{decision, "not JSON", "", `["text"]`, `{"text":5}`, `{"text":"cut`, preference}, "\n"), "extract", "--jsonl")
	require.Equal(t, 3, r.code)
	require.Len(t, r.objects(), 2)
	require.Equal(t, "error: -:2"+isNot+"error: -:4"+isNot+"error: -:5"+isNot+"error: -:6"+isNot, r.err)

	// A line beyond all bounds is read past, without holding it.
	var out, errs bytes.Buffer
	endless := io.LimitReader(repeat('x'), 65<<20)
	code := cli.Run(t.Context(), []string{"extract", "--jsonl"},
		io.MultiReader(strings.NewReader(decision+"\n"+`{"text":"`), endless, strings.NewReader("\"}\n"+preference)), &out, &errs)
	require.Equal(t, 3, code)
	require.Equal(t, "error: -:2: this line is longer than 64 MiB\n", errs.String())
	require.Equal(t, 2, strings.Count(out.String(), "\n"))
}

// repeat is an endless line.
type repeat byte

func (r repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r)
	}
	return len(p), nil
}

// Whoever types a line, or pipes one, gets the answer before the next.
func TestExtractInteractive(t *testing.T) {
	t.Parallel()
	stdin, typed := io.Pipe()
	answers, stdout := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- cli.Run(t.Context(), []string{"extract", "--jsonl"}, stdin, stdout, io.Discard)
		stdout.Close()
	}()
	read := json.NewDecoder(answers)
	for _, line := range []string{decision, preference} {
		_, err := io.WriteString(typed, line+"\n")
		require.NoError(t, err)
		var o map[string]any
		require.NoError(t, read.Decode(&o))
		require.NotEmpty(t, o["candidates"])
	}
	require.NoError(t, typed.Close())
	require.Zero(t, <-code)
}
