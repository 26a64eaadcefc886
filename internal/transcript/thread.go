package transcript

import (
	"slices"
	"time"
)

// link is a message of a conversation that is a tree, since questions can be edited
// and answers regenerated.
type link struct {
	id, parent string
	// root says that it follows nothing.
	root bool
	// date orders leaves; zero is before all others.
	date time.Time
}

// follow is thread.follow for a record, with what is wrong with its messages named.
func (f *file) follow(links []link, leaf string, line int) []int {
	var t thread
	path := t.follow(links, leaf)
	if t.circle {
		f.warn("cycle", line, "messages of a conversation that follow one another in a circle: taken once each")
	}
	if t.broken {
		f.warn("broken_parent", line, "a message follows one that is missing: the newest ones before it are taken for what came before")
	}
	return path
}

// thread is one way through such a tree.
type thread struct {
	links []link
	// at is the index of a message.
	at map[string]int
	// tops are the indexes of the first message that leads to each one.
	tops []int
	// leaves are those that nothing follows, from the newest on.
	leaves []int

	// circle says that messages follow one another in one, and broken that one
	// follows a message that is not there.
	circle, broken bool
}

// follow is the way, as indexes, to the message leaf or, where that is none, to the
// newest leaf; of several to the last one. The order of siblings says nothing.
//
// Where the message that one follows is missing, what came before is found in the
// same way among those that are not connected to it.
func (t *thread) follow(links []link, leaf string) (path []int) {
	t.index(links)
	i, ok := t.at[leaf]
	if !ok {
		i = t.leaves[0]
	}
	visited := make([]bool, len(links))
	used := map[int]bool{}
	for {
		if visited[i] {
			t.circle = true
			break
		}
		visited[i] = true
		path = append(path, i)
		if links[i].root {
			break
		}
		parent, ok := t.at[links[i].parent]
		if !ok {
			t.broken = true
			used[t.tops[i]] = true
			if parent, ok = t.before(links[i].date, used); !ok {
				break
			}
		}
		i = parent
	}
	slices.Reverse(path)
	return path
}

func (t *thread) index(links []link) {
	t.links, t.at, t.tops = links, make(map[string]int, len(links)), make([]int, len(links))
	followed := make([]bool, len(links))
	for i, l := range links {
		t.at[l.id], t.tops[i] = i, -1
	}
	for i, l := range links {
		if parent, ok := t.at[l.parent]; ok && !l.root {
			followed[parent] = true
		}
		t.top(i)
	}
	for i := range slices.Backward(links) {
		if !followed[i] {
			t.leaves = append(t.leaves, i)
		}
	}
	if len(t.leaves) == 0 { // all in a circle
		for i := range slices.Backward(links) {
			t.leaves = append(t.leaves, i)
		}
	}
	slices.SortStableFunc(t.leaves, func(a, b int) int { return links[b].date.Compare(links[a].date) })
}

// top finds the first message that leads to i, and with it that of those between.
func (t *thread) top(i int) {
	var way []int
	for t.tops[i] < 0 {
		t.tops[i] = i // ends a circle
		way = append(way, i)
		parent, ok := t.at[t.links[i].parent]
		if t.links[i].root || !ok {
			break
		}
		i = parent
	}
	for _, w := range way {
		t.tops[w] = t.tops[i]
	}
}

// before is the newest leaf that is not after date, of a part that was not used.
func (t *thread) before(date time.Time, used map[int]bool) (leaf int, ok bool) {
	i := slices.IndexFunc(t.leaves, func(i int) bool {
		return !used[t.tops[i]] && (date.IsZero() || !t.links[i].date.After(date))
	})
	if i < 0 {
		return 0, false
	}
	return t.leaves[i], true
}
