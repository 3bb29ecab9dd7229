package cli

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func (a *app) showCluster(c model.Cluster) item {
	return item{name: "cluster/" + c.Name, value: c, subject: c.Name, describe: func(p *page) { p.cluster(c) }, cells: []any{
		c.Name, c.State, or(c.KubernetesVersion, none), a.age(c.RegisteredAt), or(c.Reason, none), labels(c.Labels),
	}}
}

func (a *app) clusters() resource {
	return resource{
		names:   []string{"cluster", "clusters"},
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

func (a *app) operatorGroups() resource {
	key := func(g model.OperatorGroup) string { return g.Cluster + "/" + g.Namespace + "/" + g.Name }
	show := func(g model.OperatorGroup) item {
		return item{name: "operatorgroup/" + key(g), value: g, subject: key(g), describe: func(p *page) { p.operatorGroup(g) }, cells: []any{
			g.Cluster, g.Namespace, g.Name, or(strings.Join(g.Spec.TargetNamespaces, ","), "<all>"), a.age(g.CreatedAt), or(g.Spec.ServiceAccountName, none),
		}}
	}
	return resource{
		names:   []string{"operatorgroup", "operatorgroups", "og"},
		scoped:  true,
		columns: []column{{name: "Cluster"}, {name: "Namespace"}, {name: "Name"}, {name: "Targets"}, {name: "Age"}, {name: "Service Account", wide: true}},
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
		return item{name: "subscription/" + key(s), value: s, subject: key(s), describe: func(p *page) { p.subscription(s) }, cells: []any{
			s.Cluster, s.Namespace, s.Name, s.Spec.Package, or(s.Spec.Channel, none), or(s.Status.InstalledCSV, none), or(s.Status.Phase, none),
			or(subscriptionState(s), none), a.age(s.CreatedAt), s.Spec.Catalog, or(s.Spec.Approval, "Automatic"), or(s.Status.CurrentCSV, none), plan,
		}}
	}
	return resource{
		names:  []string{"subscription", "subscriptions", "sub", "subs"},
		scoped: true,
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
		},
		list: func(ctx context.Context, c *client.Client, s client.Selection) ([]item, error) {
			list, err := c.Subscriptions(ctx, s)
			return all(list, err, show)
		},
		get: func(ctx context.Context, c *client.Client, r client.Ref) (item, error) {
			v, err := c.Subscription(ctx, r)
			return one(v, err, show)
		},
		remove: func(ctx context.Context, c *client.Client, r client.Ref) (model.Removed, error) {
			return c.DeleteSubscription(ctx, r)
		},
	}
}

// subscriptionState is the state, or the first condition that holds while there is none: "not
// resolved" says less than why.
func subscriptionState(s model.Subscription) string {
	if s.Status.State != "" {
		return s.Status.State
	}
	for _, c := range s.Status.Conditions {
		if c.Status == "True" {
			return c.Type
		}
	}
	return ""
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
		return item{name: "installplan/" + key(p), value: p, subject: key(p), describe: func(d *page) { d.installPlan(p) }, cells: []any{
			p.Cluster, p.Namespace, p.Name, or(strings.Join(csvs, ","), none), p.Approval, p.Phase, a.age(p.ProposedAt),
			strconv.Itoa(p.Steps), reason, short(p.Digest), p.ID,
		}}
	}
	return resource{
		names:  []string{"installplan", "installplans", "ip", "plan", "plans"},
		scoped: true,
		columns: []column{
			{name: "Cluster"},
			{name: "Namespace"},
			{name: "Name"},
			{name: "CSV"},
			{name: "Approval"},
			{name: "Phase"},
			{name: "Age"},
			{name: "Steps", wide: true},
			{name: "Reason", wide: true},
			{name: "Digest", wide: true},
			{name: "ID", wide: true},
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
		return item{name: "operator/" + key(o), value: o, subject: key(o), describe: func(p *page) { p.operator(o) }, cells: []any{
			o.Cluster, o.Namespace, o.Name, o.Package, o.Version, o.Phase, a.age(o.InstalledAt), or(o.Reason, none), or(o.Message, none),
		}}
	}
	return resource{
		names:  []string{"operator", "operators", "csv", "csvs", "clusterserviceversion", "clusterserviceversions"},
		scoped: true,
		columns: []column{
			{name: "Cluster"},
			{name: "Namespace"},
			{name: "Name"},
			{name: "Package"},
			{name: "Version"},
			{name: "Phase"},
			{name: "Age"},
			{name: "Reason", wide: true},
			{name: "Message", wide: true},
		},
		list: func(ctx context.Context, c *client.Client, s client.Selection) ([]item, error) {
			list, err := c.Operators(ctx, s)
			return all(list, err, show)
		},
		get: func(ctx context.Context, c *client.Client, r client.Ref) (item, error) {
			list, err := c.Operators(ctx, client.Selection{Cluster: r.Cluster, Namespace: r.Namespace})
			if err != nil {
				return item{}, err
			}
			for _, o := range list {
				if o.Name == r.Name {
					return show(o), nil
				}
			}
			return item{}, notFound("installed operator", r)
		},
	}
}
