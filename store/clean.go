package store

import (
	"strings"
	"unicode/utf8"
)

// Clean makes a string storable: Postgres text holds neither NUL nor invalid
// UTF-8, and refuses a whole COPY over either. Both become U+FFFD.
func Clean(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	return s
}
