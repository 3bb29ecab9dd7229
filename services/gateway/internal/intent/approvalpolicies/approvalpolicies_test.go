package approvalpolicies_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/services/gateway/approvalpolicy"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/approvalpolicies"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/intenttest"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func policy(clusters ...string) model.SetApprovalPolicy {
	var in model.SetApprovalPolicy
	in.Selector.Clusters = clusters
	return in
}

// TestIntents: to set the same is no event, nor is its default written out; a bad policy is refused; what is not there,
// or is another tenant's, is not found.
func TestIntents(t *testing.T) {
	t.Parallel()
	e := intenttest.New(t)
	s := &approvalpolicies.Service{Units: e.Units}
	set := func(who model.Caller, name string, in model.SetApprovalPolicy) error {
		_, err := s.Set(t.Context(), who, name, in)
		return err
	}
	same := policy("b", "a")
	same.PermissionGrowth = approvalpolicy.GrowthManual
	noted := policy("a", "b")
	noted.Labels = map[string]string{"team": "x"}
	for _, in := range []model.SetApprovalPolicy{policy("a", "b"), same, noted} {
		if err := set(intenttest.Ann, "prod", in); err != nil {
			t.Fatal(err)
		}
	}
	for name, bad := range map[string]model.SetApprovalPolicy{
		"a growth that is none": {ApprovalPolicySpec: model.ApprovalPolicySpec{PermissionGrowth: "Maybe"}},
		"a label of no form":    {Metadata: model.Metadata{Labels: map[string]string{"a b": ""}}},
	} {
		if err := set(intenttest.Ann, "prod", bad); !errs.Is(err, errs.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := set(intenttest.Ann, "No Name", policy()); !errs.Is(err, errs.Invalid) {
		t.Errorf("a name that is none: %v", err)
	}
	want := []events.Type{
		events.ApprovalPolicySet{}.EventType(), events.ApprovalPolicyMetadataChanged{}.EventType(),
	}
	if got := e.Events(intenttest.Ann, events.KindPolicy, approvalpolicy.Subject("prod")); !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
	if _, err := s.Delete(t.Context(), intenttest.Eve, "prod"); !errs.Is(err, errs.NotFound) {
		t.Errorf("another tenant deletes it: %v", err)
	}
	if _, err := s.Delete(t.Context(), intenttest.Ann, "prod"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Delete(t.Context(), intenttest.Ann, "prod"); !errs.Is(err, errs.NotFound) {
		t.Errorf("deleted twice: %v", err)
	}
}

// TestBound: one more policy than a tenant may have is refused; one of those that are there can be changed, and another
// tenant's do not count.
func TestBound(t *testing.T) {
	t.Parallel()
	e := intenttest.New(t)
	s := &approvalpolicies.Service{Units: e.Units}
	if _, err := e.DB.Pool(t, pgtest.Admin).Exec(t.Context(), fmt.Sprintf(`insert into gateway.approval_policies
		(tenant, name, spec, created, updated, stream, version)
		select 'default', 'p-' || n, '{}', now(), 'today', '', 1 from generate_series(1, %d) n`,
		approvalpolicy.MaxPolicies)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Set(t.Context(), intenttest.Ann, "one-more", policy()); !errs.Is(err, errs.Unprocessable) {
		t.Errorf("one policy more than allowed: %v", err)
	}
	if _, err := s.Set(t.Context(), intenttest.Ann, "p-1", policy()); err != nil {
		t.Errorf("one that is counted already: %v", err)
	}
	if _, err := s.Set(t.Context(), intenttest.Eve, "first", policy()); err != nil {
		t.Errorf("the first one of another tenant: %v", err)
	}
}
