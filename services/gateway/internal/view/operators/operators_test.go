package operators_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/clusters"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/operatorgroups"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/operators"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/viewtest"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func phase(namespace, name, phase string) events.CSVPhaseChanged {
	return events.CSVPhaseChanged{
		Cluster: "harbour", Namespace: namespace, Name: name, Package: "tide", Phase: phase, Version: "1.0.0",
	}
}

func fold(e *viewtest.Env, namespace, name string, p ...events.Payload) {
	e.Fold(events.KindCSV, "harbour/"+namespace+"/"+name, p...)
}

// TestHistory: R-CSV-5: the newest transitions are kept, oldest first; flapping ends with the next transition; a
// removed operator is gone.
func TestHistory(t *testing.T) {
	t.Parallel()
	e := viewtest.New(t, operators.Projection())
	r := &operators.Reader{Pool: e.Pool}
	for i := range 25 {
		fold(e, "ops", "tide.v1", phase("ops", "tide.v1", fmt.Sprintf("Phase%d", i)))
	}
	fold(e, "ops", "tide.v1", events.CSVFlapping{Changes: 9, Window: 60})
	get := func() model.Operator {
		t.Helper()
		o, err := r.Get(t.Context(), viewtest.Ann, "harbour", "ops", "tide.v1")
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	o := get()
	if len(o.History) != 20 || o.History[0].Phase != "Phase5" || o.History[19].Phase != "Phase24" ||
		o.History[19].Event != viewtest.Event(25) || !o.InstalledAt.Equal(viewtest.At(1)) || !o.Flapping {
		t.Errorf("%d transitions, %+v", len(o.History), o)
	}
	fold(e, "ops", "tide.v1", phase("ops", "tide.v1", "Succeeded"))
	if o := get(); o.Flapping {
		t.Error("it flaps still after the next transition")
	}
	if _, err := r.Get(t.Context(), viewtest.Eve, "harbour", "ops", "tide.v1"); !errs.Is(err, errs.NotFound) {
		t.Errorf("another tenant reads it: %v", err)
	}
	fold(e, "ops", "tide.v1", events.CSVRemoved{Reason: "Deleted"})
	if _, err := r.Get(t.Context(), viewtest.Ann, "harbour", "ops", "tide.v1"); !errs.Is(err, errs.NotFound) {
		t.Errorf("a removed operator: %v", err)
	}
}

// TestDrift: drift counts from when it was first found until it ends, whatever the phase does meanwhile.
func TestDrift(t *testing.T) {
	t.Parallel()
	e := viewtest.New(t, operators.Projection())
	r := &operators.Reader{Pool: e.Pool}
	fold(e, "ops", "tide.v1", phase("ops", "tide.v1", "Succeeded"))
	drift := func(objects int, policy string, since int64) *model.OperatorDrift {
		return &model.OperatorDrift{Objects: objects, Policy: policy, Since: viewtest.At(since)}
	}
	for i, step := range []struct {
		event events.Payload
		want  *model.OperatorDrift
	}{
		{events.CSVDrifted{Objects: 1, Policy: "report"}, drift(1, "report", 2)},
		{events.CSVDrifted{Objects: 3, Policy: "correct"}, drift(3, "correct", 2)},
		{phase("ops", "tide.v1", "Failed"), drift(3, "correct", 2)},
		{events.CSVDriftEnded{}, nil},
		{events.CSVDrifted{Objects: 2}, drift(2, "", 6)},
	} {
		fold(e, "ops", "tide.v1", step.event)
		o, err := r.Get(t.Context(), viewtest.Ann, "harbour", "ops", "tide.v1")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, o.Drift); diff != "" {
			t.Errorf("step %d: %s", i, diff)
		}
	}
}

