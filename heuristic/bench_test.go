package heuristic

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// chat are the lines of the benchmark's conversations: mostly small talk and
// work in progress, some of it worth keeping.
var chat = []string{
	"Hey %s! Good to hear from you, how did the week treat you?",
	"Thanks, that helps a lot. I will have a look after lunch and write back.",
	"We decided to move the nightly report to %s instead of the old cron box because it kept running out of memory.",
	"Do you know whether the proxy forwards the client address, or do we have to turn that on somewhere?",
	"Sure! The handler reads the header first, then falls back to the socket address when the header is missing.",
	"I went to the lake with %s last weekend and we rented a small boat, it was so calm out there.",
	"The root cause was a stale lock on the second node; restarting both of them together clears it.",
	"Maybe we should wait until the end of the month, it is too early to tell what the numbers mean.",
	"To rebuild the index, stop the writer, run make index and start the writer again.",
	"My brother lives in %s now and works at the harbour, he really likes it there.",
	"That sounds lovely. What did you cook in the end, the soup or the pie?",
	"I prefer short answers with one example, and please never paste the whole file.",
	"Nothing new from my side, the tests are still running and the coffee is cold.",
	"The staging database is Postgres 16 and keeps its backups for 14 days in %s.",
	"Can you rename the second argument? It reads as if it were optional.",
	"Wow, congratulations! You must be so proud of them, what a great day for the whole family.",
}

var guests = []string{"Marta", "Oslo", "Kafka", "Anton", "Ghent", "Grafana", "Ines", "Porto"}

// conversations returns n captures of about 650 bytes in transcript form.
func conversations(n int) (captures []string, size int64) {
	r := rand.New(rand.NewPCG(1, 2))
	for range n {
		var b strings.Builder
		for b.Len() < 500 {
			for _, role := range []string{"User: ", "Assistant: "} {
				b.WriteString(role)
				for range 1 + r.IntN(3) {
					b.WriteString(strings.ReplaceAll(chat[r.IntN(len(chat))], "%s", guests[r.IntN(len(guests))]))
					b.WriteByte(' ')
				}
				b.WriteString("\n\n")
			}
		}
		captures = append(captures, strings.TrimSpace(b.String()))
		size += int64(b.Len())
	}
	return captures, size
}

// scan is the limit: one pass over the bytes that tells letters from the rest
// and rolls a hash over each word.
func scan(text string) (sum uint32) {
	h := uint32(hashStart)
	for i := range len(text) {
		if l := folds[text[i]]; l != 0 {
			h = (h ^ uint32(l)) * hashPrime
			continue
		}
		sum ^= h
		h = hashStart
	}
	return sum
}

var sink uint32

// window is the number of captures in one measurement of the best rate, which a
// busy machine spoils less than it does the average.
const window = 20

func BenchmarkHeuristic(b *testing.B) {
	captures, size := conversations(1000)
	run := func(name string, f func(string)) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(size / int64(len(captures)))
			b.ReportAllocs()
			i, best, start := 0, time.Duration(math.MaxInt64), time.Now()
			for b.Loop() {
				f(captures[i%len(captures)])
				if i++; i%window == 0 {
					best, start = min(best, time.Since(start)), time.Now()
				}
			}
			b.ReportMetric(window/best.Seconds(), "best-captures/s")
			b.ReportMetric(window*float64(size)/float64(len(captures))/best.Seconds()/1e6, "best-MB/s")
		})
	}
	run("Limit", func(s string) { sink = scan(s) })
	run("Read", func(s string) { pass(s, 0).release() })
	run("Typed", func(s string) { Typed(s) })
	run("Entities", func(s string) { Entities(s) })
	run("Classify", func(s string) { Classify(s) })
	run("OnePass", func(s string) {
		d := pass(s, memories|verdicts|names)
		d.classify()
		d.typed()
		d.entities()
		d.release()
	})
	run("ThreeCalls", func(s string) { Typed(s); Classify(s); Entities(s) })
}
