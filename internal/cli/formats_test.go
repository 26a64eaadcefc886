package cli_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/internal/cli"
	"github.com/justfortytwo/backfill/internal/pgtest"
	"github.com/justfortytwo/backfill/internal/transcript"
)

// stored is an intake row as far as an import decides on it.
type stored struct {
	Source, ExternalID string
	OccurredAt         *time.Time
	Text               string
}

// TestImportFormats imports every sample of every format: what stands in intake is
// what was read and what a dry run says, and importing it again adds and changes
// nothing. That the samples are read rightly is tested where they lie.
func TestImportFormats(t *testing.T) {
	t.Parallel()
	const samples = "../transcript/testdata"
	cases, err := filepath.Glob(samples + "/*/*/expected.json")
	require.NoError(t, err)
	require.NotEmpty(t, cases)
	for _, path := range cases {
		dir := filepath.Dir(path)
		name, err := filepath.Rel(samples, dir)
		require.NoError(t, err)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var about struct {
				Input string `json:"input"`
				Exit  string `json:"exit"`
			}
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(data, &about))
			input := filepath.Join(dir, about.Input)

			want := map[[2]string]stored{}
			sum, err := transcript.Read(t.Context(), []string{input}, transcript.Options{}, func(c transcript.Capture) error {
				s := stored{Source: c.Source, ExternalID: c.ExternalID, Text: c.Text}
				if !c.Date.IsZero() {
					s.OccurredAt = &c.Date
				}
				want[[2]string{c.Source, c.ExternalID}] = s // the last one wins
				return nil
			})
			require.NoError(t, err)

			require.Equal(t, sorted(want), dryRun(t, sum.Exit(), input))

			pool := pgtest.New(t)
			for pass := range 2 {
				var stdout, stderr bytes.Buffer
				code := cli.Run(t.Context(), []string{"import", "--json", "--database-url", pool.Config().ConnString(), input}, nil, &stdout, &stderr)
				require.Equal(t, sum.Exit(), code, stderr.String())
				var out struct {
					Summary struct {
						New     int `json:"new"`
						Changed int `json:"changed"`
					} `json:"summary"`
				}
				require.NoError(t, json.Unmarshal(stdout.Bytes(), &out))
				if pass == 0 {
					require.Equal(t, len(want), out.Summary.New)
				} else {
					require.Zero(t, out.Summary.New)
					require.Zero(t, out.Summary.Changed)
				}
				require.Equal(t, sorted(want), intake(t, pool))
			}
		})
	}
}

// dryRun is what a dry run of paths says would stand in intake.
func dryRun(t *testing.T, exit int, paths ...string) []stored {
	t.Helper()
	var stdout, stderr bytes.Buffer
	require.Equal(t, exit, cli.Run(t.Context(), append([]string{"import", "--dry-run", "--json"}, paths...), nil, &stdout, &stderr), stderr.String())
	rows := map[[2]string]stored{}
	lines := bytes.Split(bytes.TrimSpace(stdout.Bytes()), []byte("\n"))
	for _, line := range lines[:len(lines)-1] {
		var c struct {
			Source     string     `json:"source"`
			ExternalID string     `json:"external_id"`
			Date       *time.Time `json:"date"`
			Text       string     `json:"text"`
		}
		require.NoError(t, json.Unmarshal(line, &c))
		rows[[2]string{c.Source, c.ExternalID}] = stored{Source: c.Source, ExternalID: c.ExternalID, OccurredAt: c.Date, Text: c.Text}
	}
	require.Len(t, rows, len(lines)-1, "each id once")
	var last struct {
		Summary transcript.Summary `json:"summary"`
	}
	require.NoError(t, json.Unmarshal(lines[len(lines)-1], &last))
	require.Equal(t, len(rows), last.Summary.Captures)
	return sorted(rows)
}

func sorted(rows map[[2]string]stored) []stored {
	out := make([]stored, 0, len(rows))
	for _, r := range rows {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b stored) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.ExternalID, b.ExternalID))
	})
	return out
}

func intake(t *testing.T, db interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
},
) []stored {
	t.Helper()
	rows, err := db.Query(t.Context(), `select source, external_id, occurred_at, text from backfill.intake`)
	require.NoError(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[stored])
	require.NoError(t, err)
	byID := map[[2]string]stored{}
	for _, r := range all {
		if r.OccurredAt != nil {
			*r.OccurredAt = r.OccurredAt.UTC()
		}
		byID[[2]string{r.Source, r.ExternalID}] = r
	}
	require.Len(t, byID, len(all))
	return sorted(byID)
}
