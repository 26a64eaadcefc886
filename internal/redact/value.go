package redact

import (
	"slices"
	"strings"
)

// value is what stands behind a name.
type value struct {
	text     string
	from, to int
	// quote is the mark around it, 0 if there is none.
	quote byte
	// whole is false for a quoted value without its closing mark and for runs
	// longer than a secret is.
	whole bool
}

// maxValue is the longest secret that is looked for, in bytes.
const maxValue = 1024

// ends are the bytes an unquoted value ends at.
var ends = func() *set {
	out := bytesOf("\x00 ", "\"'`,;<>(){}|\x7f")
	out['&'] = true
	return out
}()

// valueAt reads the value that begins at i: a quoted string, or a run of
// anything but blanks, quotes and brackets.
func (sc *scanner) valueAt(i int) value {
	s := sc.s
	for i+1 < len(s) && (s[i] == '*' || s[i] == '\\' && opening[s[i+1]]) {
		i++ // bold type, an escaped quote
	}
	if i < len(s) && (s[i] == '"' || s[i] == '\'' || s[i] == '`') {
		from := i + 1
		for j := from; j < len(s) && j-from <= maxValue; j++ {
			if s[j] == s[i] || s[j] == '\n' {
				to := j
				if to > from && s[to-1] == '\\' {
					to--
				}
				return value{text: s[from:to], from: from, to: to, quote: s[i], whole: s[j] == s[i]}
			}
		}
		return value{from: from, to: from}
	}
	if i > sc.runEnd || i < sc.floor {
		sc.runEnd = i
	}
	if sc.runEnd <= i {
		sc.runEnd = i
		for sc.runEnd < len(s) && !ends[s[sc.runEnd]] {
			sc.runEnd++
		}
	}
	to := sc.runEnd
	if to-i > maxValue {
		return value{from: i, to: i}
	}
	code := s[i:to]
	if to < len(s) && s[to] == '(' && isPath(code) || strings.HasSuffix(code, "$") {
		return value{from: i, to: i} // a call, a template
	}
	text := strings.TrimRight(code, ".:!?*\\]") // the end of the sentence
	return value{text: text, from: i, to: i + len(text), whole: true}
}

// secret reports whether v is a secret, given what its name says about it.
func (v value) secret(how strength) bool {
	t := v.text
	if !v.whole || how == none || len(t) < 4 || strings.Contains(t, markStart) || placeholder(t) || isType(t) {
		return false
	}
	if v.quote != 0 {
		if hasAny(t, blanks) || reference(t) && !hasAny(t, digit) && strings.Contains(t, ".") {
			return false
		}
		return how >= strong && !isWord(t) || len(t) >= 6 && random(t)
	}
	if reference(t) || measure(t) || isLocation(t) {
		return false
	}
	if how == weak {
		return len(t) >= 6 && random(t) && !namesSecret(t)
	}
	return random(t) || hasAny(t, digit) || how == certain && !isWord(t)
}

// random reports whether t has a digit beside something else, or a mark inside
// that words do not have.
func random(t string) bool {
	if hasAny(t, digit) {
		return run(t, 0, digit) < len(t)
	}
	return hasAny(t, odd)
}

// odd are bytes inside a value that neither words nor paths have.
var odd = bytesOf("", "!@#$%^*~?=+")

// placeholder reports whether t stands for a value that is not there.
func placeholder(t string) bool {
	switch t[0] {
	case '<', '{', '[', '%', '&':
		return true
	case '!': // a tag of YAML
		return len(t) > 1 && run(t, 1, letter) == len(t)
	case '$':
		return len(t) == 1 || letter[t[1]] || t[1] == '{' || t[1] == '(' || t[1] == '_'
	}
	if strings.Trim(t, t[:1]) == "" { // xxxx, ****, ....
		return true
	}
	low := strings.ToLower(t)
	for _, w := range []string{"your", "example", "placeholder", "changeme", "redacted", "xxxx", "****", "${", "{{", "..."} {
		if strings.Contains(low, w) {
			return true
		}
	}
	return slices.Contains(labels, low)
}

// labels are names that stand for values.
var labels = strings.Fields("password pass passwd pwd secret token passwort kennwort senha")

