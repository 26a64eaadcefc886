package extract

import (
	"strconv"
	"strings"
	"time"
)

// item reads the object v as a candidate. clamped reports a salience outside
// [0, 1]; ok is false without a usable content and salience.
func item(v value) (c Candidate, clamped, ok bool) {
	c.Content = v.str("content")
	raw, _ := v.get("salience")
	given, ok := salience(raw)
	if c.Content == "" || !ok {
		return Candidate{}, false, false
	}
	c.Salience = min(max(given, 0), 1)
	c.Source = v.str("source")
	c.Observed = v.str("observed")
	if c.Evidence = v.str("evidence"); c.Evidence == "" {
		c.Evidence = v.str("quote")
	}
	if date := v.str("date"); isoDate(date) {
		c.Date = date
	}
	tags, _ := v.get("tags")
	c.Tags = tagList(tags)
	if meta, _ := v.get("meta"); meta.kind == kindObject && len(meta.keys) > 0 {
		c.Meta = meta.object()
	}
	return c, given < 0 || given > 1, true
}

// str returns the trimmed string under key, empty for any other type.
func (v value) str(key string) string {
	s, _ := v.get(key)
	if s.kind != kindText {
		return ""
	}
	return trim(s.text)
}

// any converts v to what encoding/json would make of it. A number that is none
// becomes nil.
func (v value) any() any {
	switch v.kind {
	case kindBool:
		return v.text == "true"
	case kindNumber:
		f, _ := ratio(v.text) // literal has checked it
		return f
	case kindText:
		return v.text
	case kindArray:
		list := make([]any, len(v.list))
		for i, el := range v.list {
			list[i] = el.any()
		}
		return list
	case kindObject:
		return v.object()
	default:
		return nil
	}
}

// object is any for an object.
func (v value) object() map[string]any {
	m := make(map[string]any, len(v.keys))
	for i, key := range v.keys {
		m[key] = v.list[i].any()
	}
	return m
}

// tagList reads tags: a list, or one string with commas. Blanks, duplicates and
// what is no string are dropped.
func tagList(v value) []string {
	list := v.list
	if v.kind == kindText {
		list = nil
		for tag := range strings.SplitSeq(v.text, ",") {
			list = append(list, value{kind: kindText, text: tag})
		}
	} else if v.kind != kindArray {
		return nil
	}
	var tags []string
	seen := make(map[string]bool)
	for _, el := range list {
		tag := trim(el.text)
		if el.kind == kindText && tag != "" && !seen[tag] {
			seen[tag] = true
			tags = append(tags, tag)
		}
	}
	return tags
}

// words is the scale for a salience in words. A choice: it keeps the three apart
// and clear of the ends.
var words = map[string]float64{"high": 0.8, "medium": 0.5, "low": 0.2}

// salience reads v as a number. It does not guess at scales: 8 is out of range,
// not 0.8.
func salience(v value) (float64, bool) {
	switch v.kind {
	case kindNumber:
		return ratio(v.text)
	case kindText:
		s := strings.ToLower(trim(v.text))
		if f, ok := words[s]; ok {
			return f, true
		}
		return ratio(s)
	default:
		return 0, false
	}
}

// ratio reads a finite decimal number, a percentage or a fraction.
func ratio(s string) (float64, bool) {
	if n, ok := strings.CutSuffix(s, "%"); ok {
		f, ok := decimal(n)
		return f / 100, ok
	}
	n, of, ok := strings.Cut(s, "/")
	if !ok {
		return decimal(s)
	}
	a, okA := decimal(n)
	b, okB := decimal(of)
	if !okA || !okB || b <= 0 || a/b > 1e300 || a/b < -1e300 {
		return 0, false
	}
	return a / b, true
}

// decimal is strconv.ParseFloat without NaN, Inf, hexadecimals, underscores and
// overflow.
func decimal(s string) (float64, bool) {
	s = trim(s)
	if strings.Trim(s, "0123456789+-.eE") != "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil
}

// isoDate reports whether s is a date or a date with a time as ISO 8601 writes
// them, from the year alone down to fractions of a second. It does not fix the
// others: 06/01/2026 is two days.
func isoDate(s string) bool {
	for _, layout := range dateLayouts {
		if _, err := time.Parse(layout, s); err == nil {
			return true
		}
	}
	return false
}

var dateLayouts = []string{
	"2006", "2006-01", time.DateOnly,
	time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04",
	"2006-01-02 15:04:05Z07:00", "2006-01-02 15:04Z07:00", time.DateTime, "2006-01-02 15:04",
}
