package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"golang.org/x/term"
)

// writeJSON writes one line.
func (a *app) writeJSON(v any) error {
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}

// writeJSONLines writes a line for each value.
func writeJSONLines[T any](a *app, values []T) error {
	for _, v := range values {
		if err := a.writeJSON(v); err != nil {
			return err
		}
	}
	return nil
}

// table writes aligned columns; fill adds the rows below the header.
func table(w io.Writer, header string, fill func(row func(cells ...any))) error {
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, strings.ReplaceAll(header, " ", "\t"))
	fill(func(cells ...any) {
		for i, c := range cells {
			if i > 0 {
				fmt.Fprint(tw, "\t")
			}
			fmt.Fprint(tw, c)
		}
		fmt.Fprintln(tw)
	})
	if err := tw.Flush(); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}

// orZero is the zero value where there is none.
func orZero[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// deref shows a missing value as a dash.
func deref[T any](p *T) any {
	if p == nil {
		return "-"
	}
	return *p
}

// when shows a time to the second, in UTC.
func when(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

// oneLine shortens text to a single line of at most n runes without control
// characters, so that captured text cannot play with the terminal.
func oneLine(s string, n int) string {
	s = strings.Join(strings.Fields(printable(s)), " ")
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// printable drops what a terminal could take for a command; line breaks and tabs
// stay.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && !unicode.IsGraphic(r) && unicode.IsControl(r) {
			return '\uFFFD'
		}
		return r
	}, s)
}

// isTerminal reports whether somebody sits at a reader or writer.
func isTerminal(rw any) bool {
	f, ok := rw.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// plural is "1 capture", "2 captures".
func plural[N int | int64](n N, one string) string {
	if n == 1 {
		return "1 " + one
	}
	if strings.HasSuffix(one, "ch") {
		return fmt.Sprintf("%d %ses", n, one)
	}
	if stem, ok := strings.CutSuffix(one, "y"); ok {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// dollars is an amount of US dollars, with fractions of a cent below one dollar.
func dollars(amount float64) string {
	if amount < 1 {
		return fmt.Sprintf("$%.4f", amount)
	}
	return fmt.Sprintf("$%.2f", amount)
}
