package jobs

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/justfortytwo/backfill/extract"
	"github.com/justfortytwo/backfill/extract/llm"
	"github.com/justfortytwo/backfill/internal/redact"
	"github.com/justfortytwo/backfill/store"
)

// maxEntityBytes is the longest entity key; longer ones are no names.
const maxEntityBytes = 256

// result extracts one capture. Whatever goes wrong becomes its outcome.
func (s *slot) result(ctx context.Context, c store.Capture) store.Result {
	return s.extract(ctx, c, s.Extractor)
}

func (s *slot) extract(ctx context.Context, c store.Capture, by extract.SalienceExtractor) (r store.Result) {
	if r, done := unfit(c); done {
		return r
	}
	r = store.Result{CaptureID: c.ID, Hash: c.Hash}
	defer func() {
		if p := recover(); p != nil {
			// The type only: a panic value may quote the text.
			r.Candidates, r.Outcome, r.Error, r.Retry = nil, store.Panic, fmt.Sprintf("%T", p), true
		}
	}()
	found, err := by.ExtractSalient(ctx, turn(c), s.Options)
	if err != nil {
		r.Outcome, r.Error, r.Retry = store.ProviderError, fmt.Sprintf("%T", err), true
		if bad, ok := errors.AsType[*llm.Error](err); ok { // whose text is about the failure alone
			r.Error = bad.Error()
		}
		return r
	}
	n := 0
	for i := range found {
		n += redact.Redactor{}.Candidate(&found[i])
	}
	return staged(r, c, found, n)
}

// staged completes a result with what was found, in which redactions have been
// made. The capture's meta goes along with it and may hold secrets of its own.
func staged(r store.Result, c store.Capture, found []extract.Candidate, redactions int) store.Result {
	meta := c.Meta
	if len(found) > 0 {
		var n int
		meta, n = redactMeta(meta)
		redactions += n
	}
	r.Redactions = int16(min(redactions, math.MaxInt16))
	var err error
	if r.Candidates, err = candidates(found, meta); err != nil {
		r.Outcome, r.Error = store.DataError, "meta is not a JSON object"
		return r
	}
	if r.Outcome = store.Staged; len(r.Candidates) == 0 {
		r.Outcome = store.Empty
	}
	return r
}

// redactMeta takes secrets out of an object. Most hold none, which shows without
// decoding them.
func redactMeta(meta []byte) ([]byte, int) {
	var v any
	if _, n := (redact.Redactor{}).Text(string(meta)); n == 0 || json.Unmarshal(meta, &v) != nil {
		return meta, 0
	}
	v, n := redact.Redactor{}.Value(v)
	out, err := json.Marshal(cleaned(v))
	if err != nil {
		return meta, 0 // it came out of a decoder: it cannot fail
	}
	return out, n
}

// unfit gives the result of a capture that no extractor is given.
func unfit(c store.Capture) (r store.Result, done bool) {
	r = store.Result{CaptureID: c.ID, Hash: c.Hash}
	switch {
	case c.TooLong:
		r.Outcome, r.Error = store.TooLong, fmt.Sprintf("text of more than %d MiB", maxTextBytes>>20)
	case strings.TrimSpace(c.Text) == "":
		r.Outcome = store.Skipped
	default:
		return r, false
	}
	return r, true
}

// turn is a capture as extractors take it.
func turn(c store.Capture) extract.Turn {
	t := extract.Turn{Text: c.Text, Source: c.Source, Observed: c.Observed}
	if !c.OccurredAt.IsZero() {
		t.Date = c.OccurredAt.Format(time.RFC3339Nano)
	}
	return t
}

// candidates turns what an extractor found into rows that Postgres takes. The
// capture's meta goes along, overlaid by the candidate's own.
func candidates(found []extract.Candidate, meta []byte) ([]store.Candidate, error) {
	var out []store.Candidate
	seen := map[[16]byte]bool{}
	for _, f := range found {
		c := store.Candidate{
			Content: store.Clean(f.Content), Kind: store.Clean(f.Kind), Source: store.Clean(f.Source), Observed: store.Clean(f.Observed),
			Date: store.Clean(f.Date), Evidence: store.Clean(f.Evidence), Meta: meta,
		}
		c.Fingerprint = fingerprint(c.Content)
		if strings.TrimSpace(c.Content) == "" || seen[c.Fingerprint] || math.IsNaN(f.Salience) {
			continue
		}
		seen[c.Fingerprint] = true
		c.Salience = float32(min(1, max(0, f.Salience)))
		for _, t := range f.Tags {
			c.Tags = append(c.Tags, store.Clean(t))
		}
		for _, e := range f.Entities {
			if e = store.Clean(e); e != "" && len(e) <= maxEntityBytes && !slices.Contains(c.Entities, e) {
				c.Entities = append(c.Entities, e)
			}
		}
		if len(f.Meta) > 0 {
			var err error
			if c.Meta, err = overlay(meta, f.Meta); err != nil {
				return nil, err
			}
		}
		out = append(out, c)
		if len(out) == math.MaxInt16/2 { // ord is a smallint, shared by two generations
			break
		}
	}
	return out, nil
}

func overlay(base []byte, over map[string]any) ([]byte, error) {
	merged := map[string]any{}
	if err := json.Unmarshal(base, &merged); err != nil {
		return nil, fmt.Errorf("decoding meta: %w", err)
	}
	maps.Copy(merged, over)
	out, err := json.Marshal(cleaned(merged))
	if err != nil {
		return nil, fmt.Errorf("encoding meta: %w", err)
	}
	return out, nil
}

// cleaned makes every string of a decoded JSON value storable, keys included.
func cleaned(v any) any {
	switch v := v.(type) {
	case string:
		return store.Clean(v)
	case []any:
		for i := range v {
			v[i] = cleaned(v[i])
		}
		return v
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, e := range v {
			m[store.Clean(k)] = cleaned(e)
		}
		return m
	default:
		return v
	}
}

// fingerprint is the first half of the SHA-256 of the content in lower case, with
// runs of anything but letters and digits folded to one space.
func fingerprint(content string) (f [16]byte) {
	var b strings.Builder
	gap := false
	for _, r := range strings.ToLower(content) {
		if !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) {
			gap = b.Len() > 0
			continue
		}
		if gap {
			b.WriteByte(' ')
			gap = false
		}
		b.WriteRune(r)
	}
	sum := sha256.Sum256([]byte(b.String()))
	return [16]byte(sum[:16])
}
