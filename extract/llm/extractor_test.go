package llm_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/extract"
	"github.com/justfortytwo/backfill/extract/llm"
	"github.com/justfortytwo/backfill/internal/llmtest"
)

func extractor(t *testing.T, s *llmtest.Server, change ...func(*llm.Config)) *llm.Extractor {
	t.Helper()
	return llm.NewExtractor(client(t, s, change...))
}

var turn = extract.Turn{Text: "User: we ship on Fridays, Ines said", Source: "owner", Date: "2026-05-01"}

// long is a turn of about so many tokens, in paragraphs that each tell something
// else.
func long(tokens int) (extract.Turn, []string) {
	var paragraphs []string
	for n := 0; n < 3*tokens; n += 102 {
		paragraphs = append(paragraphs, fmt.Sprintf("Fact %d is that %s.", len(paragraphs), strings.Repeat("we ship ", 11)))
	}
	return extract.Turn{Text: strings.Join(paragraphs, "\n\n")}, paragraphs
}

func contents(r llm.Result) []string {
	out := make([]string, 0, len(r.Candidates))
	for _, c := range r.Candidates {
		out = append(out, c.Content)
	}
	return out
}

func TestExtract(t *testing.T) {
	t.Parallel()
	server := llmtest.New(t, llmtest.Answer(`{"memories":[{"content":"Ines ships on Fridays","salience":0.9,"tags":["decision"],"evidence":"ship on fridays"},
		{"content":"Ines prefers tea over coffee.","salience":0.2}]}`))
	got, err := extractor(t, server).Extract(t.Context(), turn, extract.Options{DefaultObserved: "stated"}, 1)
	require.NoError(t, err)
	require.Equal(t, extract.OutcomeOK, got.Outcome)
	require.False(t, got.Partial)
	require.Len(t, got.Calls, 1)
	require.Equal(t, extract.OutcomeOK, got.Calls[0].Outcome)
	require.Equal(t, 2, got.Calls[0].Candidates)
	require.Equal(t, []int{1, 1}, []int{got.Calls[0].Chunk, got.Calls[0].Chunks})
	out, err := json.Marshal(got.Candidates)
	require.NoError(t, err)
	require.JSONEq(t, `[
		{"content":"Ines ships on Fridays","salience":0.9,"source":"owner","observed":"stated","date":"2026-05-01","tags":["decision"],"kind":"decision","evidence":"ship on fridays","entities":["ines"]},
		{"content":"Ines prefers tea over coffee.","salience":0.2,"source":"owner","observed":"stated","date":"2026-05-01","tags":["preference"],"kind":"preference","entities":["ines"]}
	]`, string(out))
}

func TestExtractEmptyIsSuccess(t *testing.T) {
	t.Parallel()
	got, err := extractor(t, llmtest.New(t, llmtest.Answer(`{"memories":[]}`))).Extract(t.Context(), turn, extract.Options{}, 1)
	require.NoError(t, err)
	require.Equal(t, extract.OutcomeEmpty, got.Outcome)
}

func TestExtractRedacts(t *testing.T) {
	t.Parallel()
	secret := "glpat-" + strings.Repeat("Zq4", 7)
	server := llmtest.New(t, llmtest.Answer(fmt.Sprintf(`[{"content":"The key is %s","salience":0.5,"tags":[%q]}]`, secret, secret)))
	got, err := extractor(t, server).Extract(t.Context(), extract.Turn{Text: "my key is " + secret, Meta: map[string]any{"k": secret}}, extract.Options{}, 1)
	require.NoError(t, err)
	require.NotContains(t, server.Requests()[0].Prompt(), secret)
	require.Contains(t, server.Requests()[0].Prompt(), "my key is [REDACTED:token]")
	require.Equal(t, []string{"The key is [REDACTED:token]"}, contents(got))
	require.NotContains(t, fmt.Sprint(got.Candidates), secret)
	require.Equal(t, 3, got.Redactions)
}

// (d) Overflow until the chunk is small enough: everything is seen and kept once.
func TestExtractSplitsUntilItFits(t *testing.T) {
	t.Parallel()
	turn, paragraphs := long(5000)
	server := llmtest.New(t, llmtest.Overflow(3*1200, llmtest.Echo()))
	got, err := extractor(t, server).Extract(t.Context(), turn, extract.Options{}, 1)
	require.NoError(t, err)
	want := slices.Clone(paragraphs)
	have := contents(got)
	slices.Sort(want)
	slices.Sort(have)
	require.Equal(t, want, have)
	require.False(t, got.Partial)
}

func TestExtractTooLongAtTheFloor(t *testing.T) {
	t.Parallel()
	turn, _ := long(20000)
	server := llmtest.New(t, llmtest.Overflow(0, llmtest.OK()))
	got, err := extractor(t, server).Extract(t.Context(), turn, extract.Options{}, 1)
	var e *llm.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, llm.FailCapture, e.Kind)
	require.Equal(t, llm.CodeTooLong, e.Code)
	require.Len(t, server.Requests(), 32, "the bound of one extraction")
	require.Len(t, got.Calls, len(server.Requests()), "what it took is on record all the same")
}

