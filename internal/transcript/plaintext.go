package transcript

import (
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// plainText is a transcript as people write and copy it: a label such as "User:" or
// "[2026-01-31 10:00] Ann:" begins a turn. Prose and logs have such lines, too: what
// is not clearly a conversation is refused.
var plainText = format{name: "plaintext", read: readPlainText}

const (
	wayOutText = `no transcript: that needs two speakers, each turn beginning on a line of its own as in "User: …" and "Assistant: …", or "[2026-01-31 10:00] Ann: …"`
	// WhatsApp writes dates in the order of the phone's language, so day and month
	// cannot be told apart, and gives its messages no ids.
	wayOutWhatsApp = `a WhatsApp chat, whose dates depend on the phone it comes from: rewrite its lines as "[2026-01-31 10:00] Ann: …" and import that`
)

// Compiled when the first text is looked at: classes of Unicode take milliseconds, and
// most commands read none.
var (
	labelLine = lazily(`^(?:\*\*|__)?(?:\[([^\[\]]{4,40})\]\s+)?(?:\*\*|__)?(\p{L}(?:[\p{L}\p{M}\p{N}'’-]|\.? ){0,39})(?:\*\*|__)?:(?:\*\*|__)?(?:\s|$)`)
	whatsApp  = lazily(`(?m)^[\x{200e}\x{202a}]?\[?\d{1,2}[./-]\d{1,2}[./-]\d{2,4},? \d{1,2}[:.]\d{2}(?:[:.]\d{2})?(?:[ \x{a0}\x{202f}]?[AaPp]\.?[Mm]\.?)?(?:\]| -) [^:]+: `)
)

func lazily(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// matchText claims a file for plainText if its first lines may be a transcript's.
func (im *importer) matchText(first []record) *format {
	if im.o.Format != "" && im.o.Format != plainText.name {
		return nil
	}
	if im.o.Format == plainText.name || slices.ContainsFunc(first, func(r record) bool {
		return labelLine().Match(r.raw) || whatsApp().Match(r.raw)
	}) {
		return &plainText
	}
	return nil
}

func readPlainText(f *file) {
	text, ok := f.wholeText()
	if !ok {
		f.refuse("too_large", "a text larger than a transcript can be: cut it into files")
		return
	}
	speakers := speakersOf(text, f.named, f.im.o.Format != "")
	if len(speakers) < 2 {
		detail := wayOutText
		if whatsApp().MatchString(text) {
			detail = wayOutWhatsApp
		}
		f.refuse("unsupported_format", detail)
		return
	}
	c := f.conversation("")
	var turn Turn
	line, body := 0, 0
	add := func(end int) {
		turn.Text = text[body:end]
		switch {
		case line > 0:
			c.add(turn, line)
		case strings.TrimSpace(turn.Text) != "":
			blank := len(turn.Text) - len(strings.TrimLeftFunc(turn.Text, unicode.IsSpace))
			f.warn("text_before_first_label", 1+strings.Count(turn.Text[:blank], "\n"), "no speaker is named: dropped")
		}
	}
	for l := range labels(text, f.im.o.Zone) {
		role, ok := speakers[l.name]
		if !ok {
			continue
		}
		add(l.start)
		turn = Turn{Role: role, Date: l.date}
		if role == RoleOther {
			turn.Speaker = l.name
		}
		line, body = l.line, l.body
	}
	add(len(text))
	c.end()
}

// wholeText is the file's text, at most of the size of a record: who the speakers
// are is clear only at its end.
func (f *file) wholeText() (string, bool) {
	var b strings.Builder
	line := 1
	for rec := range f.lines {
		for ; line < rec.line; line++ {
			b.WriteByte('\n')
		}
		if b.Len()+len(rec.raw) > f.im.o.MaxRecord {
			return "", false
		}
		b.Write(rec.raw)
		if !utf8.Valid(rec.raw) {
			f.warn("invalid_utf8", rec.line, "bytes that are not UTF-8 were replaced by U+FFFD")
		}
	}
	return b.String(), true
}

// refuse rejects a file that only looked like one of this format.
func (f *file) refuse(code, detail string) {
	if f.reason == "" {
		f.format = nil
		f.reject(code, detail)
	}
}

// label is the beginning of a turn.
type label struct {
	name    string
	date    time.Time
	stamped bool
	line    int
	// start is where its line begins, and body where the text after it does.
	start, body int
}

// maxLabel is beyond the longest label in bytes: a stamp and a name of 40 letters
// each, and marks.
const maxLabel = 400

// labels are the lines of text that may begin a turn, outside fenced code.
func labels(text string, zone *time.Location) iter.Seq[label] {
	return func(yield func(label) bool) {
		fenced := false
		line := 0
		for start := 0; start < len(text); {
			line++
			end := len(text)
			if i := strings.IndexByte(text[start:], '\n'); i >= 0 {
				end = start + i
			}
			rest := text[start:end]
			var m []int
			if !fenced && strings.IndexByte(rest[:min(len(rest), maxLabel)], ':') >= 0 {
				m = labelLine().FindStringSubmatchIndex(rest)
			}
			if m != nil {
				l := label{name: strings.TrimSpace(rest[m[4]:m[5]]), line: line, start: start, body: start + m[1]}
				ok := len(strings.Fields(l.name)) <= 4
				if m[2] >= 0 {
					var dated bool
					l.date, dated = labelDate(rest[m[2]:m[3]], zone)
					l.stamped, ok = true, ok && dated
				}
				if ok && !yield(l) {
					return
				}
				rest = rest[m[1]:]
			}
			if strings.HasPrefix(strings.TrimLeft(rest, " "), "```") {
				fenced = !fenced
			}
			start = end + 1
		}
	}
}

// labelDate reads a stamp; a time without a day is one, of unknown date.
func labelDate(s string, zone *time.Location) (time.Time, bool) {
	if t, ok := parseDateIn(s, zone); ok {
		return t, true
	}
	for _, layout := range []string{"15:04", "15:04:05", "3:04 PM"} {
		if _, err := time.Parse(layout, s); err == nil {
			return time.Time{}, true
		}
	}
	return time.Time{}, false
}

// speakersOf maps the names whose labels begin turns to their role: the fixed roles
// if one occurs, else names with a stamp, else, in a file the user named, names that
// recur. Directories are full of records such as "Files: x" and "License: y".
// forced says that the user calls it a transcript, whatever it looks like.
func speakersOf(text string, named, forced bool) map[string]string {
	type tally struct {
		labels, sentences int
		stamped           bool
	}
	names := map[string]*tally{}
	fixed := map[string]string{}
	for l := range labels(text, time.UTC) {
		if role := fixedRole(l.name); role != "" {
			fixed[l.name] = role
		}
		n := names[l.name]
		if n == nil {
			n = &tally{}
			names[l.name] = n
		}
		n.labels++
		n.stamped = n.stamped || l.stamped
		body, _, _ := strings.Cut(text[l.body:], "\n")
		if len(strings.Fields(body)) >= 3 {
			n.sentences++
		}
	}
	roles := slices.Compact(slices.Sorted(maps.Values(fixed)))
	switch {
	case len(roles) == 2:
		return fixed
	case len(fixed) == 1 && (fixed["Q"] != "" || fixed["A"] != ""): // alone an initial
	case len(roles) == 1 && !forced:
		return nil
	}
	stamped, recurring := map[string]string{}, map[string]string{}
	var lines, sentences int
	for name, n := range names {
		switch first, _ := utf8.DecodeRuneInString(name); {
		case !forced && slices.Contains(notNames, strings.ToLower(name)):
		case n.stamped:
			stamped[name] = RoleOther
		case n.labels > 1 && (forced || named && !unicode.IsLower(first)):
			recurring[name] = RoleOther
			lines += n.labels
			sentences += n.sentences
		}
	}
	// Records have the same shape, but do not speak.
	if len(stamped) >= 2 || !forced && 3*sentences < lines {
		return stamped
	}
	maps.Copy(recurring, stamped)
	return recurring
}

// notNames begin lines of logs, mails, records and prose.
var notNames = []string{
	"trace", "debug", "info", "notice", "warn", "warning", "error", "critical", "fatal", "alert",
	"from", "to", "cc", "bcc", "date", "subject", "sent", "re",
	"id", "name", "title", "type", "status", "version", "description", "summary", "author", "url", "email", "phone", "address",
	"note", "notes", "tip", "hint", "example", "important", "caution", "todo", "fixme", "step", "result", "input", "output",
}

func fixedRole(name string) string {
	switch strings.ToLower(name) {
	case RoleUser, "human":
		return RoleUser
	case RoleAssistant, "ai":
		return RoleAssistant
	}
	switch name {
	case "Q":
		return RoleUser
	case "A":
		return RoleAssistant
	}
	return ""
}
