package fleet_test

import (
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/bodies/bodiestest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/fleet"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/viewtest"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
)

func started(number int) events.RolloutStarted {
	return events.RolloutStarted{
		FleetSubscription: "gauges", Number: number, Change: events.ChangeIntent, MaxConcurrent: 10, MaxFailures: 1,
		DeadlineSeconds: 600, Target: events.RolloutTarget{Package: "gauge", CSV: "gauge.v1.0.0", Version: "1.0.0"},
		Waves: []events.RolloutWave{
			{
				Name: "canary", Clusters: []string{"east-1"}, Promotion: events.PromotionManual,
				Gates: []events.RolloutGate{
					{Name: "health", Type: events.GateHTTP, When: events.GateAfter},
					{Name: "errors", Type: events.GatePrometheus, When: events.GateAfter},
				},
			},
			{
				Name: "rest", Clusters: []string{"east-2", "east-3"}, Promotion: events.PromotionAutomatic,
				MaxUnreachable: 1,
			},
		},
	}
}

// TestReader: a fleet subscription is shown with its newest rollout, a rollout with where each cluster stands and why,
// as the fold of its events has it; lists count without naming clusters; what is repeated changes nothing; other
// tenants see nothing (issue 14, section 2).
func TestReader(t *testing.T) {
	t.Parallel()
	e := viewtest.New(t, fleet.Projection())
	bodies, err := readmodel.OpenBodies(bodiestest.Keys(t), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	r := &fleet.Reader{Pool: e.Pool, Bodies: bodies}
	set := events.FleetSubscriptionSet{Name: "gauges", Spec: events.FleetSubscriptionSpec{Package: "gauge"}}
	e.Fold(events.KindFleetSubscription, "gauges", set, set) // events 1 and 2
	e.Fold(events.KindRollout, "gauges/1", started(1), events.RolloutEnded{Outcome: "Superseded"})
	directed := func(cluster string) events.RolloutClusterDirected {
		return events.RolloutClusterDirected{Cluster: cluster, Attempt: 1, Directive: "d-" + cluster}
	}
	settled := func(cluster, outcome, reason string) events.RolloutClusterSettled {
		return events.RolloutClusterSettled{
			Cluster: cluster, Directive: "d-" + cluster, Outcome: outcome, Reason: reason,
		}
	}
	e.Fold(events.KindRollout, "gauges/2", started(2), events.RolloutWaveOpened{Wave: 0}, directed("east-1"),
		settled("east-1", events.ClusterSucceeded, "")) // events 5 to 8
	newest := func() fleetmodel.Rollout {
		t.Helper()
		got, err := r.Get(t.Context(), viewtest.Ann, "gauges")
		if err != nil {
			t.Fatal(err)
		}
		return *got.Status.Rollout
	}
	if n := newest(); n.Number != 2 || n.Waves[0].State != fleetmodel.WavePromotion ||
		n.Waves[1].State != fleetmodel.WaveWaiting ||
		n.Clusters != (fleetmodel.RolloutCounts{Total: 3, Succeeded: 1, Waiting: 2}) {
		t.Errorf("the newest rollout is %+v", n)
	}
	e.Fold(events.KindRollout, "gauges/2", events.RolloutPromoted{Wave: 0}, events.RolloutWavePassed{Wave: 0},
		events.RolloutWaveOpened{Wave: 1}, directed("east-2"),
		settled("east-2", events.ClusterFailed, "StepFailed"), settled("east-3", events.ClusterUnreachable, "Away"),
		events.RolloutHalted{Wave: 1, Reason: "WaveFailures"}, events.RolloutResumed{},
		events.RolloutClusterSkipped{Cluster: "east-3", Reason: "c1:00"}) // events 9 to 17
	got, err := r.Rollout(t.Context(), viewtest.Ann, "gauges", 2)
	if err != nil {
		t.Fatal(err)
	}
	want := []fleetmodel.RolloutCluster{
		{
			Name: "east-2", State: "Failed", Reason: "StepFailed", Since: viewtest.At(13), Attempt: 1,
			Directive: "d-east-2", Forgiven: true,
		},
		{Name: "east-3", State: "Skipped", Since: viewtest.At(17), SkippedBy: "ann", Body: "c1:00"},
	}
	if diff := cmp.Diff(want, got.Waves[1].Members); diff != "" {
		t.Errorf("clusters of the second wave (-want +got):\n%s", diff)
	}
	if got.Phase != "Progressing" || got.Reason != "" || got.Waves[0].State != fleetmodel.WavePassed ||
		got.Waves[1].State != fleetmodel.WaveSoaking || !got.StartedAt.Equal(viewtest.At(5)) ||
		!got.UpdatedAt.Equal(viewtest.At(17)) {
		t.Errorf("the rollout is %+v", got)
	}
	counted := newest()
	if diff := cmp.Diff(got.Waves[1].Clusters, counted.Waves[1].Clusters); diff != "" ||
		counted.Waves[1].Members != nil {
		t.Errorf("a list counts otherwise, or names clusters (-want +got):\n%s", diff)
	}
	e.Fold(events.KindRollout, "gauges/2", events.RolloutClusterRetried{Cluster: "east-3"})
	if got, err = r.Rollout(t.Context(), viewtest.Ann, "gauges", 2); err != nil ||
		got.Waves[1].Members[1].SkippedBy != "" ||
		got.Waves[1].Members[1].State != fleetmodel.ClusterWaiting {
		t.Errorf("tried again: %+v, %v", got.Waves[1].Members[1], err)
	}

	first, next, err := r.Rollouts(t.Context(), viewtest.Ann, fleetmodel.RolloutFilter{Page: model.Page{Limit: 1}})
	if err != nil || len(first) != 1 || first[0].Number != 2 {
		t.Fatalf("the first page: %+v, %v", first, err)
	}
	second, end, err := r.Rollouts(t.Context(), viewtest.Ann,
		fleetmodel.RolloutFilter{Page: model.Page{Limit: 1, After: next}})
	if err != nil || len(second) != 1 || second[0].Phase != "Superseded" || end != nil {
		t.Errorf("the second page: %+v, %v, %v", second, end, err)
	}
	for _, cursor := range [][]string{{"gauges"}, {"gauges", "x"}} {
		if _, _, err := r.Rollouts(t.Context(), viewtest.Ann,
			fleetmodel.RolloutFilter{Page: model.Page{Limit: 1, After: cursor}}); !errs.Is(err, errs.Invalid) {
			t.Errorf("cursor %v: %v", cursor, err)
		}
	}
	if _, err := r.Rollout(t.Context(), viewtest.Eve, "gauges", 2); !errs.Is(err, errs.NotFound) {
		t.Errorf("another tenant reads it: %v", err)
	}
	if _, err := r.Get(t.Context(), viewtest.Eve, "gauges"); !errs.Is(err, errs.NotFound) {
		t.Errorf("another tenant reads the fleet subscription: %v", err)
	}
	gateStatus(t, e, r)
	e.Fold(events.KindFleetSubscription, "gauges", events.FleetSubscriptionDeleted{})
	if items, _, err := r.List(t.Context(), viewtest.Ann, model.Page{Limit: 9}); err != nil || len(items) != 0 {
		t.Errorf("deleted: %+v, %v", items, err)
	}
	if err := e.Try(events.KindRollout, "gauges", events.RolloutPaused{}); err == nil {
		t.Error("an event of no rollout was taken")
	}
	if err := e.Try(events.KindRollout, "gauges/2", events.RolloutClusterRetried{Cluster: "no"}); err == nil {
		t.Error("an event of a cluster that is in no wave was taken")
	}
}

// gateStatus: what gates say is shown of the wave that is open, also in lists.
func gateStatus(t *testing.T, e *viewtest.Env, r *fleet.Reader) {
	t.Helper()
	e.Fold(events.KindRollout, "gauges/3", started(3), events.RolloutWaveOpened{Wave: 0},
		events.RolloutGatesDue{Wave: 0, When: events.GateAfter, Round: 1},
		events.RolloutGateEvaluated{Wave: 0, Gate: "health", Round: 1, Verdict: events.VerdictWait, Code: "TimedOut"},
		events.RolloutGateOverridden{Wave: 0, Gate: "errors", Reason: "c1:01"})
	got, err := r.Rollout(t.Context(), viewtest.Ann, "gauges", 3)
	if err != nil {
		t.Fatal(err)
	}
	list, _, err := r.Rollouts(t.Context(), viewtest.Ann, fleetmodel.RolloutFilter{Page: model.Page{Limit: 1}})
	if err != nil {
		t.Fatal(err)
	}
	for _, wave := range []fleetmodel.RolloutWave{got.Waves[0], list[0].Waves[0]} {
		g := wave.Gates
		if wave.State != fleetmodel.WaveGates || len(g) != 2 || !g[0].Due || g[0].Verdict != events.VerdictWait ||
			g[0].Code != "TimedOut" || g[0].Since.IsZero() || g[1].Due || !g[1].Overridden || g[1].Body != "c1:01" {
			t.Errorf("the wave is %+v", wave)
		}
	}
}
