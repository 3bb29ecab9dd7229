package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// tableTimeout bounds one reading of a table.
	tableTimeout = 5 * time.Second
	// tableFor is how long a reading serves all who ask.
	tableFor = 5 * time.Second
)

// Metric is a metric whose name and labels others have chosen (R-MET-1): they are kept as they are, where
// instruments of OpenTelemetry get their unit, "_total" and labels of their own added.
type Metric struct {
	Name    string
	Doc     string
	Counter bool // otherwise a gauge
	Labels  []string
}

// Sample is one series of a metric with its value. Labels are the values in the order of the metric's labels.
type Sample struct {
	Metric string // name
	Value  float64
	Labels []string
}

// Table exports metrics that are read when somebody asks for them, so that the series of what is gone are gone
// (R-MET-2). While read fails, its last values are exported. A Telemetry that was not started exports nothing.
func (t *Telemetry) Table(read func(context.Context) ([]Sample, error), metrics ...Metric) error {
	c := &table{read: read, log: t.Log, metrics: map[string]described{}}
	for _, m := range metrics {
		kind := prometheus.GaugeValue
		if m.Counter {
			kind = prometheus.CounterValue
		}
		c.metrics[m.Name] = described{prometheus.NewDesc(m.Name, m.Doc, m.Labels, nil), kind}
	}
	return t.register(c)
}

// Summary exports quantiles of the values given to observe; labels are given in order.
func (t *Telemetry) Summary(name, doc string, labels ...string) (
	observe func(value float64, labels ...string), err error,
) {
	s := prometheus.NewSummaryVec(prometheus.SummaryOpts{
		Name: name, Help: doc, Objectives: map[float64]float64{0.9: 0.01, 0.95: 0.05, 0.99: 0.001},
	}, labels)
	return func(value float64, labels ...string) { s.WithLabelValues(labels...).Observe(value) }, t.register(s)
}

// register takes the place of what another life of the same service in this process left behind.
func (t *Telemetry) register(c prometheus.Collector) error {
	if t.registry == nil {
		return nil
	}
	err := t.registry.Register(c)
	if old, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		t.registry.Unregister(old.ExistingCollector)
		err = t.registry.Register(c)
	}
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}

type described struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// table is a collector over a function.
type table struct {
	read    func(context.Context) ([]Sample, error)
	log     *slog.Logger
	metrics map[string]described

	mu   sync.Mutex
	last []Sample
	when time.Time
}

// Describe implements prometheus.Collector.
func (t *table) Describe(to chan<- *prometheus.Desc) {
	for _, m := range t.metrics {
		to <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (t *table) Collect(to chan<- prometheus.Metric) {
	for _, s := range t.samples() {
		m, ok := t.metrics[s.Metric]
		if !ok {
			t.log.Error("a sample of a metric that is not declared", "metric", s.Metric)
			continue
		}
		metric, err := prometheus.NewConstMetric(m.desc, m.kind, s.Value, s.Labels...)
		if err != nil {
			metric = prometheus.NewInvalidMetric(m.desc, err)
		}
		to <- metric
	}
}

func (t *table) samples() []Sample {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.when) < tableFor {
		return t.last
	}
	ctx, cancel := context.WithTimeout(context.Background(), tableTimeout)
	defer cancel()
	fresh, err := t.read(ctx)
	if err != nil {
		t.log.WarnContext(ctx, "metrics are as they were read last", "error", err)
		return t.last
	}
	t.last, t.when = fresh, time.Now()
	return fresh
}

// Tally counts by key, for a table that exports the counts of those keys that still exist.
type Tally struct {
	mu     sync.Mutex
	counts map[string]float64
}

// Add counts one for a key.
func (t *Tally) Add(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = map[string]float64{}
	}
	t.counts[key]++
}

// Counts returns the counts of the keys that exist, and forgets all others.
func (t *Tally) Counts(existing []string) map[string]float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	counts := make(map[string]float64, len(t.counts))
	for _, key := range existing {
		if n, ok := t.counts[key]; ok {
			counts[key] = n
		}
	}
	t.counts = maps.Clone(counts)
	return counts
}
