package app

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// metrics is what the resolver counts.
type metrics struct {
	duration metric.Float64Histogram
	plans    metric.Int64Counter
	failures metric.Int64Counter
}

func newMetrics() (*metrics, error) {
	m := otel.Meter("github.com/chandler-fleet/chandler/services/resolver")
	duration, err := m.Float64Histogram("chandler.resolver.resolution.duration", metric.WithUnit("s"),
		metric.WithDescription("time to resolve one scope, catalogs read included"),
		metric.WithExplicitBucketBoundaries(.0001, .0005, .001, .0025, .005, .01, .025, .05, .1, .5, 1, 5))
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "make metrics")
	}
	plans, err := m.Int64Counter("chandler.resolver.plans", metric.WithDescription("install plans proposed"))
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "make metrics")
	}
	failures, err := m.Int64Counter("chandler.resolver.failures", metric.WithDescription("subscriptions newly told that they cannot be resolved"))
	return &metrics{duration: duration, plans: plans, failures: failures}, errs.Wrap(errs.Internal, err, "make metrics")
}

// resolving starts the clock of one resolution; the returned function stops it.
func (m *metrics) resolving(context.Context) func(context.Context) {
	start := time.Now()
	return func(ctx context.Context) { m.duration.Record(ctx, time.Since(start).Seconds()) }
}
