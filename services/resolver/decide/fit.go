package decide

import (
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/operatorgroup"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// ReadCluster is the read of a decision that rests on what is known of the cluster beside its catalogs: its version of
// Kubernetes, and its operator groups. It has no name and no answer.
const ReadCluster resolution.ReadKind = "cluster"

// Cluster is what is known of a cluster beside its catalogs.
type Cluster struct {
	Kubernetes string // version, such as v1.34.4; "" while unknown
	Cordoned   bool   // nothing new is planned for it
	// Groups are the operator groups of other namespaces that provide an API, as the cluster reported.
	Groups []operatorgroup.Standing
}

// Fit says why an operator could not run under an operator group of the scope, as far as the hub knows it; nil where
// nothing is known against it. What only the cluster knows is reported there, in the same words:
//
//	install modes    the targets that the group lists, all namespaces, or what the cluster last reported of its selector (R-CSV-31)
//	minKubeVersion   the version of Kubernetes that the cluster last reported (R-CSV §6.4)
//	provided APIs    operator groups of the cluster that intersect with this one (R-OG §7.7)
func (s State) Fit(csv bundle.CSV, g Group) error {
	if err := s.serves(csv, g); err != nil {
		return err
	}
	if s.Cluster.Kubernetes != "" {
		if err := render.CheckKubernetes(csv.Spec.MinKubeVersion, s.Cluster.Kubernetes); err != nil {
			return errs.Wrap(errs.KindOf(err), err, "%s cannot run on cluster %s", csv.Name, s.Scope.Cluster)
		}
	}
	own := operatorgroup.Standing{
		Group:   operatorgroup.Group{Namespace: s.Scope.Namespace, Name: g.Name, Spec: g.Spec},
		Targets: g.served(),
	}
	if g.Spec.StaticProvidedAPIs {
		own.Provided = g.Spec.ProvidedAPIs
	}
	v := operatorgroup.Judge(own, operatorgroup.Names(operatorgroup.APIs(csv)), s.Cluster.Groups)
	if v.Action == operatorgroup.Refuse {
		return errs.New(errs.Unprocessable, "%s would fail with %s: %s", csv.Name, v.Reason, v.Message).At(
			"", "R-OG-35")
	}
	return nil
}

func (s State) serves(csv bundle.CSV, g Group) error {
	targets := g.served()
	if len(targets) == 0 { // a selector of which nothing was reported yet, or that chooses none now
		return nil
	}
	err := render.CheckInstallModes(csv.Spec.InstallModes, s.Scope.Namespace, targets)
	if err == nil {
		return nil
	}
	return errs.Wrap(errs.KindOf(err), err, "%s cannot serve operator group %s/%s, which targets %s; %s",
		csv.Name, s.Scope.Namespace, g.Name, Targets(targets), Supports(csv))
}

// served are the namespaces that a group serves, as its spec or the cluster says; nil while unknown.
func (g Group) served() []string {
	if named, ok := operatorgroup.Named(g.Spec); ok {
		return named
	}
	return g.Observed
}

// Targets names target namespaces for people.
func Targets(targets []string) string {
	switch {
	case operatorgroup.Global(targets):
		return "all namespaces"
	case len(targets) == 1:
		return "namespace " + targets[0]
	}
	return "namespaces " + strings.Join(targets, ", ")
}

// Supports says which install modes an operator supports.
func Supports(csv bundle.CSV) string {
	var modes []string
	for _, m := range csv.Spec.InstallModes {
		if m.Supported && !slices.Contains(modes, m.Type) {
			modes = append(modes, m.Type)
		}
	}
	if len(modes) == 0 {
		return "it supports no install mode"
	}
	return "it supports " + strings.Join(modes, ", ")
}
