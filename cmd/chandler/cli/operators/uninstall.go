// Package operators holds the commands about installed operators: chandler uninstall and chandler logs.
package operators

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
	"github.com/chandler-fleet/chandler/cmd/chandler/eventtext"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

type uninstallOptions struct {
	command.Scope
	printer.Output
	all    bool
	crds   []string
	dryRun bool
	yes    bool
}

// UninstallCommand is chandler uninstall.
func UninstallCommand(a *command.Env) *cobra.Command {
	var o uninstallOptions
	c := &cobra.Command{
		Use:   "uninstall OPERATOR",
		Short: "Remove an installed operator and its subscription from a cluster",
		Long: `Shows what would be removed, and then removes exactly that: the operator, its subscription, and the objects that
belong to it. Its custom resource definitions and their objects stay unless they are requested; chandler get
leftovers lists what has stayed. OPERATOR is a ClusterServiceVersion, a subscription or a package.

On a terminal it asks before it removes anything. Elsewhere --yes is needed if data would be lost, other operators
depend on the operator, or it would be installed again. If the cluster has changed since it was shown, nothing is
removed.`,
		Example: `  chandler uninstall tidegauge --cluster east-1 -n ports --dry-run
  chandler uninstall east-1/ports/tidegauge.v1.2.0 --delete-crds --yes`,
		Args: command.RequireArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return uninstall(cmd.Context(), a, o, args[0]) },
	}
	o.Scope.Flags(c)
	printer.DocumentFlag(c, &o.Output)
	c.Flags().BoolVar(&o.all, "delete-crds", false,
		"also delete its custom resource definitions with all their objects")
	c.Flags().StringSliceVar(&o.crds, "crd", nil, "also delete this custom resource definition; several with commas")
	c.Flags().BoolVar(&o.dryRun, "dry-run", false, "only show what would be removed")
	c.Flags().BoolVar(&o.yes, "yes", false, "do not ask, even if data is lost or other operators depend on it")
	return c
}

func uninstall(ctx context.Context, a *command.Env, o uninstallOptions, name string) error {
	if err := printer.CheckDocument(o.Output); err != nil {
		return err
	}
	if o.all {
		o.crds = append(o.crds, "*")
	}
	c, err := a.Client()
	if err != nil {
		return err
	}
	ref, packageName, err := kinds.NamedOperator(ctx, a, c, o.Scope, name)
	if err != nil {
		return err
	}
	p, err := c.RemovalPlan(ctx, ref, o.crds)
	if err != nil {
		return err
	}
	if err := showRemoval(a, o, ref, p); err != nil || o.dryRun {
		return err
	}
	if !o.yes {
		if err := a.Confirm("Remove "+p.CSV+"?", obstacles(p, packageName), "--yes"); err != nil {
			return err
		}
	}
	if _, err := c.Uninstall(ctx, ref, model.Uninstall{
		CRDs: deletedCRDs(p), Plan: p.Digest,
		Subscriptions: true,
	}); err != nil {
		return err
	}
	return a.Say("operator/%s is being removed", ref)
}

// obstacles says what cannot be had back, breaks others, or makes the removal vain; "" for none of these.
func obstacles(p model.RemovalPlan, packageName string) string {
	objects := 0
	for _, l := range p.Losses {
		objects += l.Objects
	}
	var out []string
	if objects > 0 {
		out = append(out, printer.Plural(objects, "custom resource")+" would be lost")
	}
	if len(p.Needed) > 0 {
		out = append(out, strings.Join(p.Needed, ", ")+" would lose what "+verbed(len(p.Needed), "depends", "depend")+
			" on")
	}
	if p.Next == nil {
		return strings.Join(out, "; ")
	}
	for _, plan := range p.Next.Plans {
		for _, b := range plan.Bundles {
			if b.Package == packageName {
				out = append(out, b.CSV+" would be planned again immediately")
			}
		}
	}
	for _, f := range p.Next.Failures {
		if f.News {
			out = append(out, failing(f)+" would no longer resolve")
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

// deletedCRDs are the definitions that a plan deletes.
func deletedCRDs(p model.RemovalPlan) []string {
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

func showRemoval(a *command.Env, o uninstallOptions, ref client.Ref, p model.RemovalPlan) error {
	if o.Format != printer.FormatTable {
		return o.Write(a.Out, nil, []printer.Item{{Value: p}}, true)
	}
	var t printer.Text
	writeRemoval(&t, ref, p)
	return a.Say("%s", t.String())
}

// writeRemoval tells a removal plan in the order in which it is carried out.
func writeRemoval(t *printer.Text, ref client.Ref, p model.RemovalPlan) {
	t.Put("", "Removing "+p.CSV+" from namespace "+ref.Namespace+" of cluster "+ref.Cluster+", in this order:")
	for _, s := range p.Subscriptions {
		t.Put("  - ", "subscription "+s+" is deleted")
	}
	for _, s := range p.Steps {
		t.Put("  - ", stepText(s, p.Losses))
	}
	if len(p.Stays) > 0 {
		t.Heading("Not removed:")
	}
	for _, l := range p.Stays {
		t.Put("  - ", kinds.ObjectText(l.Object)+": "+kinds.LeftText(l))
	}
	if len(p.Needed) > 0 {
		t.Heading("Operators that depend on it:")
	}
	for _, n := range p.Needed {
		t.Put("  - ", n+": "+requirement(n, p.Requires))
	}
	writeNext(t, p.Next)
}

// writeNext says what is decided once the operator is gone.
func writeNext(t *printer.Text, next *model.PreviewScope) {
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
			lines = append(lines, failing(f)+" no longer resolves: "+strings.Join(f.Sentences, "; "))
		}
	}
	for _, w := range next.Waiting {
		if w.News {
			lines = append(lines, w.Component+" waits: "+strings.Join(w.Sentences, "; "))
		}
	}
	if len(lines) > 0 {
		t.Heading("What would happen next:")
	}
	for _, l := range lines {
		t.Put("  - ", l)
	}
}

// requirement says what a dependant needs: what the resolver knows of it, else an API, which the cluster knows.
func requirement(operator string, known []model.RemovalDependant) string {
	for _, r := range known {
		if r.Operator == operator {
			return "it requires an operator " + strings.Join(r.Requires, ", and one ")
		}
	}
	return "it uses one of its APIs"
}

func stepText(s model.RemovalStep, losses []model.Loss) string {
	names := make([]string, len(s.Objects))
	for i, o := range s.Objects {
		names[i] = kinds.ObjectText(o)
		if s.Action == protocol.RemovalCustomResources {
			names[i] = o.Name + lossText(o.Name, losses)
		}
	}
	list := strings.Join(names, ", ")
	switch s.Action {
	case protocol.RemovalCustomResources:
		return "all objects of " + list
	case protocol.RemovalConversion:
		return "conversion by the operator's webhook: " + list
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
