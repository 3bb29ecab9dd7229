package app

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/catalog-indexer/internal/store"
)

// metrics is what the indexer counts.
type metrics struct {
	polls    metric.Float64Histogram
	contents metric.Int64Counter
	fetches  metric.Float64Histogram
	tally    telemetry.Tally // polls by catalog
}

func newMetrics() (*metrics, error) {
	m := otel.Meter("github.com/chandler-fleet/chandler/services/catalog-indexer")
	polls, err := m.Float64Histogram("chandler.catalog.poll.duration", metric.WithUnit("s"),
		metric.WithDescription("time to poll one catalog, by outcome"),
		metric.WithExplicitBucketBoundaries(.01, .05, .1, .5, 1, 2.5, 5, 10, 30, 60, 120))
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "make metrics")
	}
	contents, err := m.Int64Counter("chandler.catalog.contents.stored",
		metric.WithDescription("bundles stored, each content once"))
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "make metrics")
	}
	fetches, err := m.Float64Histogram("chandler.catalog.fetch.duration", metric.WithUnit("s"),
		metric.WithDescription("time to fetch one bundle image, by outcome"),
		metric.WithExplicitBucketBoundaries(.01, .05, .1, .5, 1, 2.5, 5, 10, 30, 60, 120))
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "make metrics")
	}
	return &metrics{polls: polls, contents: contents, fetches: fetches}, nil
}

// polled counts a poll of a catalog that came to an outcome.
func (m *metrics) polled(ctx context.Context, c store.Key, outcome string, took time.Duration) {
	m.tally.Add(store.TallyKey(c.Tenant, c.Stream))
	m.polls.Record(ctx, took.Seconds(), metric.WithAttributes(attribute.String("outcome", outcome)))
}

// stored counts content that was written.
func (m *metrics) stored(ctx context.Context, n int) { m.contents.Add(ctx, int64(n)) }

// fetched counts an attempt to fetch a bundle image.
func (m *metrics) fetched(ctx context.Context, ok bool, took time.Duration) {
	m.fetches.Record(ctx, took.Seconds(), metric.WithAttributes(attribute.Bool("ok", ok)))
}
