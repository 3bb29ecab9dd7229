package cataloghealth_test

import (
	"testing"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	scopes "github.com/chandler-fleet/chandler/services/gateway/cataloghealth"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/cataloghealth"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/intenttest"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestIntents: R-CAT-99: nothing is chosen at first, which is Independent; a choice holds for its scope and tenant
// alone; to choose the same is no event.
func TestIntents(t *testing.T) {
	t.Parallel()
	e := intenttest.New(t)
	s := &cataloghealth.Service{Units: e.Units}
	hub, ops := scopes.Scope{}, scopes.Scope{Cluster: "harbour", Namespace: "ops"}
	set := func(who model.Caller, at scopes.Scope, mode string) error {
		_, err := s.Set(t.Context(), who, at, model.SetCatalogHealth{Mode: mode})
		return err
	}
	if err := set(intenttest.Ann, ops, scopes.Strict); !errs.Is(err, errs.NotFound) {
		t.Errorf("a namespace of a cluster that is not registered: %v", err)
	}
	e.Register("harbour")
	if err := set(intenttest.Ann, hub, "Lazy"); !errs.Is(err, errs.Invalid) {
		t.Errorf("a mode that is none: %v", err)
	}
	half := scopes.Scope{Cluster: "harbour"}
	if err := set(intenttest.Ann, half, scopes.Strict); !errs.Is(err, errs.Invalid) {
		t.Errorf("a cluster without a namespace: %v", err)
	}
	if _, err := s.Get(t.Context(), intenttest.Ann, half); !errs.Is(err, errs.Invalid) {
		t.Errorf("read of a cluster without a namespace: %v", err)
	}
	for range 2 {
		if err := set(intenttest.Ann, ops, scopes.Strict); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(e.Events(intenttest.Ann, events.KindPolicy, ops.Subject())); n != 1 {
		t.Errorf("%d events, want 1", n)
	}
	for _, c := range []struct {
		who  model.Caller
		at   scopes.Scope
		want string
	}{
		{intenttest.Ann, ops, scopes.Strict},
		{intenttest.Ann, hub, scopes.Independent},
		{intenttest.Eve, ops, scopes.Independent},
	} {
		if got, err := s.Get(t.Context(), c.who, c.at); err != nil || got.Mode != c.want {
			t.Errorf("%s reads %+v: %q, %v, want %s", c.who.Actor, c.at, got.Mode, err, c.want)
		}
	}
}