// types are words that declare a value, or stand where there is none.
var types = words(`string str text varchar bytes byte int uint integer number float bool boolean any object none null nil
	undefined true false void secretstr optional required unknown char`)

// states are words that say something about a secret.
var states = words(`required invalid wrong incorrect expired weak strong missing empty invalid hidden encrypted hashed
	optional changed reset unset rotated revoked stored saved generated needed correct valid short long same different
	disabled enabled masked unknown`)

func words(list string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		out[w] = true
	}
	return out
}

func isType(t string) bool {
	t = strings.ToLower(strings.TrimRight(t, "?[]"))
	if types[t] {
		return true
	}
	for _, width := range []string{"8", "16", "32", "64"} {
		if kind, ok := strings.CutSuffix(t, width); ok && (kind == "int" || kind == "uint" || kind == "float") {
			return true
		}
	}
	return false
}

func isWord(t string) bool { return states[strings.ToLower(t)] }

// reference reports whether t is an expression rather than a value: a path of
// identifiers such as process.env.KEY1, a constant such as API_KEY_2, an element
// such as keys[0], the next assignment where this one is empty.
func reference(t string) bool {
	if k := strings.IndexByte(t, '='); k > 0 && run(t, 0, under) == k && !hasAny(t[:k], digit) {
		return true
	}
	if k := strings.IndexByte(t, '['); k > 0 && isPath(t[:k]) {
		return true
	}
	if !isPath(t) {
		return false
	}
	return strings.Contains(t, ".") || strings.Contains(t, "_") && strings.ToUpper(t) == t
}

// isPath reports whether t is identifiers joined by dots, digits only at their
// ends.
func isPath(t string) bool {
	if t == "" {
		return false
	}
	for part := range strings.SplitSeq(t, ".") {
		i := 0
		for i < len(part) && (letter[part[i]] || part[i] == '_') {
			i++
		}
		if n := run(part, i, digit) - i; i == 0 || n > 3 || i+n != len(part) {
			if !constant(part) {
				return false
			}
		}
	}
	return true
}

// constant reports whether t is an identifier in capitals, as API_KEY_2_OLD.
func constant(t string) bool {
	return t != "" && letter[t[0]] && strings.Contains(t, "_") && strings.ToUpper(t) == t && run(t, 0, under) == len(t)
}

// measure reports whether t is a number with a unit, 4096, 12.5k, 30s, 3/day, or
// a short one in hexadecimal.
func measure(t string) bool {
	const word = 10 // bytes of a number of 32 bits
	if strings.HasPrefix(t, "0x") && len(t) <= word {
		return true
	}
	i := 0
	for i < len(t) && (digit[t[i]] || t[i] == '.' || t[i] == ',' || t[i] == '-' || t[i] == '/' || t[i] == '+' || t[i] == '_') {
		i++
	}
	if i == 0 || !digit[t[0]] {
		return false
	}
	unit := t[i:]
	if k := strings.IndexByte(unit, '/'); k >= 0 {
		unit = unit[:k]
	}
	return len(unit) > 0 && len(unit) <= 3 && !hasAny(unit, digit) && !hasAny(unit, odd) || unit == "%"
}

// isLocation reports whether t says where a secret is: a file, a URL, the name
// of an entry in a vault.
func isLocation(t string) bool {
	if strings.Contains(t, "://") || strings.HasPrefix(t, "arn:") {
		return true
	}
	if len(t) > 2 && letter[t[0]] && t[1] == ':' && (t[2] == '\\' || t[2] == '/') {
		return true
	}
	// A base64 secret may begin with a slash too, but has no short first part.
	if t[0] == '/' || strings.HasPrefix(t, "~/") || strings.HasPrefix(t, "./") || strings.HasPrefix(t, "../") {
		return strings.Count(t, "/") >= 2 && len(t) != 40 || strings.Contains(t, ".")
	}
	return false
}

// namesSecret reports whether t is a variable named after a secret.
func namesSecret(t string) bool {
	low := strings.ToLower(t)
	return run(t, 0, under) == len(t) && (strings.Contains(low, "token") || strings.Contains(low, "key") || strings.Contains(low, "secret"))
}
