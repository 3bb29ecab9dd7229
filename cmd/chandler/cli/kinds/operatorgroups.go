package kinds

import (
	"context"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// targetNamespaces are those that a group serves now, as far as that is known.
func targetNamespaces(g model.OperatorGroup, separator string) string {
	if slices.Contains(g.Targets, "") {
		return "<all>"
	}
	return printer.Or(strings.Join(g.Targets, separator), printer.None)
}

// namespaceSelector is a selector as kubectl's -l has it, "" for none.
func namespaceSelector(s events.LabelSelector) string {
	var parts []string
	if len(s.MatchLabels) > 0 {
		parts = append(parts, printer.Labels(s.MatchLabels))
	}
	for _, e := range s.MatchExpressions {
		switch e.Operator {
		case "Exists":
			parts = append(parts, e.Key)
		case "DoesNotExist":
			parts = append(parts, "!"+e.Key)
		default:
			parts = append(parts, e.Key+" "+strings.ToLower(e.Operator)+" ("+strings.Join(e.Values, ",")+")")
		}
	}
	return strings.Join(parts, ",")
}

func describeOperatorGroup(p *printer.Page, g model.OperatorGroup) {
	p.Scope(g.Cluster, g.Namespace, g.Name)
	p.Metadata(g.Metadata)
	p.Line("Target namespaces", targetNamespaces(g, ", "))
	p.Line("Selector", namespaceSelector(g.Spec.Selector))
	p.Line("Provided APIs", strings.Join(g.ProvidedAPIs, ", "))
	if g.Spec.StaticProvidedAPIs {
		p.Line("Static", "provided APIs are fixed, and do not follow the operators")
	}
	p.Line("Service account", g.Spec.ServiceAccountName)
	p.Line("Upgrade strategy", g.Spec.UpgradeStrategy)
	p.Line("Colocation", g.Spec.Colocation)
	if g.Spec.ExcludeGlobalCatalogs {
		p.Line("Global catalogs", "excluded")
	}
	if len(g.Spec.NamespaceLabels) > 0 {
		p.Line("Namespace labels", printer.Labels(g.Spec.NamespaceLabels))
	}
	if len(g.Spec.NamespaceAnnotations) > 0 {
		p.Line("Namespace annotations", printer.Labels(g.Spec.NamespaceAnnotations))
	}
	p.When("Created", g.CreatedAt)
	p.Conditions(g.Conditions)
}

func operatorGroups(a *command.Env) Kind {
	key := func(g model.OperatorGroup) string { return g.Cluster + "/" + g.Namespace + "/" + g.Name }
	show := func(g model.OperatorGroup) printer.Item {
		return printer.Item{
			Name: "operatorgroup/" + key(g), Value: g, Subject: key(g),
			Stream: events.KindOperatorGroup, Describe: func(p *printer.Page) { describeOperatorGroup(p, g) },
			Cells: []any{
				g.Cluster, g.Namespace, g.Name, targetNamespaces(g, ","), printer.Age(a.Now(), g.CreatedAt),
				printer.Or(g.Spec.ServiceAccountName, printer.None), printer.Labels(g.Labels),
			},
		}
	}
	return Kind{
		Document: "OperatorGroup",
		Names:    []string{"operatorgroup", "operatorgroups", "og"},
		scoped:   true,
		partial:  true, // the annotations
		filters:  []string{FlagCluster, FlagNamespace, FlagLabel},
		columns: []printer.Column{
			{Name: "Cluster"},
			{Name: "Namespace"},
			{Name: "Name"},
			{Name: "Targets", Cut: 8},
			{Name: "Age", Cut: 9},
			{Name: "Service Account", Wide: true},
			{Name: "Labels", Wide: true},
		},
		List: func(ctx context.Context, c *client.Client, s client.Selection) ([]printer.Item, error) {
			list, err := c.OperatorGroups(ctx, s)
			return printer.Items(list, err, show)
		},
		Get: func(ctx context.Context, c *client.Client, r client.Ref) (printer.Item, error) {
			v, err := c.OperatorGroup(ctx, r)
			return printer.OneItem(v, err, show)
		},
		Remove: func(ctx context.Context, c *client.Client, r client.Ref) (model.Removed, error) {
			return c.DeleteOperatorGroup(ctx, r)
		},
	}
}
