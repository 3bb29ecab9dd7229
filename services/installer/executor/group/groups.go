package group

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/chandler-fleet/chandler/services/installer/executor/scope"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/render"
)

// Groups is what a session knows of the operator groups of its cluster.
type Groups struct {
	Claims   *Claims
	Keeper   *Keeper
	Accounts *Accounts
	Rest     *Rest
	// Roles is read-locked while roles of an API are made for an operator that has claimed it, and locked while they
	// are removed because nobody has: so that no reconcile removes what another one has just made.
	Roles sync.RWMutex
	swept bool // the roles of APIs that nobody claims were looked for; under Roles
}

// New returns what a new session knows: nothing.
func New(refusedFor time.Duration) *Groups {
	return &Groups{Claims: NewClaims(), Keeper: NewKeeper(), Accounts: NewAccounts(refusedFor), Rest: NewRest()}
}

func rbac(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: kind}
}

// TargetSet is the set of rights that the operators of a namespace have in its targets (R-OG-44). Those of operators
// that are being uninstalled are left: such a one may still need them.
func TargetSet(namespace string, want []render.Object, leave ...string) Set {
	return Set{
		Name: "targets/" + namespace, Namespace: namespace, Want: want, Leave: owners(leave),
		Kinds: []schema.GroupVersionKind{
			rbac("Role"), rbac("RoleBinding"), rbac("ClusterRole"),
			rbac("ClusterRoleBinding"),
		},
		Selector: LabelPart + "=" + PartTarget + "," + render.LabelOwnerNamespace + "=" + namespace,
	}
}

func owners(csvs []string) []string {
	out := make([]string, len(csvs))
	for i, name := range csvs {
		out[i] = render.OwnerLabelValue(name)
	}
	return out
}

// Namespaces are those with these labels, by name.
func Namespaces(labels map[string]map[string]string) []Namespace {
	out := make([]Namespace, 0, len(labels))
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, Namespace{Name: name, Labels: labels[name]})
	}
	return out
}

// RoleSet is the set of aggregating roles of the group of a namespace (R-OG-40).
func RoleSet(namespace string, want []render.Object) Set {
	return Set{
		Name: "group/" + namespace, Namespace: namespace, Want: want,
		Kinds: []schema.GroupVersionKind{rbac("ClusterRole")}, Selector: LabelPart + "=" + PartGroup +
			"," + render.LabelOwnerNamespace + "=" + namespace,
	}
}

// APISet is the set of roles of the APIs that a namespace's operators provide (R-OG-42). Operators of other namespaces
// may provide the same ones.
func APISet(namespace string, want []render.Object) Set {
	return Set{
		Name: "apis/" + namespace, Namespace: namespace, Want: want, Open: true,
		Kinds: []schema.GroupVersionKind{rbac("ClusterRole")}, Selector: LabelPart + "=" + PartAPI,
	}
}

// Free removes the roles of APIs that no operator of the cluster provides any more.
func (g *Groups) Free(ctx context.Context, c Cluster, apis []string, at func(point string) error) error {
	if len(apis) == 0 {
		return nil
	}
	g.Roles.Lock()
	defer g.Roles.Unlock()
	for _, api := range apis {
		for _, selector := range APISelectors(api) {
			if err := g.removeRoles(ctx, c, selector, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// Sweep does the same once in a session, for what an earlier one did not come to.
func (g *Groups) Sweep(ctx context.Context, c Cluster, at func(point string) error) error {
	g.Roles.Lock()
	defer g.Roles.Unlock()
	if g.swept {
		return nil
	}
	err := g.removeRoles(ctx, c, LabelPart+"="+PartAPI, at)
	g.swept = err == nil
	return err
}

func (g *Groups) removeRoles(ctx context.Context, c Cluster, selector string, at func(point string) error) error {
	set := Set{Name: selector, Kinds: []schema.GroupVersionKind{rbac("ClusterRole")}, Selector: selector}
	return g.Keeper.Remove(ctx, c, set, func(o *unstructured.Unstructured) bool {
		return g.Claims.Provides(o.GetAnnotations()[AnnotationAPI])
	}, at)
}

// Labels are the changes to the labels of namespaces that mark what the group with an id serves (R-CSV-44), by name
// of the namespace: on each target, on no other, and none of a group that is deleted. id is "" where the namespace
// of the reconcile has no one group; known reports the ids of groups that there are.
func Labels(id string, targets []string, namespaces []Namespace,
	known func(id string) bool,
) map[string]map[string]*string {
	out := map[string]map[string]*string{}
	set := func(ns, key string, value *string) {
		if out[ns] == nil {
			out[ns] = map[string]*string{}
		}
		out[ns][key] = value
	}
	served := map[string]bool{}
	for _, t := range targets {
		served[t] = id != ""
	}
	present := ""
	for _, n := range namespaces {
		key := scope.LabelNamespacePrefix + id
		if _, marked := n.Labels[key]; served[n.Name] && !marked {
			set(n.Name, key, &present)
		}
		for label := range n.Labels {
			other, ok := LabelID(label)
			if ok && (other == id && !served[n.Name] || other != id && ours(other) && !known(other)) {
				set(n.Name, label, nil)
			}
		}
	}
	return out
}

// ours tells the ids of Chandler's groups, which are made of names, from those of OLM's, which are drawn.
func ours(id string) bool {
	const madeOfNames = 5
	u, err := uuid.Parse(id)
	return err == nil && u.Version() == madeOfNames
}
