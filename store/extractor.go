package store

import (
	"context"
	"fmt"
	"strings"
)

// Extractor is a slot that captures are extracted for.
type Extractor struct {
	ID   int16  `json:"-" db:"id"`
	Name string `json:"extractor" db:"name"`
	// Version is the current one; empty while the slot is not in use.
	Version string `json:"version" db:"version"`
	// BatchSize is the number of captures in a batch of a run that sets none.
	BatchSize int `json:"batch_size" db:"batch_size"`
}

// AsksModel reports that extracting takes calls to a model.
func (e Extractor) AsksModel() bool { return e.Name == "llm" }

// UnknownExtractorError says that there is no such slot.
type UnknownExtractorError struct {
	Name  string
	Known []string
}

// Error names the slots that there are.
func (e *UnknownExtractorError) Error() string {
	return fmt.Sprintf("there is no extractor %q: use %s", e.Name, strings.Join(e.Known, " or "))
}

// UnusedExtractorError says that a slot has no version: nothing can be extracted
// for it yet.
type UnusedExtractorError struct{ Name string }

// Error says how to take it into use.
func (e *UnusedExtractorError) Error() string {
	return fmt.Sprintf("the %s extractor has no version yet: configure it, then `backfill migrate up` registers it", e.Name)
}

const selectExtractor = `select id, name, coalesce(version, '') as version, batch_size from backfill.extractor `

// Extractors lists all slots, those without a version as well.
func (s *Store) Extractors(ctx context.Context) ([]Extractor, error) {
	return collect[Extractor](ctx, s, "looking the extractors up", selectExtractor+"order by id")
}

// Extractor looks a slot up by its name. The error is an [*UnknownExtractorError]
// or an [*UnusedExtractorError] where it cannot be used.
func (s *Store) Extractor(ctx context.Context, name string) (Extractor, error) {
	all, err := s.Extractors(ctx)
	if err != nil {
		return Extractor{}, err
	}
	unknown := &UnknownExtractorError{Name: name}
	for _, e := range all {
		switch {
		case e.Name != name:
			unknown.Known = append(unknown.Known, e.Name)
		case e.Version == "":
			return e, &UnusedExtractorError{Name: name}
		default:
			return e, nil
		}
	}
	return Extractor{}, unknown
}

// NightlySlots lists the extractors that the nightly looks after.
func (s *Store) NightlySlots(ctx context.Context) ([]Extractor, error) {
	return collect[Extractor](ctx, s, "listing extractors", selectExtractor+"where active_from is not null and version is not null order by id")
}
