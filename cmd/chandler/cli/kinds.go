package cli

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func (a *app) showCluster(c model.Cluster) item {
	return item{name: "cluster/" + c.Name, value: c, subject: c.Name, stream: events.KindCluster, describe: func(p *page) { p.cluster(c) }, cells: []any{
		c.Name, c.State, or(c.KubernetesVersion, none), a.age(c.RegisteredAt), or(c.Reason, none), labels(c.Labels),
	}}
}

func (a *app) clusters() resource {
	return resource{
		kind:    "Cluster",
		names:   []string{"cluster", "clusters"},
		filters: []string{flagState, flagLabel},
		columns: []column{{name: "Name"}, {name: "State"}, {name: "Kubernetes"}, {name: "Age"}, {name: "Reason", wide: true}, {name: "Labels", wide: true}},
		list: func(ctx context.Context, c *client.Client, s client.Selection) ([]item, error) {
			list, err := c.Clusters(ctx, s)
			return all(list, err, a.showCluster)
		},
		get: func(ctx context.Context, c *client.Client, r client.Ref) (item, error) {
			v, err := c.Cluster(ctx, r.Name)
			return one(v, err, a.showCluster)
		},
		remove: func(ctx context.Context, c *client.Client, r client.Ref) (model.Removed, error) {
			return c.RemoveCluster(ctx, r.Name)
		},
	}
}

// Kinds of things that people name by package, subscription or ClusterServiceVersion alike.
const (
	kindSubscription = "subscription"
	kindOperator     = "operator"
)

// named is where the one thing is that a name means. What may be several is an error that lists them.
func named(ctx context.Context, c *client.Client, kind string, r client.Ref) (client.Ref, error) {
	n, err := c.Named(ctx, kind, r)
	if err != nil {
		return r, orNoCluster(ctx, c, r.Cluster, err)
	}
	r.Name = n.Name
	return r, nil
}

func (a *app) operatorGroups() resource {
	key := func(g model.OperatorGroup) string { return g.Cluster + "/" + g.Namespace + "/" + g.Name }
	show := func(g model.OperatorGroup) item {
		return item{name: "operatorgroup/" + key(g), value: g, subject: key(g), stream: events.KindOperatorGroup, describe: func(p *page) { p.operatorGroup(g) }, cells: []any{
			g.Cluster, g.Namespace, g.Name, targetNamespaces(g, ","), a.age(g.CreatedAt), or(g.Spec.ServiceAccountName, none), labels(g.Labels),
		}}
	}
	return resource{
		kind:    "OperatorGroup",
		names:   []string{"operatorgroup", "operatorgroups", "og"},
		scoped:  true,
		partial: true, // the annotations
		filters: []string{flagCluster, flagNamespace, flagLabel},
		columns: []column{
			{name: "Cluster"},
			{name: "Namespace"},
			{name: "Name"},
			{name: "Targets"},
			{name: "Age"},
			{name: "Service Account", wide: true},
			{name: "Labels", wide: true},
		},
		list: func(ctx context.Context, c *client.Client, s client.Selection) ([]item, error) {
			list, err := c.OperatorGroups(ctx, s)
			return all(list, err, show)
		},
		get: func(ctx context.Context, c *client.Client, r client.Ref) (item, error) {
			v, err := c.OperatorGroup(ctx, r)
			return one(v, err, show)
		},
		remove: func(ctx context.Context, c *client.Client, r client.Ref) (model.Removed, error) {
			return c.DeleteOperatorGroup(ctx, r)
		},
	}
}

