package llm

import (
	"context"
	"errors"

	"github.com/justfortytwo/backfill/extract"
	"github.com/justfortytwo/backfill/heuristic"
	"github.com/justfortytwo/backfill/internal/redact"
)

// maxCalls bounds the requests of one extraction, whatever has to be split.
const maxCalls = 32

// Extractor extracts the memories of turns of any length. It is safe for
// concurrent use.
type Extractor struct {
	client *Client
	redact redact.Redactor
}

var _ extract.SalienceExtractor = (*Extractor)(nil)

// NewExtractor returns the extractor that asks c.
func NewExtractor(c *Client) *Extractor {
	return &Extractor{client: c, redact: redact.Redactor{Contacts: c.cfg.RedactContacts}}
}

// Client is the client it asks with.
func (x *Extractor) Client() *Client { return x.client }

// Version is [Config.Version].
func (x *Extractor) Version() string { return x.client.cfg.Version() }

// Result is an extraction with its audit trail.
type Result struct {
	// Candidates are merged by content, filtered, most salient first.
	Candidates []extract.Candidate
	// Outcome is [extract.OutcomeOK], or [extract.OutcomeEmpty] if the model found
	// nothing worth keeping.
	Outcome extract.Outcome
	// Redactions counts the secrets that were replaced, in the turn and in the
	// candidates.
	Redactions int
	// Partial is set if the candidates do not cover the whole turn, and Reason is
	// the failure behind it, nil if the turn was longer than 8 chunks.
	Partial bool
	Reason  *Error
	// Calls are the requests that were made, in order.
	Calls []Call
}

// ExtractSalient implements [extract.SalienceExtractor].
func (x *Extractor) ExtractSalient(ctx context.Context, t extract.Turn, o extract.Options) ([]extract.Candidate, error) {
	r, err := x.Extract(ctx, t, o, 1)
	return r.Candidates, err
}

// Extract redacts t, asks for the memories of each of its chunks and merges the
// answers. attempt counts from 1, and an answer that cannot be read is asked for
// differently each time: as before, with more room and a reminder, and from the
// third on in halves.
//
// A chunk that is too long for the model is halved, down to 500 tokens. So is one
// whose answer was cut, once, after keeping what is complete; a small one is asked
// for again with more room. A chunk that is
// refused, or cannot be read from the third attempt on, is left out as long as
// another one succeeds (Result.Partial). Any other failure ends the extraction.
//
// The error is an [*Error], ctx's, or the budget's; Result then still holds the
// calls.
func (x *Extractor) Extract(ctx context.Context, t extract.Turn, o extract.Options, attempt int) (Result, error) {
	j := &job{Extractor: x, turn: t, attempt: attempt}
	var n int
	j.turn.Text, n = x.redact.Text(t.Text)
	j.result.Redactions += n
	if meta, n := x.redact.Value(t.Meta); n > 0 {
		j.turn.Meta, _ = meta.(map[string]any)
	}
	chunks, omitted := Split(j.turn.Text, x.client.cfg.ChunkTokens)
	j.result.Partial = omitted > 0
	j.chunks = len(chunks)
	for i, chunk := range chunks {
		j.chunk = i + 1
		if err := j.do(ctx, chunk, false); err != nil {
			return Result{Calls: j.result.Calls, Redactions: j.result.Redactions}, err
		}
	}
	if j.failed != nil {
		if !j.succeeded {
			return Result{Calls: j.result.Calls, Redactions: j.result.Redactions}, j.failed
		}
		j.result.Partial, j.result.Reason = true, j.failed
	}
	j.finish(t, o)
	return j.result, nil
}

// job is one extraction.
type job struct {
	*Extractor
	turn          extract.Turn
	attempt       int
	chunk, chunks int
	// insist has the same piece asked for once more, with more room.
	insist bool
	result Result
	found  []extract.Candidate
	// succeeded is set once a chunk was answered; failed is why another one was
	// left out.
	succeeded bool
	failed    *Error
}

