package redact

import "strings"

// names are the secrets that are known by what stands before them: a name and a
// separator, a header, a sentence, a URL's user.
var names = func() *pass {
	p := &pass{}
	p.any['['] = mark
	p.any[':'] = colon
	p.any['='] = assignment
	p.any['>'] = element
	p.any['-'] = userFlag
	for start, list := range spokenBy() {
		p.starting(start, spoken(list))
	}
	for _, start := range []string{"be", "Be", "BE"} {
		p.starting(start, bearer)
	}
	return p
}()

// strength is how much the name before a value says about it.
type strength int

const (
	none strength = iota
	// weak names, such as token, also stand before counts and identifiers.
	weak
	// strong names, such as password, hardly stand before anything else.
	strong
	// certain is a strong name in a form that nothing but the value follows: an
	// environment variable.
	certain
)

// suffixes are how names of secrets end, in lower case and without the
// punctuation between their words.
var suffixes = []struct {
	name string
	strength
}{
	{"password", strong},
	{"passwd", strong},
	{"passphrase", strong},
	{"passcode", strong},
	{"pwd", strong},
	{"passwort", strong},
	{"kennwort", strong},
	{"contraseña", strong},
	{"motdepasse", strong},
	{"senha", strong},
	{"secret", strong},
	{"secretkey", strong},
	{"secretkeybase", strong},
	{"privatekey", strong},
	{"credential", strong},
	{"credentials", strong},
	{"accesskey", strong},
	{"accountkey", strong},
	{"signingkey", strong},
	{"encryptionkey", strong},
	{"masterkey", strong},
	{"token", weak},
	{"apikey", weak},
	{"authkey", weak},
	{"subscriptionkey", weak},
	{"accesskeyid", weak},
	{"authorization", none}, // a header, whose value has its own form
}

// endsName is a filter: which last two letters a suffix can have.
var endsName = func() *[1 << 10]bool {
	var out [1 << 10]bool
	for _, suffix := range suffixes {
		n := len(suffix.name)
		out[pairOf(suffix.name[n-2], suffix.name[n-1])] = true
	}
	out[pairOf('s', 's')] = true // DB_PASS
	return &out
}()

// pairOf folds two letters, of any case, to ten bits.
func pairOf(a, b byte) int { return int(a&31)<<5 | int(b&31) }

// nameBefore reads the name that ends at end, backwards: letters, with single
// blanks, dots, dashes and underscores between words left out, and a number at
// its end ("API_KEY_2").
func (sc *scanner) nameBefore(end int) (how strength, header bool) {
	const longest = 24 // bytes; no suffix is longer
	s, i := sc.s, end
	for i > sc.floor && (digit[s[i-1]] || s[i-1] == '_') {
		i--
	}
	if i-1 <= sc.floor || !endsName[pairOf(s[i-2], s[i-1])] {
		return none, false
	}
	var buf [longest]byte
	at := len(buf)
read:
	for ; i > sc.floor && at > 0; i-- {
		switch c := s[i-1]; {
		case letter[c]:
			at--
			buf[at] = c | 0x20
		case c >= 0x80:
			at--
			buf[at] = c
		case c == '_' || c == '-' || c == '.' || c == ' ' && i-1 > sc.floor && letter[s[i-2]]:
		default:
			break read
		}
	}
	name := buf[at:]
	if end-5 >= sc.floor && s[end-5] == '_' && string(name[max(0, len(name)-4):]) == "pass" {
		return strong, false // DB_PASS, but neither PASS nor bypass
	}
	for _, suffix := range suffixes {
		if n := len(name) - len(suffix.name); n >= 0 && string(name[n:]) == suffix.name {
			return suffix.strength, suffix.strength == none
		}
	}
	return none, false
}

// colon finds "name: value" and "scheme://user:password@host".
func colon(sc *scanner, i int) (span, bool) {
	if strings.HasPrefix(sc.s[i:], "://") {
		return userInfo(sc, i+3)
	}
	return assignment(sc, i)
}

// userInfo finds the password of the URL whose authority begins at i.
func userInfo(sc *scanner, i int) (span, bool) {
	const longest = 512
	s := sc.s
	sep, at := -1, -1
	end := min(len(s), i+longest)
	j := i
scan:
	for ; j < end; j++ {
		switch c := s[j]; {
		case c == ':' && sep < 0:
			sep = j
		case c == '@':
			at = j // a password may hold one too
		case authorityEnds[c]:
			break scan
		}
	}
	if sep < 0 || at <= sep+1 {
		return span{}, false
	}
	// Behind a mark an address may have been, and its @ with it.
	return span{sep + 1, at, password}, !strings.Contains(s[i:j], markStart) && !placeholder(s[sep+1:at])
}

