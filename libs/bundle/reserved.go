package bundle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// RuleReserved is the rule that a bundle breaks that brings or owns an API of a reserved group.
const RuleReserved = "reserved-api-group"

// served are the API groups that an API server serves itself, as k8s.io/api, apiextensions and apiregistration have
// them; a test of the executor compares the table with their types, and another one with what a real API server says of
// itself. Who may define their APIs, or say that it provides them, could change what every other operator and every
// right of a cluster rests on. For other groups below k8s.io and kubernetes.io the API server has a rule of its own,
// the annotation api-approved.kubernetes.io, and decides.
var served = []string{
	"", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps",
	"authentication.k8s.io", "authorization.k8s.io", "autoscaling", "batch", "certificates.k8s.io",
	"coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "extensions", "flowcontrol.apiserver.k8s.io",
	"internal.apiserver.k8s.io", "lifecycle.k8s.io", "networking.k8s.io", "node.k8s.io", "policy",
	"rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io",
}

// owned, and all groups below them, are OLM's and Chandler's.
var owned = []string{"operators.coreos.com", "chandler-fleet.io"}

// Reserved reports whether no bundle may bring or own APIs of a group.
func Reserved(group string) bool {
	return slices.Contains(served, group) || Ours(group)
}

// guarded are groups whose objects rights and the holds of controllers rest on. Who is asked about each of them can
// rewrite rights as they are written, or stop every controller of a cluster, nodes included, by not answering.
var guarded = []string{
	"admissionregistration.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "certificates.k8s.io",
	"coordination.k8s.io", "rbac.authorization.k8s.io",
}

// Ours reports OLM's and Chandler's groups: no webhook of a bundle is asked about their objects, whoever allows it.
func Ours(group string) bool {
	return slices.ContainsFunc(owned, func(parent string) bool {
		return group == parent || strings.HasSuffix(group, "."+parent)
	})
}

// GuardedGroups are Kubernetes' own groups that are guarded.
func GuardedGroups() []string { return slices.Clone(guarded) }

// Guarded reports groups about which a webhook of a bundle is asked only where an administrator allows it.
func Guarded(group string) bool {
	return group == "*" || slices.Contains(guarded, group) || Ours(group)
}

// ReservedGroups are the groups that an API server serves itself.
func ReservedGroups() []string { return slices.Clone(served) }

// GroupOf is the API group in the name of a definition, plural.group.
func GroupOf(crd string) string {
	_, group, _ := strings.Cut(crd, ".")
	return group
}

// CheckGroups refuses a bundle that brings a definition, or owns an API, of a reserved group. Errors are errs.Invalid
// with RuleReserved.
func (c Content) CheckGroups(csv CSV) error {
	refuse := func(what, group, field string) error {
		return errs.New(errs.Invalid,
			"%s: %s is of API group %q, which is reserved: the API server itself, OLM or Chandler serves it; a "+
				"bundle must bring APIs of a group of its own",
			csv.Name, what, group).At(field, RuleReserved)
	}
	crds, err := c.CRDs()
	if err != nil {
		return err
	}
	for _, o := range crds {
		if g := GroupOf(o.Name); Reserved(g) {
			return refuse(o.String(), g, "/metadata/name")
		}
	}
	for i, d := range csv.Spec.CRDs.Owned {
		if g := GroupOf(d.Name); Reserved(g) {
			return refuse("the owned "+KindCRD+" "+d.Name, g,
				fmt.Sprintf("/spec/customresourcedefinitions/owned/%d", i))
		}
	}
	for i, d := range csv.Spec.APIServices.Owned {
		if Reserved(d.Group) {
			return refuse("the owned API "+d.Kind, d.Group, fmt.Sprintf("/spec/apiservicedefinitions/owned/%d", i))
		}
	}
	return nil
}
