package transcript

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
)

// record is one line, or one JSON value of a document.
type record struct {
	// raw is valid until the next record is read. It is nil if long.
	raw []byte
	// line is where the record begins, from 1.
	line int
	// cut marks a last line without a line end, which may be half written.
	cut bool
	// long marks a record over the cap, or over maxElements.
	long bool
	// dropped counts the long records of the source so far.
	dropped int
}

// source reads records up to io.EOF. The record that comes with an error tells
// only its line.
type source interface {
	next() (record, error)
}

var (
	errCut      = errors.New("the JSON document ends in the middle")
	errTrailing = errors.New("something follows the end of the JSON array")
)

// newSource chooses how to cut r into records by the shape of its head: the
// elements of an array, JSON values printed over several lines, else lines. Text
// is lines, too; "[2026-01-31 10:00] Ann: hi" is text.
func newSource(r *bufio.Reader, maxRecord int) source {
	return &bounded{source: cut(r, maxRecord)}
}

// cut is newSource without the bound of elements.
func cut(r *bufio.Reader, maxRecord int) source {
	head, _ := r.Peek(r.Size())
	body := bytes.TrimLeft(head, " \t\r\n")
	if len(body) > 1 {
		next := bytes.TrimLeft(body[1:], " \t\r\n")
		oneLine, rest := body, []byte(nil)
		if i := bytes.IndexByte(body, '\n'); i >= 0 {
			oneLine, rest = body[:i], bytes.TrimLeft(body[i:], " \t\r\n")
		}
		open, quoted := unclosed(oneLine)
		switch body[0] {
		case '[':
			isList := bytes.HasPrefix(next, []byte("null")) || len(next) > 0 && strings.IndexByte("{[]", next[0]) >= 0
			if isList && (open > 0 || len(rest) == 0) {
				return &values{r: r, line: 1, max: maxRecord, array: true}
			}
		case '{':
			// An object that starts where a key should stand means that the line
			// before it is a broken record of its own.
			if open > 0 && !quoted && len(rest) > 0 && (rest[0] != '{' || endsIn(oneLine, ':', '[')) {
				return &values{r: r, line: 1, max: maxRecord}
			}
		}
	}
	return &lines{r: r, max: maxRecord}
}

// maxElements bounds what a record is taken apart into, which is up to a hundred times
// its size where there is little in each element: 500,000 take some 300 MB. Exports
// have 20 to 40 for each message.
const maxElements = 500_000

// bounded makes records of too many elements long, and counts those that are.
type bounded struct {
	source

	dropped int
}

func (b *bounded) next() (record, error) {
	rec, err := b.source.next()
	if crowded(rec.raw) {
		rec.raw, rec.long = nil, true
	}
	if rec.long {
		b.dropped++
	}
	rec.dropped = b.dropped
	return rec, err
}

// crowded reports whether raw is JSON, well formed or not, with more than maxElements
// members of objects and elements of arrays. One that is empty counts as one.
func crowded(raw []byte) bool {
	if len(raw) <= maxElements {
		return false
	}
	if first := bytes.TrimLeft(raw, " \t\r"); !bytes.HasPrefix(first, []byte("{")) && !bytes.HasPrefix(first, []byte("[")) {
		return false
	}
	n := 0
	for i := 0; i < len(raw) && n <= maxElements; i++ {
		switch raw[i] {
		case '{', '[', ',':
			n++
		case '"':
			for i++; i < len(raw) && raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
		}
	}
	return n > maxElements
}

func endsIn(b []byte, chars ...byte) bool {
	b = bytes.TrimRight(b, " \t\r\n")
	return len(b) > 0 && bytes.IndexByte(chars, b[len(b)-1]) >= 0
}

// unclosed counts the brackets left open at the end of b and reports whether it
// ends inside a string.
func unclosed(b []byte) (depth int, quoted bool) {
	var s scanner
	for _, c := range b {
		s.step(c)
	}
	return s.depth, s.quoted
}

