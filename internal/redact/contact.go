package redact

import "strings"

// emails and phones are personal data rather than secrets. Addresses go first,
// because digits before an @ are no number.
var (
	emails = &pass{any: [256]rule{'[': mark, '@': emailAddress}}
	phones = &pass{any: [256]rule{'[': mark, '+': phoneNumber}}
)

var (
	local  = bytesOf("azAZ09", "._%+-")
	domain = bytesOf("azAZ09", ".-")
)

// emailAddress finds the address around the @ at i.
func emailAddress(sc *scanner, i int) (span, bool) {
	const longest = 64 // bytes before the @, by RFC 5321
	s := sc.s
	from := i
	for from > sc.floor && i-from < longest && local[s[from-1]] {
		from--
	}
	to := run(s, i+1, domain)
	for to > i+1 && !alnum[s[to-1]] {
		to--
	}
	dot := strings.LastIndexByte(s[i+1:to], '.')
	return span{from, to, email}, from < i && dot > 0 && to-(i+1+dot) >= 3
}

// phoneNumber finds a number in international form, with blanks, dots, dashes or
// brackets between its digits.
func phoneNumber(sc *scanner, i int) (span, bool) {
	const fewest, most = 8, 15 // digits, by E.164
	s := sc.s
	n, to := 0, i+1
	for j := i + 1; j < len(s); j++ {
		switch c := s[j]; {
		case digit[c]:
			if n++; n > most {
				return span{}, false
			}
			to = j + 1
			continue
		case n > 0 && j-to < 2 && strings.IndexByte(" .-()/", c) >= 0:
			continue
		}
		break
	}
	b := sc.before(i)
	return span{i, to, phone}, n >= fewest && !alnum[b] && !wordAt(s, to)
}
