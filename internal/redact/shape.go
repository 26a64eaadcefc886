package redact

import "strings"

// shapes are the secrets that are known by their own form.
var shapes = func() *pass {
	p := &pass{}
	p.any['['] = mark
	p.any['-'] = pem
	byStart := map[string][]vendor{}
	for _, v := range vendors {
		byStart[v.prefix[:2]] = append(byStart[v.prefix[:2]], v)
	}
	for start, list := range byStart {
		p.starting(start, anyVendor(list))
	}
	p.starting("ey", jsonWebToken)
	for first := byte('3'); first <= '6'; first++ {
		for second := byte('0'); second <= '9'; second++ {
			p.starting(string([]byte{first, second}), cardNumber)
		}
	}
	return p
}()

// vendor is the form of one vendor's tokens: the prefix, then at least min bytes
// of rest. Lengths are a little below what vendors document, because pasted
// tokens lose their ends.
type vendor struct {
	prefix string
	rest   *set
	min    int
}

var (
	upper = bytesOf("AZ09", "")
	hex   = bytesOf("09afAF", "")
	url64 = bytesOf("azAZ09", "_-")
	under = bytesOf("azAZ09", "_")
	dash  = bytesOf("azAZ09", "-")
	dots  = bytesOf("azAZ09", "_-.")
	path  = bytesOf("azAZ09", "_-/")

	base64 = bytesOf("azAZ09", "+/=")
	dashes = bytesOf("", "-")
)

var vendors = []vendor{
	{"ghp_", alnum, 30},
	{"gho_", alnum, 30},
	{"ghu_", alnum, 30},
	{"ghs_", alnum, 30},
	{"ghr_", alnum, 30},
	{"github_pat_", under, 22},
	{"glpat-", dots, 20},
	{"gldt-", url64, 20},
	{"glrt-", dots, 20},
	{"glptt-", url64, 20},
	{"glcbt-", url64, 20},
	{"glft-", url64, 20},
	{"glsoat-", url64, 20},
	{"glagent-", url64, 20},
	{"gloas-", url64, 20},
	{"AKIA", upper, 16},
	{"ASIA", upper, 16},
	{"ABIA", upper, 16},
	{"ACCA", upper, 16},
	{"sk-proj-", url64, 20},
	{"sk-svcacct-", url64, 20},
	{"sk-admin-", url64, 20},
	{"sk-ant-", url64, 20},
	{"sk-or-v1-", hex, 32},
	{"sk-lf-", dash, 32},
	{"sk-", alnum, 20},
	{"sk_live_", alnum, 10},
	{"sk_test_", alnum, 10},
	{"rk_live_", alnum, 10},
	{"rk_test_", alnum, 10},
	{"whsec_", alnum, 20},
	{"gsk_", alnum, 40},
	{"xai-", alnum, 40},
	{"pplx-", alnum, 40},
	{"r8_", alnum, 30},
	{"nvapi-", url64, 40},
	{"hf_", alnum, 30},
	{"tvly-", dash, 24},
	{"fw_", alnum, 22},
	{"csk-", alnum, 40},
	{"AIza", url64, 30},
	{"ya29.", url64, 30},
	{"GOCSPX-", url64, 24},
	{"xoxb-", dash, 10},
	{"xoxp-", dash, 10},
	{"xoxa-", dash, 10},
	{"xoxr-", dash, 10},
	{"xoxs-", dash, 10},
	{"xoxe-", dash, 10},
	{"xoxe.xoxp-", dash, 10},
	{"xoxc-", dash, 10},
	{"xoxd-", dash, 10},
	{"xapp-", dash, 10},
	{"npm_", alnum, 30},
	{"pypi-", url64, 40},
	{"rubygems_", hex, 40},
	{"dckr_pat_", url64, 20},
	{"dop_v1_", hex, 40},
	{"doo_v1_", hex, 40},
	{"dor_v1_", hex, 40},
	{"dapi", hex, 32},
	{"SG.", dots, 40},
	{"shpat_", hex, 32},
	{"shpss_", hex, 32},
	{"shpca_", hex, 32},
	{"shppa_", hex, 32},
	{"hvs.", url64, 24},
	{"hvb.", url64, 24},
	{"glsa_", under, 32},
	{"glc_", alnum, 32},
	{"lin_api_", alnum, 32},
	{"figd_", url64, 32},
	{"sntrys_", dots, 40},
	{"ntn_", alnum, 40},
	{"tskey-", dash, 16},
	{"PMAK-", dash, 40},
	{"sq0atp-", url64, 20},
	{"sq0csp-", url64, 30},
	{"ATATT3", url64, 60},
	{"AGE-SECRET-KEY-1", upper, 50},
	{"LTAI", alnum, 16},
	{"pscale_pw_", url64, 30},
	{"sbp_", hex, 40},
	{"hooks.slack.com/services/", path, 30},
	{"discord.com/api/webhooks/", path, 60},
	{"discordapp.com/api/webhooks/", path, 60},
}

// anyVendor tries a list of vendors.
func anyVendor(list []vendor) rule {
	return func(sc *scanner, i int) (span, bool) {
		for _, v := range list {
			from := i + len(v.prefix)
			if from >= len(sc.s) || sc.s[from-1] != v.prefix[len(v.prefix)-1] || sc.s[i:from] != v.prefix {
				continue
			}
			end := run(sc.s, from, v.rest)
			for end > from && !alnum[sc.s[end-1]] { // the full stop of the sentence
				end--
			}
			// A random string of that length without a digit is one in hundreds;
			// a long identifier or a slug is not random.
			if end-from >= v.min && hasAny(sc.s[from:end], digit) && !wordAt(sc.s, end) {
				return span{i, end, token}, true
			}
		}
		return span{}, false
	}
}

