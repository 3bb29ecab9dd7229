package store_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/internal/store"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// sampled takes up all of a night's sample.
func (b *bench) sampled(t *testing.T, night time.Time, size int) (namespaces []string) {
	t.Helper()
	if err := b.store.Samples.Choose(t.Context(), night, size); err != nil {
		t.Fatal(err)
	}
	for {
		m, ok, err := b.store.Samples.Take(t.Context(), night, night)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return namespaces
		}
		namespaces = append(namespaces, m.Scope.Namespace)
	}
}

// TestSampleFollowsFromDateAndScope: a night has its own scopes, a bounded number of them, the same ones whoever
// chooses; each is taken up once, and again where whoever took it up was not heard of.
func TestSampleFollowsFromDateAndScope(t *testing.T) {
	t.Parallel()
	const scopes, size = 40, 8
	b, other := setup(t), setup(t)
	for _, x := range []*bench{b, other} {
		for i := range scopes {
			x.reads(t, fmt.Sprintf("ns-%02d", i), resolution.Read{Kind: resolution.ReadVisible})
		}
	}
	night := time.Date(2031, 5, 1, 0, 0, 0, 0, time.UTC)
	first := b.sampled(t, night, size)
	if len(first) != size || len(slices.Compact(slices.Sorted(slices.Values(first)))) != size {
		t.Fatalf("the sample is %v", first)
	}
	if got := other.sampled(t, night, size); !slices.Equal(got, first) {
		t.Errorf("elsewhere the sample is %v, here %v", got, first)
	}
	if next := b.sampled(t, night.AddDate(0, 0, 1), size); slices.Equal(next, first) {
		t.Errorf("two nights have the same sample %v", next)
	}
	m, ok, err := b.store.Samples.Take(t.Context(), night, night.Add(time.Hour))
	if err != nil || !ok || m.Scope.Namespace != slices.Min(first) {
		t.Errorf("what was taken up and not finished: %+v, %v, %v", m, ok, err)
	}
	b.sampled(t, night.AddDate(0, 2, 0), size)
	if b.left(t, night) != 0 {
		t.Error("samples of long ago are kept")
	}
}

func (b *bench) left(t *testing.T, night time.Time) (n int) {
	t.Helper()
	if err := b.pool.QueryRow(t.Context(), `select count(*) from resolver.samples where night = $1::date`, night).Scan(
		&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestOvertakenSampleFindsNothing: a scope that moved on while it was looked at will be resolved anyway.
func TestOvertakenSampleFindsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.reads(t, "ops", resolution.Read{Kind: resolution.ReadVisible})
	night := time.Date(2031, 5, 1, 0, 0, 0, 0, time.UTC)
	sample := store.Sample{Tenant: tenant, Night: night, Scope: scope("ops")}
	l := b.load(t, "ops")
	told, err := b.store.Samples.Note(t.Context(), sample, l, []string{"reads"}, night)
	if err != nil || !slices.Equal(told, []string{"reads"}) || !slices.Equal(b.marks.namespaces, []string{"ops"}) {
		t.Errorf("told %v, %v; dirty %v", told, err, b.marks.namespaces)
	}
	b.marks.namespaces = nil
	b.reads(t, "ops") // a decision
	told, err = b.store.Samples.Note(t.Context(), sample, l, []string{"reads"}, night)
	if err != nil || len(told)+len(b.marks.namespaces) != 0 {
		t.Errorf("told %v, %v; dirty %v", told, err, b.marks.namespaces)
	}
}

// TestWhatIsNamedAgainIsKeptAnew: the retention of an input begins again when another decision rests on it.
func TestWhatIsNamedAgainIsKeptAnew(t *testing.T) {
	t.Parallel()
	b := setup(t)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) // the store's
	record := resolution.Record{
		Semantics: "x", Scope: scope("ops"),
		Reads: []resolution.Read{{Kind: resolution.ReadPackage, Name: "buoy", Answer: "sha256:p"}},
	}
	tell := func(version int64) {
		t.Helper()
		l := b.load(t, "ops")
		told := decide.SubscriptionEvent{
			Subscription: l.Subscriptions[0],
			Event:        events.ResolutionSucceeded{Outcome: "AtLatestKnown"},
			Outcome:      decide.Outcome{Kind: fmt.Sprint(version)}, Input: record,
		}
		told.Subscription.Version = version
		if err := b.store.Decisions.Write(t.Context(), l,
			decide.Decisions{SubscriptionEvents: []decide.SubscriptionEvent{told}},
			nil, store.Cause{Command: uuid.New()}); err != nil {
			t.Fatal(err)
		}
	}
	b.apply(t, "harbour/ops/x", 1, events.SubscriptionCreated{Cluster: "harbour", Namespace: "ops", Name: "x"})
	tell(0) // the stream itself is empty here
	if _, err := b.pool.Exec(t.Context(), `update resolver.inputs set created = $1`,
		now.Add(-2*retention)); err != nil {
		t.Fatal(err)
	}
	tell(1)
	b.sweep(t, now)
	if n := b.inputs(t); n != 1 {
		t.Fatalf("%d inputs are kept after it was named again", n)
	}
	b.sweep(t, now.Add(retention+time.Hour)) // nothing refers to it: the outcome here names no input
	if n := b.inputs(t); n != 0 {
		t.Errorf("%d inputs are kept that nothing needs", n)
	}
}

func (b *bench) sweep(t *testing.T, now time.Time) {
	t.Helper()
	if _, err := b.store.Collector.Sweep(context.WithoutCancel(t.Context()), now, retention); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) inputs(t *testing.T) (n int) {
	t.Helper()
	if err := b.pool.QueryRow(t.Context(), `select count(*) from resolver.inputs`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
