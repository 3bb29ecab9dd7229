package kinds

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func describeCluster(p *printer.Page, c model.Cluster) {
	p.Line("Name", c.Name)
	p.Line("Labels", printer.Labels(c.Labels))
	if len(c.Taints) > 0 {
		p.Line("Taints", printer.Labels(c.Taints))
	}
	p.Line("Access", c.Access)
	p.Line("State", clusterState(c))
	if !c.StateSince.IsZero() {
		p.When("Since", c.StateSince)
	}
	p.Line("Reason", c.Reason)
	p.Line("Message", c.Message)
	if c.Connection != c.State {
		p.Line("Connection", c.Connection)
	}
	if c.CordonedSince != nil {
		p.When("Cordoned", *c.CordonedSince)
	}
	p.Line("Kubernetes", c.KubernetesVersion)
	describeFacts(p, c)
	if c.HolderEpoch > 0 {
		p.Line("Holder epoch", strconv.FormatInt(c.HolderEpoch, 10))
	}
	p.Line("Waived", strings.Join(c.Waived, ", "))
	if c.CredentialEndsAt != nil {
		p.Until("Credential ends", *c.CredentialEndsAt)
	}
	p.Line("Cloud tokens", c.TokenAuth)
	p.Line("Mirror", c.Settings.Mirror)
	p.Line("Drift", c.Settings.Drift)
	p.Line("Optional kinds", c.Settings.Optional)
	p.Line("Kubernetes Events", c.Settings.Events)
	p.Line("Copied CSVs", c.Settings.CopiedCSVs)
	p.When("Registered", c.RegisteredAt)
	if u := c.PlatformUpgrade; u != nil {
		p.Section("Upgrade of the platform")
		p.Row(u.Reason, u.Message)
		for _, o := range u.Operators {
			p.Row(o.Namespace+"/"+o.Name, "up to "+o.MaxVersion)
		}
		for _, r := range u.RemovedAPIs {
			p.Row(r.For, RemovedKind(r)+" is removed in Kubernetes "+r.Removed)
		}
	}
}

// describeFacts says what a cluster is made of.
func describeFacts(p *printer.Page, c model.Cluster) {
	f := c.Facts
	if f == nil {
		return
	}
	p.Line("Cluster UID", f.ClusterUID)
	p.Line("Distribution", f.Distribution)
	if f.Nodes > 0 {
		var by []string
		for _, a := range slices.Sorted(maps.Keys(f.Architectures)) {
			by = append(by, fmt.Sprintf("%d %s", f.Architectures[a], a))
		}
		p.Line("Nodes", fmt.Sprintf("%d (%s)", f.Nodes, strings.Join(by, ", ")))
		p.Line("Allocatable", fmt.Sprintf("%d CPU cores, %d GiB", f.CPUCores, f.MemoryGiB))
	}
	if f.APICount > 0 {
		p.Line("APIs", fmt.Sprintf("%d groups and versions", f.APICount))
	}
	for _, part := range slices.Sorted(maps.Keys(f.Missing)) {
		p.Line("Not known", part+": "+f.Missing[part])
	}
}

// clusterState says beside a state that comes before it that nothing new is planned for a cluster.
func clusterState(c model.Cluster) string {
	if c.CordonedSince != nil && c.State != model.ClusterCordoned {
		return c.State + "," + model.ClusterCordoned
	}
	return c.State
}

func showCluster(a *command.Env, c model.Cluster) printer.Item {
	return printer.Item{
		Name: "cluster/" + c.Name, Value: c, Subject: c.Name, Stream: events.KindCluster,
		Describe: func(p *printer.Page) { describeCluster(p, c) }, Cells: []any{
			c.Name, clusterState(c), printer.Or(c.KubernetesVersion, printer.None),
			printer.Age(a.Now(), c.RegisteredAt),
			printer.Or(c.Reason, printer.None), since(a, c), c.Access, printer.Labels(c.Labels),
		},
	}
}

// since is how long a cluster is in its state.
func since(a *command.Env, c model.Cluster) any {
	if c.StateSince.IsZero() { // of a server that does not say
		return printer.None
	}
	return printer.Age(a.Now(), c.StateSince)
}

// Clusters is the kind of clusters.
func Clusters(a *command.Env) Kind {
	return Kind{
		Document: "Cluster",
		Names:    []string{"cluster", "clusters"},
		filters: []string{
			FlagState, FlagLabel, FlagFields, FlagClusters,
		},
		sorts: []string{"name", "state", "created", "changed"},
		columns: []printer.Column{
			{Name: "Name"},
			{Name: "State"},
			{Name: "Kubernetes", Cut: 8},
			{Name: "Age", Cut: 9},
			{Name: "Reason", Wide: true},
			{Name: "Since", Wide: true},
			{Name: "Access", Wide: true},
			{Name: "Labels", Wide: true},
		},
		List: func(ctx context.Context, c *client.Client, s client.Selection) ([]printer.Item, error) {
			list, err := c.Clusters(ctx, s)
			return printer.Items(list, err, func(v model.Cluster) printer.Item { return showCluster(a, v) })
		},
		Get: func(ctx context.Context, c *client.Client, r client.Ref) (printer.Item, error) {
			v, err := c.Cluster(ctx, r.Name)
			return printer.OneItem(v, err, func(v model.Cluster) printer.Item { return showCluster(a, v) })
		},
		Remove: func(ctx context.Context, c *client.Client, r client.Ref) (model.Removed, error) {
			return c.RemoveCluster(ctx, r.Name)
		},
	}
}
