package app

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/resolver/internal/store"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// metrics is what the resolver counts.
type metrics struct {
	duration metric.Float64Histogram
	plans    metric.Int64Counter
	failures metric.Int64Counter
	// samples counts scopes of nightly samples, stale those of them that came to something new.
	samples metric.Int64Counter
	stale   metric.Int64Counter
	// attempts are resolutions in seconds by outcome (R-MET-1), syncs those that a subscription took part in.
	attempts func(seconds float64, outcome ...string)
	syncs    telemetry.Tally
}

func newMetrics(tel *telemetry.Telemetry) (*metrics, error) {
	m := otel.Meter("github.com/chandler-fleet/chandler/services/resolver")
	duration, err := m.Float64Histogram("chandler.resolver.resolution.duration", metric.WithUnit("s"),
		metric.WithDescription("time to resolve one scope, catalogs read included"),
		metric.WithExplicitBucketBoundaries(.0001, .0005, .001, .0025, .005, .01, .025, .05, .1, .5, 1, 5))
	plans, err2 := m.Int64Counter("chandler.resolver.plans", metric.WithDescription("install plans proposed"))
	failures, err3 := m.Int64Counter("chandler.resolver.failures",
		metric.WithDescription("subscriptions newly told that they cannot be resolved"))
	samples, err4 := m.Int64Counter("chandler.resolver.samples",
		metric.WithDescription("scopes of the nightly sample that were resolved afresh"))
	stale, err5 := m.Int64Counter("chandler.resolver.samples.stale",
		metric.WithDescription(
			"scopes of the nightly sample that came to something new: more than none is an error of the resolver"))
	attempts, err6 := tel.Summary("olm_resolution_duration_seconds", "time of resolution attempts, by outcome",
		"outcome")
	return &metrics{
			duration: duration, plans: plans, failures: failures, samples: samples, stale: stale,
			attempts: attempts,
		},
		errs.Wrap(errs.Internal, errors.Join(err, err2, err3, err4, err5, err6), "make metrics")
}

// resolving starts the clock of one resolution; the returned function stops it.
func (m *metrics) resolving() func(ctx context.Context, result resolution.Result, err error) {
	start := time.Now()
	return func(ctx context.Context, result resolution.Result, err error) {
		took := time.Since(start).Seconds()
		m.duration.Record(ctx, took)
		m.attempts(took, outcome(result, err))
	}
}

// outcome is OLM's word: an attempt failed where one of its subscriptions cannot be satisfied.
func outcome(result resolution.Result, err error) string {
	if err != nil || slices.ContainsFunc(result.Components,
		func(c resolution.Component) bool { return c.Failure != nil }) {
		return "failed"
	}
	return "succeeded"
}

// synced counts a resolution for each subscription that took part.
func (m *metrics) synced(l store.Loaded) {
	for _, s := range l.Subscriptions {
		m.syncs.Add(store.TallyKey(l.Tenant, l.Scope, s.Name))
	}
}
