package extract

import (
	"slices"
	"strings"
	"unicode/utf8"
)

type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindBadNumber // NaN, Infinity and other tokens that start like a number
	kindText
	kindArray
	kindObject
	kindBroken // an object that looks like an item but cannot be read
)

// value is one tolerantly read JSON value.
type value struct {
	kind kind
	text string   // string, decoded; number or boolean, as written
	list []value  // elements of an array, values of an object
	keys []string // keys of an object, parallel to list
	// open marks a value that ended before its closing mark.
	open bool
	// elided marks an array that held an ellipsis.
	elided bool
}

// holds reports whether v is an item or could hold one.
func (v value) holds() bool { return v.kind >= kindArray }

// get returns the member called key; of several, the last.
func (v value) get(key string) (value, bool) {
	for i, k := range slices.Backward(v.keys) {
		if k == key {
			return v.list[i], true
		}
	}
	return value{}, false
}

// has reports whether key was read, be it without a value.
func (v value) has(key string) bool { return slices.Contains(v.keys, key) }

// place is where a value stands, which decides what may follow it.
type place uint8

const (
	atRoot place = iota
	inArray
	inObject
	anywhere // in a container that is being skipped
)

// parser reads tolerant JSON values out of src[:end]. Its methods return false
// where there is no value; at the end of src they return what there is, marked
// open, instead.
type parser struct {
	src      string
	pos, end int
	budget   *budget
	nodes    int
	// arrays and objects count the open containers around pos.
	arrays, objects int
	// cut is set once src ended inside a value.
	cut bool
	// bare is set once a key came without quotes.
	bare bool
	// tooDeep is set once a value was given up for its nesting.
	tooDeep bool
	// resume is where prose goes on after a value that failed.
	resume int
}

func newParser(src string, b *budget) *parser {
	return &parser{src: src, end: len(src), budget: b}
}

// peek returns the byte at pos, 0 at the end: clean has removed every NUL.
func (p *parser) peek() byte {
	if p.pos >= p.end {
		return 0
	}
	return p.src[p.pos]
}

// spend takes n steps.
func (p *parser) spend(n int) { p.budget.steps -= n }

// step takes one step and reports whether there is text left. When no steps are
// left the text ends here.
func (p *parser) step() bool {
	if p.spend(1); p.budget.steps < 0 {
		p.end = min(p.end, p.pos)
	}
	return p.pos < p.end
}

func (p *parser) rest() string { return p.src[p.pos:p.end] }

// root reads the bracketed value at pos.
func (p *parser) root() (value, bool) {
	p.nodes, p.bare, p.tooDeep, p.resume = 0, false, false, p.pos+1
	v, ok := p.value(1, atRoot)
	if !ok {
		p.pos = max(p.resume, p.pos+1)
	}
	return v, ok
}

// value reads one value. depth counts the containers, this one included if it
// is one. On failure pos is where it was.
func (p *parser) value(depth int, at place) (value, bool) {
	if p.nodes++; p.nodes > maxNodes {
		p.end = p.pos
	}
	if !p.step() {
		p.cut = true
		return value{open: true}, true
	}
	var (
		start = p.pos
		v     value
		ok    bool
	)
	switch c := p.peek(); {
	case (c == '[' || c == '{') && depth > maxDepth:
		p.tooDeep = true
		p.resume = max(p.resume, start)
	case c == '[':
		v, ok = p.array(depth)
	case c == '{':
		v, ok = p.object(depth, at)
	case quoteLen(p.rest()) > 0:
		v, ok = p.text(depth, at)
	default:
		v, ok = p.scalar()
	}
	if !ok {
		p.pos = start
	}
	return v, ok
}

func (p *parser) array(depth int) (value, bool) {
	p.pos++
	p.arrays++
	defer func() { p.arrays-- }()
	v := value{kind: kindArray}
	holds := false // an element is or could hold an item
	for {
		p.space()
		switch c := p.peek(); {
		case c == 0:
			return p.cutOff(v)
		case c == ']':
			p.pos++
			return v, true
		case c == ',':
			p.pos++
		case c == '}' && p.objects > 0: // the object around it closes, so ] was forgotten
			return v, true
		case c == '}' && holds:
			p.pos++
		case p.ellipsis():
			v.elided = true
		default:
			el, ok := p.value(depth+1, inArray)
			if ok {
				v.list = append(v.list, el)
				holds = holds || el.holds()
			}
			switch {
			case ok && !el.open:
			case p.pos >= p.end:
				return p.cutOff(v)
			default: // prose: what was read stands if it can hold items
				v.open = true
				return v, holds
			}
		}
	}
}

