package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// resource is one kind of thing that get, describe and delete know.
type resource struct {
	names  []string // singular, plural, then short names
	scoped bool     // lives in a namespace of a cluster
	// mixed kinds are scoped or not: a catalog belongs to the hub or to a namespace of a cluster.
	mixed   bool
	columns []column
	list    func(ctx context.Context, c *client.Client, s client.Selection) ([]item, error)
	get     func(ctx context.Context, c *client.Client, r client.Ref) (item, error)
	remove  func(ctx context.Context, c *client.Client, r client.Ref) (model.Removed, error) // nil: cannot be deleted
}

func (r resource) singular() string { return r.names[0] }

func (a *app) resources() []resource {
	return []resource{a.clusters(), a.catalogs(), a.packages(), a.operatorGroups(), a.subscriptions(), a.installPlans(), a.operators()}
}

// resource finds a kind by any of its names.
func (a *app) resource(name string) (resource, error) {
	all := a.resources()
	known := make([]string, 0, len(all))
	for _, r := range all {
		if slices.Contains(r.names, strings.ToLower(name)) {
			return r, nil
		}
		known = append(known, r.names[1])
	}
	slices.Sort(known)
	return resource{}, fmt.Errorf("there is no kind %q: want one of %s", name, strings.Join(known, ", "))
}

// target is what a command line names: a kind and perhaps things of it.
type target struct {
	resource resource
	refs     []client.Ref
}

// scope is where names of a command line are looked for.
type scope struct {
	cluster   string
	namespace string
}

// target reads "kind", "kind name...", or "kind/name".
func (a *app) target(s scope, args []string) (target, error) {
	kind, first, slash := strings.Cut(args[0], "/")
	names := args[1:]
	if slash {
		if len(names) > 0 {
			return target{}, fmt.Errorf("%q names a thing already: what is %q?", args[0], names[0])
		}
		names = []string{first}
	}
	r, err := a.resource(kind)
	if err != nil {
		return target{}, err
	}
	t := target{resource: r}
	for _, n := range names {
		ref, err := r.ref(s, n)
		if err != nil {
			return target{}, err
		}
		t.refs = append(t.refs, ref)
	}
	return t, nil
}

// ref reads "name" within the scope, or "cluster/namespace/name".
func (r resource) ref(s scope, name string) (client.Ref, error) {
	parts := strings.Split(name, "/")
	switch {
	case slices.Contains(parts, ""):
		return client.Ref{}, fmt.Errorf("%q is not a name", name)
	case !r.scoped && !r.mixed && len(parts) == 1:
		return client.Ref{Name: name}, nil
	case len(parts) == 3 && (r.scoped || r.mixed):
		return client.Ref{Cluster: parts[0], Namespace: parts[1], Name: parts[2]}, nil
	case r.mixed && len(parts) == 1 && s.cluster == "":
		return client.Ref{Name: name}, nil
	case len(parts) == 1 && s.cluster != "" && s.namespace != "":
		return client.Ref{Cluster: s.cluster, Namespace: s.namespace, Name: name}, nil
	case len(parts) == 1:
		return client.Ref{}, fmt.Errorf("%s %s: say where with --cluster and --namespace, or name it cluster/namespace/%s", r.singular(), name, name)
	default:
		return client.Ref{}, fmt.Errorf("%q is not a name of a %s", name, r.singular())
	}
}

// all turns a list of the API into items.
func all[T any](list []T, err error, one func(T) item) ([]item, error) {
	if err != nil {
		return nil, err
	}
	items := make([]item, len(list))
	for i, v := range list {
		items[i] = one(v)
	}
	return items, nil
}

// one turns one answer of the API into an item.
func one[T any](v T, err error, show func(T) item) (item, error) {
	if err != nil {
		return item{}, err
	}
	return show(v), nil
}
