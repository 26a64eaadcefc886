package transcript

import (
	"fmt"
	"hash/maphash"
	"slices"
)

// digest tells one content of a capture from another: the text alone where captures
// grow and where the session is but a place.
type digest struct {
	hash, size uint32
	// turns are the capture's, and file is the index of its input in
	// importer.opened.
	turns, file uint32
}

// equal compares content, wherever it comes from.
func (d digest) equal(other digest) bool { return d.hash == other.hash && d.size == other.size }

// begins reports whether text goes on where the content of d ends.
func (im *importer) begins(text string, d digest) bool {
	return uint64(len(text)) > uint64(d.size) && uint32(maphash.String(im.seed, text[:d.size])) == d.hash
}

func (im *importer) digest(c *Capture) digest {
	d := digest{size: uint32(len(c.Text)), turns: uint32(len(c.Turns)), file: uint32(len(im.opened) - 1)}
	if c.Grows || c.Placed {
		d.hash = uint32(maphash.String(im.seed, c.Text))
		return d
	}
	d.hash = uint32(maphash.Comparable(im.seed, struct {
		text, observed string
		date           int64
	}{c.Text, c.Observed, c.Date.UnixMicro()}))
	return d
}

// emit yields a capture of this file unless an earlier one holds it. Text and the
// ids are clean already.
func (f *file) emit(c Capture) {
	im := f.im
	if im.err != nil {
		return
	}
	c.File = f.path
	c.Observed, c.Session = Clean(c.Observed), Clean(c.Session)
	if c.Source = Clean(c.Source); c.Source == "" {
		c.Source = f.format.name
	}
	c.Grows = f.format.grows && !c.Placed
	key := maphash.Comparable(im.seed, [...]string{c.Source, c.ExternalID})
	if im.compare != nil {
		im.compare(key, &c)
		return
	}
	if isOwn(&c) {
		for range c.Turns {
			f.skip(skipOwn)
		}
		return
	}
	content := im.digest(&c)
	prev, again := im.seen[key]
	if again && !f.supersedes(&c, content, key, prev) {
		f.left++
		return
	}
	im.seen[key] = content
	if err := im.yield(c); err != nil {
		im.err = err
		return
	}
	f.captures++
	f.turns += len(c.Turns)
	im.sum.Turns += len(c.Turns)
	switch {
	case !again:
		im.sum.Captures++
		return
	case content.equal(prev):
		im.sum.Skips[skipDuplicate] += int(prev.turns)
	default:
		im.sum.Skips[skipReplaced] += int(prev.turns)
	}
	im.sum.Turns -= int(prev.turns)
}

// supersedes decides about a capture whose id prev has already.
func (f *file) supersedes(c *Capture, content digest, key uint64, prev digest) bool {
	im := f.im
	if content.equal(prev) && !c.Placed {
		im.sum.Skips[skipDuplicate] += len(c.Turns)
		return false
	}
	if !c.Grows || im.begins(c.Text, prev) {
		return true
	}
	d := doubt{key, content, Problem{File: c.File, Code: skipConflict, Line: c.Line, Detail: fmt.Sprintf(
		"another text, in %s, has this one's id and stays: to have this one, import its file alone", im.opened[prev.file].path)}}
	if content.size > prev.size || len(im.doubts) == maxWarnings {
		im.conflict(d)
	} else {
		im.doubts = append(im.doubts, d)
	}
	return false
}

func (im *importer) conflict(d doubt) {
	im.sum.Skips[skipConflict] += int(d.content.turns)
	im.warn(d.problem)
}

// doubt is a capture that is shorter than another one of its id: a copy of it that
// ends earlier or, if that does not begin with its text, another one.
type doubt struct {
	key     uint64
	content digest
	problem Problem
}

// settle decides doubts by reading again where the longer texts are from, and warns
// of what is no copy. Texts are not kept for that: forks are rare, and exports large.
func (im *importer) settle() {
	if im.err != nil || len(im.doubts) == 0 {
		return
	}
	doubts := map[uint64][]int{}
	var files []uint32
	for i, d := range im.doubts {
		doubts[d.key] = append(doubts[d.key], i)
		files = append(files, im.seen[d.key].file)
	}
	copies := make([]bool, len(im.doubts))
	look := &importer{ctx: im.ctx, o: im.o, seed: im.seed, sum: newSummary()}
	look.o.Progress = func(int64, int64) {}
	look.compare = func(key uint64, c *Capture) {
		for _, i := range doubts[key] {
			copies[i] = copies[i] || look.digest(c).equal(im.seen[key]) && im.begins(c.Text, im.doubts[i].content)
		}
	}
	slices.Sort(files)
	for _, i := range slices.Compact(files) {
		if in := im.opened[i]; in.again() && im.err == nil {
			look.readInput(in)
			im.err = look.err
		}
	}
	for i, d := range im.doubts {
		if copies[i] {
			im.sum.Skips[skipDuplicate] += int(d.content.turns)
		} else {
			im.conflict(d)
		}
	}
	im.doubts = nil
}
