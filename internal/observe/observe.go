// Package observe tells the outside how a worker is doing: health, and metrics
// for Prometheus.
package observe

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/justfortytwo/backfill/store"
)

// probeTimeout bounds what one health check or scrape asks of the database.
const probeTimeout = 5 * time.Second

// Mount adds GET /healthz (200 when the database answers and is migrated, else
// 503) and GET /metrics.
func Mount(mux *http.ServeMux, st *store.Store) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), &collector{store: st})
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), probeTimeout)
		defer cancel()
		if _, err := st.Status(ctx); err != nil {
			http.Error(w, "the database does not answer, or is not migrated", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	})
}

// collector reads v_status at each scrape: every worker reports the whole system,
// and nothing is counted twice.
type collector struct {
	store *store.Store

	mu sync.Mutex
	// overdue is what was asked last, and asked when that was.
	overdue store.Overdue
	asked   time.Time
}

// overdueEvery is how long an answer holds that takes a walk over all captures: a
// second for each million.
const overdueEvery = 5 * time.Minute

// unprocessed is the age of the oldest capture without an outcome; ok is false where
// the database could not say.
func (c *collector) unprocessed(ctx context.Context) (age time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.asked) > overdueEvery {
		o, err := c.store.Overdue(ctx, 0)
		if err != nil {
			return 0, false
		}
		c.overdue, c.asked = o, time.Now()
	}
	if c.overdue.Captures == 0 {
		return 0, true
	}
	return c.overdue.Oldest + time.Since(c.asked), true
}

//nolint:gochecknoglobals // descriptors
var (
	captures    = prometheus.NewDesc("backfill_captures", "Captures by extractor and state.", []string{"extractor", "state"}, nil)
	candidates  = prometheus.NewDesc("backfill_candidates", "Candidates staged by extractor.", []string{"extractor"}, nil)
	oldest      = prometheus.NewDesc("backfill_oldest_pending_seconds", "Age of the oldest capture that waits for a worker.", []string{"extractor"}, nil)
	unprocessed = prometheus.NewDesc("backfill_oldest_unprocessed_seconds",
		"Age of the oldest capture in the care of the nightly that has no outcome yet, for whatever reason; looked up every five minutes.", nil, nil)
	stopped = prometheus.NewDesc("backfill_stopped", "1 while the extractor's endpoint refuses every request.", []string{"extractor"}, nil)
	up      = prometheus.NewDesc("backfill_database_up", "1 when the status could be read.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	all, err := c.store.Status(ctx)
	if err != nil {
		gauge(up, 0)
		return
	}
	gauge(up, 1)
	if age, ok := c.unprocessed(ctx); ok {
		gauge(unprocessed, age.Seconds())
	}
	for _, s := range all {
		for state, n := range map[string]int64{
			"staged": s.Staged, "empty": s.Empty, "skipped": s.Skipped, "undone": s.Undone, "pending": s.Pending, "leased": s.Leased,
			"held": s.Held, "retry": s.Retry, "dead": s.Dead,
		} {
			gauge(captures, float64(n), s.Extractor, state)
		}
		gauge(candidates, float64(s.Candidates), s.Extractor)
		age := 0.0
		if s.OldestPending != nil {
			age = s.OldestPending.Seconds()
		}
		gauge(oldest, age, s.Extractor)
		halted := 0.0
		if s.StoppedAt != nil {
			halted = 1
		}
		gauge(stopped, halted, s.Extractor)
	}
}