// wordAt reports whether a word goes on at i, so that a token cannot end there.
func wordAt(s string, i int) bool { return i < len(s) && wordByte[s[i]] }

// jsonWebToken finds base64url segments joined by dots, the first of which is a
// JSON object ("eyJ" is the encoding of `{"`).
func jsonWebToken(sc *scanner, i int) (span, bool) {
	const shortest = 8 // bytes of a segment
	s := sc.s
	if !strings.HasPrefix(s[i:], "eyJ") {
		return span{}, false
	}
	end := run(s, i, url64)
	segments := 1
	for end < len(s) && s[end] == '.' {
		next := run(s, end+1, url64)
		if next-end <= shortest {
			break
		}
		end, segments = next, segments+1
	}
	return span{i, end, jwt}, segments >= 2 && end-i >= 3*shortest
}

// pem finds private keys in PEM form. Certificates and public keys stay. A paste
// that was cut has no end line; then the key reaches to the next blank line,
// because what follows that is the next turn of the conversation.
func pem(sc *scanner, i int) (span, bool) {
	const begin, rule, longest = "-----BEGIN ", "-----", 64
	s := sc.s
	if !strings.HasPrefix(s[i:], begin) {
		return span{}, false
	}
	label := s[i+len(begin) : min(len(s), i+len(begin)+longest)]
	n := strings.Index(label, rule)
	if n < 0 || !strings.Contains(label[:n], "PRIVATE KEY") {
		return span{}, false
	}
	body := i + len(begin) + n + len(rule)
	for at := body; ; {
		k := strings.Index(s[at:], rule)
		if k < 0 {
			return span{i, cut(s, body, len(s)), privateKey}, true
		}
		at += k
		switch {
		case strings.HasPrefix(s[at:], begin):
			return span{i, cut(s, body, at), privateKey}, true
		case strings.HasPrefix(s[at:], "-----END "):
			end := at + len("-----END ")
			if n := strings.Index(s[end:min(len(s), end+longest)], rule); n >= 0 {
				return span{i, end + n + len(rule), privateKey}, true
			}
			return span{i, end, privateKey}, true
		}
		at = run(s, at, dashes)
	}
}

// cut returns the end of a private key whose end line is missing: the first
// blank line of s[from:to] that no base64 follows (a blank line also separates
// the headers of an encrypted key from its data).
func cut(s string, from, to int) int {
	const shortest = 40 // bytes of a line of data
	for at := from; ; {
		k := strings.Index(s[at:to], "\n\n")
		if k < 0 {
			return to
		}
		at += k
		if run(s, at+2, base64)-at-2 < shortest {
			return at
		}
		at += 2
	}
}

// cardNumber finds payment cards: 14 to 16 digits of a known issuer, in one
// piece or grouped as printed, with a valid check digit.
func cardNumber(sc *scanner, i int) (span, bool) {
	s := sc.s
	if b := sc.before(i); b == '+' || b == '-' || b == '.' || b == '_' || b == '/' || b == '#' {
		return span{}, false
	}
	var digits [17]byte
	var room [4]int
	groups := room[:0]
	n, group, end := 0, 0, i
	var sep byte
	for j := i; j < len(s); j++ {
		c := s[j]
		if digit[c] {
			if n == len(digits) {
				return span{}, false
			}
			digits[n] = c - '0'
			n, group, end = n+1, group+1, j+1
			continue
		}
		if c != ' ' && c != '-' || sep != 0 && c != sep || j+1 == len(s) || !digit[s[j+1]] || n >= 14 {
			break
		}
		sep = c
		groups, group = append(groups, group), 0
	}
	groups = append(groups, group)
	if end < len(s) && (wordByte[s[end]] || s[end] == '_' || s[end] == '.' && end+1 < len(s) && digit[s[end+1]]) {
		return span{}, false
	}
	return span{i, end, card}, issued(digits[:n]) && printed(groups, n) && luhn(digits[:n])
}

// issued reports whether an issuer numbers its cards like this.
func issued(d []byte) bool {
	if len(d) < 14 {
		return false
	}
	two := int(d[0])*10 + int(d[1])
	four := two*100 + int(d[2])*10 + int(d[3])
	switch len(d) {
	case 14:
		return two == 36 || two == 38 || four/10 >= 300 && four/10 <= 305
	case 15:
		return two == 34 || two == 37
	case 16:
		return d[0] == 4 || two >= 51 && two <= 55 || four == 6011 || two == 65 || two == 62 ||
			four >= 3528 && four <= 3589 || four/10 >= 644 && four/10 <= 649
	}
	return false
}

// printed reports whether n digits are grouped as on a card, or not at all.
func printed(groups []int, n int) bool {
	switch {
	case len(groups) == 1:
		return true
	case n == 16:
		return len(groups) == 4 && groups[0] == 4 && groups[1] == 4 && groups[2] == 4
	default:
		return len(groups) == 3 && groups[0] == 4 && groups[1] == 6
	}
}

// luhn checks the check digit.
func luhn(d []byte) bool {
	sum := 0
	for i, v := range d {
		w := int(v)
		if (len(d)-i)%2 == 0 {
			if w *= 2; w > 9 {
				w -= 9
			}
		}
		sum += w
	}
	return sum%10 == 0
}
