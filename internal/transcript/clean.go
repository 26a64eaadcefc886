package transcript

import (
	"encoding/json"
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

// cleanMeta scrubs the keys and strings of an object decoded with UseNumber and
// makes its numbers plain. It reports false for an object nested too deeply.
func cleanMeta(m map[string]any) (map[string]any, bool) {
	v, ok := cleanValue(m, 1)
	if !ok {
		return nil, false
	}
	return v.(map[string]any), true //nolint:forcetypeassert // cleanValue keeps the kind
}

func cleanValue(v any, depth int) (any, bool) {
	if depth > maxMetaDepth {
		return nil, false
	}
	switch v := v.(type) {
	case string:
		return scrub(v), true
	case json.Number:
		return plainNumber(v.String()), true
	case []any:
		for i := range v {
			e, ok := cleanValue(v[i], depth+1)
			if !ok {
				return nil, false
			}
			v[i] = e
		}
		return v, true
	case map[string]any:
		clean := make(map[string]any, len(v))
		for k, e := range v {
			e, ok := cleanValue(e, depth+1)
			if !ok {
				return nil, false
			}
			clean[scrub(k)] = e
		}
		return clean, true
	default:
		return v, true
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
