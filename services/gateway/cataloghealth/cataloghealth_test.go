package cataloghealth_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/cataloghealth"
)

// TestDecide proves the setting of R-CAT-99.
func TestDecide(t *testing.T) {
	t.Parallel()
	scope := cataloghealth.Scope{Cluster: "c", Namespace: "n"}
	strict := events.CatalogHealthSet{Cluster: "c", Namespace: "n", Mode: "Strict"}
	for _, c := range []struct {
		name  string
		given cataloghealth.State
		mode  string
		then  []events.Payload
		kind  errs.Kind
	}{
		{"strict", cataloghealth.State{}, "Strict", []events.Payload{strict}, ""},
		{"strict again", cataloghealth.State{Mode: "Strict"}, "Strict", nil, ""},
		{"what holds without a word", cataloghealth.State{}, "Independent", nil, ""},
		{
			"back",
			cataloghealth.State{Mode: "Strict"},
			"Independent",
			[]events.Payload{events.CatalogHealthSet{Cluster: "c", Namespace: "n", Mode: "Independent"}},
			"",
		},
		{"another word", cataloghealth.State{}, "Lax", nil, errs.Invalid},
	} {
		got, err := cataloghealth.Decide(c.given, cataloghealth.Set{Scope: scope, Mode: c.mode})
		if errs.Is(err, errs.Invalid) != (c.kind == errs.Invalid) || !cmp.Equal(got, c.then) {
			t.Errorf("%s: %v %v", c.name, got, err)
		}
	}
	if s, err := cataloghealth.Evolve(cataloghealth.State{}, strict); err != nil || s.Chosen() != "Strict" {
		t.Errorf("got %v %v", s, err)
	}
	if _, err := cataloghealth.Evolve(cataloghealth.State{}, events.CatalogRemoved{}); err == nil {
		t.Error("an event of another stream was taken")
	}
	if got := scope.Subject(); got != "catalog-health/c/n" {
		t.Errorf("subject %s", got)
	}
	if err := (cataloghealth.Scope{Cluster: "c"}).Check(); !errs.Is(err, errs.Invalid) {
		t.Errorf("half a scope: %v", err)
	}
}
