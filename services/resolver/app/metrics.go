package app

import (
	"context"
	"errors"
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
	// samples counts scopes of nightly samples, stale those of them that came to something new.
	samples metric.Int64Counter
	stale   metric.Int64Counter
}

func newMetrics() (*metrics, error) {
	m := otel.Meter("github.com/chandler-fleet/chandler/services/resolver")
	duration, err := m.Float64Histogram("chandler.resolver.resolution.duration", metric.WithUnit("s"),
		metric.WithDescription("time to resolve one scope, catalogs read included"),
		metric.WithExplicitBucketBoundaries(.0001, .0005, .001, .0025, .005, .01, .025, .05, .1, .5, 1, 5))
	plans, err2 := m.Int64Counter("chandler.resolver.plans", metric.WithDescription("install plans proposed"))
	failures, err3 := m.Int64Counter("chandler.resolver.failures", metric.WithDescription("subscriptions newly told that they cannot be resolved"))
	samples, err4 := m.Int64Counter("chandler.resolver.samples", metric.WithDescription("scopes of the nightly sample that were resolved afresh"))
	stale, err5 := m.Int64Counter("chandler.resolver.samples.stale", metric.WithDescription("scopes of the nightly sample that came to something new: more than none is an error of the resolver"))
	return &metrics{duration: duration, plans: plans, failures: failures, samples: samples, stale: stale},
		errs.Wrap(errs.Internal, errors.Join(err, err2, err3, err4, err5), "make metrics")
}

// resolving starts the clock of one resolution; the returned function stops it.
func (m *metrics) resolving(context.Context) func(context.Context) {
	start := time.Now()
	return func(ctx context.Context) { m.duration.Record(ctx, time.Since(start).Seconds()) }
}
