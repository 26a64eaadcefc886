package heuristic

import "strings"

// shape is what a line looks like. Only prose and list items can be memories.
type shape uint8

const (
	blank shape = iota
	prose
	item // of a list
	heading
	quotation // "> …": somebody else's words
	table
	tableHeader
	rule    // of a table or between sections
	fence   // opens or closes a block of code
	listing // source, log, diff, data, trace
)

// shapeOf tells the shape of text[i:end] and where its words begin. prev is the
// shape of the line before.
func shapeOf(text string, i, end int, prev shape, fenced bool) (shape, int) {
	line := text[i:end]
	body := strings.TrimLeft(line, " \t\r")
	indent := len(line) - len(body)
	body = strings.TrimRight(body, " \t\r")
	from := i + indent
	if strings.HasPrefix(body, "```") || strings.HasPrefix(body, "~~~") {
		return fence, from
	}
	switch {
	case fenced:
		return listing, from
	case body == "":
		return blank, from
	case prev == listing && (indent >= 2 || strings.HasPrefix(body, "note: ")):
		return listing, from
	}
	switch body[0] {
	case '#':
		if n := len(body) - len(strings.TrimLeft(body, "#")); n < len(body) && body[n] == ' ' {
			return heading, from + n + 1
		}
	case '>':
		return quotation, from + 1
	case '|':
		if strings.Trim(body, "|-: ") == "" {
			return rule, from
		}
		return table, from + 1
	case '-', '=', '*', '_':
		if len(body) > 2 && strings.Trim(body, body[:1]+" ") == "" {
			return rule, from
		}
	}
	if n := bullet(body); n > 0 {
		if codeLine(body[n:]) {
			return listing, from
		}
		return item, from + n
	}
	if codeLine(body) {
		return listing, from
	}
	return prose, from
}

// bullet is the length of the list mark a line opens with, or 0.
func bullet(s string) int {
	n := 0
	switch s[0] {
	case '-', '*', '+':
		n = 1
	default:
		if strings.HasPrefix(s, "•") {
			n = len("•")
			break
		}
		for n < len(s) && n < 3 && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		if n == 0 || n == len(s) || s[n] != '.' && s[n] != ')' {
			return 0
		}
		n++
	}
	if n >= len(s) || s[n] != ' ' {
		return 0
	}
	for n < len(s) && s[n] == ' ' {
		n++
	}
	if strings.HasPrefix(s[n:], "[ ] ") || strings.HasPrefix(s[n:], "[x] ") {
		n += len("[ ] ")
	}
	return n
}

// codePrefixes open lines that no person writes as prose.
var codePrefixes = []string{
	"diff --git ", "index ", "@@ ", "+++ ", "--- a/", "--- b/", "$ ", "% ", "#!", "//", "/*", "*/", "</", "<?", "<!",
	"Traceback (", "File \"", "npm ERR!", "npm WARN", "panic: ", "goroutine ", "error: ", "warning: ", "fatal: ",
	"error[", "FAIL\t", "ok  \t", "--- FAIL", "--- PASS", "=== RUN", ">>> ", "PS C:\\", "@media", "#include", "#define",
}

var codeWords = []string{
	"func ", "function ", "def ", "class ", "import ", "from ", "return ", "const ", "let ", "var ", "if ", "for ", "while ",
	"else", "elif ", "public ", "private ", "static ", "package ", "type ", "struct ", "export ", "async ", "await ", "fn ",
	"use ", "try", "catch", "throw ", "new ", "switch ", "case ", "print", "console.",
}

var sqlWords = []string{"SELECT ", "INSERT ", "UPDATE ", "DELETE ", "CREATE ", "ALTER ", "DROP ", "FROM ", "WHERE ", "JOIN ", "VALUES ", "GRANT "}

var levels = []string{"ERROR", "WARN", "INFO", "DEBUG", "FATAL", "TRACE", "CRITICAL", "NOTICE"}