// do extracts from one piece of the turn. rest is set for the halves of a piece
// that was split because of its answer: they are not split for that again.
func (j *job) do(ctx context.Context, piece string, rest bool) error {
	if j.attempt >= 3 && !rest {
		if halves := halve(piece); halves != nil {
			return j.all(ctx, halves, true)
		}
	}
	if len(j.result.Calls) >= maxCalls {
		j.fail(&Error{Kind: FailCapture, Code: CodeCalls})
		return nil
	}
	turn := j.turn
	turn.Text = piece
	got, err := extract.New(j, extract.WithSystemPrompt(j.client.cfg.SystemPrompt)).Extract(ctx, turn, extract.Options{})
	var e *Error
	if err != nil && !errors.As(err, &e) {
		return err
	}
	report := got.Report
	if call := j.last(); call != nil && e == nil {
		call.Outcome, call.Candidates, call.Skipped, call.Salvaged = report.Outcome, len(got.Candidates), report.Skipped, report.Salvaged
	}
	if e == nil && report.Outcome != extract.OutcomeOK && report.Outcome != extract.OutcomeEmpty {
		e = &Error{Kind: BadOutput, Status: 200, Code: string(report.Outcome), RequestID: got.Completion.RequestID}
		if got.Completion.Finish == extract.FinishLength {
			e.Code = CodeLength
		}
		if call := j.last(); call != nil {
			call.Class, call.Code = string(e.Kind), e.Code
		}
	}
	switch {
	case e == nil:
		j.succeeded = true
		j.found = append(j.found, got.Candidates...)
		if got.Completion.Finish != extract.FinishLength && !report.Salvaged {
			return nil
		}
		if halves := halve(piece); halves != nil && !rest {
			return j.all(ctx, halves, true)
		}
		if !rest && !j.insist {
			j.insist = true
			defer func() { j.insist = false }()
			return j.do(ctx, piece, true)
		}
		j.fail(&Error{Kind: BadOutput, Status: 200, Code: CodeLength, RequestID: got.Completion.RequestID})
		return nil
	case e.Kind == SplitTurn:
		if halves := halve(piece); halves != nil {
			return j.all(ctx, halves, rest)
		}
		j.fail(&Error{Kind: FailCapture, Status: e.Status, Code: CodeTooLong, RequestID: e.RequestID})
		return nil
	case e.Kind == FailCapture, e.Kind == BadOutput && j.attempt >= 3:
		j.fail(e)
		return nil
	}
	return e
}

func (j *job) all(ctx context.Context, pieces []string, rest bool) error {
	for _, p := range pieces {
		if err := j.do(ctx, p, rest); err != nil {
			return err
		}
	}
	return nil
}

// fail leaves a piece out. The first reason is kept.
func (j *job) fail(e *Error) {
	if j.failed == nil {
		j.failed = e
	}
}

func (j *job) last() *Call {
	if n := len(j.result.Calls); n > 0 {
		return &j.result.Calls[n-1]
	}
	return nil
}

// Complete implements [extract.LLMClient]: the client's completion, on record.
func (j *job) Complete(ctx context.Context, r extract.Request) (extract.Completion, error) {
	got, calls, err := j.client.complete(ctx, r, j.insist || j.attempt == 2)
	for _, call := range calls {
		call.Chunk, call.Chunks, call.Redactions = j.chunk, j.chunks, j.result.Redactions
		j.result.Calls = append(j.result.Calls, call)
	}
	return got, err
}

// halve splits a piece in two or three, or returns nil if it is too small.
func halve(piece string) []string {
	tokens := estimate(piece)
	if tokens < minChunkTokens+minChunkTokens/2 {
		return nil
	}
	halves, _ := Split(piece, max(minChunkTokens, tokens/2+tokens/16))
	if len(halves) < 2 {
		return nil
	}
	return halves
}

// finish merges what was found, adds what the model is not asked for, and filters.
func (j *job) finish(t extract.Turn, o extract.Options) {
	index := map[string]int{}
	merged := j.found[:0]
	for _, c := range j.found {
		j.result.Redactions += j.redact.Candidate(&c)
		if c.Kind == "" {
			if kind, ok := heuristic.Classify(c.Content); ok {
				c.Kind = string(kind)
				c.Tags = append([]string{c.Kind}, c.Tags...)
			}
		}
		c.Entities = heuristic.Entities(c.Content)
		if i, ok := index[c.Content]; !ok {
			index[c.Content] = len(merged)
			merged = append(merged, c)
		} else if c.Salience > merged[i].Salience {
			merged[i] = c
		}
	}
	j.result.Outcome = extract.OutcomeOK
	if len(merged) == 0 {
		j.result.Outcome = extract.OutcomeEmpty
	}
	j.result.Candidates = extract.Filter(merged, t, o)
}
