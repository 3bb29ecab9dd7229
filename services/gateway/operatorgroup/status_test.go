package operatorgroup_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/operatorgroup"
)

// TestStatus: R-OG-1, R-OG-4: what a group serves follows from its spec where that names namespaces, else from what the
// cluster reports; since when a condition holds is the event that first reported it.
func TestStatus(t *testing.T) {
	t.Parallel()
	created := func(spec events.OperatorGroupSpec) events.OperatorGroupCreated {
		return events.OperatorGroupCreated{Cluster: "c", Namespace: "n", Name: "g", Spec: spec}
	}
	placed := func(spec events.OperatorGroupSpec) events.OperatorGroupPlaced {
		return events.OperatorGroupPlaced{Cluster: "c", Namespace: "n", Name: "g", Spec: spec, Owner: "f"}
	}
	named := events.OperatorGroupSpec{TargetNamespaces: []string{"a", "b"}}
	chosen := events.OperatorGroupSpec{Selector: events.LabelSelector{MatchLabels: map[string]string{"t": "x"}}}
	type status struct {
		Targets, Provided, Conditions []string
		Observed                      string
	}
	none := []string{}
	for _, c := range []struct {
		name   string
		events []events.Payload // with the ids e1, e2 and so on
		want   status
	}{
		{"named namespaces", []events.Payload{created(named)}, status{[]string{"a", "b"}, none, none, ""}},
		{"all namespaces", []events.Payload{created(events.OperatorGroupSpec{})}, status{[]string{""}, none, none, ""}},
		{
			"made by a fleet subscription",
			[]events.Payload{placed(named)},
			status{[]string{"a", "b"}, none, none, ""},
		},
		{
			"made by a fleet subscription and changed by somebody",
			[]events.Payload{
				placed(chosen),
				events.OperatorGroupChanged{Spec: named},
			},
			status{[]string{"a", "b"}, none, none, ""},
		},
		{"a selector waits for the cluster", []events.Payload{created(chosen)}, status{none, none, none, ""}},
		{
			"what the cluster reports counts",
			[]events.Payload{
				created(chosen),
				events.OperatorGroupObserved{Targets: []string{"x"}, ProvidedAPIs: []string{"K.v1.g"}},
			},
			status{[]string{"x"}, []string{"K.v1.g"}, none, ""},
		},
		{
			"another selector keeps what was chosen until the next report",
			[]events.Payload{
				created(chosen),
				events.OperatorGroupObserved{Targets: []string{"x"}},
				events.OperatorGroupChanged{Spec: events.OperatorGroupSpec{
					Selector: events.LabelSelector{MatchLabels: map[string]string{"t": "y"}},
				}},
			},
			status{[]string{"x"}, none, none, ""},
		},
		{
			"named namespaces replace what was chosen",
			[]events.Payload{
				created(chosen),
				events.OperatorGroupObserved{Targets: []string{"x"}},
				events.OperatorGroupChanged{Spec: named},
			},
			status{[]string{"a", "b"}, none, none, ""},
		},
		{
			"a condition holds since its first report",
			[]events.Payload{
				created(named),
				events.OperatorGroupObserved{Conditions: []string{"ServiceAccountMissing"}},
				events.OperatorGroupObserved{Targets: []string{"a"}, Conditions: []string{"ServiceAccountMissing"}},
			},
			status{[]string{"a"}, none, []string{"ServiceAccountMissing"}, "e2"},
		},
		{
			"a condition that ended changes the event",
			[]events.Payload{
				created(named),
				events.OperatorGroupObserved{Conditions: []string{"ServiceAccountMissing"}},
				events.OperatorGroupObserved{},
			},
			status{none, none, none, "e3"},
		},
		{
			"a group that is made again begins anew",
			[]events.Payload{
				created(named),
				events.OperatorGroupObserved{Conditions: []string{"ServiceAccountMissing"}},
				events.OperatorGroupDeleted{},
				created(named),
			},
			status{[]string{"a", "b"}, none, none, ""},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var s operatorgroup.Status
			for i, p := range c.events {
				var err error
				at := operatorgroup.Moment{Event: "e" + string(rune('1'+i)), Time: time.Unix(int64(i), 0)}
				if s, err = s.Evolve(p, at); err != nil {
					t.Fatal(err)
				}
			}
			got := status{s.Targets, s.ProvidedAPIs, s.Conditions, s.Observed.Event}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if _, err := (operatorgroup.Status{}).Evolve(events.ClusterRemoved{}, operatorgroup.Moment{}); err == nil {
		t.Error("an event of a cluster was folded into a group")
	}
}
