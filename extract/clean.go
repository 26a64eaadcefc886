package extract

import (
	"strings"
	"unicode"
)

// clean makes s storable: each byte that is not valid UTF-8 becomes U+FFFD, and
// U+0000, which Postgres refuses, goes.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r == 0 {
			return -1
		}
		return r
	}, s)
}

// trim removes white space and zero-width characters from both ends.
func trim(s string) string { return strings.TrimFunc(s, invisible) }

func blank(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !invisible(r) }) < 0
}

func invisible(r rune) bool {
	switch {
	case unicode.IsSpace(r), r == 0:
		return true
	case r == 0xAD, r == 0x180E, r == 0xFEFF: // soft hyphen, vowel separator, byte order mark
		return true
	}
	return r >= 0x200B && r <= 0x200F || r >= 0x2060 && r <= 0x2064
}
