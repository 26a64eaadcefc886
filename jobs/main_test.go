package jobs_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/justfortytwo/backfill/internal/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.M{M: m}) }
