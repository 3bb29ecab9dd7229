package bundle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// RuleReserved is the rule that a bundle breaks that brings or owns an API of a reserved group.
const RuleReserved = "reserved-api-group"

// reservedGroups, and all groups below them, are Kubernetes' own, OLM's and Chandler's. Who may define their APIs, or
// say that it provides them, could change what every other operator and every right of a cluster rests on.
var reservedGroups = []string{"k8s.io", "kubernetes.io", "operators.coreos.com", "chandler-fleet.io"}

// openGroups, and all groups below them, lie below reserved ones but are no API server's own: the projects that define
// them leave it to others to bring them, and published bundles do.
var openGroups = []string{
	"metrics.k8s.io",                                   // as well as custom.metrics.k8s.io and external.metrics.k8s.io
	"snapshot.storage.k8s.io",                          // volume snapshots
	"groupsnapshot.storage.k8s.io",                     // of several volumes
	"populator.storage.k8s.io", "objectstorage.k8s.io", // volume populators, buckets
	"gateway.networking.k8s.io", "policy.networking.k8s.io", // gateways, network policies of a whole cluster
	"autoscaling.k8s.io",   // vertical pod autoscalers
	"topology.node.k8s.io", // what a scheduler knows of the NUMA nodes
	"migration.k8s.io",     // of stored versions
	"app.k8s.io",           // applications
	"nfd.kubernetes.io",    // node feature discovery
	"sparkoperator.k8s.io",
}

// Reserved reports whether no bundle may bring or own APIs of a group. A group without a dot is one that Kubernetes
// itself serves, or no group at all.
func Reserved(group string) bool {
	below := func(parent string) bool { return group == parent || strings.HasSuffix(group, "."+parent) }
	return !strings.Contains(group, ".") || slices.ContainsFunc(reservedGroups, below) && !slices.ContainsFunc(openGroups, below)
}

// GroupOf is the API group in the name of a definition, plural.group.
func GroupOf(crd string) string {
	_, group, _ := strings.Cut(crd, ".")
	return group
}

// CheckGroups refuses a bundle that brings a definition, or owns an API, of a reserved group. Errors are errs.Invalid
// with RuleReserved.
func (c Content) CheckGroups(csv CSV) error {
	refuse := func(what, group, field string) error {
		return errs.New(errs.Invalid, "%s: %s is of API group %q, which is reserved for Kubernetes, OLM and Chandler; a bundle must bring APIs of a group of its own",
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
			return refuse("the owned "+KindCRD+" "+d.Name, g, fmt.Sprintf("/spec/customresourcedefinitions/owned/%d", i))
		}
	}
	for i, d := range csv.Spec.APIServices.Owned {
		if Reserved(d.Group) {
			return refuse("the owned API "+d.Kind, d.Group, fmt.Sprintf("/spec/apiservicedefinitions/owned/%d", i))
		}
	}
	return nil
}
