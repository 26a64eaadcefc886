package transcript

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// expected is testdata/<format>/<case>/expected.json.
type expected struct {
	Input     string             `json:"input"`
	Exit      string             `json:"exit"`
	IDs       string             `json:"ids"`
	Setup     []step             `json:"setup"`
	Turns     []expectedTurn     `json:"turns"`
	Exchanges []expectedExchange `json:"exchanges"`
	Skips     map[string]int     `json:"skips"`
	Warnings  []Problem          `json:"warnings"`
	Errors    []Problem          `json:"errors"`
}

type expectedTurn struct {
	ExternalID string     `json:"external_id"`
	Role       string     `json:"role"`
	Speaker    string     `json:"speaker"`
	Source     string     `json:"source"`
	Text       string     `json:"text"`
	TextPrefix string     `json:"text_prefix"`
	TextBytes  int        `json:"text_bytes"`
	Date       *time.Time `json:"date"`
	Session    string     `json:"session"`
}

type expectedExchange struct {
	ExternalID string     `json:"external_id"`
	TurnIDs    []string   `json:"turn_ids"`
	Date       *time.Time `json:"date"`
	Complete   bool       `json:"complete"`
	Session    string     `json:"session"`
}

// step prepares a copy of the case.
type step struct {
	Op         string `json:"op"`
	File       string `json:"file"`
	Token      string `json:"token"`
	Char       string `json:"char"`
	Bytes      int    `json:"bytes"`
	Link       string `json:"link"`
	Target     string `json:"target"`
	Mode       string `json:"mode"`
	SkipIfRoot bool   `json:"skip_if_root"`
}

// TestCases runs every case under testdata; a new format only adds directories.
func TestCases(t *testing.T) {
	t.Parallel()

	cases, err := filepath.Glob("testdata/*/*/expected.json")
	require.NoError(t, err)
	require.NotEmpty(t, cases)
	for _, path := range cases {
		dir := filepath.Dir(path)
		name, err := filepath.Rel("testdata", dir)
		require.NoError(t, err)
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			data, err := os.ReadFile(path)
			require.NoError(t, err)
			var want expected
			require.NoError(t, json.Unmarshal(data, &want))
			root := t.TempDir()
			require.NoError(t, os.CopyFS(root, os.DirFS(dir)))
			for _, s := range want.Setup {
				if s.Op == "chmod" && s.SkipIfRoot && os.Geteuid() == 0 {
					t.Skip("root reads files of mode 000")
				}
				s.run(t, root)
			}

			captures, sum := readAll(t, Options{}, filepath.Join(root, want.Input))
			compareTurns(t, want.Turns, captures)
			if want.Exchanges != nil {
				compareExchanges(t, want, captures)
			}
			require.Equal(t, map[string]int{"ok": 0, "fail": 1, "partial": 3}[want.Exit], sum.Exit())
			compareProblems(t, want.Warnings, sum.Warnings)
			compareProblems(t, want.Errors, sum.Errors)
			compareSkips(t, want.Skips, sum.Skips)

			again, _ := readAll(t, Options{}, filepath.Join(root, want.Input))
			require.Equal(t, captures, again)
		})
	}
}

func (s step) run(t *testing.T, root string) {
	t.Helper()
	file := filepath.Join(root, s.File)
	switch s.Op {
	case "expand":
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		text := strings.ReplaceAll(string(data), s.Token, strings.Repeat(s.Char, s.Bytes))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	case "symlink":
		require.NoError(t, os.Symlink(s.Target, filepath.Join(root, s.Link)))
	case "chmod":
		mode, err := strconv.ParseUint(s.Mode, 8, 32)
		require.NoError(t, err)
		require.NoError(t, os.Chmod(file, os.FileMode(mode)))
	default:
		require.Fail(t, "unknown step", s.Op)
	}
}

func readAll(t *testing.T, o Options, paths ...string) ([]Capture, Summary) {
	t.Helper()
	var captures []Capture
	sum, err := Read(t.Context(), paths, o, func(c Capture) error {
		captures = append(captures, c)
		return nil
	})
	require.NoError(t, err)
	return captures, sum
}

func compareTurns(t *testing.T, want []expectedTurn, captures []Capture) {
	t.Helper()
	got := map[string]Turn{}
	for _, c := range captures {
		for _, turn := range c.Turns {
			got[turn.ExternalID] = turn
		}
	}
	for _, w := range want {
		g, ok := got[w.ExternalID]
		require.True(t, ok, "no turn %s", w.ExternalID)
		delete(got, w.ExternalID)
		require.Equal(t, w.Role, g.Role, w.ExternalID)
		require.Equal(t, w.Speaker, g.Speaker, w.ExternalID)
		require.Equal(t, w.Source, strings.SplitN(g.ExternalID, ":", 2)[0], w.ExternalID)
		requireDate(t, w.Date, g.Date, w.ExternalID)
		if w.TextBytes == 0 {
			require.Equal(t, w.Text, g.Text, w.ExternalID)
		} else {
			require.True(t, strings.HasPrefix(g.Text, w.TextPrefix), w.ExternalID)
			require.Len(t, g.Text, w.TextBytes, w.ExternalID)
		}
	}
	require.Empty(t, got)
}

func compareExchanges(t *testing.T, expected expected, captures []Capture) {
	t.Helper()
	got := map[string]Capture{}
	for _, c := range captures {
		got[c.ExternalID] = c
	}
	for _, w := range expected.Exchanges {
		g, ok := got[w.ExternalID]
		require.True(t, ok, "no exchange %s", w.ExternalID)
		require.Equal(t, w.TurnIDs, g.TurnIDs, w.ExternalID)
		require.Equal(t, w.Complete, g.Complete, w.ExternalID)
		requireDate(t, w.Date, g.Date, w.ExternalID)
		if w.Session != "" {
			require.Equal(t, w.Session, g.Session, w.ExternalID)
		}
	}
	require.Len(t, got, len(expected.Exchanges))
}

// compareProblems compares the base names of files, codes, and lines where the case
// names one.
func compareProblems(t *testing.T, want, got []Problem) {
	t.Helper()
	found := make([]Problem, 0, len(got))
	for _, p := range places(got) {
		if !slices.ContainsFunc(want, func(w Problem) bool { return w.Line != 0 && w.Code == p.Code }) {
			p.Line = 0
		}
		found = append(found, p)
	}
	require.ElementsMatch(t, want, found)
}

// compareSkips compares totals by reason. The cases count an attachment without a
// text as empty.
func compareSkips(t *testing.T, want, got map[string]int) {
	t.Helper()
	got["empty"] += got["attachment"]
	for reason, n := range want {
		require.GreaterOrEqual(t, got[reason], n, reason)
	}
}

func requireDate(t *testing.T, want *time.Time, got time.Time, id string) {
	t.Helper()
	if want == nil {
		require.True(t, got.IsZero(), "%s: %s instead of unknown", id, got)
		return
	}
	require.WithinDuration(t, *want, got, time.Millisecond, id)
}

// places are problems as the cases name them: without detail, and by base name.
func places(problems []Problem) []Problem {
	out := make([]Problem, len(problems))
	for i, p := range problems {
		out[i] = Problem{File: filepath.Base(p.File), Code: p.Code, Line: p.Line}
	}
	return out
}
