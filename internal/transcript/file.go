package transcript

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"regexp"
	"unicode/utf8"
)

// wayOut ends the message about a file that no format claims.
const wayOut = `not a conversation export this version reads: turn it into JSON lines such as {"text":"…","source":"…","date":"2026-01-31T10:00:00Z"} and import those`

const tooLong = "longer than the cap for one record: dropped"

// file is one export while it is read: what a format takes its records from and
// gives its captures to.
type file struct {
	im   *importer
	path string
	// named and inArchive decide how bad it is that this is no conversation.
	named, inArchive bool
	format           *format
	src              source
	// probed are the records that detection has read, and srcErr what ended them.
	probed []record
	srcErr error

	// captures and turns are what was yielded, left counts captures that were not.
	captures, turns, left int
	// silent says that somebody was there and said nothing, but a command perhaps.
	silent bool
	// whole are the hashes of records that are conversations without an id.
	whole map[uint64]struct{}
	// detail is why it was rejected as part of an archive, where that says more than
	// that it is no conversation.
	detail string
	// reason is the code of why the file was not imported, or not to its end.
	reason string
}

func (f *file) read(r io.Reader) { f.readText(bufio.NewReaderSize(r, headSize)) }

func (f *file) readText(r *bufio.Reader) {
	r, err := decodeText(r)
	if errors.Is(err, errUTF32) {
		f.reject(readProblem(err))
		return
	}
	if err != nil {
		f.failRead(err, 0)
		return
	}
	head, _ := r.Peek(r.Size())
	if isBinary(head) || isZip(head) || isGzip(head) {
		f.reject(binaryDetail(head))
		return
	}
	f.src = newSource(r, f.im.o.MaxRecord)
	if f.im.o.Format == plainText.name {
		f.src = &lines{r: r, max: f.im.o.MaxRecord}
	}
	if !f.detect(beginsObject.Match(head)) {
		return
	}
	f.format.read(f)
	if f.captures+f.left == 0 && f.reason == "" && f.im.err == nil {
		f.reason = "no_turns"
		if !f.silent {
			f.warn(f.reason, 0, "recognised as "+f.format.name+", but it holds no turn")
		}
	}
}

// isBinary tells what is neither text nor JSON with a stray NUL in it.
func isBinary(head []byte) bool {
	body := bytes.TrimLeft(head, " \t\r\n")
	return bytes.IndexByte(body, 0) >= 0 && body[0] != '{' && body[0] != '['
}

// close lists the file in the summary.
func (f *file) close() {
	r := File{Path: f.path, Captures: f.captures, Turns: f.turns, Reason: f.reason}
	if f.format != nil {
		r.Format = f.format.name
	}
	f.im.sum.Files = append(f.im.sum.Files, r)
}

// Detection reads at most this much. Blank lines are no records, and cost what it
// takes to remember them.
const (
	probeRecords = 500
	probeBytes   = 1 << 20
	probeLine    = 64 // bytes
)

// beginsObject tells JSON objects from other things in brackets, such as TOML.
var beginsObject = regexp.MustCompile(`^\s*(?:\[\s*)?\{\s*"`)

// detect finds the format by the first records and keeps them for f.records. A
// claim counts once at least half of the records are JSON, so that prose with a
// sample in it is not taken for an export. objects says that the file begins as one
// of JSON objects: if it ends in the first, it is cut.
func (f *file) detect(objects bool) bool {
	var good, bad, seen, size int
	var cut, long bool
	detail := wayOut
	for seen < probeRecords && size < probeBytes && f.srcErr == nil {
		if n := len(f.probed); n > 0 {
			f.probed[n-1].raw = bytes.Clone(f.probed[n-1].raw) // outlives the next read
		}
		var rec record
		rec, f.srcErr = f.src.next()
		if f.srcErr != nil {
			f.probed = append(f.probed, record{line: rec.line})
			break
		}
		f.probed = append(f.probed, rec)
		size += len(rec.raw) + probeLine
		long = long || rec.long
		body := bytes.TrimSpace(rec.raw)
		if len(body) == 0 {
			continue
		}
		seen++
		if !valid(body) {
			bad++
			cut = rec.cut && objects
			continue
		}
		good++
		if f.format == nil {
			var foreign string
			if f.format, foreign = f.im.match(body); foreign != "" {
				detail = foreign
			}
		}
		if f.format != nil && good >= bad {
			return true
		}
	}
	f.format = nil
	if table := foreignText(f.probed); good == 0 && table != "" && f.im.o.Format != plainText.name {
		detail = table
	} else if good == 0 || bad > good {
		if f.format = f.im.matchText(f.probed); f.format != nil {
			return true
		}
	}
	switch {
	case errors.Is(f.srcErr, errCut) && good == 0 && !objects:
		f.reject("unsupported_format", detail)
	case f.srcErr != nil && !errors.Is(f.srcErr, io.EOF) && !errors.Is(f.srcErr, errTrailing):
		f.failRead(f.srcErr, f.probed[len(f.probed)-1].line)
	case good == 0 && bad == 0 && long:
		f.fail("record_too_long", 0, tooLong)
	case good == 0 && bad == 0:
		f.reject("empty_file", "holds no record")
	case good == 0 && bad == 1 && cut && f.named:
		f.failRead(errCut, 1)
	case good == 0 && bad == 1 && cut: // a live session that has just begun
		f.reason = "truncated_last_line"
		f.warn(f.reason, 1, cutLine)
	default:
		f.reject("unsupported_format", detail)
	}
	return false
}

