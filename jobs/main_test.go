package jobs_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/justfortytwo/backfill/extract"
	"github.com/justfortytwo/backfill/internal/pgtest"
	"github.com/justfortytwo/backfill/jobs"
	"github.com/justfortytwo/backfill/store"
)

// workerURL names the database when the test binary is to be a worker process,
// which tests then kill.
const workerURL = "BACKFILL_TEST_WORKER_URL"

// workerModel names the endpoint that it asks, if it does.
const workerModel = "BACKFILL_TEST_WORKER_MODEL"

func TestMain(m *testing.M) {
	if url := os.Getenv(workerURL); url != "" {
		if err := workerProcess(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(pgtest.M{M: m})
}

// killer is a text that takes the worker process down.
const killer = "this capture kills its worker"

// workerProcess works until it is killed.
func workerProcess(url string) error {
	ctx := context.Background()
	pool, err := store.Connect(ctx, url, store.Options{MaxConns: 12})
	if err != nil {
		return err
	}
	cfg := config(extractorFunc(func(t extract.Turn) []extract.Candidate {
		if strings.Contains(t.Text, killer) {
			os.Exit(137)
		}
		return whole(t)
	}))
	cfg.Lease = 3 * time.Second // short, so that kills show quickly; not so short that a busy machine loses it
	if model := os.Getenv(workerModel); model != "" {
		cfg.Slots = []jobs.Slot{modelProcess(model)}
	}
	client, err := jobs.New(pool, cfg)
	if err != nil {
		return err
	}
	if err := client.Start(ctx); err != nil {
		return err
	}
	select {}
}
