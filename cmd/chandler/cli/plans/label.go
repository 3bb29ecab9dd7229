package plans

import (
	"context"
	"fmt"
	"maps"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/plain"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func planLabelCommand(a *command.Env) *cobra.Command {
	var overwrite bool
	c := &cobra.Command{
		Use:   "label PLAN",
		Short: "Give the namespace of an install plan the labels that its bundles suggest",
		Long: `Gives the operator group in the namespace of an install plan the labels that the bundles of the plan suggest for the
namespace: the level of the Pod Security Standards that their pods need, openshift.io/cluster-monitoring, and the
labels of their template of a Namespace. chandler plan rights shows them. Labels that the group has stay; one with
another value is changed with --overwrite only.

It is the same change as that of namespaceLabels: who may approve install plans there may make it, the cluster gets the
labels before the next plan starts, and values that somebody else has set in the cluster stay. A plan that waits is
made again, since an approval holds for the labels that it was given with: label before you approve.

` + planNames,
		Example: `  chandler plan label east-1/ports/install-7x2kq
  chandler plan label install-7x2kq --cluster east-1 -n ports --overwrite`,
		Args: command.RequireArgs(1),
	}
	c.Flags().BoolVar(&overwrite, "overwrite", false, "change labels of the group that have another value, too")
	return aboutPlan(a, c, func() error { return nil }, func(
		ctx context.Context, c *client.Client, p model.InstallPlan, _ []string,
	) error {
		r, err := c.PlanRights(ctx, p.ID)
		if err != nil {
			return err
		}
		return labelNamespace(ctx, a, c, r, overwrite)
	})
}

// labelNamespace adds what is suggested to the labels of the one operator group of a plan's namespace.
func labelNamespace(ctx context.Context, a *command.Env, c *client.Client, r model.PlanRights, overwrite bool) error {
	for _, text := range r.SuggestionsIgnored {
		_, _ = fmt.Fprintf(a.Err, "warning: not suggested: %s\n", plain.Cell(text))
	}
	groups, err := c.OperatorGroups(ctx, client.Selection{Cluster: r.Cluster, Namespace: r.Namespace})
	if err != nil {
		return err
	}
	if len(groups) != 1 {
		return fmt.Errorf("labels of a namespace are kept by the one operator group in it, and %s/%s has %d", r.Cluster,
			r.Namespace, len(groups))
	}
	ref := client.Ref{Cluster: r.Cluster, Namespace: r.Namespace, Name: groups[0].Name}
	group, err := c.OperatorGroup(ctx, ref)
	if err != nil {
		return err
	}
	labels, kept := suggestedLabels(group.Spec.NamespaceLabels, r.SuggestedLabels, overwrite)
	for _, l := range kept {
		_, _ = fmt.Fprintf(a.Err, "warning: label %s stays %q, %s suggests %q: --overwrite changes it\n",
			plain.Cell(l.Key), plain.Cell(group.Spec.NamespaceLabels[l.Key]), plain.Cell(l.CSV), plain.Cell(l.Value))
	}
	name := "operatorgroup/" + ref.String()
	if maps.Equal(labels, group.Spec.NamespaceLabels) {
		return a.Say("%s unchanged", name)
	}
	want := model.ChangeOperatorGroup{Metadata: group.Metadata, OperatorGroupSpec: group.Spec}
	want.NamespaceLabels = labels
	if _, err := c.ChangeOperatorGroup(ctx, ref, group.Tag(), want); err != nil {
		return err
	}
	return a.Say("%s configured\nnamespace labels: %s\n"+
		"install plans that wait there are made again: review the new ones", name, printer.Labels(labels))
}

// suggestedLabels are the labels that a group has and those that are suggested; kept are suggestions for labels that
// the group has with another value, and which stay.
func suggestedLabels(
	have map[string]string, suggested []model.SuggestedLabel, overwrite bool,
) (labels map[string]string, kept []model.SuggestedLabel) {
	labels = map[string]string{}
	maps.Copy(labels, have)
	for _, l := range suggested {
		if value, ok := have[l.Key]; ok && value != l.Value && !overwrite {
			kept = append(kept, l)
			continue
		}
		labels[l.Key] = l.Value
	}
	return labels, kept
}

// writeSuggested says which labels the bundles of a plan suggest, and by which command they are set.
func writeSuggested(t *printer.Text, r model.PlanRights) {
	if len(r.SuggestedLabels)+len(r.SuggestionsIgnored) == 0 {
		return
	}
	t.Heading("Suggested labels of namespace " + plain.Cell(r.Namespace) + ":")
	for _, l := range r.SuggestedLabels {
		t.Put("  - ", plain.Cell(fmt.Sprintf("%s=%s (%s: %s)", l.Key, l.Value, l.CSV, l.Reason)))
	}
	for _, text := range r.SuggestionsIgnored {
		t.Put("  ! ", plain.Cell("not suggested: "+text))
	}
	if len(r.SuggestedLabels) > 0 {
		t.Put("", fmt.Sprintf("To set them: chandler plan label %s/%s/%s", plain.Cell(r.Cluster),
			plain.Cell(r.Namespace), plain.Cell(r.Name)))
	}
}