func (a *app) subscriptions() resource {
	key := func(s model.Subscription) string { return s.Cluster + "/" + s.Namespace + "/" + s.Name }
	show := func(s model.Subscription) item {
		plan := none
		if s.Status.InstallPlan != nil {
			plan = s.Status.InstallPlan.Name
		}
		return item{name: "subscription/" + key(s), value: s, subject: key(s), stream: events.KindSubscription, describe: func(p *page) { p.subscription(s) }, cells: []any{
			s.Cluster, s.Namespace, s.Name, s.Spec.Package, or(s.Spec.Channel, none), or(s.Status.InstalledCSV, none), or(s.Status.Phase, none),
			or(s.ShownState(), none), a.age(s.CreatedAt), s.Spec.Catalog, or(s.Spec.Approval, "Automatic"), or(s.Status.CurrentCSV, none), plan, labels(s.Labels),
		}}
	}
	return resource{
		kind:    "Subscription",
		partial: true, // the configuration and the annotations
		names:   []string{"subscription", "subscriptions", "sub", "subs"},
		scoped:  true,
		filters: []string{flagCluster, flagNamespace, flagPackage, flagCatalog, flagState, flagPhase, flagLabel},
		columns: []column{
			{name: "Cluster"},
			{name: "Namespace"},
			{name: "Name"},
			{name: "Package"},
			{name: "Channel"},
			{name: "Installed"},
			{name: "Phase"},
			{name: "State"},
			{name: "Age"},
			{name: "Catalog", wide: true},
			{name: "Approval", wide: true},
			{name: "Current", wide: true},
			{name: "Plan", wide: true},
			{name: "Labels", wide: true},
		},
		list: func(ctx context.Context, c *client.Client, s client.Selection) ([]item, error) {
			list, err := c.Subscriptions(ctx, s)
			return all(list, err, show)
		},
		get: func(ctx context.Context, c *client.Client, r client.Ref) (item, error) {
			r, err := named(ctx, c, kindSubscription, r)
			if err != nil {
				return item{}, err
			}
			v, err := c.Subscription(ctx, r)
			return one(v, err, show)
		},
		remove: func(ctx context.Context, c *client.Client, r client.Ref) (model.Removed, error) {
			return c.DeleteSubscription(ctx, r)
		},
	}
}

func (a *app) installPlans() resource {
	key := func(p model.InstallPlan) string { return p.Cluster + "/" + p.Namespace + "/" + p.Name }
	show := func(p model.InstallPlan) item {
		csvs := make([]string, len(p.Bundles))
		for i, b := range p.Bundles {
			csvs[i] = b.CSV
		}
		reason := none
		if p.Blocked != nil {
			reason = p.Blocked.Reason
		}
		if p.Failure != nil {
			reason = p.Failure.Reason
		}
		return item{name: "installplan/" + key(p), value: p, subject: key(p), stream: events.KindInstallPlan, describe: func(d *page) { d.installPlan(p) }, cells: []any{
			p.Cluster, p.Namespace, p.Name, or(strings.Join(csvs, ","), none), approvalText(p), p.Phase, or(waitText(p), none), a.age(p.ProposedAt),
			strconv.Itoa(p.Steps), reason, short(p.Digest), p.ID, labels(p.Labels),
		}}
	}
	return resource{
		kind:    "InstallPlan",
		names:   []string{"installplan", "installplans", "ip", "plan", "plans"},
		scoped:  true,
		filters: []string{flagCluster, flagNamespace, flagPhase, flagBlocked, flagLabel},
		columns: []column{
			{name: "Cluster"},
			{name: "Namespace"},
			{name: "Name"},
			{name: "CSV"},
			{name: "Approval"},
			{name: "Phase"},
			{name: "Waits For"},
			{name: "Age"},
			{name: "Steps", wide: true},
			{name: "Reason", wide: true},
			{name: "Digest", wide: true},
			{name: "ID", wide: true},
			{name: "Labels", wide: true},
		},
		list: func(ctx context.Context, c *client.Client, s client.Selection) ([]item, error) {
			list, err := c.InstallPlans(ctx, s)
			return all(list, err, show)
		},
		get: func(ctx context.Context, c *client.Client, r client.Ref) (item, error) {
			v, err := findPlan(ctx, c, r)
			return one(v, err, show)
		},
	}
}

// findPlan returns the whole plan of a name; the API names plans by id.
func findPlan(ctx context.Context, c *client.Client, r client.Ref) (model.InstallPlan, error) {
	plans, err := c.InstallPlans(ctx, client.Selection{Cluster: r.Cluster, Namespace: r.Namespace})
	if err != nil {
		return model.InstallPlan{}, err
	}
	for _, p := range plans {
		if p.Name == r.Name && p.Cluster == r.Cluster && p.Namespace == r.Namespace {
			return c.InstallPlan(ctx, p.ID)
		}
	}
	return model.InstallPlan{}, notFound("install plan", r)
}

func notFound(kind string, r client.Ref) error {
	return &client.Problem{Status: http.StatusNotFound, Detail: fmt.Sprintf("there is no %s %s", kind, r)}
}

