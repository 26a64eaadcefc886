package redact

import "strings"

// noun is a word for a secret in a sentence.
type noun struct {
	word string
	strength
}

var nouns = []noun{
	{"password", strong},
	{"passphrase", strong},
	{"passcode", strong},
	{"pwd", strong},
	{"passwd", strong},
	{"passwort", strong},
	{"kennwort", strong},
	{"contraseña", strong},
	{"mot de passe", strong},
	{"senha", strong},
	{"secret", weak},
	{"token", weak},
	{"api key", weak},
	{"access key", weak},
	{"api-key", weak},
	{"secret key", weak},
}

// links join a secret's name and its value: "my password is", "changed the
// password to", "with password".
var links = strings.Fields("is was ist war lautet es est é to be auf = :")

// prepositions begin what may stand between the two: "the password for the
// router is".
var prepositions = strings.Fields("for of at on to in from has had should will von für zum vom wurde del de du da do para pour")

// oneOf reports whether word is in list, whatever its case.
func oneOf(list []string, word string) bool {
	for _, w := range list {
		if len(w) == len(word) && strings.EqualFold(w, word) {
			return true
		}
	}
	return false
}

// spokenBy groups nouns by their first two bytes, in any case.
func spokenBy() map[string][]noun {
	out := map[string][]noun{}
	for _, n := range nouns {
		low, up := n.word[:2], strings.ToUpper(n.word[:2])
		for _, start := range []string{low, up[:1] + low[1:], up} {
			out[start] = append(out[start], n)
		}
	}
	return out
}

// spoken finds secrets that are told in a sentence. Because most sentences about
// passwords tell none, the value has to look like one, or to stand in quotes.
func spoken(list []noun) rule {
	return func(sc *scanner, i int) (span, bool) {
		s := sc.s
		for _, n := range list {
			end := i + len(n.word)
			if end >= len(s) || s[end] != ' ' && s[end] != ':' || s[i+2]|0x20 != n.word[2] || !strings.EqualFold(s[i:end], n.word) {
				continue
			}
			if v := sc.told(end, n.strength, sc.flag(i)); v.whole {
				return span{v.from, v.to, credential}, true
			}
		}
		return span{}, false
	}
}

// flag reports whether the word at i is the end of a command line flag.
func (sc *scanner) flag(i int) bool {
	for i > sc.floor && (letter[sc.s[i-1]] || sc.s[i-1] == '-') {
		i--
	}
	return strings.HasPrefix(sc.s[i:], "--")
}

// told reads on behind a noun for its value: an optional phrase, a link, the
// value. After a flag or a strong noun the value may follow at once. The result
// is not whole if there is none.
func (sc *scanner) told(i int, how strength, flag bool) value {
	const phrase = 5 // words between the noun and its link
	s := sc.s
	word, at := nextWord(s, i)
	if arrow := run(s, i, blanks); strings.HasPrefix(s[arrow:], "->") {
		word, at = "=", arrow+len("->")
	}
	if (flag || how == strong) && !plain(s, word, at) {
		if v := sc.valueAt(at - len(word)); v.told(how, s) {
			return v
		}
	}
	if flag {
		return value{}
	}
	for n := 0; n <= phrase && word != ""; n++ {
		if oneOf(links, word) {
			from := run(s, at, blanks)
			if from < len(s) && s[from] == ':' { // "the password is: "
				from = run(s, from+1, blanks)
			}
			if next, end := nextWord(s, at); strings.EqualFold(next, "now") || strings.EqualFold(next, "jetzt") {
				from = run(s, end, blanks)
			}
			if v := sc.valueAt(from); v.told(how, s) {
				return v
			}
		}
		if n == 0 && (how == weak || !oneOf(prepositions, word)) {
			break
		}
		word, at = nextWord(s, at)
	}
	return value{}
}

// plain reports whether word, which ends at end, is just a word.
func plain(s, word string, end int) bool {
	return word != "" && letter[word[0]] && (end == len(s) || blanks[s[end]])
}

// nextWord returns the word behind i, on the same line, and its end: letters, a
// colon, an equals sign. Anything else ends the sentence as far as we are
// concerned.
func nextWord(s string, i int) (string, int) {
	const longest = 24
	from := run(s, i, blanks)
	end := from
	for end < len(s) && end-from < longest && (letter[s[end]] || s[end] >= 0x80 || end > from && (s[end] == '-' || s[end] == '\'')) {
		end++
	}
	if end == from && end < len(s) && (s[end] == ':' || s[end] == '=') {
		end++
	}
	return s[from:end], end
}

// told reports whether v is a secret although only a sentence says so.
func (v value) told(how strength, s string) bool {
	t := v.text
	if !v.secret(how) {
		return false
	}
	if v.quote != 0 {
		return how >= strong || random(t)
	}
	if technical(t) || strings.Contains(t, "@") && strings.Contains(t, ".") && hasAny(t, letter) && !hasAny(t, digit) {
		return false
	}
	if run(t, 0, digit) == len(t) { // a number is a secret unless it counts something
		next, _ := nextWord(s, v.to)
		return how == strong && next == ""
	}
	return how == strong || len(t) >= 8 && hasAny(t, digit) && hasAny(t, letter)
}

// technical reports whether t is the name of a technique or a product with a
// digit in it.
func technical(t string) bool {
	low := strings.ToLower(t)
	for _, name := range []string{"base64", "base32", "sha1", "sha2", "sha5", "sha-", "md5", "utf-8", "utf8", "aes", "2fa", "mfa", "argon2", "oauth", "1password", "x509", "pbkdf2", "ed25519", "rs256", "hs256"} {
		if strings.HasPrefix(low, name) {
			return true
		}
	}
	return false
}
