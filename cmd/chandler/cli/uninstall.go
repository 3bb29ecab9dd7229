package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/eventtext"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

type uninstallOptions struct {
	scope
	output
	all    bool
	crds   []string
	dryRun bool
	yes    bool
}

func (a *app) uninstallCommand() *cobra.Command {
	var o uninstallOptions
	c := &cobra.Command{
		Use:   "uninstall OPERATOR",
		Short: "Remove an installed operator and its subscription from a cluster",
		Long: `Shows what removing an operator does, and has exactly that done: the operator, its subscription, and what belongs to it
go. Its custom resource definitions and their objects stay, unless they are asked for; what stays is listed then by
chandler get leftovers. OPERATOR is a ClusterServiceVersion, a subscription or a package.

On a terminal it asks before anything is removed. Elsewhere it goes on where nothing is in the way: where data is lost,
other operators depend on it, or it would be installed again, --yes must be said. If the cluster is another one by then
than it was shown, nothing is removed.`,
		Example: `  chandler uninstall tidegauge --cluster east-1 -n ports --dry-run
  chandler uninstall east-1/ports/tidegauge.v1.2.0 --delete-crds --yes`,
		Args: needs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.uninstall(cmd.Context(), o, args[0]) },
	}
	o.scope.flags(c)
	documentFlag(c, &o.output)
	c.Flags().BoolVar(&o.all, "delete-crds", false, "delete its custom resource definitions with all their objects, too")
	c.Flags().StringSliceVar(&o.crds, "crd", nil, "delete only this one of its custom resource definitions; several with commas")
	c.Flags().BoolVar(&o.dryRun, "dry-run", false, "only show what would be done")
	c.Flags().BoolVar(&o.yes, "yes", false, "do not ask, and do it whatever is in the way: lost data, operators that depend on it")
	return c
}

