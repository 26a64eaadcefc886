package store

import (
	"encoding/json"
	"time"
)

// Outcome is what happened to a capture in one slot.
type Outcome string

// Outcomes of the ledger. Empty means nothing durable was found; it is never the
// same value as a failure.
const (
	Staged        Outcome = "staged"
	Empty         Outcome = "empty"
	Skipped       Outcome = "skipped"
	Unparseable   Outcome = "unparseable"
	Refused       Outcome = "refused"
	Truncated     Outcome = "truncated"
	TooLong       Outcome = "too_long"
	ProviderError Outcome = "provider_error"
	DataError     Outcome = "data_error"
	Panic         Outcome = "panic"
	Crashed       Outcome = "crashed"
	Undone        Outcome = "undone"
)

// Failures are the outcomes that can be tried again.
func Failures() []Outcome {
	return []Outcome{Unparseable, Refused, Truncated, TooLong, ProviderError, DataError, Panic, Crashed}
}

// final reports whether the capture is done: there is nothing to try again.
func (o Outcome) final() bool {
	return o == Staged || o == Empty || o == Skipped || o == Undone
}

// Candidate is a staging row. Strings must be valid UTF-8 without NUL.
type Candidate struct {
	Content, Kind, Source, Observed, Date, Evidence string
	// Salience is within [0, 1].
	Salience float32
	Tags     []string
	// Meta is a JSON object; nil is {}.
	Meta json.RawMessage
	// Entities are at most 256 bytes each.
	Entities []string
	// Fingerprint identifies the normalised content.
	Fingerprint [16]byte
}

// Result is what was found in one capture.
type Result struct {
	CaptureID int64
	// Hash is the hash of the text that was read. It guards the overwriting of
	// older results: a result of outdated text is dropped.
	Hash    string
	Outcome Outcome
	// Retry asks for another attempt after a backoff; when none is left, the
	// capture is dead.
	Retry bool
	// Error is a class and a code, never text of a capture.
	Error      string
	Redactions int16
	// Fallback names the extractor that stood in, if one did: the candidates are
	// its, except those that another slot has staged for this capture.
	Fallback   string
	Candidates []Candidate
	// Calls are the requests to a model that it took.
	Calls []Call
}

// Work is what was done in one leased batch.
type Work struct {
	Lease
	RunID   *int64
	Replace bool
	Results []Result
	// Gone are captures that need no result: deleted since, or worked in another
	// batch of the same write.
	Gone []int64
	// Close says what becomes of the captures that are left.
	Close Close
}

// Close is how a [Work] leaves its batch. A batch without captures left is always
// closed.
type Close int

// Ways to leave a batch.
const (
	// KeepLease goes on with the rest under the same lease.
	KeepLease Close = iota
	// GiveBack returns the rest to the queue together with the attempt: we were
	// asked to stop.
	GiveBack
	// Dead closes the batch; the results say so for every capture in it.
	Dead
)

// Write is the work of one slot, to be committed in one transaction.
type Write struct {
	Extractor int16
	Version   string
	Works     []Work
	// Entered says that [Store.Enter] has counted the attempts at every capture.
	Entered bool
	// MaxAttempts is the attempt after which a capture is dead.
	MaxAttempts int16
	// Backoff is the pause after the given number of failed attempts.
	Backoff func(attempts int16) time.Duration
}

// Written reports what a write changed.
type Written struct {
	// Lost are the batches whose lease had moved on; nothing of theirs was
	// written.
	Lost []int64
	// Outcomes counts captures whose result was recorded.
	Outcomes map[Outcome]int
	// Candidates counts new staging rows.
	Candidates int
}
