package operatorgroups_test

import (
	"context"
	"slices"
	"testing"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/intenttest"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/operatorgroups"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/operatorgroup"
)

// TestIntents: R-OG-3: a group needs its cluster; the same intent in another order is no event; a group that is not
// there, or is another tenant's, is not found.
func TestIntents(t *testing.T) {
	t.Parallel()
	e := intenttest.New(t)
	s := &operatorgroups.Service{Units: e.Units}
	name := operatorgroup.Name{Cluster: "harbour", Namespace: "ops", Name: "team"}
	of := func(namespaces ...string) model.ChangeOperatorGroup {
		return model.ChangeOperatorGroup{OperatorGroupSpec: model.OperatorGroupSpec{TargetNamespaces: namespaces}}
	}
	create := func(who model.Caller, n operatorgroup.Name, in model.ChangeOperatorGroup) error {
		_, err := s.Create(t.Context(), who, n, in)
		return err
	}
	change := func(who model.Caller, in model.ChangeOperatorGroup) error {
		_, err := s.Change(t.Context(), who, name, in)
		return err
	}
	if err := create(intenttest.Ann, name, of("a")); !errs.Is(err, errs.NotFound) {
		t.Errorf("a group in a cluster that is not registered: %v", err)
	}
	e.Register("harbour")
	for _, step := range []struct {
		name string
		err  error
		kind errs.Kind
	}{
		{"changed before it is made", change(intenttest.Ann, of("a")), errs.NotFound},
		{"a target that is no name", create(intenttest.Ann, name, of("A_b")), errs.Invalid},
		{"made in another tenant's cluster", create(intenttest.Eve, name, of("a")), errs.NotFound},
	} {
		if !errs.Is(step.err, step.kind) {
			t.Errorf("%s: %v, want %s", step.name, step.err, step.kind)
		}
	}
	if err := create(intenttest.Ann, name, of("a", "b")); err != nil {
		t.Fatal(err)
	}
	if err := create(intenttest.Ann, name, of("a", "b")); !errs.Is(err, errs.AlreadyExists) {
		t.Errorf("made twice: %v", err)
	}
	if err := change(intenttest.Ann, of("b", "a", "a")); err != nil {
		t.Fatal(err)
	}
	got, err := s.Change(t.Context(), intenttest.Ann, name, of("c"))
	if err != nil || !slices.Equal(got.Targets, []string{"c"}) || got.Version != 2 {
		t.Errorf("answered %+v, %v: want the second version, which serves c", got, err)
	}
	if err := change(intenttest.Eve, of("d")); !errs.Is(err, errs.NotFound) {
		t.Errorf("another tenant changes it: %v", err)
	}
	if _, err := s.Delete(t.Context(), intenttest.Ann, name); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Delete(t.Context(), intenttest.Ann, name); !errs.Is(err, errs.NotFound) {
		t.Errorf("deleted twice: %v", err)
	}
	want := []events.Type{
		events.OperatorGroupCreated{}.EventType(), events.OperatorGroupChanged{}.EventType(),
		events.OperatorGroupDeleted{}.EventType(),
	}
	if got := e.Events(intenttest.Ann, events.KindOperatorGroup, name.Subject()); !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

// TestEnsureGlobal: R-OG-5: the first subscription in a global namespace brings a group that serves all namespaces, in
// the name of the configuration; a namespace that has a group, or is none of those, gets none.
func TestEnsureGlobal(t *testing.T) {
	t.Parallel()
	e := intenttest.New(t)
	e.Register("harbour")
	s := &operatorgroups.Service{Units: e.Units, GlobalNamespaces: []string{"operators", "mine"}}
	mine := operatorgroup.Name{Cluster: "harbour", Namespace: "mine", Name: "team"}
	if _, err := s.Create(t.Context(), intenttest.Ann, mine, model.ChangeOperatorGroup{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, namespace string
		made            bool
	}{
		{"a global namespace", "operators", true},
		{"the second time", "operators", false},
		{"one with a group", "mine", false},
		{"another namespace", "ops", false},
	} {
		var made string
		err := e.In(intenttest.Ann, func(ctx context.Context, u *unit.Work) (err error) {
			made, err = s.EnsureGlobal(ctx, u, "harbour", c.namespace)
			return err
		})
		if err != nil || (made != "") != c.made {
			t.Errorf("%s: made %q, %v", c.name, made, err)
		}
	}
	recorded := e.Recorded(intenttest.Ann, events.KindOperatorGroup, "harbour/operators/global-operators")
	if len(recorded) != 1 || recorded[0].Actor != model.ActorConfiguration {
		t.Errorf("recorded %+v, want one event of the configuration", recorded)
	}
}
