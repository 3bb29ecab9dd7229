package access_test

import (
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/access"
)

// TestWhatRightsAllowedIsNoted: what was allowed is noted, what was refused is not, and whoever lost any of it is
// refused.
func TestWhatRightsAllowedIsNoted(t *testing.T) {
	t.Parallel()
	everything, nothing := access.Everything(), (*access.Rights)(nil)
	spoke := access.Target{Cluster: "spoke"}
	noting, used := everything.Noting()
	if err := everything.Still(used()); err == nil {
		t.Error("an answer of which it is not known what allowed it may be given")
	}
	for range 2 {
		if !noting.Allow(access.Create, access.Subscriptions, spoke) {
			t.Fatal("not allowed")
		}
	}
	if u := used(); len(u.Allowed) != 1 || u.Allowed[0].At != spoke || len(u.Covered) != 0 {
		t.Errorf("noted %+v", u)
	}
	if err := everything.Still(used()); err != nil {
		t.Error(err)
	}
	if err := nothing.Still(used()); err == nil {
		t.Error("who has no rights left still may")
	}
	none, used := nothing.Noting()
	if none.Allow(access.Create, access.Subscriptions, spoke) || len(used().Allowed) != 0 {
		t.Errorf("without rights: %+v", used())
	}
	p := access.NewPolicy(folded(t, binding("b", access.RoleOperatorAdmin, events.AccessScope{}, "me")), nil)
	mine := p.RightsOf(access.Identity{Name: "me"})
	noting, used = everything.Noting()
	noting.Allow(access.Create, access.Subscriptions, spoke)
	if !noting.CoverRole(access.RoleAdmin) || len(used().Covered) != 1 {
		t.Fatalf("noted %+v", used())
	}
	if err := mine.Still(used()); err == nil {
		t.Error("who may not give as much any more still gets the answer")
	}
}
