package fleets_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/bodies"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/fleets"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/intenttest"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
	"github.com/chandler-fleet/chandler/services/gateway/rule/ruletest"
)

func wanted(clusters ...string) fleetmodel.SetFleetSubscription {
	return fleetmodel.SetFleetSubscription{FleetSubscriptionSpec: fleetmodel.FleetSubscriptionSpec{
		Package: "gauge", Catalog: "fleet", Namespace: "ports",
		Placement: fleetmodel.FleetPlacement{Clusters: clusters},
	}}
}

// TestFleetSubscriptions: to set the same is no event; its configuration is kept where it can be erased, and only where
// an event names it; what is refused or another tenant's leaves nothing (issue 14, section 2).
func TestFleetSubscriptions(t *testing.T) {
	t.Parallel()
	e := intenttest.New(t)
	s := &fleets.Service{Units: e.Units}
	set := func(in fleetmodel.SetFleetSubscription) error {
		_, err := s.Set(t.Context(), intenttest.Ann, "gauges", in)
		return err
	}
	with := wanted("b", "a")
	with.Config = json.RawMessage(`{"env": [{"name": "A", "value": "s3cr3t"}]}`)
	same := wanted("a", "b")
	same.Approval, same.Config = "Automatic", json.RawMessage(`{"env":[{"value":"s3cr3t","name":"A"}]}`)
	for _, in := range []fleetmodel.SetFleetSubscription{with, same} {
		if err := set(in); err != nil {
			t.Fatal(err)
		}
	}
	bad := wanted()
	bad.Config = json.RawMessage(`{"env": []}`)
	odd := wanted("a")
	odd.Config = json.RawMessage(`{"envs": []}`)
	for name, in := range map[string]fleetmodel.SetFleetSubscription{"nothing chosen": bad, "no configuration": odd} {
		if err := set(in); !errs.Is(err, errs.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	recorded := e.Recorded(intenttest.Ann, events.KindFleetSubscription, "gauges")
	if len(recorded) != 1 {
		t.Fatalf("%d events, want 1", len(recorded))
	}
	config := recorded[0].Payload.(events.FleetSubscriptionSet).Spec.Config
	if n := e.Count(`select count(*) from gateway.bodies where commitment = $1 and kind = 'subscription-config'`,
		config); n != 1 {
		t.Errorf("%d bodies of %q, want 1", n, config)
	}
	if n := e.Count(`select count(*) from gateway.bodies`); n != 1 {
		t.Errorf("%d bodies, want 1", n)
	}
	if _, err := s.Delete(t.Context(), intenttest.Eve, "gauges"); !errs.Is(err, errs.NotFound) {
		t.Errorf("another tenant deletes it: %v", err)
	}
	for _, kind := range []errs.Kind{"", errs.NotFound} {
		if _, err := s.Delete(t.Context(), intenttest.Ann, "gauges"); errs.KindOf(err) != kind {
			t.Errorf("delete: %v, want %q", err, kind)
		}
	}
}

// TestOverrides: of an override what was written and what comes of it are kept, each once; what says the same keeps its
// commitment, whichever override says it; and what is wrong or in conflict on a cluster is refused and leaves nothing
// (issue 14, section 2).
func TestOverrides(t *testing.T) {
	t.Parallel()
	e := intenttest.New(t)
	s := &fleets.Service{Units: e.Units}
	e.Register("east-1")
	in := wanted("east-*")
	in.Config = json.RawMessage(`{"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}], "resources": {}}`)
	in.Overrides = []fleetmodel.FleetOverride{
		{Name: "edge", Selector: "site=edge", Config: json.RawMessage(`{"env": [{"name": "B", "value": "s3cr3t"}]}`)},
		{Name: "first", Clusters: []string{"east-1"}, Approval: "Manual"},
	}
	set := func() (events.FleetSubscriptionSpec, error) {
		t.Helper()
		out, err := s.Set(t.Context(), intenttest.Ann, "gauges", in)
		if err != nil {
			return events.FleetSubscriptionSpec{}, err
		}
		for i, o := range out.Spec.Overrides {
			if string(o.Config) != string(in.Overrides[i].Config) {
				t.Errorf("answered %s, set %s", o.Config, in.Overrides[i].Config)
			}
		}
		all := e.Recorded(intenttest.Ann, events.KindFleetSubscription, "gauges")
		return all[len(all)-1].Payload.(events.FleetSubscriptionSet).Spec, nil
	}
	body := func(commitment string) (text string) {
		t.Helper()
		if err := e.In(intenttest.Ann, func(ctx context.Context, u *unit.Work) error {
			raw, err := bodies.Read(ctx, u, commitment)
			text = string(raw)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return text
	}
	first, err := set()
	if err != nil {
		t.Fatal(err)
	}
	const merged = `{"env":[{"name":"A","value":"1"},{"name":"B","value":"s3cr3t"}],"resources":{}}`
	edge, one := first.Overrides[0], first.Overrides[1]
	if got := body(edge.MergedConfig); got != merged || body(edge.Config) != `{"env":[{"name":"B","value":"s3cr3t"}]}` ||
		one.Config != "" || one.MergedConfig != first.Config {
		t.Errorf("kept %s, %+v", got, first)
	}
	// The other one says the same in other words; a third changes what all get, and nothing of these two.
	in.Overrides[1].Config = json.RawMessage(`{"env": [{"value": "s3cr3t", "name": "B"}]}`)
	in.Config = json.RawMessage(`{"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "3"}], "resources": {}}`)
	second, err := set()
	if err != nil {
		t.Fatal(err)
	}
	if second.Config == first.Config {
		t.Errorf("the configuration of all is %+v", second)
	}
	for _, o := range second.Overrides {
		if o.MergedConfig != edge.MergedConfig || o.Config != edge.Config {
			t.Errorf("%s is %+v, want the commitments of %+v", o.Name, o, edge)
		}
	}
	kept := e.Count(`select count(*) from gateway.bodies`)
	good := in
	for at, third := range map[string]fleetmodel.FleetOverride{
		"/overrides/2/config": {Selector: "a=b", Config: json.RawMessage(`{"envs": []}`)},
		"/overrides/2":        {Clusters: []string{"east-1"}, Config: json.RawMessage(`{"nodeSelector": {"a": "b"}}`)},
	} {
		third.Name = "third"
		in.Overrides = append(slices.Clone(good.Overrides), third)
		_, err := set()
		if all := ruletest.All(err); len(all) != 1 || all[0].Field != at {
			t.Errorf("%s: %v", at, err)
		}
	}
	if n := e.Count(`select count(*) from gateway.bodies`); n != kept {
		t.Errorf("%d bodies, want %d", n, kept)
	}
}

// TestRollouts: what people say of a rollout is decided by the state that the fleet controller wrote; what says the
// same again is no event; why a cluster is left out is kept once, where it can be erased.
func TestRollouts(t *testing.T) {
	t.Parallel()
	e := intenttest.New(t)
	s := &fleets.Service{Units: e.Units}
	of := fleets.Rollout{FleetSubscription: "gauges", Number: 1}
	e.Fact(events.Fleet, events.KindRollout, "gauges/1", "gauges/1", events.RolloutStarted{
		FleetSubscription: "gauges", Number: 1, Waves: []events.RolloutWave{
			{Name: "canary", Clusters: []string{"east-1", "east-2"}, Promotion: events.PromotionManual},
			{Name: "rest", Clusters: []string{"west"}, Promotion: events.PromotionAutomatic},
		},
	}, events.RolloutWaveOpened{Wave: 0}, events.RolloutClusterDirected{Cluster: "east-1", Attempt: 1, Directive: "d"},
		events.RolloutClusterSettled{
			Cluster: "east-1", Directive: "d", Outcome: events.ClusterFailed, Reason: "StepFailed",
		},
		events.RolloutHalted{Wave: 0, Reason: "WaveFailures"})
	ann := intenttest.Ann
	do := func(what string, want errs.Kind, phase string, out fleetmodel.Rollout, err error) {
		t.Helper()
		if errs.KindOf(err) != want || err == nil && out.Phase != phase {
			t.Errorf("%s: %q, %v; want %q %q", what, out.Phase, err, want, phase)
		}
	}
	pair := func(what string, want errs.Kind, phase string) func(fleetmodel.Rollout, error) {
		return func(out fleetmodel.Rollout, err error) { t.Helper(); do(what, want, phase, out, err) }
	}
	ctx := t.Context()
	pair("pause one that has halted", errs.Conflict, "")(s.Pause(ctx, ann, of))
	pair("resume", "", "Progressing")(s.Resume(ctx, ann, of))
	pair("resume again", "", "Progressing")(s.Resume(ctx, ann, of))
	pair("promote before all settled", errs.Conflict, "")(s.Promote(ctx, ann, of, fleetmodel.PromoteRollout{}))
	pair("skip without a reason", errs.Invalid, "")(s.Skip(ctx, ann, of, "east-2", fleetmodel.SkipCluster{Reason: " "}))
	why := fleetmodel.SkipCluster{Reason: "its ann s3cr3t is down"}
	pair("skip one of none", errs.NotFound, "")(s.Skip(ctx, ann, of, "gone", why))
	pair("skip", "", "Progressing")(s.Skip(ctx, ann, of, "east-2", why))
	pair("skip again", "", "Progressing")(s.Skip(ctx, ann, of, "east-2", why))
	pair("promote another wave", errs.Conflict, "")(s.Promote(ctx, ann, of, fleetmodel.PromoteRollout{Wave: "rest"}))
	pair("promote", "", "Progressing")(s.Promote(ctx, ann, of, fleetmodel.PromoteRollout{Wave: "canary"}))
	pair("retry", "", "Progressing")(s.Retry(ctx, ann, of, "east-1"))
	pair("retry what waits", errs.Conflict, "")(s.Retry(ctx, ann, of, "east-1"))
	pair("of another tenant", errs.NotFound, "")(s.Abort(ctx, intenttest.Eve, of))
	other := fleets.Rollout{FleetSubscription: "gauges", Number: 2}
	pair("of another number", errs.NotFound, "")(s.Abort(ctx, ann, other))
	pair("pause", "", "Paused")(s.Pause(ctx, ann, of))
	pair("abort", "", "Aborted")(s.Abort(ctx, ann, of))
	pair("resume what has ended", errs.Conflict, "")(s.Resume(ctx, ann, of))
	want := []events.Type{
		events.RolloutResumed{}.EventType(), events.RolloutClusterSkipped{}.EventType(),
		events.RolloutPromoted{}.EventType(), events.RolloutClusterRetried{}.EventType(),
		events.RolloutPaused{}.EventType(), events.RolloutAborted{}.EventType(),
	}
	if got := e.Events(ann, events.KindRollout, "gauges/1"); !slices.Equal(got[5:], want) {
		t.Errorf("events %q, want %q", got[5:], want)
	}
	for _, r := range e.Recorded(ann, events.KindRollout, "gauges/1") {
		if p, ok := r.Payload.(events.RolloutClusterSkipped); ok {
			if n := e.Count(`select count(*) from gateway.bodies where commitment = $1`, p.Reason); n != 1 {
				t.Errorf("%d bodies with the reason %q of the event", n, p.Reason)
			}
		}
	}
	if n := e.Count(`select count(*) from gateway.bodies`); n != 1 {
		t.Errorf("%d bodies, want 1", n)
	}
}
