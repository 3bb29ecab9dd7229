package fleet

import (
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
)

// Release is a place that is let go of, with what becomes of the operator there.
type Release struct {
	Place

	// End says that the subscription ends; otherwise it stays, without its owner.
	End bool
	// Remove are the ClusterServiceVersions that are uninstalled, and CRDs the definitions that go with them.
	Remove, CRDs []string
	// Kept is why the operator stays in spite of the deletion policy; a code.
	Kept string
}

// allCRDs stands for every definition of an operator's own.
const allCRDs = "*"

// Uninstalls says whether who leaves loses the operator.
func (s State) Uninstalls() bool {
	p := s.Spec.DeletionPolicy
	return p == events.DeletionPolicyKeepCRDs || p == events.DeletionPolicyRemove
}

// Release says what becomes of a place that is let go of, where there is the state of its namespace:
//
//	the policy is Orphan                          the subscription stays
//	Chandler has let go of the cluster            it stays, too: what is installed there is not Chandler's any more
//	the cluster is at work on a plan for it       not yet: what comes of the plan would stay behind
//	other operators need what is installed        the subscription stays, and says so
//	the fleet subscription has moved elsewhere    the operator goes; definitions stay, since it comes back
//	otherwise                                     the operator goes, with its definitions where the policy is Remove
func (s State) Release(p Place, there decide.State) (r Release, now bool) {
	r.Place = p
	_, known := s.Clusters[p.Cluster]
	switch {
	case !s.Uninstalls() || !known:
		return r, true
	case decide.Begun(there, s.Spec.Package):
		return r, false
	}
	for _, csv := range decide.Standing(there, s.Spec.Package) {
		if len(there.Dependants(csv)) > 0 {
			return Release{Place: p, Kept: events.KeptRequired}, true
		}
		r.Remove = append(r.Remove, csv)
	}
	r.End = true
	if s.Spec.DeletionPolicy == events.DeletionPolicyRemove && (s.Deleted || p.Namespace == s.Spec.Namespace) {
		r.CRDs = []string{allCRDs}
	}
	return r, true
}
