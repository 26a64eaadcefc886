package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Settings bound a run. They can be changed while it goes on: whoever works it
// reads them again before every batch. The zero value of each is no bound, or the
// default.
type Settings struct {
	// Concurrency is the number of its batches that may be leased at once, by all
	// workers together. From 1 to 1,000; default 0: no bound but the workers' own.
	Concurrency int `json:"concurrency,omitempty"`
	// BatchSize is the number of captures in a batch, from 1 to 10,000. Default 0:
	// the slot's. Only what is not planned yet is cut by it.
	BatchSize int `json:"batch_size,omitempty"`
	// MaxCost is what its calls to models may cost, in US dollars. No call is made
	// that could exceed it: the run then becomes budget_exhausted. Default 0: no
	// bound.
	MaxCost float64 `json:"max_cost,omitempty"`
	// Deadline is when it stops taking up batches: the run then becomes
	// deadline_reached. Default zero: never.
	Deadline time.Time `json:"deadline,omitzero"`
	// MaxErrorRate is the share of recorded results that may be failures, up to 1,
	// from 50 results on: a run that exceeds it has failed. Default 0: failures
	// never stop a run.
	MaxErrorRate float64 `json:"max_error_rate,omitempty"`
}

// Bounds of [Settings]; the database checks the same.
const (
	maxConcurrency = 1000
	maxBatchSize   = 10_000
)

// Validate names the first setting that is out of bounds, as the command line
// calls it.
func (s Settings) Validate() error {
	switch {
	case s.Concurrency < 0 || s.Concurrency > maxConcurrency:
		return fmt.Errorf("concurrency is %d: use a number of batches from 1 to %d", s.Concurrency, maxConcurrency)
	case s.BatchSize < 0 || s.BatchSize > maxBatchSize:
		return fmt.Errorf("batch-size is %d: use a number of captures from 1 to %d", s.BatchSize, maxBatchSize)
	case !(s.MaxCost >= 0 && s.MaxCost <= 1e9): // so that NaN is none either
		return fmt.Errorf("max-cost is %v: use an amount in US dollars, such as 5.00", s.MaxCost)
	case !(s.MaxErrorRate >= 0 && s.MaxErrorRate <= 1):
		return fmt.Errorf("max-error-rate is %v: use a share from 0 to 1, such as 0.05", s.MaxErrorRate)
	}
	return nil
}

// ErrRunEnded says that nothing more is done for a run, so that nothing of it can be
// changed. Those of one that has ended by itself hold for its failures.
var ErrRunEnded = errors.New("it has ended: its settings stay as they are")

// ErrPlanned says that a run's captures are in batches already.
var ErrPlanned = errors.New("it is planned already: its batches keep their size")

// Set changes a run's settings; the change is logged with who made it. It fails
// with ErrRunEnded, or with ErrPlanned where the size of its batches would have to
// change.
func (s *Store) Set(ctx context.Context, run int64, who string, change func(*Settings)) (Settings, error) {
	var set Settings
	err := s.as(ctx, who, func(tx pgx.Tx) error {
		var current []byte
		var ended, planned bool
		err := tx.QueryRow(ctx, `
			select settings, state in ('cancelled', 'failed'), planned_at is not null from backfill.run where id = $1 for update`, run).
			Scan(&current, &ended, &planned)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return ErrNoRun
		case err != nil:
			return wrap("changing settings", err)
		case ended:
			return ErrRunEnded
		}
		if err := json.Unmarshal(current, &set); err != nil {
			return fmt.Errorf("decoding settings: %w", err)
		}
		size := set.BatchSize
		change(&set)
		if err := set.Validate(); err != nil {
			return err
		}
		if planned && set.BatchSize != size {
			return ErrPlanned
		}
		if _, err := tx.Exec(ctx, "update backfill.run set settings = $2 where id = $1", run, set); err != nil {
			return wrap("changing settings", err)
		}
		return nil
	})
	return set, err
}
