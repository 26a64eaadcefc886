package transcript

import (
	"slices"
)

// format is one kind of export. Adding one is a file with a format and a line in
// formats.
type format struct {
	// name is the prefix of its ids and the source of captures without their own.
	name string
	// grows is Capture.Grows.
	grows bool
	// match reports whether a record, a JSON object, is of this format. It sees
	// the first records of a file until one matches. It is nil for a format that
	// is no JSON.
	match func(keys members) bool
	// lists says that a record may be a list of objects; match sees the first.
	lists bool
	// read turns the records of f into captures, with f.records, f.object or
	// f.value, f.skip, f.warn, and f.emit or f.conversation.
	read func(f *file)
}

// formats are asked in order. Native is the last: all it asks for is a text.
var formats = []format{
	claudeCode,
	chatGPT,
	claudeAI,
	codex,
	geminiCLI,
	openAI,
	shareGPT,
	locomo,
	plainText,
	native,
}

// members are the members of a record by name.
type members map[string]value

// membersOf are the members of an object, or of the first one of a list.
func membersOf(v value) (keys members, list bool) {
	if v.kind() == '[' {
		list = true
		for first := range v.elements {
			v = first
			break
		}
	}
	if v.kind() != '{' {
		return nil, list
	}
	keys = members{}
	for key, member := range v.members {
		keys[string(key)] = member
	}
	return keys, list
}

// named are the members of v, or of the first object in it.
func (v value) named() members {
	keys, _ := membersOf(v)
	return keys
}

func has(keys members, names ...string) bool {
	for _, n := range names {
		if _, ok := keys[n]; !ok {
			return false
		}
	}
	return true
}

// isType reports whether the member "type" is one of the strings values.
func isType(keys members, values ...string) bool {
	return slices.Contains(values, keys["type"].text())
}