// match finds the format of a record, or the way out for one of a format that is
// known but not read. A forced format claims what it could hold.
func (im *importer) match(v value) (*format, string) {
	keys, list := membersOf(v)
	if keys == nil {
		return nil, ""
	}
	for i := range formats {
		f := &formats[i]
		if f.match == nil || list && !f.lists {
			continue
		}
		if im.o.Format == f.name || im.o.Format == "" && f.match(keys) {
			return f, ""
		}
	}
	if list {
		return nil, ""
	}
	return nil, foreignTo(keys)
}

// records are the records of the file, without blank lines and those over the cap.
func (f *file) records(yield func(record) bool) {
	for rec := range f.lines {
		if len(bytes.TrimSpace(rec.raw)) > 0 && !yield(rec) {
			return
		}
	}
}

// lines are the records of the file with blank ones, without those over the cap.
func (f *file) lines(yield func(record) bool) {
	for {
		rec, err := f.next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				f.failRead(err, rec.line)
			}
			return
		}
		if rec.long {
			f.warn("record_too_long", rec.line, tooLong)
			continue
		}
		if !yield(rec) || f.im.err != nil {
			return
		}
	}
}

func (f *file) next() (rec record, err error) {
	switch {
	case len(f.probed) > 0:
		rec = f.probed[0]
		f.probed[0] = record{} // lets a large one go
		f.probed = f.probed[1:]
		if len(f.probed) == 0 {
			err = f.srcErr
		}
	case f.srcErr != nil:
		err = io.EOF // the error itself is told once
	default:
		rec, err = f.src.next()
		f.srcErr = err
	}
	return rec, err
}

// object is the record as a JSON object. It reports false for what is none, and
// names what is no JSON.
func (f *file) object(rec record) (value, bool) {
	v, ok := f.value(rec)
	if ok && v.kind() != '{' {
		f.skip(skipNonObject)
		return nil, false
	}
	return v, ok
}

// value is the record as JSON of any kind, valid as long as the record is.
func (f *file) value(rec record) (value, bool) {
	raw := bytes.TrimSpace(rec.raw)
	if valid(raw) {
		return value(raw), f.decoded(rec, nil)
	}
	return nil, f.decoded(rec, errors.New("not valid JSON"))
}

// decoded names what is wrong with a record whose decoding ended with err.
func (f *file) decoded(rec record, err error) bool {
	switch {
	case err == nil:
		if !utf8.Valid(rec.raw) {
			f.warn("invalid_utf8", rec.line, "bytes that are not UTF-8 were replaced by U+FFFD")
		}
		return true
	case rec.cut:
		f.warn("truncated_last_line", rec.line, cutLine)
	default:
		f.warn("bad_json", rec.line, "not valid JSON")
	}
	return false
}

const cutLine = "the last line is cut, perhaps still being written: import the file again later"

// warn names something that is not as it should be and goes on.
func (f *file) warn(code string, line int, detail string) {
	f.im.warn(Problem{File: f.path, Code: code, Line: line, Detail: detail})
}

// skip counts a record that gives no turn and is no problem.
func (f *file) skip(reason string) {
	f.im.sum.Skips[reason]++
	switch reason {
	case skipCommand, skipInterrupt, skipSummary, skipSynthetic, skipMeta, skipInjected, skipOwn:
		f.silent = true
	}
}

// leaveSubagent gives up a file that is the log of a subagent: its prompts are not
// the user's. What is left of its records is counted.
func (f *file) leaveSubagent() {
	for range f.records {
		f.skip(skipSubagent)
	}
	if f.reason == "" {
		f.reason = skipSubagent
		if f.named {
			f.warn(skipSubagent, 0, "the log of a subagent, whose prompts are not the user's: left out")
		}
	}
}

// fail names what the rest of the file is lost to.
func (f *file) fail(code string, line int, detail string) {
	f.reason = code
	f.im.fail(Problem{File: f.path, Code: code, Line: line, Detail: detail})
}

// failRead is fail for an error of the source. The context's error ends the import.
func (f *file) failRead(err error, line int) {
	if ctxErr := f.im.ctx.Err(); ctxErr != nil {
		f.im.err = ctxErr
		return
	}
	code, detail := readProblem(err)
	f.fail(code, line, detail)
}

// reject leaves out a file that is no conversation: an error if the user named it,
// a warning if it was found, and no problem if it is empty or part of an archive.
func (f *file) reject(code, detail string) {
	switch {
	case f.named:
		f.fail(code, 0, detail)
	case f.inArchive:
		if code != "empty_file" && detail != wayOut && detail != wayOutText {
			f.detail = detail
		}
	case code == "empty_file":
		f.skip(code)
	default:
		f.warn(code, 0, detail)
	}
	f.reason = code
}
