package main

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"pepvault/component"
)

// maxScrapes bounds the requests for /metrics under way.
const maxScrapes = 4

// metrics holds what /metrics shows. It is the component.Meter of a service,
// and hears of the store's commits. No label of it is anything that a device
// could choose.
type metrics struct {
	registry *prometheus.Registry

	requests      *prometheus.CounterVec
	seconds       *prometheus.HistogramVec
	operations    map[string]*counted // by name
	notifications map[component.Delivery]prometheus.Counter
	rejected      map[component.Rejection]prometheus.Counter
	downloads     prometheus.Gauge
	chunkBytes    prometheus.Counter

	commits       prometheus.Counter
	commitSeconds prometheus.Histogram
	commitSize    prometheus.Histogram
}

// counted are the series of one operation that each request of it needs: to
// find them by their labels takes longer than to count. They are made with the
// first request.
type counted struct {
	once    sync.Once
	ok      prometheus.Counter
	seconds prometheus.Observer
}

var _ component.Meter = (*metrics)(nil)

// newMetrics returns a registry of all that is counted as it happens, and of
// the process.
func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pepvault_requests_total",
			Help: "Requests answered, by operation and by result: ok, or the condition of the stanza error.",
		}, []string{"op", "result"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "pepvault_request_seconds", Unit: "seconds",
			Help:    "Time from the arrival of a request until its answer was queued, in seconds. A large answer is made after that.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"op"}),
		operations:    map[string]*counted{},
		notifications: map[component.Delivery]prometheus.Counter{},
		rejected:      map[component.Rejection]prometheus.Counter{},
		downloads: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "pepvault_downloads_active",
			Help: "Pushed downloads under way.",
		}),
		chunkBytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "pepvault_chunk_bytes_total", Unit: "bytes",
			Help: "Size of the chunks of pushed downloads that were made, in bytes.",
		}),
		commits: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "pepvault_store_commits_total",
			Help: "Commits of the store.",
		}),
		commitSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "pepvault_store_commit_seconds", Unit: "seconds",
			Help:    "Time from the beginning of a commit until it was on disk, in seconds.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5},
		}),
		commitSize: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "pepvault_store_batch_size",
			Help:    "Transactions that shared a commit.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 8),
		}),
	}
	for _, op := range component.Operations() {
		m.operations[op] = new(counted)
	}
	notifications := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pepvault_notifications_total",
		Help: "Messages with an event: sent (queued for the server), missed (there was no room; the device is told later where its vault stands), bounced (an error came back).",
	}, []string{"result"})
	for _, d := range component.Deliveries() {
		m.notifications[d] = notifications.WithLabelValues(string(d))
	}
	rejected := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pepvault_rejected_total",
		Help: "Requests refused before they were read, by reason.",
	}, []string{"reason"})
	for _, r := range component.Rejections() {
		m.rejected[r] = rejected.WithLabelValues(string(r))
	}
	m.registry.MustRegister(m.requests, m.seconds, notifications, rejected, m.downloads, m.chunkBytes, m.commits, m.commitSeconds, m.commitSize,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Answered implements component.Meter.
func (m *metrics) Answered(op, result string, took time.Duration) {
	c := m.operations[op]
	c.once.Do(func() {
		c.ok, c.seconds = m.requests.WithLabelValues(op, component.ResultOK), m.seconds.WithLabelValues(op)
	})
	if result == component.ResultOK {
		c.ok.Inc()
	} else {
		m.requests.WithLabelValues(op, result).Inc()
	}
	c.seconds.Observe(took.Seconds())
}

// Notified implements component.Meter.
func (m *metrics) Notified(d component.Delivery) { m.notifications[d].Inc() }

// Rejected implements component.Meter.
func (m *metrics) Rejected(r component.Rejection) { m.rejected[r].Inc() }

// Downloads implements component.Meter.
func (m *metrics) Downloads(n int) { m.downloads.Add(float64(n)) }

// Chunk implements component.Meter.
func (m *metrics) Chunk(bytes int) { m.chunkBytes.Add(float64(bytes)) }

// Committed is for store.Options.
func (m *metrics) Committed(transactions int, took time.Duration) {
	m.commits.Inc()
	m.commitSeconds.Observe(took.Seconds())
	m.commitSize.Observe(float64(transactions))
}

// watch adds what is looked up when somebody asks. Call it once.
func (m *metrics) watch(s *service) {
	gauge := func(name, unit, help string, lane prometheus.Labels, value func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Unit: unit, Help: help, ConstLabels: lane}, value))
	}
	const waits = "What waits to be sent, in bytes: small answers and events, refusals, or bulk that is not made yet."
	gauge("pepvault_queue_bytes", "bytes", waits, prometheus.Labels{"lane": "small"},
		func() float64 { return float64(s.writer.Stats().SmallBytes) })
	gauge("pepvault_queue_bytes", "bytes", waits, prometheus.Labels{"lane": "refusals"},
		func() float64 { return float64(s.writer.Stats().RefusalBytes) })
	gauge("pepvault_queue_bytes", "bytes", waits, prometheus.Labels{"lane": "bulk"},
		func() float64 { return float64(s.writer.Stats().BulkBytes) })
	gauge("pepvault_host_unconfirmed_bytes", "bytes", "Bulk that was sent and that the server has not confirmed yet, in bytes.", nil,
		func() float64 { return float64(s.writer.Stats().Unconfirmed) })
	gauge("pepvault_link_connected", "", "1 while the service is attached to the server, else 0.", nil, func() float64 {
		if s.attached(context.Background()) != nil {
			return 0
		}
		return 1
	})
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "pepvault_link_reconnects_total",
		Help: "Attaches to the server after the first.",
	}, func() float64 { return float64(s.link.Reconnects()) }), newCensus(s.store, time.Now))
}

// handler serves them as OpenMetrics to who asks for that, else as Prometheus
// text.
func (m *metrics) handler(log *slog.Logger) http.Handler {
	pages := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		ErrorHandling:       promhttp.ContinueOnError, // the others are worth showing
		MaxRequestsInFlight: maxScrapes,
		EnableOpenMetrics:   true,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		pages.ServeHTTP(w, r)
	})
}