// (f) An answer that was cut: what is complete is kept, the rest asked for again.
func TestExtractAfterACutAnswer(t *testing.T) {
	t.Parallel()
	cut := llmtest.Finish(`{"memories":[{"content":"one","salience":0.9},{"content":"two","salience":0.8},{"content":"thr`, "length", 0)
	for _, tokens := range []int{100, 2000} {
		turn, _ := long(tokens)
		server := llmtest.New(t, cut, llmtest.Answer(`[{"content":"two","salience":0.85},{"content":"three","salience":0.7}]`))
		got, err := extractor(t, server).Extract(t.Context(), turn, extract.Options{}, 1)
		require.NoError(t, err)
		require.Equal(t, []string{"one", "two", "three"}, contents(got))
		require.InDelta(t, 0.85, got.Candidates[1].Salience, 1e-9, "the better of two")
		require.False(t, got.Partial)
		require.True(t, got.Calls[0].Salvaged)

		// Cut again and again: it ends, and says so.
		server = llmtest.New(t, cut)
		got, err = extractor(t, server).Extract(t.Context(), turn, extract.Options{}, 1)
		require.NoError(t, err)
		require.Equal(t, []string{"one", "two"}, contents(got))
		require.True(t, got.Partial)
		require.Equal(t, llm.CodeLength, got.Reason.Code)
		require.LessOrEqual(t, len(server.Requests()), 4)
	}
}

func TestExtractBadOutput(t *testing.T) {
	t.Parallel()
	turn, _ := long(2000)
	server := llmtest.New(t, llmtest.Answer("I could not find anything."))
	x := extractor(t, server)
	var e *llm.Error
	for attempt := 1; attempt <= 3; attempt++ {
		before := len(server.Requests())
		got, err := x.Extract(t.Context(), turn, extract.Options{}, attempt)
		require.ErrorAs(t, err, &e)
		require.Equal(t, llm.BadOutput, e.Kind)
		require.Equal(t, "unparseable", e.Code)
		require.Equal(t, "bad_output", got.Calls[0].Class)
		requests := server.Requests()[before:]
		switch attempt {
		case 1:
			require.Len(t, requests, 1)
			require.InDelta(t, 1024, requests[0].Body["max_tokens"], 0)
		case 2:
			require.Len(t, requests, 1)
			require.InDelta(t, 2048, requests[0].Body["max_tokens"], 0)
			require.InDelta(t, 0.3, requests[0].Body["temperature"], 1e-6)
			require.Contains(t, requests[0].Prompt(), `{"memories": [...]}`)
		case 3:
			require.Len(t, requests, 2)
			require.Less(t, len(requests[0].Turn()), len(turn.Text)*2/3)
		}
	}
}

func TestExtractLeavesOutWhatIsRefused(t *testing.T) {
	t.Parallel()
	turn, _ := long(5000)
	server := llmtest.New(t, llmtest.Named("azure_filter"), llmtest.OK())
	got, err := extractor(t, server).Extract(t.Context(), turn, extract.Options{}, 1)
	require.NoError(t, err)
	require.True(t, got.Partial)
	require.Equal(t, llm.FailCapture, got.Reason.Kind)
	require.Len(t, got.Candidates, 1)

	server = llmtest.New(t, llmtest.Named("azure_filter"))
	_, err = extractor(t, server).Extract(t.Context(), turn, extract.Options{}, 1)
	require.Equal(t, llm.FailCapture, llm.KindOf(err))
}

func TestExtractEndsWhenTheEndpointIsAway(t *testing.T) {
	t.Parallel()
	turn, _ := long(5000)
	server := llmtest.New(t, llmtest.OK(), llmtest.Named("e500"))
	got, err := extractor(t, server).Extract(t.Context(), turn, extract.Options{}, 1)
	require.Equal(t, llm.RetryLater, llm.KindOf(err))
	require.Empty(t, got.Candidates)
	require.Len(t, got.Calls, 2)
}

// (i) A server that cuts the prompt without a word is one that does not take it.
func TestExtractAfterSilentTruncation(t *testing.T) {
	t.Parallel()
	turn, _ := long(2500)
	server := llmtest.New(t, llmtest.If(func(r llmtest.Request) bool { return len(r.Turn()) > 3*1500 },
		llmtest.Finish(llmtest.Memory, "stop", 40), llmtest.Echo()))
	got, err := extractor(t, server).Extract(t.Context(), turn, extract.Options{}, 1)
	require.NoError(t, err)
	require.Equal(t, llm.CodeTruncated, got.Calls[0].Code)
	require.Contains(t, contents(got)[0], "Fact")
	require.Greater(t, len(got.Candidates), 50)
}

func TestExtractNamesNothingInErrors(t *testing.T) {
	t.Parallel()
	scenarios, err := llmtest.Scenarios()
	require.NoError(t, err)
	for _, sc := range scenarios {
		t.Run(sc.Name, func(t *testing.T) {
			t.Parallel()
			x := extractor(t, llmtest.New(t, sc.Reply), func(c *llm.Config) { c.Timeout = time.Second })
			got, err := x.Extract(t.Context(), extract.Turn{Text: turnCanary}, extract.Options{}, 3)
			requireClean(t, err, got.Calls, got.Reason, x)
		})
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	server := llmtest.New(t)
	plain := extractor(t, server).Version()
	require.Regexp(t, `^test-model/[0-9a-f]{8}$`, plain)
	require.Equal(t, plain, extractor(t, server, func(c *llm.Config) { c.Timeout = time.Hour }).Version())
	require.NotEqual(t, plain, extractor(t, server, func(c *llm.Config) { c.SystemPrompt = "other" }).Version())
}
