package transcript

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestClean(t *testing.T) {
	t.Parallel()

	for in, want := range map[string]string{
		"plain":                    "plain",
		" \t\u00a0 a \r\n b \n\n":  "a \r\n b",
		"a\x00b":                   "a\uFFFDb",
		"\x00":                     "\uFFFD",
		"21\xb0C":                  "21\uFFFDC",
		"\xed\xa0\x80x":            "\uFFFDx", // a surrogate in UTF-8
		"“quotes” – and\u200bmore": "“quotes” – and\u200bmore",
		"\uFFFDkept":               "\uFFFDkept",
	} {
		require.Equal(t, want, Clean(in), "%q", in)
	}
}

func TestPlainNumber(t *testing.T) {
	t.Parallel()

	for in, want := range map[string]any{
		"0":                   0.0,
		"-1.5":                -1.5,
		"999999999999999":     999999999999999.0,
		"1234567890123456":    "1234567890123456",
		"0.1234567890123456":  "0.1234567890123456",
		"0.00000000000000012": 0.00000000000000012,
		"1e21":                1e21,
		"1e400":               "1e400",
		"1e-400":              "1e-400",
		"0e-400":              0.0,
	} {
		require.Equal(t, want, plainNumber(in), in)
	}
}

func TestParseDate(t *testing.T) {
	t.Parallel()

	noon := time.Date(2025, 3, 4, 12, 0, 0, 0, time.UTC)
	for in, want := range map[string]time.Time{
		`"2025-03-04T12:00:00Z"`:              noon,
		`"2025-03-04 12:00:00"`:               noon,
		`" 2025-03-04T14:00:00+02:00 "`:       noon,
		`"2025-03-04 14:00:00+02"`:            noon,
		`"2025-03-04T06:30:00-0530"`:          noon,
		`"2025-03-04T12:00"`:                  noon,
		`"2025-03-04 12:00:00.1234567+00:00"`: noon.Add(123456 * time.Microsecond),
		`"2025-03-04"`:                        day(2025, 3, 4),
		`"0001-01-02"`:                        day(1, 1, 2),
		`"9999-12-31"`:                        day(9999, 12, 31),
		`1741089600`:                          noon,
		`"1741089600"`:                        noon,
		`1741089600.123456`:                   noon.Add(123456 * time.Microsecond),
		`1741089600123`:                       noon.Add(123 * time.Millisecond),
		`1741089600123456`:                    noon.Add(123456 * time.Microsecond),
		`1741089600000000000`:                 noon,
		`1.7410896e9`:                         noon,
		`788918400`:                           day(1995, 1, 1),
		`4133894400`:                          day(2100, 12, 31),
		`null`:                                {},
		`""`:                                  {},
		`" "`:                                 {},
		`"0001-01-01T00:00:00Z"`:              {}, // how Go and .NET write "no date"
	} {
		got, ok := parseDate(value(in))
		require.True(t, ok, in)
		require.Equal(t, want, got, in)
	}
	for _, in := range []string{
		`"infinity"`, `"NaN"`, `"now"`, `-1`, `0`, `1`, `788918399`, `4133980800`, `1e400`, `"0x67c6"`, `"1_741_089_600"`,
		`"2025-02-30"`, `"2025-13-01"`, `"2025-03-04T12:00:60Z"`, `"2025-03-04T24:00:00Z"`, `"0000-01-01"`, `"10000-01-01"`,
		`"9999-12-31T23:59:59-01:00"`, `"0001-01-01T00:00:00+01:00"`, `"20250304"`, `"04.03.2025"`, `true`, `{}`, `[1741089600]`,
	} {
		_, ok := parseDate(value(in))
		require.False(t, ok, in)
	}
}

func TestExternalID(t *testing.T) {
	t.Parallel()

	fits := strings.Repeat("x", maxID-len("f:"))
	require.Equal(t, "f:"+fits, externalID("f", fits))
	hashed := externalID("f", fits+"x")
	require.Len(t, hashed, len("f:sha256:")+64)
	require.NotEqual(t, hashed, externalID("f", fits+"y"))
	require.Equal(t, "f:a\uFFFD", externalID("f", " a\x00"))
}
