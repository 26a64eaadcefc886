package transcript

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// stdinPath is how standard input is named, by the user and in problems.
const stdinPath = "-"

// input is a file to read.
type input struct {
	path string
	// named is a file the user asked for by its own name: that it holds no
	// conversation is then an error.
	named bool
	// size and modified are zero when unknown.
	size     int64
	modified time.Time
	// leave is the code of why it is not read, and err the reason for that.
	leave string
	err   error
}

// again reports whether the file can be read a second time.
func (in input) again() bool { return !in.modified.IsZero() }

// tree is one path of the user and the files it stands for.
type tree struct {
	root   string
	dir    bool
	inputs []input
}

// leave passes over files as [Options].Leave says. A directory of which anything
// was passed over is not called empty.
func (t *tree) leave(leave func(path string, size int64, modified time.Time) bool) {
	all := len(t.inputs)
	t.inputs = slices.DeleteFunc(t.inputs, func(in input) bool {
		return in.leave == "" && in.again() && leave(in.path, in.size, in.modified)
	})
	t.dir = t.dir && len(t.inputs) == all
}

// walk finds the files of root. A path the user named is followed where it is a
// symbolic link; links found below it are not.
func walk(root string) tree {
	t := tree{root: root}
	if root == stdinPath {
		t.inputs = []input{{path: root, named: true}}
		return t
	}
	info, err := os.Stat(root)
	switch {
	case err != nil:
		t.inputs = []input{unreadable(root, err)}
	case info.IsDir():
		t.dir = true
		t.inputs = below(root)
	case info.Mode().IsRegular():
		t.inputs = []input{{path: root, named: true, size: info.Size(), modified: info.ModTime()}}
	default: // such as a pipe
		t.inputs = []input{{path: root, named: true}}
	}
	return t
}

// below is what stands below the directory root, sorted.
func below(root string) (inputs []input) {
	top := root + string(filepath.Separator) // follows a link
	// The callback returns no error but SkipDir, so neither does WalkDir. Names are
	// bytes: fs.WalkDir refuses those that are not UTF-8.
	_ = filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		in := input{path: filepath.Clean(name)}
		switch {
		case err != nil:
			in = unreadable(in.path, err)
		case name == top:
			return nil
		case hidden(filepath.ToSlash(name)):
			in.leave = "hidden_file"
		case d.IsDir():
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			in.leave = "symlink_skipped"
		case !d.Type().IsRegular():
			in.leave = "not_a_file"
		default:
			if info, err := d.Info(); err == nil {
				in.size, in.modified = info.Size(), info.ModTime()
			}
		}
		inputs = append(inputs, in)
		if in.leave != "" && d != nil && d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	return inputs
}

func hidden(name string) bool { return strings.HasPrefix(path.Base(name), ".") }

func unreadable(path string, err error) input {
	if errors.Is(err, fs.ErrNotExist) {
		return input{path: path, leave: "missing", err: errors.New("no such file or directory: check the path")}
	}
	return input{path: path, leave: "unreadable", err: err}
}

// leave reports a file that is not read.
func (im *importer) leave(in input) {
	im.list(in.path, in.leave)
	switch {
	case in.err != nil:
		im.fail(Problem{File: in.path, Code: in.leave, Detail: in.err.Error()})
	case in.leave == "hidden_file":
		im.sum.Skips[in.leave]++
	case in.leave == "symlink_skipped":
		im.warn(Problem{File: in.path, Code: in.leave, Detail: "symbolic links are not followed: name the target itself to import it"})
	default:
		im.warn(Problem{File: in.path, Code: in.leave, Detail: "neither a file nor a directory"})
	}
}

// list adds a file that is not read to the summary.
func (im *importer) list(path, reason string) {
	im.sum.Files = append(im.sum.Files, File{Path: path, Reason: reason})
}

func (im *importer) readTree(t tree) {
	first := len(im.sum.Files)
	for _, in := range t.inputs {
		if im.err != nil {
			return
		}
		im.readInput(in)
		if len(im.doubts) > maxWarnings/2 {
			im.settle()
		}
	}
	if t.dir && im.err == nil && !anyRead(im.sum.Files[first:]) {
		im.fail(Problem{File: t.root, Code: "no_usable_file", Detail: "no conversation in it: " + census(im.sum.Files[first:])})
	}
}

func anyRead(files []File) bool {
	return slices.ContainsFunc(files, func(f File) bool { return f.Format != "" })
}

// census says what was looked at, as in "3 files: 1 empty_file, 2 unsupported_format".
func census(files []File) string {
	reasons := map[string]int{}
	for _, f := range files {
		reasons[f.Reason]++
	}
	var b strings.Builder
	fmt.Fprintf(&b, "looked at %d files", len(files))
	sep := ": "
	for _, r := range slices.Sorted(maps.Keys(reasons)) {
		fmt.Fprintf(&b, "%s%d %s", sep, reasons[r], r)
		sep = ", "
	}
	return b.String()
}
