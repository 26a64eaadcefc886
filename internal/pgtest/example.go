package pgtest

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Example is New for an Example function, which has no testing.TB: done drops the
// database.
func Example() (pool *pgxpool.Pool, done func()) {
	tb := &exampleTB{}
	return New(tb), func() {
		for _, f := range slices.Backward(tb.cleanups) {
			f()
		}
	}
}

// exampleTB is as much of a testing.TB as New takes.
type exampleTB struct {
	testing.TB

	cleanups []func()
}

func (*exampleTB) Helper()            {}
func (*exampleTB) Name() string       { return "example" }
func (t *exampleTB) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }

func (*exampleTB) Errorf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

func (*exampleTB) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