// TestListing: pages of every order hold each operator once, and selectors choose as those of Kubernetes do.
func TestListing(t *testing.T) {
	t.Parallel()
	e := viewtest.New(t, operators.Projection(), clusters.Projection())
	r := &operators.Reader{Pool: e.Pool}
	e.Fold(events.KindCluster, "harbour", events.ClusterRegistered{Labels: map[string]string{"tier": "1"}})
	for i, o := range []struct{ namespace, name, phase, version string }{
		{"a", "tide.v3", "Failed", "3.0.0"},
		{"b", "tide.v1", "Succeeded", "1.2.0"},
		{"a", "buoy", "Succeeded", "none"},
		{"c", "tide.v2", "Succeeded", "2.0.0-rc.1"},
	} {
		p := phase(o.namespace, o.name, o.phase)
		p.Version = o.version
		fold(e, o.namespace, o.name, p)
		if i == 1 {
			fold(e, o.namespace, o.name, events.CSVDrifted{Objects: 1})
		}
	}
	list := func(f model.OperatorFilter) (names string, err error) {
		for range 9 {
			items, next, err := r.List(t.Context(), viewtest.Ann, f)
			if err != nil {
				return "", err
			}
			for _, o := range items {
				names += o.Name + " "
			}
			if f.After = next; next == nil {
				return strings.TrimSpace(names), nil
			}
		}
		return names, errors.New("the list does not end")
	}
	for _, c := range []struct{ sort, fields, clusters, version, want string }{
		{"", "", "", "", "buoy tide.v3 tide.v1 tide.v2"},
		{"name", "", "", "", "buoy tide.v1 tide.v2 tide.v3"},
		{"-name", "", "", "", "tide.v3 tide.v2 tide.v1 buoy"},
		{"changed", "", "", "", "tide.v3 tide.v1 buoy tide.v2"},
		{"-created", "", "", "", "tide.v2 buoy tide.v1 tide.v3"},
		{"phase", "", "", "", "tide.v3 buoy tide.v1 tide.v2"},
		{"name", "status.phase=Succeeded,metadata.namespace!=a", "", "", "tide.v1 tide.v2"},
		{"name", "drifted=true", "tier=1", "", "tide.v1"},
		{"", "", "tier!=1", "", ""},
		{"name", "", "", ">=1.2.0 <3.0.0", "tide.v1 tide.v2"},
		{"", "drifted==false", "", ">2.5.0", "tide.v3"},
	} {
		for _, limit := range []int{1, 3, 9} {
			f := model.OperatorFilter{Version: c.version, Page: model.Page{Limit: limit}}
			f.Sort, f.FieldSelector, f.ClusterSelector = c.sort, c.fields, c.clusters
			if got, err := list(f); err != nil || got != c.want {
				t.Errorf("%+v in pages of %d: %q %v", c, limit, got, err)
			}
		}
	}
	for _, bad := range []model.OperatorFilter{
		{Choice: model.Choice{FieldSelector: "colour=red"}},
		{Choice: model.Choice{FieldSelector: "a in (b)"}},
		{Choice: model.Choice{FieldSelector: "drifted=perhaps"}},
		{Choice: model.Choice{ClusterSelector: "a=b=c"}},
		{Version: "new"},
		{Version: " "},
		{Version: "||"},
		{Version: "> "},
		{Version: "!"},
		{Version: "1.x || >"},
		{Choice: model.Choice{Sort: "name"}, Page: model.Page{After: []string{"-name", "x", "harbour", "a", "x"}}},
		{Choice: model.Choice{Sort: "changed"}, Page: model.Page{After: []string{"changed", "x", "harbour", "a", "x"}}},
		{Choice: model.Choice{Sort: "name"}, Page: model.Page{After: []string{"harbour", "a", "x"}}},
		{Page: model.Page{After: []string{"name", "x", "harbour", "a", "x"}}},
	} {
		bad.Limit = 1
		if _, _, err := r.List(t.Context(), viewtest.Ann, bad); !errs.Is(err, errs.Invalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// TestRemoval: R-UNI-1: each step of a removal replaces the one before, with what was asked; a reason goes with its
// step.
func TestRemoval(t *testing.T) {
	t.Parallel()
	e := viewtest.New(t, operators.Projection())
	r := &operators.Reader{Pool: e.Pool}
	fold(e, "ops", "tide.v1", phase("ops", "tide.v1", "Succeeded"))
	for _, step := range []struct {
		event                events.Payload
		phase, class, reason string
	}{
		{events.CSVRemovalRequested{Removal: "r1", CRDs: []string{"a.sea.test"}}, model.RemovalAsked, "", ""},
		{
			events.CSVRemovalBlocked{Removal: "r1", Class: "transient", Reason: "Away"},
			model.RemovalBlocked,
			"transient", "Away",
		},
		{events.CSVRemovalStarted{Removal: "r1"}, model.RemovalStarted, "", ""},
		{events.CSVRemovalRefused{Removal: "r1", Reason: "PlanChanged"}, model.RemovalRefused, "", "PlanChanged"},
	} {
		fold(e, "ops", "tide.v1", step.event)
		o, err := r.Get(t.Context(), viewtest.Ann, "harbour", "ops", "tide.v1")
		if err != nil || o.Removal == nil {
			t.Fatalf("%s: %v, removal %v", step.phase, err, o.Removal)
		}
		if x := o.Removal; x.Phase != step.phase || x.Class != step.class || x.Reason != step.reason || x.ID != "r1" ||
			!slices.Equal(x.CRDs, []string{"a.sea.test"}) || x.By != "ann" {
			t.Errorf("%s: %+v", step.phase, x)
		}
	}
	fold(e, "ops", "tide.v1", events.CSVRemovalDirected{Removal: "r2", CRDs: []string{"*"}, FleetSubscription: "tides"})
	o, err := r.Get(t.Context(), viewtest.Ann, "harbour", "ops", "tide.v1")
	if err != nil || o.Removal == nil {
		t.Fatalf("of a fleet subscription: %v, removal %v", err, o.Removal)
	}
	x := o.Removal
	if x.ID != "r2" || x.By != "fleet subscription tides" || x.Phase != model.RemovalAsked || x.Reason != "" {
		t.Errorf("of a fleet subscription: %+v", x)
	}
}

// TestOverrides: R-COND-6: an operator shows what counts in the place of its own conditions, who set it and when, until
// that is taken back or the operator is gone.
func TestOverrides(t *testing.T) {
	t.Parallel()
	e := viewtest.New(t, operators.Projection())
	r := &operators.Reader{Pool: e.Pool}
	get := func() (model.OperatorOverrides, error) {
		return r.Overrides(t.Context(), viewtest.Ann, "harbour", "ops", "tide.v1")
	}
	set := events.OperatorConditionOverridden{Overrides: []events.ConditionOverride{
		{Type: "Upgradeable", Status: "True", Reason: "Tested"},
	}}
	none := func(when string) {
		t.Helper()
		if _, err := get(); !errs.Is(err, errs.NotFound) {
			t.Errorf("%s: %v", when, err)
		}
	}
	none("not installed")
	fold(e, "ops", "tide.v1", phase("ops", "tide.v1", "Succeeded")) // 1
	none("not overridden")
	fold(e, "ops", "tide.v1", set, phase("ops", "tide.v1", "Failed")) // 2 and 3
	got, err := get()
	want := model.OperatorOverrides{
		Cluster: "harbour", Namespace: "ops", Name: "tide.v1", Stream: got.Stream, Version: 3,
		Overrides: model.OverridesOf(set.Overrides, "ann", viewtest.At(2)),
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if o, err := r.Get(t.Context(), viewtest.Ann, "harbour", "ops", "tide.v1"); err != nil || o.Overrides == nil ||
		o.Tag() != got.Tag() {
		t.Errorf("the operator: %+v, %v", o.Overrides, err)
	}
	fold(e, "ops", "tide.v1", events.OperatorConditionOverridesRemoved{})
	none("taken back")
	fold(e, "ops", "tide.v1", set, events.CSVRemoved{}, phase("ops", "tide.v1", "Succeeded"))
	none("installed again")
}

// TestServes: R-OG-25: operators of a namespace's one group serve its targets, or all namespaces; where there are two
// groups nothing is served, since their plans wait.
func TestServes(t *testing.T) {
	t.Parallel()
	e := viewtest.New(t, operators.Projection(), operatorgroups.Projection())
	r := &operators.Reader{Pool: e.Pool}
	group := func(namespace, name string, targets ...string) {
		e.Fold(events.KindOperatorGroup, "harbour/"+namespace+"/"+name, events.OperatorGroupCreated{
			Cluster: "harbour", Namespace: namespace, Name: name,
			Spec: events.OperatorGroupSpec{TargetNamespaces: targets},
		})
	}
	for _, ns := range []string{"all", "one", "two", "none"} {
		fold(e, ns, "tide.v1", phase(ns, "tide.v1", "Succeeded"))
	}
	group("all", "g")
	group("one", "g", "app")
	group("two", "g", "app")
	group("two", "h", "app")
	for serves, want := range map[string][]string{
		"app": {"all", "one"}, "else": {"all"}, "": {"all", "none", "one", "two"},
	} {
		items, _, err := r.List(t.Context(), viewtest.Ann, model.OperatorFilter{
			Serves: serves, Page: model.Page{Limit: 9},
		})
		var got []string
		for _, o := range items {
			got = append(got, o.Namespace)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q is served from %q, %v, want %q", serves, got, err, want)
		}
	}
}