// scanner follows the nesting of JSON, byte by byte, without checking its grammar.
type scanner struct {
	depth           int
	quoted, escaped bool
}

func (s *scanner) step(c byte) {
	if s.quoted {
		switch {
		case s.escaped:
			s.escaped = false
		case c == '\\':
			s.escaped = true
		case c == '"':
			s.quoted = false
		}
		return
	}
	switch c {
	case '"':
		s.quoted = true
	case '{', '[':
		s.depth++
	case '}', ']':
		s.depth--
	}
}

// lines reads lines of any length. Blank lines are records, too.
type lines struct {
	r    *bufio.Reader
	max  int
	line int
	buf  []byte
}

func (l *lines) next() (record, error) {
	l.line++
	rec := record{line: l.line}
	l.buf = reuse(l.buf)
	for {
		part, err := l.r.ReadSlice('\n')
		switch {
		case rec.long:
		case len(l.buf)+len(part) > l.max:
			rec.long, l.buf = true, nil
		case err == nil && len(l.buf) == 0:
			rec.raw = part
		default:
			l.buf = append(l.buf, part...)
			rec.raw = l.buf
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if errors.Is(err, io.EOF) && (len(rec.raw) > 0 || rec.long) {
			rec.cut, err = true, nil
		}
		if rec.long {
			rec.raw = nil
		}
		rec.raw = bytes.TrimRight(rec.raw, "\r\n")
		return rec, err
	}
}

// reuse empties buf, or lets it go if one large record made it large.
func reuse(buf []byte) []byte {
	if cap(buf) > 1<<20 {
		return nil
	}
	return buf[:0]
}

// values reads the elements of arrays, or JSON values one after the other. A value
// that is not well formed but balanced costs only itself.
type values struct {
	r    *bufio.Reader
	max  int
	line int
	buf  []byte
	// array says that the values stand in an array, and open that it has begun.
	array, open bool
}

func (v *values) next() (record, error) {
	for {
		c, err := v.r.ReadByte()
		if errors.Is(err, io.EOF) && v.open {
			err = errCut
		}
		if err != nil {
			return record{line: v.line}, err
		}
		switch {
		case c == '\n':
			v.line++
		case c == ' ' || c == '\t' || c == '\r' || c == ',' && (v.open || !v.array):
		case v.array && !v.open && c == '[':
			v.open = true
		case v.open && c == ']':
			v.open = false
		case v.array && !v.open:
			return record{line: v.line}, errTrailing
		default:
			if err := v.r.UnreadByte(); err != nil {
				return record{line: v.line}, err
			}
			return v.value()
		}
	}
}

func (v *values) value() (record, error) {
	rec := record{line: v.line}
	v.buf = reuse(v.buf)
	var s scanner
	for size := 0; ; {
		if _, err := v.r.Peek(1); err != nil {
			if errors.Is(err, io.EOF) && (s.depth > 0 || s.quoted) {
				err = errCut
			} else if errors.Is(err, io.EOF) {
				err = nil
			}
			rec.raw = v.buf
			return rec, err
		}
		chunk, _ := v.r.Peek(v.r.Buffered())
		n, done := 0, false
		for n < len(chunk) && !done {
			c := chunk[n]
			nested := s.depth > 0 || s.quoted
			if !nested && size+n > 0 && strings.IndexByte(" \t\r\n,]}", c) >= 0 {
				done = true // a number or word ends before its delimiter
				break
			}
			if c == '\n' {
				v.line++
			}
			s.step(c)
			n++
			done = s.depth < 0 || nested && s.depth == 0 && !s.quoted
		}
		size += n
		if size > v.max {
			rec.long, v.buf = true, nil
		} else {
			v.buf = append(v.buf, chunk[:n]...)
		}
		if _, err := v.r.Discard(n); err != nil {
			return rec, err
		}
		if done {
			if !rec.long {
				rec.raw = v.buf
			}
			return rec, nil
		}
	}
}
