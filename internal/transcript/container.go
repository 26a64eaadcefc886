package transcript

import (
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/justfortytwo/backfill/internal/scratch"
)

// headSize is how much of a file is seen to tell what it is, and the read buffer.
const headSize = 256 << 10

// maxRatio is what a compressed file may expand to, as a multiple. Exports expand
// 3 to 20 times, and one sentence over and over up to 350; deflate ends at 1,030.
const maxRatio = 400

// maxEntries bounds an archive: the directory of one is read as a whole. ChatGPT
// adds a file for each picture.
const maxEntries = 100_000

var (
	errTooLarge = errors.New("expands beyond the limit for compressed files")
	errBomb     = fmt.Errorf("expands to more than %d times its size, as made to do harm: unpack it and import the result", maxRatio)
	errEntries  = fmt.Errorf("an archive of more than %d files: unpack it and import the result", maxEntries)
	errUTF32    = errors.New("UTF-32 text: save it as UTF-8")
)

// meter counts what is read from the disk or standard input, reports it, and ends
// the reading when the context does.
type meter struct {
	im *importer
	r  io.Reader
	at io.ReaderAt
}

func (m meter) Read(p []byte) (int, error) {
	if err := m.im.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := m.r.Read(p)
	m.count(n)
	return n, err
}

func (m meter) ReadAt(p []byte, off int64) (int, error) {
	if err := m.im.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := m.at.ReadAt(p, off)
	m.count(n)
	return n, err
}

func (m meter) count(n int) {
	m.im.read += int64(n)
	m.im.o.Progress(m.im.read, m.im.total)
}

// unpacking limits what one compressed file expands to, by what was read of it.
type unpacking struct {
	im            *importer
	began, result int64
	// entry and part are began and result of the entry in hand.
	entry, part int64
}

func (im *importer) unpacking() *unpacking { return &unpacking{im: im, began: im.read} }

// limit counts what is read from r, the next entry.
func (u *unpacking) limit(r io.Reader) io.Reader {
	u.entry, u.part = u.im.read, 0
	return limited{u, r}
}

// bomb reports whether too much came out of too little. An entry that is one by
// itself is no reason to refuse those behind it.
func (u *unpacking) bomb() bool {
	if u.result <= int64(u.im.o.MaxRecord) || u.result <= maxRatio*(u.im.read-u.began) {
		return false
	}
	if read := u.im.read - u.entry; u.part > maxRatio*read {
		u.result -= u.part
		u.began += read
	}
	return true
}

type limited struct {
	*unpacking

	r io.Reader
}

func (l limited) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	l.result += int64(n)
	l.part += int64(n)
	switch o := &l.im.o; {
	case l.result > o.MaxUnpacked:
		return max(0, n-int(l.result-o.MaxUnpacked)), errTooLarge
	case l.bomb():
		return 0, errBomb
	}
	return n, err
}

// readInput opens what in names, unpacks it and reads what it holds.
func (im *importer) readInput(in input) {
	if in.leave != "" {
		im.leave(in)
		return
	}
	im.opened = append(im.opened, in)
	f := &file{im: im, path: in.path, named: in.named}
	r := im.o.Stdin
	if in.path != stdinPath {
		osFile, err := os.Open(in.path)
		if err != nil {
			f.failRead(err, 0)
			f.close()
			return
		}
		defer osFile.Close()
		r = osFile
	}
	buf := bufio.NewReaderSize(meter{im: im, r: r}, headSize)
	magic, _ := buf.Peek(4)
	switch {
	case isGzip(magic):
		gz, err := gzip.NewReader(buf)
		if err != nil {
			f.failRead(err, 0)
			break
		}
		f.read(im.unpacking().limit(gz))
	case isZip(magic):
		im.readZip(f, r, buf)
		return
	default:
		f.readText(buf)
	}
	f.close()
}

func isGzip(magic []byte) bool { return bytes.HasPrefix(magic, []byte("\x1f\x8b")) }

func isZip(magic []byte) bool {
	return bytes.HasPrefix(magic, []byte("PK\x03\x04")) || bytes.HasPrefix(magic, []byte("PK\x05\x06"))
}

