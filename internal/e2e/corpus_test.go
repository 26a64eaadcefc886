//go:build unix

package e2e_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// turn is the capture with this number, always the same: some 650 bytes of which a
// third of the captures hold something durable.
func turn(n int) string {
	rng := rand.New(rand.NewPCG(5, uint64(n)))
	pick := func(from []string) string { return from[rng.IntN(len(from))] }
	var user, answer strings.Builder
	for size := 150 + rng.IntN(200); user.Len() < size; {
		user.WriteString(pick(smallTalk) + " ")
	}
	if rng.IntN(3) == 0 {
		fmt.Fprintf(&user, pick(durable)+" ", pick(people), pick(tools), pick(tools), 1000+rng.IntN(9000))
	}
	for size := 200 + rng.IntN(300); answer.Len() < size; {
		answer.WriteString(pick(smallTalk) + " ")
	}
	return fmt.Sprintf("User: %s(%d)\n\nAssistant: %s", user.String(), n, strings.TrimSpace(answer.String()))
}

var (
	people    = strings.Fields("Amira Bertil Chidi Dorota Emeka Freja Goran Hana")
	tools     = strings.Fields("Postgres Redis Kafka Grafana Terraform nginx SQLite Vault")
	smallTalk = []string{
		"That reads better now.", "Could you show me the last lines again?", "Hm, that is odd.",
		"It took a minute or so and then it was through.", "I will have a look after lunch.",
		"Which of the two would you rather keep?", "The numbers look the same as before.",
		"Let us leave it like this for the moment.", "Good point, thank you.",
	}
	durable = []string{
		"We decided to use %[2]s instead of %[3]s because the reports need joins.",
		"%[1]s prefers short answers and wants the command first.",
		"The deploy failed because %[2]s ran out of disk, fixed by rotating the logs.",
		"%[2]s listens on port %[4]d in production.",
		"To restart %[2]s, first drain it, then run the migration, finally start the new one.",
	}
)

// turns writes n captures to a file that backfill imports.
func turns(tb testing.TB, n int) (file string) {
	tb.Helper()
	file = filepath.Join(tb.TempDir(), "turns.jsonl")
	f, err := os.Create(file)
	require.NoError(tb, err)
	w := bufio.NewWriter(f)
	lines := json.NewEncoder(w)
	day := time.Date(2025, 3, 1, 9, 0, 0, 0, time.UTC)
	for i := range n {
		require.NoError(tb, lines.Encode(map[string]any{
			"id": fmt.Sprint("turn-", i), "source": "desk", "text": turn(i), "date": day.Add(time.Duration(i) * time.Minute),
			"meta": map[string]any{"session": fmt.Sprint("s", i/50)},
		}))
	}
	require.NoError(tb, w.Flush())
	require.NoError(tb, f.Close())
	return file
}
