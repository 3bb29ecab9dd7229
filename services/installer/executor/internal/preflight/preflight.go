package preflight

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/permissions"
)

// Question is a plan as a cluster is asked about it.
type Question struct {
	Namespace string
	// Account is who writes the objects; the zero value is Chandler itself, which no right is asked of.
	Account kube.Account
	Objects []render.Object
	// Targets are the namespaces that the operator group serves; "" is the whole cluster.
	Targets []string
	// Leaving are operators of the namespace that the plan replaces, by name.
	Leaving []string
	// Managers are the field managers of the operators that the plan brings, by name.
	Managers map[string]string
	// Vacant reports a definition that is not in the cluster, as far as is known: it is not asked for. nil knows of
	// none.
	Vacant func(o render.Object) bool
	// Grant is the plan's, with what approvers chose of obstacles.
	Grant protocol.Grant
	// KubernetesVersion is that of the cluster.
	KubernetesVersion string
}

// Direct reports kinds that Chandler writes itself, whatever account a plan has: what is the cluster's as a whole and
// the account must not be given rights to (R-OG-61), and the operator as Chandler keeps it.
func Direct(gvk schema.GroupVersionKind) bool {
	switch gvk.GroupKind() {
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
		schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"},
		kube.GVKCSV.GroupKind(), kube.GVKInstalledOperator.GroupKind():
		return true
	}
	return false
}

// Check answers with everything at once.
func Check(ctx context.Context, c *kube.Epoch, q Question) (protocol.PlanCheck, error) {
	out := protocol.PlanCheck{Account: q.Account.User(), RemovedAPIs: RemovedAPIs(q.KubernetesVersion, q.Objects)}
	missing, err := Permissions(ctx, c, q)
	if err != nil {
		return out, err
	}
	if out.Permissions = missing.Missing; missing.More > 0 {
		out.Obstacles = append(out.Obstacles, protocol.Obstacle{
			Class: "transient", Reason: "Forbidden", Message: fmt.Sprintf("%d more rights are missing than are listed",
				missing.More),
		})
	}
	out.CRDs, err = Definitions(ctx, c, q)
	return out, err
}

// maxAsked bounds how many accesses that RBAC does not allow are asked of the other authorizers of a cluster.
const maxAsked = 100

// Permissions finds the rights that the account lacks.
func Permissions(ctx context.Context, c *kube.Epoch, q Question) (permissions.Result, error) {
	if q.Account == (kube.Account{}) {
		return permissions.Result{}, nil
	}
	p := permissions.Plan{Targets: q.Targets, Objects: slices.DeleteFunc(
		slices.Clone(q.Objects), func(o render.Object) bool { return Direct(o.GVK) })}
	refs, err := p.References()
	if err != nil {
		return permissions.Result{}, err
	}
	roles := newRoles(c)
	if p.Roles, err = roles.all(ctx, refs); err != nil {
		return permissions.Result{}, err
	}
	held, err := roles.held(ctx, q.Account, append([]string{q.Namespace}, q.Targets...))
	if err != nil {
		return permissions.Result{}, err
	}
	r, err := permissions.Missing(p, q.Account.User(), held, nil)
	if err != nil || len(r.Unknown) == 0 {
		return r, err
	}
	allowed, err := ask(ctx, c, q.Account, r.Unknown)
	if err != nil || len(allowed) == 0 {
		return r, err
	}
	return permissions.Missing(p, q.Account.User(), held, allowed)
}

// Given finds what an account lacks of what roles are to give on its behalf, where Chandler writes them itself.
func Given(ctx context.Context, c *kube.Epoch, a kube.Account, given []render.Object) (permissions.Result, error) {
	namespaces := make([]string, 0, len(given))
	for _, o := range given {
		namespaces = append(namespaces, o.Namespace)
	}
	held, err := newRoles(c).held(ctx, a, namespaces)
	if err != nil {
		return permissions.Result{}, err
	}
	return permissions.MissingForRoles(given, a.User(), held)
}
