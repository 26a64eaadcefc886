package llm_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/justfortytwo/backfill/extract/llm"
)

// message is a message of n paragraphs of about 100 bytes.
func message(label string, n int) string {
	paragraphs := make([]string, n)
	for i := range paragraphs {
		paragraphs[i] = fmt.Sprintf("%s paragraph %d %s.", label, i, strings.Repeat("word ", 16))
	}
	return label + ": " + strings.Join(paragraphs, "\n\n")
}

func TestSplitShort(t *testing.T) {
	t.Parallel()
	text := message("User", 3)
	chunks, omitted := llm.Split(text, 500)
	require.Equal(t, []string{text}, chunks)
	require.Zero(t, omitted)
}

func TestSplitAtMessages(t *testing.T) {
	t.Parallel()
	first, second := message("User", 9), message("Assistant", 9)
	chunks, omitted := llm.Split(first+"\n\n"+second, 500)
	require.Zero(t, omitted)
	require.Len(t, chunks, 2)
	require.Equal(t, first, chunks[0])
	// The last paragraph comes along, with the label of its message.
	require.Equal(t, "User: "+first[strings.LastIndex(first, "\n\n")+2:]+"\n\n"+second, chunks[1])
}

func TestSplitKeepsFencesWhole(t *testing.T) {
	t.Parallel()
	fence := "```go\n" + strings.Repeat("x := 1\n\n", 60) + "```"
	chunks, _ := llm.Split(message("User", 8)+"\n\n"+fence+"\n\n"+message("Assistant", 8), 500)
	found := 0
	for _, c := range chunks {
		if strings.Contains(c, fence) {
			found++
		}
	}
	require.Equal(t, 1, found)
}

func TestSplitLeavesTheMiddleOut(t *testing.T) {
	t.Parallel()
	// One long output of a tool, between what people said.
	output := "Assistant: " + strings.Repeat("line of output\n", 4000)
	chunks, omitted := llm.Split(message("User", 3)+"\n\n"+output+"\n\n"+message("Thanks", 3), 500)
	require.Positive(t, omitted)
	require.LessOrEqual(t, len(chunks), 8)
	all := strings.Join(chunks, "\n")
	require.Contains(t, all, "User paragraph 0")
	require.Contains(t, all, "Thanks paragraph 2")
	require.Contains(t, all, "bytes left out]")
	// Too many messages: the first and the last of them.
	long := make([]string, 0, 100)
	for i := range 100 {
		long = append(long, message(fmt.Sprintf("User%d", i), 5))
	}
	chunks, omitted = llm.Split(strings.Join(long, "\n\n"), 500)
	require.Len(t, chunks, 8)
	require.Positive(t, omitted)
	require.Contains(t, chunks[0], "User0 paragraph 0")
	require.Contains(t, chunks[7], "User99 paragraph 4")
}

func TestSplitProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tokens := rapid.IntRange(500, 700).Draw(t, "tokens")
		line := rapid.StringMatching(`(User: |Ines Weber: |x: |` + "```" + `\n|)[a-zäß 漢🙂]{0,120}`)
		lines := rapid.SliceOfN(line, 30, 120).Draw(t, "lines")
		text := strings.Join(lines, rapid.SampledFrom([]string{"\n", "\n\n", "\n\n\n", " "}).Draw(t, "separator"))
		chunks, omitted := llm.Split(text, tokens)
		require.LessOrEqual(t, len(chunks), 8)
		for _, c := range chunks {
			require.LessOrEqual(t, len(c), 3*tokens)
			require.True(t, utf8.ValidString(c))
		}
		if omitted > 0 {
			return
		}
		all := strings.Join(chunks, "\n")
		for w := range strings.FieldsSeq(text) {
			if len(w) < 100 {
				require.Contains(t, all, w)
			}
		}
	})
}

func TestSplitIsLinear(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"x", "\n", "\n\n", "```\n\n", "User: x\n\n", "a b ", "é"} {
		start := time.Now()
		chunks, _ := llm.Split(strings.Repeat(unit, (2<<20)/len(unit)), 3000)
		require.Less(t, time.Since(start), 2*time.Second, unit)
		require.LessOrEqual(t, len(chunks), 8)
	}
}
