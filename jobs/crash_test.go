package jobs_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// process is a worker in a process of its own, started anew whenever it ends.
type process struct {
	*testing.T
	url   string
	model string // where it asks one, if it does
	cmd   *exec.Cmd
}

func (p *process) start() {
	p.Helper()
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), workerURL+"="+p.url, workerModel+"="+p.model)
	p.cmd.Stderr = os.Stderr
	require.NoError(p, p.cmd.Start())
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// TestKill kills one of two worker processes at random, ten times, while captures
// keep coming in.
func TestKill(t *testing.T) {
	t.Parallel()
	b := setup(t)
	url := b.pool.Config().ConnString()
	workers := []*process{{T: t, url: url}, {T: t, url: url}}
	for _, w := range workers {
		w.start()
		t.Cleanup(w.kill)
	}
	inserted, recorded := 0, int64(0)
	for kill := range 10 {
		// Some captures one by one, some in bulk, while the victim works.
		for range 20 {
			b.insert(fmt.Sprint("live ", inserted))
			inserted++
		}
		b.exec("insert into backfill.intake (source, text) select 'bulk', 'bulk ' || g from generate_series(1, 3000) g")
		inserted += 3000
		// Whoever has work in hand is killed with it, or anybody when all is done. Not
		// before something was recorded since the last time: the first that is claimed
		// then is what the last victim had in hand, and a capture that takes worker
		// after worker along counts as a crasher.
		b.await(time.Minute, `select (select count(*) from backfill.extraction) > $1 + 100
			and exists (select from backfill.batch where state = 'leased')
			or not exists (select from backfill.batch where due is not null)`, recorded)
		victim := workers[rand.IntN(2)]
		holder := query[string](b, "select coalesce(min(worker), '') from backfill.batch where state = 'leased'")
		for _, w := range workers {
			if strings.HasSuffix(holder, fmt.Sprint("-", w.cmd.Process.Pid)) {
				victim = w
			}
		}
		victim.kill()
		recorded = query[int64](b, "select count(*) from backfill.extraction")
		t.Logf("kill %d: %d of %d recorded", kill+1, recorded, inserted)
		victim.start()
	}
	b.idle(6 * time.Minute)
	b.requireInvariants()
	require.NotZero(t, query[int64](b, "select count(*) from backfill.batch where lease_no > 1"), "no kill hit work in hand")
	require.Empty(t, query[string](b, `select coalesce(string_agg(x::text, E'\n'), '') from backfill.extraction x where outcome <> 'staged'`))
	require.Equal(t, int64(inserted), query[int64](b, "select count(*) from backfill.staging"))
	require.Equal(t, int64(inserted), query[int64](b, "select count(*) from backfill.extraction where outcome = 'staged'"))
}

// TestCrash has a capture that takes its worker down whenever it is touched.
func TestCrash(t *testing.T) {
	t.Parallel()
	b := setup(t)
	texts := make([]string, 1000)
	for i := range texts {
		texts[i] = fmt.Sprint("neighbour ", i)
	}
	texts[500] = killer
	b.insert(texts...)
	w := &process{T: t, url: b.pool.Config().ConnString()}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { // a supervisor
		defer close(done)
		for ctx.Err() == nil {
			w.start()
			stop := context.AfterFunc(ctx, func() { _ = w.cmd.Process.Kill() })
			_ = w.cmd.Wait()
			stop()
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	b.idle(5 * time.Minute)
	b.requireInvariants()
	require.Equal(t, int64(999), query[int64](b, "select count(*) from backfill.extraction where outcome = 'staged'"))
	require.Equal(t, "crashed dead", query[string](b, "select outcome || ' ' || state from backfill.extraction where capture_id = 501"))
}
