package operatorgroups_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/operatorgroups"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/viewtest"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func fold(e *viewtest.Env, name string, p ...events.Payload) {
	e.Fold(events.KindOperatorGroup, "harbour/ops/"+name, p...)
}

func created(name string, targets ...string) events.OperatorGroupCreated {
	return events.OperatorGroupCreated{
		Cluster: "harbour", Namespace: "ops", Name: name, Spec: events.OperatorGroupSpec{TargetNamespaces: targets},
	}
}

// TestStatus: what a group came to survives changes of labels and of its spec as the aggregate's Status says, in the
// database as in memory; a report is no change of the intent; conditions name the event that set them (P3).
func TestStatus(t *testing.T) {
	t.Parallel()
	e := viewtest.New(t, operatorgroups.Projection())
	r := &operatorgroups.Reader{Pool: e.Pool}
	fold(e, "team", created("team", "a"), // 1
		events.OperatorGroupObserved{ // 2
			Targets: []string{"a"}, ProvidedAPIs: []string{"K.v1.g"}, Conditions: []string{protocol.GroupForbidden},
		},
		events.OperatorGroupMetadataChanged{Metadata: events.Metadata{Labels: map[string]string{"team": "x"}}}, // 3
		events.OperatorGroupObserved{ // 4
			Targets: []string{"a", "b"}, ProvidedAPIs: []string{"K.v1.g"},
			Conditions: []string{protocol.GroupForbidden},
		},
		events.OperatorGroupChanged{Spec: events.OperatorGroupSpec{ // 5: a selector
			Selector: events.LabelSelector{MatchLabels: map[string]string{"t": "y"}},
		}},
		events.OperatorGroupObserved{ // 6
			Targets: []string{"c"}, Conditions: []string{protocol.GroupForbidden},
		})
	e.Exec(`insert into installer.messages (tenant, kind, subject, message) values ('default', 'operatorgroup', $1, $2)
		on conflict do nothing`, "harbour/ops/team/"+protocol.GroupForbidden, "the account may not do it")
	got, err := r.Get(t.Context(), viewtest.Ann, "harbour", "ops", "team")
	want := model.OperatorGroup{
		Cluster: "harbour", Namespace: "ops", Name: "team", Metadata: model.Metadata{
			Labels: map[string]string{"team": "x"},
		},
		Targets: []string{"c"}, ProvidedAPIs: []string{}, Conditions: []model.Condition{{
			Type: protocol.GroupForbidden, Status: "True", Reason: "Forbidden", Message: "the account may not do it",
			Since: viewtest.At(2), Event: viewtest.Event(2),
		}},
		CreatedAt: viewtest.At(1), UpdatedAt: viewtest.At(5), Stream: got.Stream, Version: 6,
	}
	want.Spec.Selector.MatchLabels = map[string]string{"t": "y"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	fold(e, "team", events.OperatorGroupDeleted{}, created("team", "a")) // 7 and 8
	if got, err := r.Get(t.Context(), viewtest.Ann, "harbour", "ops", "team"); err != nil || len(got.Labels) > 0 ||
		len(got.Conditions) > 0 || !got.CreatedAt.Equal(viewtest.At(8)) {
		t.Errorf("made again: %+v, %v", got, err)
	}
}

// TestSiblings: R-OG-2: two groups in one namespace are a condition of both, since the younger one; it ends with the
// other group; other tenants see nothing.
func TestSiblings(t *testing.T) {
	t.Parallel()
	e := viewtest.New(t, operatorgroups.Projection())
	r := &operatorgroups.Reader{Pool: e.Pool}
	fold(e, "a", created("a"))
	fold(e, "b", created("b"))
	list := func(who model.Caller) (out []model.OperatorGroup) {
		t.Helper()
		out, _, err := r.List(t.Context(), who, model.GroupFilter{Page: model.Page{Limit: 9}})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	both := list(viewtest.Ann)
	if len(both) != 2 {
		t.Fatalf("%d groups", len(both))
	}
	for i, event := range []string{viewtest.Event(2), viewtest.Event(1)} {
		c := both[i].Conditions
		if len(c) != 1 || c[0].Type != "MultipleOperatorGroup" || c[0].Event != event ||
			!c[0].Since.Equal(viewtest.At(2)) {
			t.Errorf("group %s: %+v, want MultipleOperatorGroup of %s since the second", both[i].Name, c, event)
		}
	}
	fold(e, "b", events.OperatorGroupDeleted{})
	if one := list(viewtest.Ann); len(one) != 1 || len(one[0].Conditions) != 0 {
		t.Errorf("one group is left: %+v", one)
	}
	if other := list(viewtest.Eve); len(other) != 0 {
		t.Errorf("another tenant sees %+v", other)
	}
	if _, err := r.Get(t.Context(), viewtest.Eve, "harbour", "ops", "a"); !errs.Is(err, errs.NotFound) {
		t.Errorf("another tenant reads it: %v", err)
	}
}
