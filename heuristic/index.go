package heuristic

import "bytes"

// index gathers the names of a text. A name that opens a sentence and has no
// evidence of its own waits for its word to be seen capitalised inside one.
type index struct {
	names   []mention
	keys    []byte // of the names, one after the other
	inside  [insideSize]uint32
	filled  int
	sure    int
	waiting int
}

// mention is a name found: keys[lo:hi].
type mention struct {
	lo, hi int
	first  uint32 // hash of its first word
	full   bool   // a name and a surname, of which the first may stand alone later
	sure   bool
}

const (
	insideSize = 256 // slots for words seen capitalised inside a sentence
	maxWaiting = 16  // names that wait for evidence at a time
)

func (x *index) reset() {
	x.names, x.keys = x.names[:0], x.keys[:0]
	if x.filled > 0 {
		clear(x.inside[:])
	}
	x.filled, x.sure, x.waiting = 0, 0, 0
}

// see notes a word capitalised inside a sentence, and trusts the names that
// waited for it.
func (x *index) see(h uint32) {
	if x.waiting > 0 {
		for i := range x.names {
			if m := &x.names[i]; !m.sure && m.first == h {
				m.sure = true
				x.sure++
				x.waiting--
			}
		}
	}
	if x.filled == insideSize/2 || h == 0 {
		return
	}
	i := mix(h) % insideSize
	for ; x.inside[i] != 0; i = (i + 1) % insideSize {
		if x.inside[i] == h {
			return
		}
	}
	x.inside[i] = h
	x.filled++
}

func (x *index) seen(h uint32) bool {
	for i := mix(h) % insideSize; x.inside[i] != 0; i = (i + 1) % insideSize {
		if x.inside[i] == h {
			return true
		}
	}
	return false
}

// add takes the key at the end of keys as a name, unless it is known already, is
// the first word of a name of two words, or there is no room left for it.
func (x *index) add(lo int, first uint32, words int, full, sure bool) {
	key := x.keys[lo:]
	for i := range x.names {
		m := &x.names[i]
		switch {
		case words == 1 && m.full && m.first == first:
		case !bytes.Equal(x.keys[m.lo:m.hi], key):
			continue
		case sure && !m.sure:
			m.sure = true
			x.sure++
			x.waiting--
		}
		x.keys = x.keys[:lo]
		return
	}
	if len(key) == 0 || x.sure >= MaxEntities || !sure && x.waiting >= maxWaiting {
		x.keys = x.keys[:lo]
		return
	}
	if sure {
		x.sure++
	} else {
		x.waiting++
	}
	x.names = append(x.names, mention{lo, len(x.keys), first, full, sure})
}

// entities returns the names found.
func (d *doc) entities() []string {
	x := d.index
	n := min(x.sure, MaxEntities)
	if n == 0 {
		return nil
	}
	keys := string(x.keys)
	out := make([]string, 0, n)
	for i := range x.names {
		if m := &x.names[i]; m.sure && len(out) < n {
			out = append(out, keys[m.lo:m.hi])
		}
	}
	return out
}
