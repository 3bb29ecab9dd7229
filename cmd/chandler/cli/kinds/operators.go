package kinds

import (
	"context"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func describeOperator(p *printer.Page, o model.Operator) {
	p.Scope(o.Cluster, o.Namespace, o.Name)
	p.Line("Package", o.Package)
	p.Line("Version", o.Version)
	p.Line("Phase", o.Phase)
	p.Line("Reason", o.Reason)
	p.Line("Message", o.Message)
	p.Line("Content", o.Content)
	p.Line("Install plan", o.Plan)
	p.When("Installed", o.InstalledAt)
	if r := o.Removal; r != nil {
		p.Line("Uninstall", strings.TrimSuffix(r.Phase+" ("+r.Reason+")", " ()"))
		p.Line("Because", r.Message)
	}
	if s := o.Overrides; s != nil {
		p.Line("Overrides", overridesText(s.Conditions))
		p.Line("Overridden by", s.By)
		p.When("Overridden", s.Since)
	}
	p.Conditions(o.Conditions)
	if o.Details != nil {
		describeOperatorDetails(p, *o.Details)
	}
	if len(o.History) > 0 {
		p.Section("Phases")
		for _, h := range o.History {
			p.Row(p.Age(h.Time), h.Phase, h.Reason)
		}
	}
}

func overridesText(list []model.ConditionOverride) string {
	parts := make([]string, len(list))
	for i, o := range list {
		parts[i] = events.ConditionOverride(o).String()
	}
	return strings.Join(parts, ", ")
}

// describeOperatorDetails shows what the cluster says of an operator: what is unmet of its requirements, not all of
// them.
func describeOperatorDetails(p *printer.Page, d model.OperatorDetails) {
	if c := d.Condition; c != nil {
		word := "yes"
		if !c.Upgradeable {
			word = "no"
		}
		if c.Overridden {
			word += ", as an administrator decided"
		}
		p.Line("Upgradeable", strings.Join(slices.DeleteFunc([]string{word, c.Reason, c.Message},
			func(s string) bool { return s == "" }), ": "))
	}
	describeUnmet(p, d.Requirements)
	if len(d.NotReady) > 0 {
		p.Section("Deployments that are not ready")
		for _, n := range d.NotReady {
			p.Row(n.Deployment, printer.Or(n.Reason, printer.None), printer.Or(n.Message, "not known yet"))
		}
	}
	if len(d.Drift) > 0 {
		p.Section("Drift")
		for _, x := range d.Drift {
			describeDrift(p, x)
		}
	}
	describeRemovedAPIs(p, d.RemovedAPIs)
	if len(d.Components) > 0 {
		p.Section("Components")
		p.Row("KIND", "NAMESPACE", "NAME", "STATUS", "MESSAGE")
		for _, c := range d.Components {
			p.Row(c.Kind, printer.Or(c.Namespace, printer.None), c.Name, printer.Or(c.Status, printer.None), c.Message)
		}
	}
	if d.LeftOut != nil {
		p.Section("Not listed, because the cluster's report is too large for a message")
		p.Row(leftOutText(*d.LeftOut))
	}
}

// describeUnmet shows the requirements that are not met.
func describeUnmet(p *printer.Page, all []model.Requirement) {
	list := slices.DeleteFunc(slices.Clone(all), func(r model.Requirement) bool { return r.Status == "Present" })
	if len(list) == 0 {
		return
	}
	p.Section("Requirements that are not met")
	for _, r := range list {
		p.Row(r.Kind, r.Name, r.Status, r.Message)
		for _, n := range r.Dependents {
			if n.Status != "Satisfied" {
				p.Row("", n.Kind, n.Status, n.Message)
			}
		}
	}
}

// leftOutText counts what a report went without.
func leftOutText(c protocol.Cut) string {
	var parts []string
	for _, part := range []struct {
		n    int
		word string
	}{
		{c.Components, "component"},
		{c.Drifts, "drifted object"},
		{c.Fields, "difference"},
		{c.Requirements, "requirement"},
		{c.Messages, "text"},
		{c.History, "transition"},
	} {
		if part.n > 0 {
			parts = append(parts, printer.Plural(part.n, part.word))
		}
	}
	return strings.Join(parts, ", ")
}

func describeDrift(p *printer.Page, x protocol.Drift) {
	what := "differs"
	switch {
	case x.Missing:
		what = "is missing"
	case x.Corrected:
		what = "was corrected"
	}
	if x.Manager != "" {
		what += ", written by " + x.Manager
	}
	p.Row(x.String(), what)
	if x.Reason != "" {
		p.Row("", "", x.Reason)
	}
	for _, f := range x.Fields {
		p.Row("", f.Path, "want "+printer.Or(string(f.Want), printer.None)+", have "+
			printer.Or(string(f.Have), printer.None))
	}
}

// Operators is the kind of installed operators (ClusterServiceVersions).
func Operators(a *command.Env) Kind {
	key := func(o model.Operator) string { return o.Cluster + "/" + o.Namespace + "/" + o.Name }
	show := func(o model.Operator) printer.Item {
		return printer.Item{
			Name: "operator/" + key(o), Value: o, Subject: key(o), Stream: events.KindCSV,
			Describe: func(p *printer.Page) { describeOperator(p, o) }, Cells: []any{
				o.Cluster, o.Namespace, o.Name, o.Package, o.Version, o.Phase, printer.Age(a.Now(), o.InstalledAt),
				printer.Or(o.Reason, printer.None), printer.Or(conditionTypes(o.Conditions), printer.None),
				printer.Or(o.Message, printer.None),
			},
		}
	}
	return Kind{
		Document: "Operator",
		Names:    []string{"operator", "operators", "csv", "csvs", "clusterserviceversion", "clusterserviceversions"},
		scoped:   true,
		filters: []string{
			FlagCluster, FlagNamespace, FlagPackage, FlagPhase, FlagState, FlagServes, FlagFields, FlagClusters,
		},
		sorts: []string{"name", "package", "phase", "created", "changed"},
		columns: []printer.Column{
			{Name: "Cluster"},
			{Name: "Namespace"},
			{Name: "Name"},
			{Name: "Package", Cut: 9},
			{Name: "Version", Cut: 7},
			{Name: "Phase"},
			{Name: "Age", Cut: 8},
			{Name: "Reason", Wide: true},
			{Name: "Conditions", Wide: true},
			{Name: "Message", Wide: true},
		},
		List: func(ctx context.Context, c *client.Client, s client.Selection) ([]printer.Item, error) {
			list, err := c.Operators(ctx, s)
			return printer.Items(list, err, show)
		},
		Get: func(ctx context.Context, c *client.Client, r client.Ref) (printer.Item, error) {
			r, err := Resolve(ctx, c, KindOperator, r)
			if err != nil {
				return printer.Item{}, err
			}
			o, err := c.Operator(ctx, r)
			return printer.OneItem(o, err, show)
		},
	}
}

// KindOperatorCondition is the kind of OperatorConditions, as results of apply and delete name it.
const KindOperatorCondition = "operatorcondition"

// OperatorCondition is the kind of the overrides of operators, which files can delete. They are shown with the
// operator.
func OperatorCondition(a *command.Env) Kind {
	k := Operators(a)
	k.Names = []string{KindOperatorCondition, "operatorconditions"}
	k.Get = func(ctx context.Context, c *client.Client, r client.Ref) (printer.Item, error) {
		o, err := c.Overrides(ctx, r)
		return printer.OneItem(o, err, func(o model.OperatorOverrides) printer.Item { return printer.Item{Value: o} })
	}
	k.Remove = func(ctx context.Context, c *client.Client, r client.Ref) (model.Removed, error) {
		return c.RemoveOverrides(ctx, r)
	}
	return k
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

// NamedOperator finds an operator by its ClusterServiceVersion, its subscription or its package.
func NamedOperator(ctx context.Context, a *command.Env, c *client.Client, s command.Scope, name string) (
	ref client.Ref, packageName string, err error,
) {
	if ref, err = Operators(a).InContext(a, s, name); err != nil {
		return ref, "", err
	}
	n, err := c.Named(ctx, KindOperator, ref)
	if err != nil {
		return ref, "", command.OrNoCluster(ctx, c, ref.Cluster, err)
	}
	ref.Name = n.Name
	return ref, n.Package, nil
}
