package main

import (
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// timeBuckets are narrow, so that a quantile is known within a factor of 1.5, from 0.2 ms to 10 s.
var timeBuckets = []float64{
	.0002, .0003, .0005, .0007, .001, .0015, .002, .003, .005, .007, .01, .015, .02, .03, .05, .07,
	.1, .15, .2, .3, .5, .7, 1, 1.5, 2, 3, 5, 7, 10,
}

// metrics are those of one instance, in a registry of its own: a test has several instances in a process.
type metrics struct {
	registry   *prometheus.Registry
	apiTime    *prometheus.HistogramVec
	storeTime  *prometheus.HistogramVec
	webSockets prometheus.Gauge
	events     *prometheus.CounterVec
	sent       *prometheus.CounterVec
	dropped    prometheus.Counter
	httpErrors prometheus.Counter
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		apiTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "chat_api_time_seconds", Help: "Time to answer a request, by handler.", Buckets: timeBuckets,
		}, []string{"handler", "method", "status_code"}),
		storeTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "chat_store_time_seconds", Help: "Time of a method of the store, waits for a connection included.", Buckets: timeBuckets,
		}, []string{"method"}),
		webSockets: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "chat_websockets", Help: "WebSockets that are open.",
		}),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "chat_events_total", Help: "Events that happened on this instance, each once however many receive it.",
		}, []string{"event"}),
		sent: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "chat_events_sent_total", Help: "Events that were queued for WebSockets of this instance, each for every WebSocket.",
		}, []string{"event"}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "chat_events_dropped_total", Help: "Events that did not reach a peer, or for which a WebSocket was too slow.",
		}),
		httpErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "chat_http_errors_total", Help: "Requests that were answered with a status from 500.",
		}),
	}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.apiTime, m.storeTime, m.webSockets, m.events, m.sent, m.dropped, m.httpErrors)
	return m
}

// watchPool adds the metrics go_sql_…, of which go_sql_wait_count_total and go_sql_wait_duration_seconds_total tell whether
// the pool has too few connections.
func (m *metrics) watchPool(db *database) {
	m.registry.MustRegister(collectors.NewDBStatsCollector(db.DB, "chat"))
}

// eventNames are those that clients are told of in a channel.
var eventNames = []string{"posted", "post_edited", "post_deleted", "reaction_added", "typing"}

// expect begins the series at 0 that will come: who reads metrics cannot tell one that is missing yet from a wrong name.
func (m *metrics) expect(routes []route) {
	for _, r := range routes {
		m.apiTime.WithLabelValues(r.name, r.method, strconv.Itoa(r.status))
	}
	for _, name := range eventNames {
		m.events.WithLabelValues(name)
		m.sent.WithLabelValues(name)
	}
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