// codeLine reports whether a trimmed line is source, a diff, data, a log line or
// a trace, judged by its shape.
func codeLine(s string) bool {
	if s == "" {
		return false
	}
	c := s[0]
	if ascii7(c) == '.' {
		for _, p := range codePrefixes {
			if strings.HasPrefix(s, p) {
				return true
			}
		}
		if (c == '+' || c == '-') && len(s) > 1 && (s[1] == '\t' || s[1] == '+' || ascii7(s[1]) == 'a' && c == '+') {
			return true
		}
		if (c == '{' || c == '[' || c == '}' || c == ']' || c == '"') && (strings.Contains(s, `":`) || strings.Trim(s, "{}[](),;\"") == "") {
			return true
		}
		if c == '}' || c == ')' && len(s) < 4 {
			return true
		}
		if c == '[' && logLine(s[1:]) {
			return true
		}
	} else {
		if lowerPrefix(s) || logLine(s) || commitLine(s) || errorLine(s) {
			return true
		}
		if c >= 'A' && c <= 'Z' && hasAny(s, sqlWords) {
			return true
		}
	}
	return symbols(s)
}

func hasAny(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

func lowerPrefix(s string) bool {
	switch s[0] {
	case 'd', 'n', 'p', 'g', 'e', 'w', 'f', 'i', 'o', 'T', 'F', 'P':
		return hasAny(s, codePrefixes) && (!strings.HasPrefix(s, "index ") || !strings.Contains(s, " the "))
	}
	return false
}

// logLine: a level first, or a date or time with a level after it.
func logLine(s string) bool {
	if s == "" {
		return false
	}
	if s[0] >= '0' && s[0] <= '9' {
		if len(s) < 8 || s[2] != ':' && s[4] != '-' && s[4] != '/' {
			return false
		}
		head := s[:min(len(s), 60)]
		for _, l := range levels {
			if strings.Contains(head, l) {
				return true
			}
		}
		return false
	}
	for _, l := range levels {
		if strings.HasPrefix(s, l) && len(s) > len(l) && strings.IndexByte(" :[]\t", s[len(l)]) >= 0 {
			return true
		}
	}
	return false
}

// commitLine: "commit 1a2b3c…", or an abbreviated hash first.
func commitLine(s string) bool {
	s = strings.TrimPrefix(s, "commit ")
	n, digits, letters := 0, 0, 0
	for n < len(s) && n <= 40 {
		switch c := s[n]; {
		case c >= '0' && c <= '9':
			digits++
		case c >= 'a' && c <= 'f':
			letters++
		default:
			return n >= 6 && digits > 0 && letters > 0 && (c == ' ' || c == ':')
		}
		n++
	}
	return n >= 6 && digits > 0 && letters > 0
}

// errorLine: "ValueError: …", "main.go:12:3: …".
func errorLine(s string) bool {
	n := strings.IndexByte(s, ':')
	if n <= 0 || n+1 >= len(s) {
		return false
	}
	w := s[:n]
	if strings.IndexByte(w, ' ') >= 0 {
		return false
	}
	if strings.HasSuffix(w, "Error") || strings.HasSuffix(w, "Exception") {
		return true
	}
	return strings.IndexByte(w, '.') > 0 && s[n+1] >= '0' && s[n+1] <= '9'
}

// weights are what the signs of programming languages weigh in a line.
var weights = func() (w [256]uint8) {
	for _, c := range []byte("{};=<>|$\\[]") {
		w[c] = 2
	}
	for _, c := range []byte("()_\"&#") {
		w[c] = 1
	}
	return w
}()

// symbols weighs the signs of programming languages against the length of the
// line. What stands between back quotes is left out: prose may quote code.
func symbols(s string) bool {
	weight := 0
	for i := range len(s) {
		weight += int(weights[s[i]])
	}
	if weight == 0 {
		return false
	}
	size := len(s)
	for i, from := 0, -1; i < len(s); i++ { // take the back-quoted spans out again
		switch {
		case s[i] != '`':
		case from < 0:
			from = i
		default:
			for _, c := range []byte(s[from:i]) {
				weight -= int(weights[c])
			}
			size -= i - from
			from = -1
		}
	}
	weight += 4 * (strings.Count(s, "||") + strings.Count(s, "==") + strings.Count(s, "=>"))
	last := s[len(s)-1]
	if last == '{' || last == ';' && weight > 4 {
		return true
	}
	if weight >= 4 && hasAny(s, codeWords) && strings.ContainsAny(s, "(){}=;") && weight*8 >= size {
		return true
	}
	return weight >= 6 && weight*4 >= size
}
