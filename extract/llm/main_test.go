package llm_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/justfortytwo/backfill/internal/llmtest"
)

// What must never be seen outside of a request.
const (
	turnCanary = "CANARY-in-the-turn"
	keyCanary  = "CANARY-in-the-key"
)

// logged is everything that was logged while the tests ran.
var logged syncBuffer

type syncBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

type suite struct{ *testing.M }

func (s suite) Run() int {
	code := s.M.Run()
	for _, canary := range []string{turnCanary, keyCanary, llmtest.Canary} {
		if strings.Contains(logged.String(), canary) {
			fmt.Fprintln(os.Stderr, "logged:", canary)
			return 1
		}
	}
	return code
}

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.NewTextHandler(&logged, nil))) // takes package log's output too
	goleak.VerifyTestMain(suite{m})
}
