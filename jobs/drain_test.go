package jobs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDrain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(config(extractorFunc(whole)))
	b.insert("one", "two", "  ")
	b.idle(10 * time.Second)
	require.Equal(t, int64(2), query[int64](b, "select count(*) from backfill.staging"))
	require.Equal(t, int64(2), query[int64](b, "select count(*) from backfill.entity"))
	require.Equal(t, "skipped", query[string](b, "select outcome from backfill.extraction where capture_id = 3"))
}
