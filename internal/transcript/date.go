package transcript

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// dateLayouts are tried in order, with a "T" in place of a space. A zone that is
// not given is UTC. "Z07" is how psql prints a timestamptz.
var dateLayouts = []string{
	time.RFC3339,
	"2006-01-02",
	"2006-01-02T15:04:05",
	"2006-01-02T15:04:05Z07",
	"2006-01-02T15:04:05Z0700",
	"2006-01-02T15:04Z07:00",
	"2006-01-02T15:04",
}

// parseDate reads a date, in UTC with microseconds, as Postgres holds it. Null and
// blank are the zero time, unknown. It reports false for a value that is no date.
func parseDate(v value) (time.Time, bool) {
	switch {
	case v.kind() == '"':
		return parseDateText(v.text())
	case v.isNumber():
		return parseDateText(string(v))
	default:
		return time.Time{}, !v.given()
	}
}

func parseDateText(s string) (time.Time, bool) { return parseDateIn(s, time.UTC) }

// parseDateIn is parseDateText with another zone for dates that have none.
func parseDateIn(s string, zone *time.Location) (time.Time, bool) {
	s = strings.TrimSpace(s)
	if s == "" {
		return time.Time{}, true
	}
	if !strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune("0123456789.+-eE", r) }) {
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return epoch(f)
		}
	}
	if len(s) > 10 && s[10] == ' ' {
		s = s[:10] + "T" + s[11:]
	}
	for _, layout := range dateLayouts {
		if t, err := time.ParseInLocation(layout, s, zone); err == nil {
			t = t.UTC().Truncate(time.Microsecond)
			if t.Year() < 1 || t.Year() > 9999 {
				break
			}
			return t, true
		}
	}
	return time.Time{}, false
}

// epoch reads a count since 1970 whose unit follows from its magnitude. Outside
// 1995 to 2100 it is more likely a count of something else.
func epoch(f float64) (time.Time, bool) {
	var micros float64
	switch {
	case f < 1e11:
		micros = f * 1e6
	case f < 1e14:
		micros = f * 1e3
	case f < 1e17:
		micros = f
	default:
		micros = f / 1e3
	}
	if math.Abs(micros) > 1e16 {
		return time.Time{}, false
	}
	t := time.UnixMicro(int64(math.Round(micros))).UTC()
	if t.Year() < 1995 || t.Year() > 2100 {
		return time.Time{}, false
	}
	return t, true
}
