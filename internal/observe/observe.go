// Package observe tells the outside how a worker is doing: health, and metrics
// for Prometheus.
package observe

import (
	"context"
	"net/http"
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
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), &collector{st})
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
type collector struct{ store *store.Store }

//nolint:gochecknoglobals // descriptors
var (
	captures   = prometheus.NewDesc("backfill_captures", "Captures by extractor and state.", []string{"extractor", "state"}, nil)
	candidates = prometheus.NewDesc("backfill_candidates", "Candidates staged by extractor.", []string{"extractor"}, nil)
	oldest     = prometheus.NewDesc("backfill_oldest_pending_seconds", "Age of the oldest capture that waits for a worker.", []string{"extractor"}, nil)
	stopped    = prometheus.NewDesc("backfill_stopped", "1 while the extractor's endpoint refuses every request.", []string{"extractor"}, nil)
	up         = prometheus.NewDesc("backfill_database_up", "1 when the status could be read.", nil, nil)
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