func (a *app) uninstall(ctx context.Context, o uninstallOptions, name string) error {
	if err := checkDocument(o.output); err != nil {
		return err
	}
	if o.all {
		o.crds = append(o.crds, "*")
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	ref, packageName, err := a.installedAs(ctx, c, o.scope, name)
	if err != nil {
		return err
	}
	p, err := c.RemovalPlan(ctx, ref, o.crds)
	if err != nil {
		return err
	}
	if err := a.showRemoval(o, ref, p); err != nil || o.dryRun {
		return err
	}
	if !o.yes {
		if err := a.confirm("Remove "+p.CSV+"?", inTheWay(p, packageName), "--yes"); err != nil {
			return err
		}
	}
	if _, err := c.Uninstall(ctx, ref, model.Uninstall{CRDs: doomed(p), Plan: p.Digest, Subscriptions: true}); err != nil {
		return err
	}
	return a.say("operator/%s is being removed", ref)
}

// installedAs finds an operator by its ClusterServiceVersion, its subscription or its package.
func (a *app) installedAs(ctx context.Context, c *client.Client, s scope, name string) (ref client.Ref, packageName string, err error) {
	if ref, err = a.operators().ref(s, name); err != nil {
		return ref, "", err
	}
	n, err := c.Named(ctx, kindOperator, ref)
	if err != nil {
		return ref, "", orNoCluster(ctx, c, ref.Cluster, err)
	}
	ref.Name = n.Name
	return ref, n.Package, nil
}

// inTheWay says what cannot be had back, breaks others, or makes the removal vain; "" for none of these.
func inTheWay(p model.RemovalPlan, packageName string) string {
	objects := 0
	for _, l := range p.Losses {
		objects += l.Objects
	}
	var out []string
	if objects > 0 {
		out = append(out, plural(objects, "custom resource")+" would be lost")
	}
	if len(p.Needed) > 0 {
		out = append(out, strings.Join(p.Needed, ", ")+" would lose what "+verbed(len(p.Needed), "depends", "depend")+" on")
	}
	if p.Next == nil {
		return strings.Join(out, "; ")
	}
	for _, plan := range p.Next.Plans {
		for _, b := range plan.Bundles {
			if b.Package == packageName {
				out = append(out, b.CSV+" would be planned again at once")
			}
		}
	}
	for _, f := range p.Next.Failures {
		if f.News {
			out = append(out, failing(f)+" would not resolve any more")
		}
	}
	return strings.Join(out, "; ")
}

func verbed(n int, one, many string) string {
	if n == 1 {
		return "it " + one
	}
	return "they " + many
}

func failing(f previewapi.PreviewFailure) string {
	if len(f.Subscriptions) == 0 {
		return f.Component
	}
	return "subscription " + strings.Join(f.Subscriptions, ", ")
}

// doomed are the definitions that a plan deletes.
func doomed(p model.RemovalPlan) []string {
	var out []string
	for _, s := range p.Steps {
		if s.Action == protocol.RemovalCRDs {
			for _, o := range s.Objects {
				out = append(out, o.Name)
			}
		}
	}
	return out
}

func (a *app) showRemoval(o uninstallOptions, ref client.Ref, p model.RemovalPlan) error {
	if o.format != formatTable {
		return o.write(a.Out, nil, []item{{value: p}}, true)
	}
	var t prose
	t.removal(ref, p)
	return a.say("%s", t.String())
}

// removal tells a removal plan in the order in which it is carried out.
func (t *prose) removal(ref client.Ref, p model.RemovalPlan) {
	t.put("", "Removing "+p.CSV+" from namespace "+ref.Namespace+" of cluster "+ref.Cluster+", in this order:")
	for _, s := range p.Subscriptions {
		t.put("  - ", "subscription "+s+" ends")
	}
	for _, s := range p.Steps {
		t.put("  - ", stepText(s, p.Losses))
	}
	if len(p.Stays) > 0 {
		t.heading("What stays:")
	}
	for _, l := range p.Stays {
		t.put("  - ", objectText(l.Object)+": "+leftText(l))
	}
	if len(p.Needed) > 0 {
		t.heading("Others that depend on it:")
	}
	for _, n := range p.Needed {
		t.put("  - ", n+": "+requirement(n, p.Requires))
	}
	t.afterwards(p.Next)
}

// afterwards says what is decided once the operator is gone.
func (t *prose) afterwards(next *model.PreviewScope) {
	if next == nil {
		return
	}
	var lines []string
	for _, p := range next.Plans {
		parts := []string{"a plan is proposed (" + p.Approval + ")"}
		for _, b := range p.Bundles {
			parts = append(parts, b.CSV+": "+eventtext.Why(b))
		}
		lines = append(lines, strings.Join(parts, ", "))
	}
	for _, f := range next.Failures {
		if f.News {
			lines = append(lines, failing(f)+" does not resolve any more: "+strings.Join(f.Sentences, "; "))
		}
	}
	for _, w := range next.Waiting {
		if w.News {
			lines = append(lines, w.Component+" waits: "+strings.Join(w.Sentences, "; "))
		}
	}
	if len(lines) > 0 {
		t.heading("What follows at once, as things are:")
	}
	for _, l := range lines {
		t.put("  - ", l)
	}
}

// requirement says what a dependant needs: what the resolver knows of it, else an API, which the cluster knows.
func requirement(operator string, known []model.RemovalDependant) string {
	for _, r := range known {
		if r.Operator == operator {
			return "it requires an operator " + strings.Join(r.Requires, ", and one ")
		}
	}
	return "it needs an API of it"
}

func stepText(s model.RemovalStep, losses []model.Loss) string {
	names := make([]string, len(s.Objects))
	for i, o := range s.Objects {
		names[i] = objectText(o)
		if s.Action == protocol.RemovalCustomResources {
			names[i] = o.Name + lossText(o.Name, losses)
		}
	}
	list := strings.Join(names, ", ")
	switch s.Action {
	case protocol.RemovalCustomResources:
		return "all objects of " + list
	case protocol.RemovalConversion:
		return "no conversion any more by the operator's webhook: " + list
	}
	return list
}

func lossText(crd string, losses []model.Loss) string {
	i := slices.IndexFunc(losses, func(l model.Loss) bool { return l.CRD == crd })
	if i < 0 {
		return ""
	}
	l := losses[i]
	count := fmt.Sprint(l.Objects)
	if l.More {
		count = "more than " + count
	}
	text := " (" + count
	if len(l.Sample) > 0 {
		text += ": " + strings.Join(l.Sample, ", ")
		if l.Objects > len(l.Sample) {
			text += ", …"
		}
	}
	return text + ")"
}

func objectText(o model.Object) string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// leftText says why an object stays.
func leftText(l model.Leftover) string {
	switch l.Reason {
	case protocol.LeftNotAsked:
		return "not asked for (--delete-crds, --crd)"
	case protocol.LeftOtherOwners:
		return strings.Join(l.Owners, ", ") + " has it, too"
	case protocol.LeftNotOurs:
		return "Chandler did not write it"
	}
	return l.Reason
}

// leftovers are what uninstalled operators left, each under the name that the operator had.
func (a *app) leftovers() resource {
	show := func(l model.Leftovers) item {
		left := make([]string, len(l.Objects))
		for i, o := range l.Objects {
			left[i] = objectText(o.Object) + " (" + o.Reason + ")"
		}
		key := l.Cluster + "/" + l.Namespace + "/" + l.Name
		return item{name: "leftover/" + key, value: l, subject: key, stream: events.KindCSV, describe: func(p *page) { p.leftovers(l) }, cells: []any{
			l.Cluster, l.Namespace, l.Name, l.Package, a.age(l.RemovedAt), len(l.Objects), or(strings.Join(left, ", "), none),
		}}
	}
	return resource{
		kind:    "Leftovers",
		names:   []string{"leftover", "leftovers"},
		scoped:  true,
		filters: []string{flagCluster, flagNamespace, flagPackage},
		columns: []column{{name: "Cluster"}, {name: "Namespace"}, {name: "Name"}, {name: "Package"}, {name: "Removed"}, {name: "Objects"}, {name: "Left", wide: true}},
		list: func(ctx context.Context, c *client.Client, s client.Selection) ([]item, error) {
			list, err := c.Leftovers(ctx, s)
			return all(list, err, show)
		},
		get: func(ctx context.Context, c *client.Client, r client.Ref) (item, error) {
			list, err := c.Leftovers(ctx, client.Selection{Cluster: r.Cluster, Namespace: r.Namespace})
			for _, l := range list {
				if l.Name == r.Name {
					return show(l), nil
				}
			}
			if err == nil {
				err = notFound("uninstalled operator", r)
			}
			return item{}, err
		},
	}
}

func (p *page) leftovers(l model.Leftovers) {
	p.scope(l.Cluster, l.Namespace, l.Name)
	p.line("Package", l.Package)
	p.line("Removal", l.Removal)
	p.when("Removed", l.RemovedAt)
	if len(l.Objects) == 0 {
		return
	}
	p.section("Left")
	for _, o := range l.Objects {
		p.row(objectText(o.Object), leftText(o))
	}
	if l.More > 0 {
		p.row("and "+plural(l.More, "other object"), "not listed, since the cluster's report would not fit into a message")
	}
}