func (p *parser) object(depth int, at place) (value, bool) {
	start := p.pos
	p.pos++
	p.objects++
	defer func() { p.objects-- }()
	v := value{kind: kindObject}
	for {
		p.space()
		switch c := p.peek(); {
		case c == 0:
			return p.cutOff(v)
		case c == '}':
			p.pos++
			return v, true
		case c == ',':
			p.pos++
		case c == ']' && p.arrays > 0 && len(v.keys) > 0, // the array around it closes
			c == '{' && at == inArray && len(v.keys) > 0: // or goes on: } was forgotten
			return v, true
		case p.ellipsis():
		default:
			if !p.member(&v, depth) {
				return p.breakOff(v, start, depth)
			}
		}
	}
}

// member reads one key and value into v. It reports false when v ends here.
func (p *parser) member(v *value, depth int) bool {
	key, ok := p.key()
	if key != "" || ok {
		v.keys = append(v.keys, key)
		v.list = append(v.list, value{})
	}
	if !ok {
		return false
	}
	p.space()
	if c := p.peek(); c == ',' || c == '}' { // no value: as good as null
		return true
	}
	el, ok := p.value(depth+1, inObject)
	v.list[len(v.list)-1] = el
	return ok && !el.open
}

// cutOff ends v at the end of the text.
func (p *parser) cutOff(v value) (value, bool) {
	v.open, p.cut = true, true
	return v, true
}

// breakOff ends the object v, begun at start, where its syntax is beyond repair.
// A broken item is skipped whole, so that neither its neighbours are lost nor
// its insides taken for items.
func (p *parser) breakOff(v value, start, depth int) (value, bool) {
	if p.pos >= p.end {
		return p.cutOff(v)
	}
	switch at := p.pos; {
	case p.tooDeep && depth > maxLevel: // what surrounds it is too deep: read it by itself
		if itemShaped(v) {
			p.resume = start
		}
		return v, false
	case itemShaped(v):
		if p.pos = start; p.skip() {
			return value{kind: kindBroken}, true
		}
		if p.tooDeep {
			p.pos = p.end
			return p.cutOff(v)
		}
		p.resume = max(p.resume, at)
		return v, false
	}
	v.open = true
	return v, v.wraps()
}

// skip moves behind the container at pos without reading it. It reports false
// when there is no end to it.
func (p *parser) skip() bool {
	cut, level := p.cut, 0
	for p.step() {
		switch c := p.src[p.pos]; {
		case c == '{' || c == '[':
			level++
		case c == '}' || c == ']':
			if level--; level == 0 {
				p.pos++
				return true
			}
		case quoteLen(p.rest()) > 0:
			at := p.pos
			if _, ok := p.key(); ok {
				continue
			}
			p.pos = at
			if v, ok := p.text(level, anywhere); ok && !v.open {
				continue
			}
			p.pos, p.cut = at, cut
		}
		p.pos++
	}
	return false
}

// scalar reads a number, a literal or a token that starts like a number.
func (p *parser) scalar() (value, bool) {
	const longest = 64
	i := p.pos
	for i < p.end && !delimits(p.src[i:p.end]) {
		if i++; i-p.pos > longest {
			return value{}, false
		}
	}
	token := p.src[p.pos:i]
	p.spend(len(token))
	p.pos = min(i, p.end)
	if p.pos >= p.end {
		p.cut = true
		return value{open: true}, true
	}
	return literal(token)
}

func delimits(s string) bool {
	if s[0] >= utf8.RuneSelf {
		return true
	}
	switch s[0] {
	case ' ', '\t', '\n', '\r', ',', ':', ']', '}', '[', '{', '"', '\'':
		return true
	case '/':
		return strings.HasPrefix(s, "//") || strings.HasPrefix(s, "/*")
	}
	return false
}

func literal(token string) (value, bool) {
	switch token {
	case "":
		return value{}, false
	case "null", "None", "undefined":
		return value{}, true
	case "true", "True":
		return value{kind: kindBool, text: "true"}, true
	case "false", "False":
		return value{kind: kindBool, text: "false"}, true
	case "NaN", "nan", "Infinity", "-Infinity", "+Infinity", "inf", "-inf":
		return value{kind: kindBadNumber}, true
	}
	if _, ok := ratio(token); ok {
		return value{kind: kindNumber, text: token}, true
	}
	if c := strings.TrimLeft(token, "+-."); c != "" && digit(c[0]) {
		return value{kind: kindBadNumber}, true
	}
	return value{}, false
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// ellipsis skips three dots or more, as a model writes for "and so on".
func (p *parser) ellipsis() bool {
	s := p.rest()
	if s[0] != '.' && s[0] < utf8.RuneSelf {
		return false
	}
	n := len(s) - len(strings.TrimLeft(s, ".…"))
	if n < 3 {
		return false
	}
	p.pos += n
	return true
}