// assignment finds the value behind a name and the separator at i: an
// environment variable, a member of a JSON object, a line of a configuration, a
// header, a query parameter, a flag.
func assignment(sc *scanner, i int) (span, bool) {
	s := sc.s
	end := i
	for end > sc.floor && (s[end-1] == ' ' || s[end-1] == ':' && s[i] == '=') { // "name := value"
		end--
	}
	end = sc.skipQuoteBack(end)
	if end <= sc.floor {
		return span{}, false
	}
	how, header := sc.nameBefore(end)
	switch {
	case how == strong && s[i] == '=' && end == i && capital[s[end-1]]:
		how = certain
	case s[i] == '=' && end-4 >= sc.floor && (s[end-4:end] == "?sig" || s[end-4:end] == "&sig"):
		how = weak // of a shared access signature
	}
	if how == none && !header {
		return span{}, false
	}
	at := i + 1
	compared := false
	for at < len(s) && (s[at] == '=' || s[at] == '>') {
		compared = compared || s[at] == '='
		at++
	}
	if s[i] == ':' && compared {
		return span{}, false // the equals sign decides
	}
	at = run(s, at, blanks)
	if header {
		return authorization(sc, at)
	}
	v := sc.valueAt(at)
	switch {
	case v.quote == 0 && compared, !v.secret(how):
	default:
		return span{v.from, v.to, credential}, true
	}
	// "password: str = value" names the type first.
	if next := run(s, v.to, blanks); s[i] == ':' && isType(s[v.from:v.to]) && next < len(s) && s[next] == '=' {
		if v = sc.valueAt(run(s, next+1, blanks)); v.secret(how) {
			return span{v.from, v.to, credential}, true
		}
	}
	return span{}, false
}

// element finds the text of an XML element whose start tag ends at i.
func element(sc *scanner, i int) (span, bool) {
	const longest = 40
	s := sc.s
	from := max(sc.floor, i-longest)
	tag := strings.LastIndexByte(s[from:i], '<')
	if tag < 0 || run(s, from+tag+1, dots) != i {
		return span{}, false
	}
	how, _ := sc.nameBefore(i)
	v := sc.valueAt(i + 1)
	return span{v.from, v.to, credential}, v.quote == 0 && v.secret(how) && v.to < len(s) && s[v.to] == '<'
}

// userFlag finds the password of curl's -u user:password.
func userFlag(sc *scanner, i int) (span, bool) {
	s := sc.s
	at := i
	for _, flag := range []string{"-u ", "--user "} {
		if strings.HasPrefix(s[i:], flag) {
			at = i + len(flag)
		}
	}
	if at == i || sc.before(i) > ' ' {
		return span{}, false
	}
	at = run(s, at, opening)
	sep := run(s, at, local)
	if sep == at || sep >= len(s) || s[sep] != ':' {
		return span{}, false
	}
	v := sc.valueAt(sep + 1)
	return span{v.from, v.to, password}, v.quote == 0 && v.secret(strong) && hasAny(v.text, letter)
}

// skipQuoteBack steps back over a quote around a name, escaped or not.
func (sc *scanner) skipQuoteBack(end int) int {
	s := sc.s
	for range 3 {
		if end > sc.floor && (s[end-1] == '"' || s[end-1] == '\'' || s[end-1] == '`' || s[end-1] == '\\' || s[end-1] == '*') {
			end--
		}
	}
	return end
}

// authorization finds the credential of an Authorization header, with or without
// its scheme.
func authorization(sc *scanner, i int) (span, bool) {
	s := sc.s
	i = run(s, i, opening)
	if end := run(s, i, letter); end > i && end < len(s) && s[end] == ' ' {
		i = run(s, end, blanks) // the scheme
	}
	v := sc.valueAt(i)
	return span{v.from, v.to, credential}, v.to-v.from >= 8 && v.secret(strong)
}

// bearer finds a bearer credential outside a header.
func bearer(sc *scanner, i int) (span, bool) {
	const word, shortest = "bearer ", 16
	s := sc.s
	if len(s)-i < len(word) || !strings.EqualFold(s[i:i+len(word)], word) {
		return span{}, false
	}
	v := sc.valueAt(run(s, i+len(word), blanks))
	return span{v.from, v.to, credential}, v.quote == 0 && v.to-v.from >= shortest && v.secret(weak)
}

var (
	capital = bytesOf("AZ", "")
	// authorityEnds are the bytes no authority of a URL holds.
	authorityEnds = bytesOf("\x00 ", "/?#\"'`<>()\\")
	blanks        = bytesOf("", " \t")
	opening       = bytesOf("", "\"'`*\\")
)
