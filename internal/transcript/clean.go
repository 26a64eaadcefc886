package transcript

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Clean makes s storable in Postgres and changes nothing else: NUL and bytes that
// are not UTF-8 become U+FFFD (a lone surrogate is already that after JSON
// decoding), outer white space goes.
func Clean(s string) string { return strings.TrimSpace(scrub(s)) }

// scrub is Clean with outer white space kept, for values that are not prose.
func scrub(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return strings.ReplaceAll(s, "\x00", "\uFFFD")
}

// maxMetaDepth is far from the 10,000 levels at which Postgres runs out of stack.
const maxMetaDepth = 100

// plain is v, depth levels deep in an object, as [Capture.Meta] holds it: keys and
// strings scrubbed, numbers plain. It reports false for what is nested too deeply.
func (v value) plain(depth int) (any, bool) {
	if depth > maxMetaDepth {
		return nil, false
	}
	switch v.kind() {
	case '"':
		return scrub(v.text()), true
	case '[':
		list := []any{}
		for e := range v.elements {
			p, ok := e.plain(depth + 1)
			if !ok {
				return nil, false
			}
			list = append(list, p)
		}
		return list, true
	case '{':
		object := map[string]any{}
		for key, m := range v.members {
			p, ok := m.plain(depth + 1)
			if !ok {
				return nil, false
			}
			object[scrub(string(key))] = p
		}
		return object, true
	case 't', 'f':
		return v.isTrue(), true
	case 'n':
		return nil, true
	default:
		return plainNumber(string(v)), true
	}
}

// plainNumber is a float64 where that loses nothing, which holds up to 15
// significant digits, else the text: Postgres and JavaScript readers would
// otherwise see another number, or overflow.
func plainNumber(s string) any {
	mantissa, _, _ := strings.Cut(strings.ToLower(s), "e")
	digits := strings.TrimLeft(strings.NewReplacer("-", "", ".", "").Replace(mantissa), "0")
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || len(digits) > 15 || math.IsInf(f, 0) || f == 0 && digits != "" {
		return s
	}
	return f
}
