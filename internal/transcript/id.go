package transcript

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxID keeps the unique index on intake far below the 2,704 bytes at which a
// b-tree row fails.
const maxID = 512

// externalID is "<format>:<id>"; over 512 bytes the id is the hash of all that.
func externalID(format, id string) string {
	s := format + ":" + Clean(id)
	if len(s) <= maxID {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return format + ":sha256:" + hex.EncodeToString(sum[:])
}

// contentID identifies a record that has no id by what it holds: the first 128
// bits of the SHA-256 of parts, with a NUL between them.
func contentID(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}
