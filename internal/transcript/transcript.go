// Package transcript reads conversation exports and yields captures.
//
// An input is a file, a directory or standard input, plain or compressed. What it
// holds is decided by its content, never by its name. Reading streams: memory is
// bounded by the largest single record, plus about 50 bytes for each capture to
// recognise duplicates. What has to be known further before any of it counts is held:
// 16 MiB of turns of Codex and of Gemini CLI, and plain text.
package transcript

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// Values of Turn.Role.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
	// RoleOther is a named participant of a conversation without fixed roles.
	RoleOther = "other"
	// RoleTurn is a free-form turn that is no part of a dialogue.
	RoleTurn = "turn"
)

// Turn is one message-level record. Its strings are clean in the sense of [Clean].
type Turn struct {
	// ExternalID is "<format>:<id>", at most 512 bytes.
	ExternalID string `json:"external_id"`
	// Role is RoleUser, RoleAssistant, RoleOther or RoleTurn.
	Role string `json:"role"`
	// Speaker is the participant's name where Role is RoleOther, else empty.
	Speaker string `json:"speaker,omitempty"`
	Text    string `json:"text"`
	// Date is in UTC with microseconds; zero means unknown, never now.
	Date time.Time `json:"-"`
}

// MarshalJSON writes an unknown date as null.
func (t Turn) MarshalJSON() ([]byte, error) {
	type fields Turn
	return json.Marshal(struct {
		fields

		Date *time.Time `json:"date"`
	}{fields(t), known(t.Date)})
}

// Capture is one row for intake: one exchange (the prompts and the answer to them)
// or one free-form turn. Its strings and Meta are clean in the sense of [Clean].
type Capture struct {
	// ExternalID is "<format>:<id>", at most 512 bytes: the identity of the
	// capture together with Source, the same on every import.
	ExternalID string `json:"external_id"`
	// Source is the turn's own source, else the name of the format. Never empty.
	Source   string `json:"source"`
	Observed string `json:"observed"`
	// Date is the first turn's, in UTC with microseconds; zero means unknown,
	// never now.
	Date time.Time `json:"-"`
	// Text is the exchange in transcript form ("User: …", a blank line,
	// "Assistant: …"), or the text of a free-form turn as it is. Never blank.
	Text string `json:"text"`
	// Session is the conversation's id, or where it has none "L" and its line.
	Session string `json:"session,omitempty"`
	// Placed says that Session is only such a place in the file.
	Placed  bool     `json:"-"`
	TurnIDs []string `json:"turn_ids"`
	Turns   []Turn   `json:"turns"`
	// Complete is false for an exchange without an answer so far.
	Complete bool `json:"complete"`
	// Grows marks a capture of which files hold copies that end earlier: a live
	// session, a resumed one and its origin. Where one Text begins with the other,
	// the longer is to be kept, whichever comes last.
	Grows bool `json:"-"`
	// Meta holds strings, bools, nil, float64, slices and maps of them. Numbers
	// that a float64 would change are strings.
	Meta map[string]any `json:"meta,omitempty"`
	// File and Line (from 1) say where the capture begins.
	File string `json:"-"`
	Line int    `json:"-"`
}

// MarshalJSON writes an unknown date as null, and leaves out File and Line.
func (c Capture) MarshalJSON() ([]byte, error) {
	type fields Capture
	return json.Marshal(struct {
		fields

		Date *time.Time `json:"date"`
	}{fields(c), known(c.Date)})
}

func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Problem is one thing that could not be read. It never holds text of a capture.
type Problem struct {
	// File is the path as given or found, "-" for standard input; an entry of an
	// archive is "<archive>/<entry>".
	File string `json:"file"`
	// Code names the kind of problem, such as "bad_json" or "unsupported_format".
	Code string `json:"code"`
	// Line is where it begins, from 1; 0 where the whole file is meant.
	Line int `json:"line,omitempty"`
	// Detail is a sentence for people: what is wrong and what to do.
	Detail string `json:"detail,omitempty"`
}

// File is what became of one file.
type File struct {
	Path string `json:"path"`
	// Format is the format it was read as; empty if it was not read.
	Format string `json:"format,omitempty"`
	// Captures and Turns count what was yielded of it.
	Captures int `json:"captures"`
	Turns    int `json:"turns"`
	// Reason is the code of why the file was not imported, or not to its end;
	// empty if it was.
	Reason string `json:"reason,omitempty"`
}

// Summary is what became of an import.
type Summary struct {
	// Files are all files looked at, in the order they were read.
	Files []File `json:"files"`
	// Captures and Turns count what there is to store: what was yielded, without
	// captures that another one of the same id replaced.
	Captures int `json:"captures"`
	Turns    int `json:"turns"`
	// Skips counts records and files that gave nothing and are no problem, by
	// reason: "duplicate" are turns of a capture that an earlier one holds,
	// "replaced" those of one that came again with more or other content.
	Skips map[string]int `json:"skips"`
	// Warnings are bad records and, inside a directory, files that are no
	// conversation. Only the first 10,000 are listed.
	Warnings []Problem `json:"warnings"`
	// Unlisted counts the warnings after those.
	Unlisted int `json:"unlisted_warnings,omitempty"`
	// Errors are inputs that could not be read, or not to their end.
	Errors []Problem `json:"errors"`
}

