package transcript

import "strings"

// maxDepth is how deep encoding/json lets values nest.
const maxDepth = 10_000

// valid is json.Valid at several times its speed: every byte of an export passes
// through it.
func valid(b []byte) bool {
	v := value(b)
	end := v.check(v.blank(0), 1)
	return end >= 0 && v.blank(end) == len(v)
}

// check is the index behind the value that begins at i, or -1 where there is none.
func (v value) check(i, depth int) int {
	if i == len(v) {
		return -1
	}
	switch v[i] {
	case '{':
		return v.checkList(i, '}', depth)
	case '[':
		return v.checkList(i, ']', depth)
	case '"':
		return v.checkString(i)
	case 't':
		return v.checkWord(i, "true")
	case 'f':
		return v.checkWord(i, "false")
	case 'n':
		return v.checkWord(i, "null")
	default:
		return v.checkNumber(i)
	}
}

// checkList is check for an object or array that ends with closing.
func (v value) checkList(i int, closing byte, depth int) int {
	if depth > maxDepth {
		return -1
	}
	i = v.blank(i + 1)
	if v.at(i) == closing {
		return i + 1
	}
	for {
		if closing == '}' {
			if i = v.checkString(i); i < 0 {
				return -1
			}
			if i = v.blank(i); v.at(i) != ':' {
				return -1
			}
			i = v.blank(i + 1)
		}
		if i = v.check(i, depth+1); i < 0 {
			return -1
		}
		switch i = v.blank(i); v.at(i) {
		case closing:
			return i + 1
		case ',':
			i = v.blank(i + 1)
		default:
			return -1
		}
	}
}

func (v value) checkString(i int) int {
	if v.at(i) != '"' {
		return -1
	}
	for i++; i < len(v); i++ {
		switch c := v[i]; {
		case c == '"':
			return i + 1
		case c < ' ':
			return -1
		case c == '\\':
			if i++; v.at(i) == 'u' {
				for range 4 {
					if i++; !isHex(v.at(i)) {
						return -1
					}
				}
			} else if strings.IndexByte(`"\/bfnrt`, v.at(i)) < 0 {
				return -1
			}
		}
	}
	return -1
}

func (v value) checkWord(i int, word string) int {
	if end := i + len(word); end <= len(v) && string(v[i:end]) == word {
		return end
	}
	return -1
}

func (v value) checkNumber(i int) int {
	if v.at(i) == '-' {
		i++
	}
	end := v.digits(i)
	if end == i || v[i] == '0' && end > i+1 {
		return -1
	}
	if v.at(end) == '.' {
		i = end + 1
		if end = v.digits(i); end == i {
			return -1
		}
	}
	if v.at(end)|0x20 == 'e' {
		i = end + 1
		if sign := v.at(i); sign == '+' || sign == '-' {
			i++
		}
		if end = v.digits(i); end == i {
			return -1
		}
	}
	return end
}

// digits is the index of the first byte from i on that is no digit.
func (v value) digits(i int) int {
	for v.at(i) >= '0' && v.at(i) <= '9' {
		i++
	}
	return i
}

// at is the byte at i; 0, which stands nowhere in JSON, behind the end.
func (v value) at(i int) byte {
	if i >= len(v) {
		return 0
	}
	return v[i]
}

// blank is space for a value that may end.
func (v value) blank(i int) int {
	for i < len(v) && (v[i] == ' ' || v[i] == '\n' || v[i] == '\r' || v[i] == '\t') {
		i++
	}
	return i
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
}
