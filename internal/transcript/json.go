package transcript

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// value is JSON that valid has seen. Exports are mostly text that is not
// kept, such as what tools gave back: walking over it is several times as fast as
// unmarshalling it. Asked for another kind than it is, a value is zero: exports
// change, and one odd field must not cost a record.
type value []byte

// kind is the first byte, which tells the kind; 0 where there is no value.
func (v value) kind() byte {
	if len(v) == 0 {
		return 0
	}
	return v[0]
}

// members are the members of an object, in order.
func (v value) members(yield func(key []byte, member value) bool) {
	if v.kind() != '{' {
		return
	}
	for i := v.space(1); v[i] != '}'; {
		end := v.end(i)
		key := []byte(v[i+1 : end-1])
		if bytes.IndexByte(key, '\\') >= 0 || !utf8.Valid(key) {
			key = []byte(v[i:end].text())
		}
		i = v.space(v.space(end) + 1)
		end = v.end(i)
		if !yield(key, v[i:end]) {
			return
		}
		if i = v.space(end); v[i] == ',' {
			i = v.space(i + 1)
		}
	}
}

// elements are the elements of an array, in order.
func (v value) elements(yield func(value) bool) {
	if v.kind() != '[' {
		return
	}
	for i := v.space(1); v[i] != ']'; {
		end := v.end(i)
		if !yield(v[i:end]) {
			return
		}
		if i = v.space(end); v[i] == ',' {
			i = v.space(i + 1)
		}
	}
}

// member is the last member of that name, as encoding/json has it.
func (v value) member(name string) (found value) {
	for key, member := range v.members {
		if string(key) == name {
			found = member
		}
	}
	return found
}

// text is the string, not cleaned.
func (v value) text() (s string) {
	if v.kind() != '"' {
		return ""
	}
	if raw := v[1 : len(v)-1]; bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return string(raw)
	}
	_ = json.Unmarshal(v, &s)
	return s
}

// id is a string or a number as text.
func (v value) id() string {
	if v.isNumber() {
		return string(v)
	}
	return v.text()
}

func (v value) isNumber() bool {
	return v.kind() == '-' || v.kind() >= '0' && v.kind() <= '9'
}

func (v value) isTrue() bool { return v.kind() == 't' }

// given reports whether there is a value other than null.
func (v value) given() bool { return len(v) > 0 && v[0] != 'n' }

// space is the index of the first byte from i on that is no white space.
func (v value) space(i int) int {
	for v[i] == ' ' || v[i] == '\n' || v[i] == '\r' || v[i] == '\t' {
		i++
	}
	return i
}

// end is the index behind the value that begins at i.
func (v value) end(i int) int {
	switch v[i] {
	case '"':
		return v.endOfString(i)
	case '{', '[':
		for depth := 0; ; i++ {
			switch v[i] {
			case '"':
				i = v.endOfString(i) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
	default:
		if n := bytes.IndexAny(v[i:], ",]} \n\r\t"); n >= 0 {
			return i + n
		}
		return len(v)
	}
}

func (v value) endOfString(i int) int {
	for j := i + 1; ; {
		j += bytes.IndexByte(v[j:], '"')
		escapes := 0
		for v[j-1-escapes] == '\\' {
			escapes++
		}
		if j++; escapes%2 == 0 {
			return j
		}
	}
}
