package transcript

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPlainText(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, in string
		want     []string
	}{
		{"roles", "User: Hi\nAssistant: Yes.\n", []string{"User: Hi\n\nAssistant: Yes."}},
		{"human", "Human: Hi\nAI: Yes.\n", []string{"User: Hi\n\nAssistant: Yes."}},
		{"lower case", "user: Hi\nassistant:\nYes.\n", []string{"User: Hi\n\nAssistant: Yes."}},
		{"questions", "Q: Hi\nA: Yes.\nQ: Why?", []string{"User: Hi\n\nAssistant: Yes.", "User: Why?"}},
		{"CRLF", "User: Hi\r\n\r\nthere\r\nAssistant: Yes.\r\n", []string{"User: Hi\n\nthere\n\nAssistant: Yes."}},
		{"bold", "**User:** Hi\n\n**Assistant**: Yes.\n__User__: So", []string{"User: Hi\n\nAssistant: Yes.", "User: So"}},
		{"other names are body", "User: Hi\nBob: said so\nBob: twice\nAssistant: Yes.", []string{"User: Hi\nBob: said so\nBob: twice\n\nAssistant: Yes."}},
		{"initials", "A: The ferry is at nine.\nB: Bring the blue bag.\nA: I will do that.\nB: And some bread.", []string{"A: The ferry is at nine.", "B: Bring the blue bag.", "A: I will do that.", "B: And some bread."}},
		{"roles of two kinds", "User: Hi\nA: Yes.", []string{"User: Hi\n\nAssistant: Yes."}},
		{"in the middle of a line", "User: say User: and Assistant: x\nAssistant: Yes.", []string{"User: say User: and Assistant: x\n\nAssistant: Yes."}},
		{"indented", "User: Hi\n  Assistant: quoted\nAssistant: Yes.", []string{"User: Hi\n  Assistant: quoted\n\nAssistant: Yes."}},
		{"code", "User: Hi\n```\nAssistant: no\n```\nAssistant: Yes.", []string{"User: Hi\n```\nAssistant: no\n```\n\nAssistant: Yes."}},
		{"code on the label's line", "User: ```\nAssistant: no\n```\nAssistant: Yes.", []string{"User: ```\nAssistant: no\n```\n\nAssistant: Yes."}},
		{"stamped roles", "[2024-05-01 10:22] User: Hi\n[10:23] Assistant: Yes.", []string{"User: Hi\n\nAssistant: Yes."}},
		{"stamped names", "[2024-05-01T10:22:00Z] ann: Hi\n[2024-05-01 10:23] Dr. Bo-Lee: Yes.", []string{"ann: Hi", "Dr. Bo-Lee: Yes."}},
		{"only the stamped names", "[10:22] Ann: Hi\nPlan: a b c\nPlan: d e f\n[10:23] Bo: Yes.", []string{"Ann: Hi\nPlan: a b c\nPlan: d e f", "Bo: Yes."}},
		{"recurring names", "Ann: The ferry is at nine.\nBo: Yes.\nAnn: Bring the blue bag.\nNote: once\nBo: I will do that.", []string{"Ann: The ferry is at nine.", "Bo: Yes.", "Ann: Bring the blue bag.\nNote: once", "Bo: I will do that."}},
		{"other scripts", "Анна: Паром уходит в девять.\n李雷: 好的 我 知道\nАнна: Возьми синюю сумку.\n李雷: 好的 没 问题", []string{"Анна: Паром уходит в девять.", "李雷: 好的 我 知道", "Анна: Возьми синюю сумку.", "李雷: 好的 没 问题"}},
		{"empty turns", "User:\nAssistant: Yes.", []string{"Assistant: Yes."}},
	}
	for _, tt := range tests {
		captures, sum := readText(t, Options{}, tt.in)
		require.Equal(t, tt.want, texts(captures), tt.name)
		require.Empty(t, sum.Warnings, tt.name)
		require.Equal(t, 0, sum.Exit(), tt.name)
	}
}

func TestPlainTextDatesAndLines(t *testing.T) {
	t.Parallel()

	captures, sum := readText(t, Options{}, "\n\n A preface,\nin two lines\n[2024-05-01 10:22] Ann: Hi\n\n[10:23] Bo: Yes.\xff\n")
	require.Equal(t, []int{5, 7}, []int{captures[0].Line, captures[1].Line})
	require.Equal(t, "2024-05-01T10:22:00Z", captures[0].Date.Format("2006-01-02T15:04:05Z07:00"))
	require.True(t, captures[1].Date.IsZero())
	require.Equal(t, "Ann", captures[0].Turns[0].Speaker)
	require.ElementsMatch(t, []Problem{{File: "-", Code: "text_before_first_label", Line: 3}, {File: "-", Code: "invalid_utf8", Line: 7}}, places(sum.Warnings))
}

func TestPlainTextZone(t *testing.T) {
	t.Parallel()

	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	captures, _ := readText(t, Options{Zone: berlin}, "[2024-05-01 10:22] Ann: Hi\n[2024-12-01 10:22] Bo: Yes\n[2024-05-01T10:22:00+05:00] Ann: So\n[2024-05-01T10:22:00Z] Bo: No")
	hours := make([]int, 0, len(captures))
	for _, c := range captures {
		hours = append(hours, c.Date.Hour())
	}
	require.Equal(t, []int{8, 9, 5, 10}, hours)
	captures, _ = readText(t, Options{Zone: berlin}, `{"text":"x","date":"2024-05-01 10:22"}`)
	require.Equal(t, 10, captures[0].Date.Hour(), "in plain text alone")
}

