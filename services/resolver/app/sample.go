package app

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/internal/store"
)

// The nightly sample (DESIGN D4): read sets decide what is resolved again, so that an error in them would leave
// scopes as they are, silently. Each night some scopes are resolved whatever their read sets say, and
// must come to nothing new.
const (
	// sampleSize is how many scopes a night has: in a fleet of 10,000, each has its turn every 50 nights on average,
	// and an error that concerns one scope in a hundred is seen in the first night with a probability of 87 %.
	sampleSize = 200
	// sampleEvery and samplesATurn spread them, so that a night's sample takes 20 minutes and nobody notices.
	sampleEvery  = time.Minute
	samplesATurn = 10
)

// foundReads is what a sample found where the resolution asks for something else than its read set says.
const foundReads = "reads"

// sampler resolves the scopes of the night's sample afresh. Any replica takes up what no other has.
type sampler struct {
	*worker
	now func() time.Time
}

// run samples until ctx ends. Trouble is logged and tried again.
func (s *sampler) run(ctx context.Context) error {
	t := time.NewTicker(sampleEvery)
	defer t.Stop()
	for {
		if err := s.turn(ctx, samplesATurn); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "the nightly sample failed; trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// turn resolves some scopes of this night's sample.
func (s *sampler) turn(ctx context.Context, scopes int) error {
	night := s.now().UTC().Truncate(24 * time.Hour)
	if err := s.store.Samples.Choose(ctx, night, sampleSize); err != nil {
		return err
	}
	for range scopes {
		m, ok, err := s.store.Samples.Take(ctx, night, s.now())
		if err != nil || !ok {
			return err
		}
		if err := s.resolveFresh(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// resolveFresh resolves one scope afresh. A scope that is dirty will be resolved anyway, and proves nothing.
func (s *sampler) resolveFresh(ctx context.Context, m store.Sample) error {
	l, err := s.store.Scopes.Load(ctx, m.Tenant, m.Scope)
	if err != nil {
		return err
	}
	var found []string
	if !l.Dirty && !l.Removed {
		if found, err = s.fresh(ctx, l); err != nil {
			return err
		}
	}
	written, err := s.store.Samples.Note(ctx, m, l, found, s.now())
	if err != nil {
		return err
	}
	s.metrics.samples.Add(ctx, 1)
	if len(written) > 0 {
		s.metrics.stale.Add(ctx, 1)
		s.log.ErrorContext(
			ctx, "a scope that was not dirty has a new decision: a read set or a mark is wrong; it is resolved now",
			slog.String("tenant", m.Tenant), slog.String("cluster", m.Scope.Cluster),
			slog.String("namespace", m.Scope.Namespace), slog.Any("found", written))
	}
	return nil
}

// fresh is what resolving a clean scope would write: types of events, and whether its read set is another one.
func (s *sampler) fresh(ctx context.Context, l store.Loaded) ([]string, error) {
	if _, plans := decide.Generated(l.State); len(plans) > 0 {
		return []string{string(events.SubscriptionGenerated{}.EventType())}, nil
	}
	c, err := s.evaluate(ctx, l)
	if err != nil {
		return nil, err
	}
	var found []string
	if len(c.decisions.Proposals) > 0 {
		found = append(found, string(events.InstallPlanProposed{}.EventType()))
	}
	for _, x := range c.decisions.Superseded {
		for _, e := range x.Events {
			found = append(found, string(e.EventType()))
		}
	}
	for _, t := range c.decisions.SubscriptionEvents {
		found = append(found, string(t.Event.EventType()))
	}
	if !l.Asked(c.reads) {
		found = append(found, foundReads)
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}