func newSummary() Summary {
	return Summary{Files: []File{}, Skips: map[string]int{}, Warnings: []Problem{}, Errors: []Problem{}}
}

// maxWarnings bounds what a large file of bad records can hold in memory.
const maxWarnings = 10_000

// Exit is the exit status of the import: 0 without errors, 3 if there are errors
// beside at least one capture, else 1. Captures that are stored already count.
func (s *Summary) Exit() int {
	switch {
	case len(s.Errors) == 0:
		return 0
	case s.Captures > 0:
		return 3
	default:
		return 1
	}
}

// Options are the settings of [Read]. The zero value is ready to use.
type Options struct {
	// Format is one of [Formats] and forces it on every file. Default: detected
	// by content, file by file.
	Format string
	// Stdin is what the path "-" reads. Default os.Stdin.
	Stdin io.Reader
	// Attachments includes the text of documents that are attached to prompts, where
	// the export has it. Default: left out, as it is not what the user says.
	Attachments bool
	// Zone is that of dates in plain text that have none. Default UTC.
	Zone *time.Location
	// MaxText is the longest text of a capture in bytes; longer ones are dropped
	// with a warning. Default 8 MiB, what Postgres holds and indexes in comfort.
	MaxText int
	// MaxRecord is the longest line or JSON value in bytes; longer ones are
	// dropped with a warning. Default 32 MiB: 8 MiB of text in Cyrillic, each
	// letter escaped as \u04XX, and room for the rest.
	MaxRecord int
	// MaxUnpacked bounds what one compressed file may expand to, in bytes.
	// Default 32 GiB.
	MaxUnpacked int64
	// Progress is called while reading with the bytes read and their total, both
	// as stored (compressed); total is 0 when unknown. Default: not called.
	Progress func(read, total int64)
	// Leave is asked about every regular file before it is opened; those for
	// which it returns true are passed over in silence, for whoever reads the
	// same paths again and again. Default: none.
	Leave func(path string, size int64, modified time.Time) bool
}

func (o Options) withDefaults() Options {
	if o.Stdin == nil {
		o.Stdin = os.Stdin
	}
	if o.MaxText == 0 {
		o.MaxText = 8 << 20
	}
	if o.MaxRecord == 0 {
		o.MaxRecord = 32 << 20
	}
	if o.MaxUnpacked == 0 {
		o.MaxUnpacked = 32 << 30
	}
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	if o.Progress == nil {
		o.Progress = func(int64, int64) {}
	}
	return o
}

// Formats are the names of the formats that can be read, in order of detection.
func Formats() []string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.name
	}
	return names
}

// Read yields the captures of paths in order. A path is a file, a directory (read
// recursively and sorted, without hidden files and symbolic links) or "-".
//
// A capture equal to an earlier one of this call is not yielded again. One with an
// earlier one's Source and ExternalID and other content is yielded: the last one
// wins, and who stores them makes it so. Where captures grow, only a copy that goes
// on longer is yielded; one that ends earlier is a duplicate, and one with another
// text is left out with a warning, so that reading the same again ends the same.
//
// What cannot be read is in the Summary and stops nothing else. The error is
// yield's, the context's, or about Options; the Summary then tells how far it came.
func Read(ctx context.Context, paths []string, o Options, yield func(Capture) error) (Summary, error) {
	im := &importer{
		ctx:   ctx,
		o:     o.withDefaults(),
		yield: yield,
		seed:  maphash.MakeSeed(),
		seen:  map[uint64]digest{},
		sum:   newSummary(),
	}
	if o.Format != "" && !slices.Contains(Formats(), o.Format) {
		return im.sum, fmt.Errorf("unknown format %q: use one of %s", o.Format, strings.Join(Formats(), ", "))
	}
	trees := make([]tree, len(paths))
	for i, p := range paths {
		trees[i] = walk(p)
		if o.Leave != nil {
			trees[i].leave(o.Leave)
		}
		for _, in := range trees[i].inputs {
			im.total += in.size
		}
	}
	for _, t := range trees {
		im.readTree(t)
	}
	im.settle()
	return im.sum, im.err
}

// importer is the state of one Read.
type importer struct {
	ctx         context.Context //nolint:containedctx // the importer lives as long as Read
	o           Options
	yield       func(Capture) error
	sum         Summary
	read, total int64
	// seen maps the hash of a capture's identity to what was yielded last.
	seed maphash.Seed
	seen map[uint64]digest
	// opened are the inputs read so far, and doubts what settle has to decide.
	opened []input
	doubts []doubt
	// compare takes the captures of an importer that only looks at them.
	compare func(key uint64, c *Capture)
	// err is the first error of yield or ctx; once set, nothing is read or
	// yielded any more.
	err error
}

func (im *importer) warn(p Problem) {
	if len(im.sum.Warnings) == maxWarnings {
		im.sum.Unlisted++
		return
	}
	im.sum.Warnings = append(im.sum.Warnings, p)
}

func (im *importer) fail(p Problem) { im.sum.Errors = append(im.sum.Errors, p) }
