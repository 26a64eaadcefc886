package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress tells how far a piece of work has come: a bar on a terminal, else a
// plain line every few seconds.
type progress struct {
	w     io.Writer
	what  string
	bytes bool
	bar   *progressbar.ProgressBar
	next  time.Time
}

// plainEvery is the pace of plain progress lines.
const plainEvery = 5 * time.Second

func newProgress(w io.Writer, what string, bytes bool) *progress {
	p := &progress{w: w, what: what, bytes: bytes, next: time.Now().Add(plainEvery)}
	if isTerminal(w) {
		p.bar = progressbar.NewOptions64(-1,
			progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(what), progressbar.OptionShowBytes(bytes),
			progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetPredictTime(false))
	}
	return p
}

// set reports done out of total; total 0 is unknown.
func (p *progress) set(done, total int64) {
	if p.bar != nil {
		if total > 0 {
			p.bar.ChangeMax64(total)
		}
		_ = p.bar.Set64(min(done, max(total, done)))
		return
	}
	if now := time.Now(); now.After(p.next) {
		p.next = now.Add(plainEvery)
		unit := ""
		if p.bytes {
			unit, done, total = " MiB", done>>20, total>>20
		}
		if total > 0 {
			fmt.Fprintf(p.w, "%s: %d of %d%s (%d%%)\n", p.what, done, total, unit, 100*done/total)
		} else {
			fmt.Fprintf(p.w, "%s: %d%s\n", p.what, done, unit)
		}
	}
}

// say writes a line of its own.
func (p *progress) say(line string) {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
	fmt.Fprintln(p.w, line)
}

func (p *progress) done() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