func TestPlainTextRefuses(t *testing.T) {
	t.Parallel()

	tests := []struct{ name, in, says string }{
		{"prose", "Warning: the pass closes.\nNote: bring cash.\nPlan: go.", "two speakers"},
		{"one speaker", "Ann: The ferry is at nine.\nAnn: Bring the blue bag.", "two speakers"},
		{"one role", "User: Hi\nUser: Hello", "two speakers"},
		{"a role and a name", "User: The ferry is at nine.\nMara: Bring the blue bag.\nUser: I will do that.\nMara: And some bread.", "two speakers"},
		{"a role and stamped names", "[10:22] User: Hi\n[10:23] Mara: Yes.\n[10:24] Bo: No.", "two speakers"},
		{"one role under two names", "User: Hi\nHuman: Hello", "two speakers"},
		{"names that do not recur", "Ann: The ferry is at nine.\nBo: Bring the blue bag.", "two speakers"},
		{"a log", "[2024-05-01 10:22:00] INFO: server has started now\n[2024-05-01 10:22:01] ERROR: disk is full now\n[2024-05-01 10:22:01] ERROR: disk is full now\n[2024-05-01 10:22:00] INFO: and so on", "two speakers"},
		{"a log with channels", "[2024-05-01 10:22:00] app.INFO: server has started\n[2024-05-01 10:22:01] app.ERROR: disk is full", ""},
		{"records", strings.Repeat("Package: foo\nVersion: 1.0\n", 3), "two speakers"},
		{"mail", strings.Repeat("From: Ann of the office\nTo: Bo of the yard\nSubject: the boat and sea\n", 2), "two speakers"},
		{"notes", strings.Repeat("Note: mind the gap here\nTip: take the early boat\n", 2), "two speakers"},
		{"YAML", strings.Repeat("user: one two three\nhost: one two three\n", 2), "two speakers"},
		{"labels in code only", "Example\n```\nUser: Hi\nAssistant: Yes\n```\n", "two speakers"},
		{"addresses", "https://a.example: x\nhttp://b.example: y", ""},
		{"a brace first", "{name}: Hi there\nAnn: Hi", ""},
		{"WhatsApp", "[31/12/23, 22:10:05] Ann: Hi\n[31/12/23, 22:11:05] Bo: Yes\n", "WhatsApp"},
		{"WhatsApp of Android", "12/31/23, 10:10\u202fPM - Ann: Hi\n12/31/23, 10:11\u202fPM - Bo: Yes\n", "WhatsApp"},
		{"WhatsApp in German", "31.12.23, 22:10 - Ann: Hi\n31.12.23, 22:11 - Bo: Yes\n", "WhatsApp"},
	}
	for _, tt := range tests {
		captures, sum := readText(t, Options{}, tt.in)
		require.Empty(t, captures, tt.name)
		require.Equal(t, []string{"unsupported_format"}, codes(sum.Errors), tt.name)
		require.Contains(t, sum.Errors[0].Detail, tt.says, tt.name)
		require.Equal(t, 1, sum.Exit(), tt.name)
		require.Empty(t, sum.Files[0].Format, tt.name)
	}
}

// TestPlainTextFound: what is found, and not named, is not guessed at.
func TestPlainTextFound(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	names := write(t, dir, "names.txt", "Ann: The ferry is at nine.\nBo: Yes.\nAnn: Bring the blue bag.\nBo: I will do that.")
	write(t, dir, "roles.txt", "User: Hi\nAssistant: Yes.")
	write(t, dir, "stamped.txt", "[2024-05-01 10:22] Ann: Hi\n[2024-05-01 10:23] Bo: Yes.")
	captures, sum := readAll(t, Options{}, dir)
	require.Equal(t, []string{"User: Hi\n\nAssistant: Yes.", "Ann: Hi", "Bo: Yes."}, texts(captures))
	require.Equal(t, []Problem{{File: "names.txt", Code: "unsupported_format"}}, places(sum.Warnings))
	captures, _ = readAll(t, Options{}, names)
	require.Len(t, captures, 4)
	captures, _ = readAll(t, Options{Format: "plaintext"}, dir)
	require.Len(t, captures, 7)
}

func TestPlainTextForced(t *testing.T) {
	t.Parallel()

	forced := Options{Format: "plaintext"}
	captures, _ := readText(t, forced, "status: up\nnote: down\nstatus: up\nnote: ok")
	require.Len(t, captures, 4)
	captures, _ = readText(t, forced, "[{\"x\":1}]\nUser: Hi\nAssistant: Yes.")
	require.Len(t, captures, 1)
	_, sum := readText(t, forced, "prose")
	require.Equal(t, []string{"unsupported_format"}, codes(sum.Errors))
	_, sum = readText(t, Options{Format: "codex"}, "User: Hi\nAssistant: Yes.")
	require.Equal(t, []string{"unsupported_format"}, codes(sum.Errors))
}

func TestPlainTextTooLarge(t *testing.T) {
	t.Parallel()

	_, sum := readText(t, Options{MaxRecord: 100}, "User: Hi\n"+strings.Repeat("Assistant: Yes.\n", 10))
	require.Equal(t, []string{"too_large"}, codes(sum.Errors))
}
