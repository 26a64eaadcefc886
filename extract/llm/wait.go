package llm

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxWait caps how long an endpoint can ask to be left alone. Some ask for years.
const maxWait = 30 * time.Minute

// wait returns how long the endpoint asks to be left alone, 0 if it does not say.
// The order is that of OpenAI's own clients. Rate limit headers are sent with
// everything, and mean something only if a rate limit was the reason.
func wait(status int, h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return bounded(ms / 1000)
	}
	after := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(after, 64); err == nil && s > 0 {
		return bounded(s)
	}
	if at, err := http.ParseTime(after); err == nil {
		if date, err := http.ParseTime(h.Get("Date")); err == nil {
			now = date // by the endpoint's own clock
		}
		return bounded(at.Sub(now).Seconds())
	}
	if status != http.StatusTooManyRequests {
		return 0
	}
	return max(reset(h, "Requests", now), reset(h, "Tokens", now), reset(h, "", now))
}

// reset reads an X-Ratelimit-Reset header: a duration, seconds, or a point in
// time in seconds or milliseconds. A limit that has something left does not count.
func reset(h http.Header, of string, now time.Time) time.Duration {
	if of != "" {
		of = "-" + of
	}
	value := strings.TrimSpace(h.Get("X-Ratelimit-Reset" + of))
	if left, err := strconv.ParseFloat(h.Get("X-Ratelimit-Remaining"+of), 64); err == nil && left > 0 {
		return 0
	}
	if d, err := time.ParseDuration(value); err == nil {
		return bounded(d.Seconds())
	}
	n, err := strconv.ParseFloat(value, 64)
	switch {
	case err != nil || n <= 0:
		return 0
	case n > 1e11:
		return bounded(n/1000 - float64(now.UnixMilli())/1000)
	case n > 1e9:
		return bounded(n - float64(now.Unix()))
	}
	return bounded(n)
}

func bounded(seconds float64) time.Duration {
	if !(seconds > 0) { // NaN too
		return 0
	}
	return time.Duration(min(seconds, maxWait.Seconds()) * float64(time.Second))
}
