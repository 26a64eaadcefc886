package transcript

import (
	"bytes"
	"encoding/csv"
	"strings"
)

// foreign is a kind of export that is recognised so that its user learns the way
// out.
type foreign struct {
	match  func(keys members) bool
	detail string
}

const asNative = `turn it into JSON lines {"text":"…","source":"…","date":"…"} and import those`

var foreigners = []foreign{
	{
		func(keys members) bool {
			return has(keys, "ts", "type") && (has(keys, "user") || has(keys, "bot_id") || has(keys, "subtype"))
		},
		"a Slack export, which holds other people's words: to import it all the same, " + asNative,
	},
	{
		func(keys members) bool {
			return has(keys, "name", "type", "id", "messages") || has(keys["chats"].named(), "list")
		},
		"a Telegram export, which holds other people's words: to import it all the same, " + asNative,
	},
	{
		func(keys members) bool {
			return has(keys, "guild", "channel", "messages") || has(keys, "ID", "Timestamp", "Contents")
		},
		"a Discord export, which this version does not read: " + asNative,
	},
	{
		func(keys members) bool {
			return !has(keys, "text") && (has(keys, "memory") || has(keys, "memories") || isType(keys, "memory") || has(keys["results"].named(), "memory"))
		},
		"an export of memories (mem0 or similar), which are extracted already: load them into the memory itself, or import the conversations they came from",
	},
	{
		func(keys members) bool {
			return has(keys, "composerId") || has(keys, "allComposers") || has(keys, "bubbleId") || has(keys["tabs"].named(), "bubbles")
		},
		"data of Cursor, which this version does not read: export the chat from Cursor as Markdown, with a line \"User:\" or \"Assistant:\" before each turn",
	},
	{
		func(keys members) bool {
			return has(keys, "info", "messages") || has(keys, "sessionID", "parts") ||
				has(keys, "sessionID", "messageID", "type") || has(keys, "sessionID", "role") || has(keys, "projectID", "directory")
		},
		"an opencode session, which this version does not read: take what \"opencode export\" gives for it, " + asNative,
	},
}

// foreignTo is the way out for a record of one of foreigners.
func foreignTo(keys members) string {
	for _, f := range foreigners {
		if f.match(keys) {
			return f.detail
		}
	}
	return ""
}

// foreignText is the way out for text that is no transcript.
func foreignText(first []record) string {
	for _, separator := range ",;\t" {
		if isTable(first, separator) {
			return "a table (CSV): " + strings.Replace(asNative, "it", "each row", 1)
		}
	}
	return ""
}

var columnName = lazily(`^\pL[\pL\pN _./-]{0,40}$`)

// isTable reports whether lines begin with a row of names of columns, and a second
// row has as many.
func isTable(lines []record, separator rune) bool {
	raws := make([][]byte, len(lines))
	for i, l := range lines {
		raws[i] = l.raw
	}
	r := csv.NewReader(bytes.NewReader(bytes.Join(raws, []byte("\n"))))
	r.Comma = separator
	names, err := r.Read()
	if err != nil || len(names) < 2 {
		return false
	}
	for _, n := range names {
		if !columnName().MatchString(n) {
			return false
		}
	}
	_, err = r.Read()
	return err == nil
}

// binaryDetail is the way out for what is no text.
func binaryDetail(head []byte) (code, detail string) {
	switch {
	case bytes.HasPrefix(head, []byte("SQLite format 3\x00")):
		return "unsupported_format", "a SQLite database, as Cursor and opencode keep: export its conversations with the program it belongs to"
	case isZip(head), isGzip(head):
		return "nested_archive", "an archive within an archive: unpack it and import the result"
	}
	return "unsupported_format", wayOut
}
