package transcript

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/extract"
)

// asked keeps what an extraction asks a model.
type asked struct{ extract.Request }

func (a *asked) Complete(_ context.Context, r extract.Request) (extract.Completion, error) {
	a.Request = r
	return extract.Completion{Text: `{"memories":[]}`, Finish: extract.FinishStop}, nil
}

// TestOwnExtraction: what extraction asks a model, and that logs, is no conversation.
func TestOwnExtraction(t *testing.T) {
	t.Parallel()

	var a asked
	_, err := extract.New(&a).ExtractSalient(t.Context(), extract.Turn{Text: "User: Hi", Date: "2026-01-31"}, extract.Options{})
	require.NoError(t, err)
	answer := answerPart("1", "m", `{"memories":[]}`)
	prompt := func(text string) string { return claudeText("user", "u", blocks(text)) + answer }
	for _, in := range []string{
		prompt(a.Prompt),
		prompt(a.System + "\n\n" + a.Prompt),
		`{"messages":[{"role":"system","content":"x"},{"role":"user","content":` + strings.Trim(blocks(a.Prompt), "[]") + `},{"role":"assistant","content":"{}"}]}`,
		claudeText("user", "u", `"Hi"`, `,"cwd":"/home/ann/.backfill/llm"`) + answer,
	} {
		captures, sum := readText(t, Options{}, in)
		require.Empty(t, captures)
		require.Equal(t, 2, sum.Skips[skipOwn])
		require.Empty(t, sum.Warnings)
		require.Equal(t, 0, sum.Exit())
	}
	for _, in := range []string{
		prompt("What is this?\n" + a.Prompt),
		prompt("Turn date: unknown"),
		claudeText("user", "u", `"Hi"`, `,"cwd":"/home/ann/src/backfill"`) + answer,
	} {
		captures, _ := readText(t, Options{}, in)
		require.Len(t, captures, 1)
	}
}
