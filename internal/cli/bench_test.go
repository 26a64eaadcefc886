package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/internal/cli"
	"github.com/justfortytwo/backfill/internal/pgtest"
)

// BenchmarkImport measures importing 50,000 captures of about 650 bytes, reading
// and parsing the file included, against a raw binary COPY of the same rows into
// intake, triggers included. Both happen in each round, so that the ratio holds on
// a machine whose speed drifts; medians are reported.
func BenchmarkImport(b *testing.B) {
	const captures = 50_000
	file := filepath.Join(b.TempDir(), "turns.jsonl")
	writeTurns(b, file, captures)
	const columns = "source, external_id, observed, occurred_at, text, meta"
	var imports, ratios []float64
	for b.Loop() {
		pool := pgtest.New(b)
		began := time.Now()
		var stderr bytes.Buffer
		require.Zero(b, cli.Run(b.Context(), []string{"import", "--database-url", pool.Config().ConnString(), file}, nil, io.Discard, &stderr), stderr.String())
		imported := captures / time.Since(began).Seconds()

		var rows bytes.Buffer
		require.NoError(b, copyOut(b.Context(), pool, &rows, "copy (select "+columns+" from backfill.intake order by id) to stdout binary"))
		other := pgtest.New(b)
		began = time.Now()
		require.NoError(b, copyIn(b.Context(), other, &rows, "copy backfill.intake ("+columns+") from stdin binary"))
		copied := captures / time.Since(began).Seconds()
		imports, ratios = append(imports, imported), append(ratios, imported/copied)
	}
	slices.Sort(imports)
	slices.Sort(ratios)
	b.ReportMetric(0, "ns/op") // a round is no operation
	b.ReportMetric(imports[len(imports)/2], "captures/s")
	b.ReportMetric(ratios[len(ratios)/2], "import/copy")
}

func copyOut(ctx context.Context, pool *pgxpool.Pool, w io.Writer, sql string) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	_, err = conn.Conn().PgConn().CopyTo(ctx, w, sql)
	return err
}

func copyIn(ctx context.Context, pool *pgxpool.Pool, r io.Reader, sql string) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	_, err = conn.Conn().PgConn().CopyFrom(ctx, r, sql)
	return err
}

func writeTurns(b *testing.B, file string, n int) {
	b.Helper()
	words := strings.Fields("the build took a while again and then went through we looked at the log once more and found nothing new")
	rng := rand.New(rand.NewPCG(1, 2))
	f, err := os.Create(file)
	require.NoError(b, err)
	w := bufio.NewWriter(f)
	for i := range n {
		var text strings.Builder
		for text.Len() < 640 {
			text.WriteString(words[rng.IntN(len(words))])
			text.WriteByte(' ')
		}
		fmt.Fprintf(w, `{"id":"turn-%d","text":"%s%d","source":"bench","date":"2026-01-05T10:00:00Z","meta":{"session":"s%d"}}`+"\n", i, text.String(), i, i/50)
	}
	require.NoError(b, w.Flush())
	require.NoError(b, f.Close())
}
