// Package redact replaces secrets in text by typed marks such as
// [REDACTED:token], so that no key that was pasted into a conversation is sent
// to a model or becomes a memory.
//
// It works by shape, not by a list of known values: tokens with a vendor's
// prefix, JSON Web Tokens, private keys, payment cards, passwords in URLs, and
// values that stand behind a name such as password or api_key. What merely
// resembles one stays: hashes, UUIDs, placeholders, type names, references to
// the environment, prose about passwords.
package redact

import "strings"

// Redactor replaces secrets. The zero value is ready to use: it replaces
// credentials and payment cards and keeps personal data, which is often the
// memory itself.
type Redactor struct {
	// Contacts also replaces e-mail addresses and phone numbers in international
	// form. Default false: they stay.
	Contacts bool
}

// kind is what a mark says was there.
type kind string

const (
	token      kind = "token"
	jwt        kind = "jwt"
	privateKey kind = "private_key"
	card       kind = "card"
	password   kind = "password"
	credential kind = "credential"
	email      kind = "email"
	phone      kind = "phone"
)

const markStart = "[REDACTED:"

// Text returns s with every secret replaced by its mark, and how many there
// were. It is idempotent, takes time linear in len(s), and returns s itself if
// there is nothing to replace. Valid UTF-8 stays valid.
func (r Redactor) Text(s string) (string, int) {
	total := 0
	if !clean(s) {
		// What is known by its own shape goes first: a token behind "password="
		// is marked as the token it is, and later rules step over marks.
		var n, m int
		s, n = replace(s, shapes)
		s, m = replace(s, names)
		total = n + m
	}
	if !r.Contacts {
		return s, total
	}
	s, n := replace(s, emails)
	s, m := replace(s, phones)
	return s, total + n + m
}

// clean reports that neither shapes nor names find anything. It looks for both
// at once, which is what makes the usual text cheap.
func clean(s string) bool {
	sc := scanner{s: s, runEnd: -1}
	for i := 0; i < len(s); {
		try, next := both.at(s, i)
		if try != nil {
			if _, found := try(&sc, i); found {
				return false
			}
			if s[i] == '[' {
				if end := markEnd(s, i); end > 0 {
					sc.floor, next = end, end
				}
			}
		}
		i = next
	}
	return true
}

// rule looks at s[i:] and, if a secret hangs on that position, returns where
// it is. Nothing before floor, the end of the last secret, is to be looked at.
type rule func(sc *scanner, i int) (found span, ok bool)

// span is a secret: s[from:to].
type span struct {
	from, to int
	kind     kind
}

// scanner is one pass over a text.
type scanner struct {
	s string
	// floor is the end of the last secret or mark. The byte before it counts as
	// a bracket, which is what it will be.
	floor int
	// runEnd is the end of the last run of value bytes that was measured, so
	// that a run full of separators is measured once.
	runEnd int
}

// pass is a set of rules by the bytes they hang on.
type pass struct {
	// any are rules by the byte they hang on, which is none of a word.
	any [256]rule
	// start are rules by the first two bytes of a word, as indexes into rules;
	// 0 is none.
	start [1 << 16]uint8
	rules []rule
}

// starting adds a rule for words that begin with the first two bytes of prefix.
// There is one rule for each such pair.
func (p *pass) starting(prefix string, r rule) {
	if p.rules == nil {
		p.rules = make([]rule, 1)
	}
	p.start[int(prefix[0])<<8|int(prefix[1])] = uint8(len(p.rules))
	p.rules = append(p.rules, r)
}

// both are the rules of shapes and names.
var both = func() *pass {
	p := &pass{any: shapes.any}
	for c, r := range names.any {
		if r != nil {
			p.any[c] = either(p.any[c], r)
		}
	}
	for pair := range p.start {
		a, b := shapes.rules[shapes.start[pair]], names.rules[names.start[pair]]
		start := string([]byte{byte(pair >> 8), byte(pair)})
		if a != nil || b != nil {
			p.starting(start, either(a, b))
		}
	}
	return p
}()

// either is the rule that finds what a or b finds.
func either(a, b rule) rule {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(sc *scanner, i int) (span, bool) {
		if found, ok := a(sc, i); ok {
			return found, true
		}
		return b(sc, i)
	}
}

// at returns the rule that hangs on s[i], and where the search goes on if it
// finds nothing.
func (p *pass) at(s string, i int) (rule, int) {
	if !wordByte[s[i]] {
		return p.any[s[i]], i + 1
	}
	var r rule
	if i+1 < len(s) {
		if n := p.start[int(s[i])<<8|int(s[i+1])]; n > 0 {
			r = p.rules[n]
		}
	}
	return r, run(s, i+1, wordByte)
}

func replace(s string, p *pass) (string, int) {
	sc := scanner{s: s, runEnd: -1}
	var out strings.Builder
	copied, n := 0, 0
	for i := 0; i < len(s); {
		try, next := p.at(s, i)
		if try == nil {
			i = next
			continue
		}
		if s[i] == '[' {
			if end := markEnd(s, i); end > 0 {
				sc.floor, next = end, end
			}
			i = next
			continue
		}
		found, ok := try(&sc, i)
		if !ok {
			i = next
			continue
		}
		out.WriteString(s[copied:found.from])
		out.WriteString(markStart)
		out.WriteString(string(found.kind))
		out.WriteByte(']')
		copied, n = found.to, n+1
		sc.floor, i = found.to, found.to
	}
	if n == 0 {
		return s, 0
	}
	out.WriteString(s[copied:])
	return out.String(), n
}

// mark keeps a pass from looking into marks.
func mark(*scanner, int) (span, bool) { return span{}, false }

// markEnd returns the end of the mark at i, or 0.
func markEnd(s string, i int) int {
	if !strings.HasPrefix(s[i:], markStart) {
		return 0
	}
	for j := i + len(markStart); j < len(s); j++ {
		if s[j] == ']' {
			return j + 1
		}
		if s[j] != '_' && (s[j] < 'a' || s[j] > 'z') {
			break
		}
	}
	return 0
}

// before returns the byte before i, or 0 where text begins or a mark ends.
func (sc *scanner) before(i int) byte {
	if i <= sc.floor {
		return 0
	}
	return sc.s[i-1]
}

// set is a set of bytes.
type set [256]bool

func bytesOf(ranges string, more string) *set {
	var out set
	for i := 0; i+1 < len(ranges); i += 2 {
		for c := int(ranges[i]); c <= int(ranges[i+1]); c++ {
			out[c] = true
		}
	}
	for i := range len(more) {
		out[more[i]] = true
	}
	return &out
}

var (
	digit    = bytesOf("09", "")
	letter   = bytesOf("azAZ", "")
	alnum    = bytesOf("azAZ09", "")
	wordByte = alnum
)

// run returns the end of the bytes of class from i on.
func run(s string, i int, class *set) int {
	for i < len(s) && class[s[i]] {
		i++
	}
	return i
}

// hasAny reports whether a byte of s is in class.
func hasAny(s string, class *set) bool {
	for i := range len(s) {
		if class[s[i]] {
			return true
		}
	}
	return false
}
