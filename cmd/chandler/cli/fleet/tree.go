package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
)

// tree is a fleet subscription with all that hangs on it.
type tree struct {
	FleetSubscription string       `json:"fleetSubscription"`
	Package           string       `json:"package"`
	Channel           string       `json:"channel,omitempty"`
	Catalog           string       `json:"catalog"`
	WaitsFor          string       `json:"waitsFor,omitempty"`
	Rollout           *rolloutTree `json:"rollout,omitempty"`
	// Others are clusters that it is on and that the rollout does not ask.
	Others []clusterTree `json:"others,omitempty"`
}

type rolloutTree struct {
	Number int        `json:"number"`
	Change string     `json:"change"`
	CSV    string     `json:"csv"`
	Phase  string     `json:"phase"`
	Reason string     `json:"reason,omitempty"`
	Done   string     `json:"done"`
	Waves  []waveTree `json:"waves"`
}

type waveTree struct {
	Name     string        `json:"name"`
	State    string        `json:"state"`
	Done     string        `json:"done"`
	Clusters []clusterTree `json:"clusters"`
}

type clusterTree struct {
	Name   string `json:"name"`
	State  string `json:"state,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Override is that which held for it when the rollout began.
	Override string `json:"override,omitempty"`
	// Subscription is that of the fleet subscription; "" where there is none.
	Subscription string `json:"subscription,omitempty"`
	InstallPlan  string `json:"installPlan,omitempty"`
	PlanPhase    string `json:"planPhase,omitempty"`
	Operator     string `json:"operator,omitempty"`
	Phase        string `json:"phase,omitempty"`
}

func treeCommand(a *command.Env) *cobra.Command {
	var o printer.Output
	c := &cobra.Command{
		Use: "tree [NAME]", Short: "Show fleet subscriptions with their rollouts, waves, clusters and operators",
		Long: `Shows a fleet subscription, or all of them, as a tree: its newest rollout, the waves of that, and of each wave the
clusters with the install plan of their subscription and the operator that runs there. Clusters of which all of that
is equal share a line; -o json or yaml has each of them.`,
		Example: "  chandler fleet tree gauges\n  chandler fleet tree -o json", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			list, err := trees(cmd.Context(), c, args)
			if err != nil {
				return err
			}
			if o.Document() || len(list) == 0 {
				return printer.List(a, &o, printer.Table{Plural: "fleet subscriptions"}, list, nil,
					func(t tree) printer.Item { return printer.Item{Name: t.FleetSubscription, Value: t} })
			}
			for _, t := range list {
				if err := a.Say("%s", strings.Join(t.lines(), "\n")); err != nil {
					return err
				}
			}
			return nil
		},
	}
	printer.DocumentFlag(c, &o)
	return c
}

func trees(ctx context.Context, c *client.Client, args []string) (out []tree, err error) {
	var list []fleetmodel.FleetSubscription
	if len(args) > 0 {
		one, err := c.FleetSubscription(ctx, args[0])
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	} else if list, err = c.FleetSubscriptions(ctx); err != nil {
		return nil, err
	}
	for _, f := range list {
		t, err := treeOf(ctx, c, f)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

func treeOf(ctx context.Context, c *client.Client, f fleetmodel.FleetSubscription) (tree, error) {
	t := tree{
		FleetSubscription: f.Name, Package: f.Spec.Package, Channel: f.Spec.Channel, Catalog: f.Spec.Catalog,
		WaitsFor: f.Status.WaitsFor,
	}
	there, err := inClusters(ctx, c, f)
	if err != nil {
		return t, err
	}
	if f.Status.Rollout != nil {
		r, err := c.Rollout(ctx, client.RolloutRef{FleetSubscription: f.Name, Number: f.Status.Rollout.Number})
		if err != nil {
			return t, err
		}
		t.Rollout = &rolloutTree{
			Number: r.Number, Change: r.Change, CSV: r.Target.CSV, Phase: r.Phase, Reason: r.Reason,
			Done: kinds.Done(r.Clusters), Waves: []waveTree{},
		}
		for _, w := range r.Waves {
			wave := waveTree{Name: w.Name, State: w.State, Done: kinds.Done(w.Clusters), Clusters: []clusterTree{}}
			for _, m := range w.Members {
				one := there[m.Name]
				one.Name, one.State, one.Reason = m.Name, m.State, m.Reason
				one.Override = m.Override
				wave.Clusters = append(wave.Clusters, one)
				delete(there, m.Name)
			}
			t.Rollout.Waves = append(t.Rollout.Waves, wave)
		}
	}
	for _, one := range there {
		if one.Subscription != "" {
			t.Others = append(t.Others, one)
		}
	}
	slices.SortFunc(t.Others, func(a, b clusterTree) int { return strings.Compare(a.Name, b.Name) })
	return t, nil
}

// inClusters are the subscriptions that a fleet subscription has made, and the operators of its package, by cluster.
func inClusters(
	ctx context.Context, c *client.Client, f fleetmodel.FleetSubscription,
) (map[string]clusterTree, error) {
	in := client.Selection{Namespace: f.Spec.Namespace, Package: f.Spec.Package}
	subscriptions, err := c.Subscriptions(ctx, in)
	if err != nil {
		return nil, err
	}
	operators, err := c.Operators(ctx, in)
	if err != nil {
		return nil, err
	}
	out := map[string]clusterTree{}
	for _, o := range operators {
		out[o.Cluster] = clusterTree{Name: o.Cluster, Operator: o.Name, Phase: o.Phase}
	}
	for _, s := range subscriptions {
		if s.Owner == f.Name {
			out[s.Cluster] = withSubscription(out[s.Cluster], s)
		}
	}
	return out, nil
}

func withSubscription(c clusterTree, s model.Subscription) clusterTree {
	c.Name, c.Subscription = s.Cluster, s.Namespace+"/"+s.Name
	if p := s.Status.InstallPlan; p != nil {
		c.InstallPlan, c.PlanPhase = p.Name, p.Phase
	}
	return c
}

// branch is a line of a tree, with those below it.
type branch struct {
	text string
	subs []branch
}

func (b branch) lines() []string {
	out := []string{b.text}
	for i, sub := range b.subs {
		mark, below := "├─ ", "│  "
		if i == len(b.subs)-1 {
			mark, below = "└─ ", "   "
		}
		for j, line := range sub.lines() {
			if j == 0 {
				out = append(out, mark+line)
			} else {
				out = append(out, below+line)
			}
		}
	}
	return out
}

// lines are the tree as text.
func (t tree) lines() []string {
	root := branch{text: t.FleetSubscription + "  " + t.Package}
	if t.Channel != "" {
		root.text += " from channel " + t.Channel
	}
	root.text += " of catalog " + t.Catalog
	if t.WaitsFor != "" {
		root.subs = append(root.subs, branch{text: "waits for " + kinds.WaitsText(t.WaitsFor)})
	}
	if r := t.Rollout; r != nil {
		phase := kinds.RolloutPhase(fleetmodel.Rollout{Phase: r.Phase, Reason: r.Reason})
		one := branch{text: fmt.Sprintf("rollout %d  %s, %s: %s, because of %s", r.Number, phase, r.Done, r.CSV,
			kinds.CauseText(r.Change))}
		for _, w := range r.Waves {
			one.subs = append(one.subs, branch{
				text: fmt.Sprintf("wave %s  %s, %s", w.Name, w.State, w.Done), subs: clusterBranches(w.Clusters),
			})
		}
		root.subs = append(root.subs, one)
	}
	if len(t.Others) > 0 {
		root.subs = append(root.subs, branch{text: "not asked by this rollout", subs: clusterBranches(t.Others)})
	}
	return root.lines()
}

// clusterBranches puts clusters together of which everything but names is equal, the most of them first.
func clusterBranches(list []clusterTree) []branch {
	type group struct {
		of    clusterTree
		names []string
	}
	var groups []group
	at := map[clusterTree]int{}
	for _, c := range list {
		key := c
		key.Name, key.InstallPlan = "", "" // every cluster has its own
		i, known := at[key]
		if !known {
			i = len(groups)
			at[key] = i
			groups = append(groups, group{of: c})
		}
		groups[i].names = append(groups[i].names, c.Name)
	}
	slices.SortStableFunc(groups, func(a, b group) int { return len(b.names) - len(a.names) })
	out := make([]branch, len(groups))
	for i, g := range groups {
		if len(g.names) == 1 {
			out[i].text = g.of.text(g.of.Name, g.of.InstallPlan)
			continue
		}
		out[i].text = g.of.text(printer.Plural(len(g.names), "cluster"), "")
		out[i].subs = []branch{{text: someNames(g.names)}}
	}
	return out
}

// text is a line about one cluster or several equal ones.
func (c clusterTree) text(who, plan string) string {
	parts := []string{}
	if c.Subscription == "" {
		parts = append(parts, "no subscription")
	}
	if c.PlanPhase != "" {
		parts = append(parts, strings.TrimSpace("plan "+plan)+" "+c.PlanPhase)
	}
	if c.Operator != "" {
		parts = append(parts, strings.TrimSpace(c.Operator+" "+c.Phase))
	}
	state := c.State
	if c.Reason != "" {
		state += " (" + c.Reason + ")"
	}
	if c.Override != "" {
		state += " [" + c.Override + "]"
	}
	if state != "" && len(parts) > 0 {
		state += ": "
	}
	return who + "  " + state + strings.Join(parts, ", ")
}