func (a *app) operators() resource {
	key := func(o model.Operator) string { return o.Cluster + "/" + o.Namespace + "/" + o.Name }
	show := func(o model.Operator) item {
		return item{name: "operator/" + key(o), value: o, subject: key(o), stream: events.KindCSV, describe: func(p *page) { p.operator(o) }, cells: []any{
			o.Cluster, o.Namespace, o.Name, o.Package, o.Version, o.Phase, a.age(o.InstalledAt), or(o.Reason, none), or(conditionTypes(o.Conditions), none), or(o.Message, none),
		}}
	}
	return resource{
		kind:    "Operator",
		names:   []string{"operator", "operators", "csv", "csvs", "clusterserviceversion", "clusterserviceversions"},
		scoped:  true,
		filters: []string{flagCluster, flagNamespace, flagPackage, flagPhase, flagServes},
		columns: []column{
			{name: "Cluster"},
			{name: "Namespace"},
			{name: "Name"},
			{name: "Package"},
			{name: "Version"},
			{name: "Phase"},
			{name: "Age"},
			{name: "Reason", wide: true},
			{name: "Conditions", wide: true},
			{name: "Message", wide: true},
		},
		list: func(ctx context.Context, c *client.Client, s client.Selection) ([]item, error) {
			list, err := c.Operators(ctx, s)
			return all(list, err, show)
		},
		get: func(ctx context.Context, c *client.Client, r client.Ref) (item, error) {
			r, err := named(ctx, c, kindOperator, r)
			if err != nil {
				return item{}, err
			}
			o, err := c.Operator(ctx, r)
			return one(o, err, show)
		},
	}
}

// conditionTypes names the conditions that are abnormal.
func conditionTypes(list []model.Condition) string {
	var out []string
	for _, c := range list {
		if c.Status == "True" {
			out = append(out, c.Type)
		}
	}
	return strings.Join(out, ",")
}

// resource is one kind of thing that get, describe and delete know.
type resource struct {
	kind  string   // in documents
	names []string // singular, plural, then short names
	// partial says that lists leave out parts of a thing.
	partial bool
	scoped  bool // lives in a namespace of a cluster
	// mixed kinds are scoped or not: a catalog belongs to the hub or to a namespace of a cluster.
	mixed   bool
	columns []column
	filters []string // flags of get that choose among them
	list    func(ctx context.Context, c *client.Client, s client.Selection) ([]item, error)
	get     func(ctx context.Context, c *client.Client, r client.Ref) (item, error)
	remove  func(ctx context.Context, c *client.Client, r client.Ref) (model.Removed, error) // nil: cannot be deleted
}

func (r resource) singular() string { return r.names[0] }

func (a *app) resources() []resource {
	return []resource{a.clusters(), a.catalogs(), a.packages(), a.operatorGroups(), a.subscriptions(), a.installPlans(), a.approvalPolicies(), a.operators(), a.leftovers(), a.operatorHubs()}
}

// resource finds a kind by any of its names.
func (a *app) resource(name string) (resource, error) {
	all := a.resources()
	known, words := make([]string, 0, len(all)), []string{}
	for _, r := range all {
		if slices.Contains(r.names, strings.ToLower(name)) {
			return r, nil
		}
		known, words = append(known, r.names[1]), append(words, r.names...)
	}
	slices.Sort(known)
	return resource{}, usagef("there is no kind %q%s: want one of %s", name, orWhich(closest(name, words)), strings.Join(known, ", "))
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
			return target{}, usagef("%q names a thing already: what is %q?", args[0], names[0])
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
		return client.Ref{}, usagef("%q is not a name", name)
	case !r.scoped && !r.mixed && len(parts) == 1:
		return client.Ref{Name: name}, nil
	case len(parts) == 3 && (r.scoped || r.mixed):
		return client.Ref{Cluster: parts[0], Namespace: parts[1], Name: parts[2]}, nil
	case r.mixed && len(parts) == 1 && s.cluster == "":
		return client.Ref{Name: name}, nil
	case len(parts) == 1 && s.cluster != "" && s.namespace != "":
		return client.Ref{Cluster: s.cluster, Namespace: s.namespace, Name: name}, nil
	case len(parts) == 1:
		return client.Ref{}, usagef("%s %s: say where with --cluster and --namespace, or name it cluster/namespace/%s", r.singular(), name, name)
	default:
		return client.Ref{}, usagef("%q is not a name of a %s", name, r.singular())
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
