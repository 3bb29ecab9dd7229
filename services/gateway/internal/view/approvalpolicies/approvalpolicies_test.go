package approvalpolicies_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/approvalpolicy"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/approvalpolicies"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/viewtest"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestReader: a policy that is set again keeps when it was made and what is noted on it; a deleted one is gone with its
// labels; pages follow each other without a gap; a cursor of another list is refused; other tenants see nothing.
func TestReader(t *testing.T) {
	t.Parallel()
	e := viewtest.New(t, approvalpolicies.Projection())
	r := &approvalpolicies.Reader{Pool: e.Pool}
	set := func(name string, clusters ...string) events.ApprovalPolicySet {
		return events.ApprovalPolicySet{Name: name, Spec: events.ApprovalPolicySpec{
			Selector: events.PolicySelector{Clusters: clusters},
		}}
	}
	fold := func(name string, p ...events.Payload) { e.Fold(events.KindPolicy, approvalpolicy.Subject(name), p...) }
	noted := events.ApprovalPolicyMetadataChanged{Metadata: events.Metadata{Labels: map[string]string{"team": "x"}}}
	fold("a", set("a", "old"), noted, set("a", "new")) // events 1 to 3
	fold("b", set("b"))
	fold("c", set("c"), noted, events.ApprovalPolicyDeleted{}, set("c"))
	got, err := r.Get(t.Context(), viewtest.Ann, "a")
	want := model.ApprovalPolicy{
		Name: "a", Metadata: model.Metadata{Labels: map[string]string{"team": "x"}}, CreatedAt: viewtest.At(1),
		UpdatedAt: viewtest.At(3), Stream: got.Stream, Version: 3,
	}
	want.Spec.Selector.Clusters = []string{"new"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if c, err := r.Get(t.Context(), viewtest.Ann, "c"); err != nil || len(c.Labels) > 0 {
		t.Errorf("made again: labels %v, %v", c.Labels, err)
	}
	names := func(who model.Caller, f model.PolicyFilter) (names, next []string) {
		t.Helper()
		items, next, err := r.List(t.Context(), who, f)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range items {
			names = append(names, p.Name)
		}
		return names, next
	}
	first, next := names(viewtest.Ann, model.PolicyFilter{Page: model.Page{Limit: 2}})
	second, end := names(viewtest.Ann, model.PolicyFilter{Page: model.Page{Limit: 2, After: next}})
	if diff := cmp.Diff([]string{"a", "b", "c"}, append(first, second...)); diff != "" || end != nil {
		t.Errorf("pages end with %v (-want +got):\n%s", end, diff)
	}
	labelled, _ := names(viewtest.Ann, model.PolicyFilter{Label: "team=x", Page: model.Page{Limit: 9}})
	if diff := cmp.Diff([]string{"a"}, labelled); diff != "" {
		t.Errorf("by label (-want +got):\n%s", diff)
	}
	if all, _ := names(viewtest.Eve, model.PolicyFilter{Page: model.Page{Limit: 9}}); all != nil {
		t.Errorf("another tenant sees %q", all)
	}
	if _, err := r.Get(t.Context(), viewtest.Eve, "a"); !errs.Is(err, errs.NotFound) {
		t.Errorf("another tenant reads it: %v", err)
	}
	foreign := model.PolicyFilter{Page: model.Page{Limit: 2, After: []string{"a", "b"}}}
	if _, _, err := r.List(t.Context(), viewtest.Ann, foreign); !errs.Is(err, errs.Invalid) {
		t.Errorf("the cursor of another list: %v", err)
	}
}
