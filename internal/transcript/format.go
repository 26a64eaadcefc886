package transcript

import "encoding/json"

// format is one kind of export. Adding one is a file with a format and a line in
// formats.
type format struct {
	// name is the prefix of its ids and the source of captures without their own.
	name string
	// match reports whether a record, a JSON object, is of this format. It sees
	// the first records of a file until one matches.
	match func(keys map[string]json.RawMessage) bool
	// read turns the records of f into captures, with f.records, f.decode,
	// f.skip, f.warn, and f.emit or f.conversation.
	read func(f *file)
}

// formats are asked in order. Native is the last: all it asks for is a text.
var formats = []format{native}

func has(keys map[string]json.RawMessage, names ...string) bool {
	for _, n := range names {
		if _, ok := keys[n]; !ok {
			return false
		}
	}
	return true
}
