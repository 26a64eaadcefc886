package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io"
	"os"

	"github.com/justfortytwo/backfill/internal/scratch"
	"github.com/justfortytwo/backfill/internal/transcript"
)

// importDry prints what importStore would store.
func (a *app) importDry(ctx context.Context, paths []string, o transcript.Options) error {
	d, err := newDraft()
	if err != nil {
		return err
	}
	defer d.close()
	enc := json.NewEncoder(d)
	enc.SetEscapeHTML(false)
	sum, err := transcript.Read(ctx, paths, o, func(c transcript.Capture) error {
		if a.json {
			err = enc.Encode(c)
		} else {
			_, err = fmt.Fprintf(d, "%s  %s  %s\n", oneLine(c.ExternalID, 512), oneLine(c.Source, 100), oneLine(c.Text, 100))
		}
		d.end(c.Source, c.ExternalID)
		return err
	})
	if err != nil {
		return err
	}
	if err := d.print(a.stdout); err != nil {
		return err
	}
	if a.json {
		if err := a.writeJSON(map[string]any{"summary": sum}); err != nil {
			return err
		}
	}
	return a.importEnd(sum, fmt.Sprintf("would import %s in %s", plural(sum.Captures, "capture"), plural(len(sum.Files), "file")))
}

// draft holds what is to be printed until it is clear what of it counts: any capture
// may be replaced by a later one. It is in a temporary file.
type draft struct {
	*bufio.Writer

	file *os.File
	// close removes the file.
	close func()
	// entries are in the order they were written, and last is the index of the last
	// one by the hash of its id.
	entries []entry
	last    map[uint64]int
	seed    maphash.Seed
	size    int
}

type entry struct {
	size     int
	replaced bool
}

func newDraft() (*draft, error) {
	file, remove, err := scratch.New("backfill-*.draft")
	if err != nil {
		return nil, fmt.Errorf("a temporary file for the dry run: %w", err)
	}
	return &draft{Writer: bufio.NewWriterSize(file, 1<<16), file: file, close: remove, last: map[uint64]int{}, seed: maphash.MakeSeed()}, nil
}

// Write implements io.Writer.
func (d *draft) Write(p []byte) (int, error) {
	n, err := d.Writer.Write(p)
	d.size += n
	return n, err
}

// end ends the entry of the capture with that id.
func (d *draft) end(source, id string) {
	key := maphash.Comparable(d.seed, [...]string{source, id})
	if i, ok := d.last[key]; ok {
		d.entries[i].replaced = true
	}
	d.last[key] = len(d.entries)
	d.entries = append(d.entries, entry{size: d.size})
	d.size = 0
}

// print writes what was not replaced.
func (d *draft) print(w io.Writer) error {
	if err := d.Flush(); err != nil {
		return fmt.Errorf("a temporary file for the dry run: %w", err)
	}
	if _, err := d.file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("a temporary file for the dry run: %w", err)
	}
	r := bufio.NewReaderSize(d.file, 1<<16)
	out := bufio.NewWriterSize(w, 1<<16)
	for _, e := range d.entries {
		to := io.Writer(out)
		if e.replaced {
			to = io.Discard
		}
		if _, err := io.CopyN(to, r, int64(e.size)); err != nil {
			return fmt.Errorf("writing the output: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}
