package extract_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/extract"
)

// parseRow is one row of testdata/parse.jsonl. The input is one of Raw, Base64
// (bytes JSON cannot hold) and Gen.
type parseRow struct {
	ID     string  `json:"id"`
	Why    string  `json:"why"`
	Raw    *string `json:"raw"`
	Base64 string  `json:"raw_b64"`
	Gen    struct {
		Prefix string `json:"prefix"`
		Repeat string `json:"repeat"`
		Suffix string `json:"suffix"`
		N      int    `json:"n"`
	} `json:"raw_gen"`
	Expect      json.RawMessage `json:"expect"`
	ExpectCount []int           `json:"expect_count"`
	Outcome     extract.Outcome `json:"outcome"`
	Turn        extract.Turn    `json:"turn"`
	Opts        struct {
		MinSalience     float64 `json:"minSalience"`
		MaxCandidates   int     `json:"maxCandidates"`
		DefaultObserved string  `json:"defaultObserved"`
	} `json:"opts"`
}

func (r parseRow) input(t *testing.T) string {
	t.Helper()
	switch {
	case r.Raw != nil:
		return *r.Raw
	case r.Base64 != "":
		raw, err := base64.StdEncoding.DecodeString(r.Base64)
		require.NoError(t, err)
		return string(raw)
	}
	return r.Gen.Prefix + strings.Repeat(r.Gen.Repeat, r.Gen.N) + r.Gen.Suffix
}

func parseRows(tb testing.TB) []parseRow {
	tb.Helper()
	f, err := os.Open("testdata/parse.jsonl")
	require.NoError(tb, err)
	defer f.Close()
	var rows []parseRow
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var row parseRow
		require.NoError(tb, json.Unmarshal(lines.Bytes(), &row))
		rows = append(rows, row)
	}
	require.NoError(tb, lines.Err())
	return rows
}

func TestParseRows(t *testing.T) {
	t.Parallel()
	rows := parseRows(t)
	require.Len(t, rows, 161)
	for _, row := range rows {
		t.Run(row.ID, func(t *testing.T) {
			t.Parallel()
			got, rep := extract.Parse(row.input(t), row.Turn, extract.Options(row.Opts))
			if row.ExpectCount != nil {
				require.GreaterOrEqual(t, len(got), row.ExpectCount[0], row.Why)
				require.LessOrEqual(t, len(got), row.ExpectCount[1], row.Why)
			} else {
				require.JSONEq(t, string(row.Expect), marshalList(t, got), row.Why)
			}
			if row.Outcome != "" {
				require.Equal(t, row.Outcome, rep.Outcome, row.Why)
			}
		})
	}
}

// marshalList encodes candidates, none as an empty list.
func marshalList(tb testing.TB, cands []extract.Candidate) string {
	tb.Helper()
	if cands == nil {
		cands = []extract.Candidate{}
	}
	b, err := json.Marshal(cands)
	require.NoError(tb, err)
	return string(b)
}