// readZip reads the entries of a zip archive like the files of a directory, except
// that an entry that is no conversation is listed and no warning: exports come with
// many of those. Where there are conversations*.json, only they are read.
func (im *importer) readZip(f *file, r io.Reader, buf *bufio.Reader) {
	first, errs := len(im.sum.Files), len(im.sum.Errors)
	archive, done, err := im.openZip(r, buf)
	if err != nil {
		f.failRead(err, 0)
		f.close()
		return
	}
	defer done()
	export := func(e *zip.File) bool {
		ok, _ := path.Match("conversations*.json", path.Base(e.Name))
		return ok && !inMacMetadata(e.Name)
	}
	only := slices.ContainsFunc(archive.File, export)
	slices.SortStableFunc(archive.File, func(a, b *zip.File) int { return cmp.Compare(a.Name, b.Name) })
	u, detail := im.unpacking(), ""
	for _, e := range archive.File {
		name := f.path + "/" + e.Name
		switch {
		case im.err != nil:
			return
		case e.FileInfo().IsDir():
		case !within(e.Name):
			im.fail(Problem{File: name, Code: "unsafe_name", Detail: "the archive entry's name leads out of the archive"})
			im.list(name, "unsafe_name")
		case hidden(e.Name) || inMacMetadata(e.Name):
			im.list(name, "hidden_file")
		case only && !export(e):
			im.list(name, "not_conversations")
		default:
			if d := im.readEntry(name, e, u); detail == "" && d != "" {
				detail = ": " + name + ": " + d
			}
		}
	}
	if !anyRead(im.sum.Files[first:]) && len(im.sum.Errors) == errs && im.err == nil {
		f.reject("unsupported_format", "no conversation in the archive: "+census(im.sum.Files[first:])+detail)
		f.close()
	}
}

// within reports whether the name of an entry stays in the archive, in the notations
// that archivers use. Other encodings than UTF-8 lead nowhere.
func within(name string) bool {
	name = strings.ReplaceAll(scrub(name), `\`, "/")
	return !slices.Contains(strings.Split(name, "/"), "..") && fs.ValidPath(path.Clean(name)) && !strings.Contains(name, ":/")
}

// inMacMetadata is what macOS adds to archives: a shadow of each file.
func inMacMetadata(name string) bool { return strings.HasPrefix(name, "__MACOSX/") }

// readEntry reads one entry. It returns the way out for one that is known not to be
// read.
func (im *importer) readEntry(name string, e *zip.File, u *unpacking) (detail string) {
	f := &file{im: im, path: name, inArchive: true}
	defer f.close()
	// Go's zip hands out encrypted entries as if they were plain.
	if e.Flags&1 != 0 {
		f.fail("encrypted", 0, "the archive entry is encrypted: unpack it and import the result")
		return ""
	}
	r, err := e.Open()
	if err != nil {
		f.failRead(err, 0)
		return ""
	}
	defer r.Close()
	f.read(u.limit(r))
	return f.detail
}

// openZip opens r as an archive. What is no regular file is spooled to a temporary
// one, since the directory of an archive is at its end; done removes it.
func (im *importer) openZip(r io.Reader, buf *bufio.Reader) (archive *zip.Reader, done func(), err error) {
	done = func() {}
	var at io.ReaderAt
	var size int64
	if f, ok := r.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			at, size = meter{im: im, at: f}, info.Size()
		}
	}
	if at == nil {
		spool, remove, err := scratch.New("backfill-*.zip")
		if err != nil {
			return nil, nil, fmt.Errorf("spool the archive: %w", err)
		}
		done = remove
		if size, err = io.Copy(spool, buf); err != nil {
			done()
			return nil, nil, fmt.Errorf("spool the archive: %w", err)
		}
		at = meter{im: im, at: spool}
	}
	archive, err = zip.NewReader(at, size)
	if err == nil && len(archive.File) > maxEntries {
		err = errEntries
	}
	if err != nil {
		done()
		return nil, nil, err
	}
	return archive, done, nil
}

// decodeText makes r UTF-8 without a byte order mark.
func decodeText(r *bufio.Reader) (*bufio.Reader, error) {
	bom, _ := r.Peek(4)
	var order unicode.Endianness
	switch {
	case bytes.HasPrefix(bom, []byte("\xef\xbb\xbf")):
		_, err := r.Discard(3)
		return r, err
	case bytes.Equal(bom, []byte("\xff\xfe\x00\x00")), bytes.Equal(bom, []byte("\x00\x00\xfe\xff")):
		return nil, errUTF32
	case bytes.HasPrefix(bom, []byte("\xff\xfe")):
		order = unicode.LittleEndian
	case bytes.HasPrefix(bom, []byte("\xfe\xff")):
		order = unicode.BigEndian
	default:
		return r, nil
	}
	decoder := unicode.UTF16(order, unicode.UseBOM).NewDecoder()
	return bufio.NewReaderSize(transform.NewReader(r, decoder), headSize), nil
}

// readProblem names what made a file unreadable.
func readProblem(err error) (code, detail string) {
	var corrupt flate.CorruptInputError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, errCut):
		return "truncated", "the file ends in the middle; what came before is kept"
	case errors.Is(err, errTrailing):
		return "trailing_data", errTrailing.Error()
	case errors.Is(err, errTooLarge), errors.Is(err, errEntries):
		return "too_large", err.Error()
	case errors.Is(err, errBomb):
		return "zip_bomb", err.Error()
	case errors.Is(err, errUTF32):
		return "unsupported_encoding", errUTF32.Error()
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.Is(err, zip.ErrFormat),
		errors.Is(err, zip.ErrChecksum), errors.Is(err, zip.ErrAlgorithm), errors.As(err, &corrupt):
		return "corrupt", err.Error()
	default:
		return "unreadable", err.Error()
	}
}
