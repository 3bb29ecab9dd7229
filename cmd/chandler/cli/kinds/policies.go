package kinds

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func approvalPolicies(a *command.Env) Kind {
	show := func(p model.ApprovalPolicy) printer.Item {
		return printer.Item{
			Name: "approvalpolicy/" + p.Name, Value: p, Subject: "approval/" + p.Name,
			Stream: events.KindPolicy, Describe: func(d *printer.Page) { describeApprovalPolicy(d, p) }, Cells: []any{
				p.Name, printer.Or(selectorText(p.Spec.Selector), "<all>"),
				printer.Or(versionsText(p.Spec.Versions), printer.None),
				printer.Or(rulesText(p.Spec.Rules), printer.None), len(p.Spec.Windows), max(1, p.Spec.Approvers),
				printer.Age(a.Now(), p.CreatedAt), p.Spec.PermissionGrowth, printer.Labels(p.Labels),
			},
		}
	}
	return Kind{
		Document: "ApprovalPolicy",
		Names:    []string{"approvalpolicy", "approvalpolicies", "policy", "policies"},
		partial:  true, // the annotations
		filters:  []string{FlagLabel},
		columns: []printer.Column{
			{Name: "Name"},
			{Name: "Selector", Cut: 4},
			{Name: "Versions", Cut: 6},
			{Name: "Rules", Cut: 5},
			{Name: "Windows", Cut: 8},
			{Name: "Approvers", Cut: 7},
			{Name: "Age", Cut: 9},
			{Name: "Permission Growth", Wide: true},
			{Name: "Labels", Wide: true},
		},
		List: func(ctx context.Context, c *client.Client, s client.Selection) ([]printer.Item, error) {
			list, err := c.ApprovalPolicies(ctx, s)
			return printer.Items(list, err, show)
		},
		Get: func(ctx context.Context, c *client.Client, r client.Ref) (printer.Item, error) {
			v, err := c.ApprovalPolicy(ctx, r.Name)
			return printer.OneItem(v, err, show)
		},
		Remove: func(ctx context.Context, c *client.Client, r client.Ref) (model.Removed, error) {
			return c.DeleteApprovalPolicy(ctx, r.Name)
		},
	}
}

// selectorText is a selector on one line, "" where it chooses everything.
func selectorText(s model.PolicySelector) string {
	var parts []string
	for _, l := range []struct {
		word string
		list []string
	}{{"cluster", s.Clusters}, {"namespace", s.Namespaces}, {"package", s.Packages}, {"catalog", s.Catalogs}} {
		if len(l.list) > 0 {
			parts = append(parts, l.word+" "+strings.Join(l.list, "|"))
		}
	}
	if len(s.ClusterLabels) > 0 {
		parts = append(parts, "labels "+printer.Labels(s.ClusterLabels))
	}
	return strings.Join(parts, ", ")
}

func versionsText(v model.PolicyVersions) string {
	var parts []string
	for _, b := range []struct{ word, value string }{{"exactly ", v.Pin}, {"", v.Range}, {"at most ", v.Ceiling}} {
		if b.value != "" {
			parts = append(parts, b.word+b.value)
		}
	}
	return strings.Join(parts, ", ")
}

func rulesText(rules []model.ApprovalRule) string {
	parts := make([]string, len(rules))
	for i, r := range rules {
		parts[i] = r.Change + ": " + r.Mode
	}
	return strings.Join(parts, ", ")
}

// windowText is a window as people say it.
func windowText(w model.MaintenanceWindow) string {
	return fmt.Sprintf("%s %s %s, for %s", printer.Or(strings.Join(w.Days, "|"), "every day"), w.Start, w.TimeZone,
		time.Duration(w.Minutes)*time.Minute)
}

func describeApprovalPolicy(p *printer.Page, v model.ApprovalPolicy) {
	p.Line("Name", v.Name)
	p.Metadata(v.Metadata)
	p.Line("Chooses", printer.Or(selectorText(v.Spec.Selector), "everything"))
	p.Line("Versions", versionsText(v.Spec.Versions))
	p.Line("Rules", rulesText(v.Spec.Rules))
	p.Line("Permission growth", v.Spec.PermissionGrowth)
	for _, w := range v.Spec.Windows {
		p.Line("Window", windowText(w))
	}
	p.Line("Approvers", strconv.Itoa(max(1, v.Spec.Approvers)))
	if v.Spec.ApprovalSeconds > 0 {
		p.Line("Approvals hold", (time.Duration(v.Spec.ApprovalSeconds) * time.Second).String())
	}
	p.When("Created", v.CreatedAt)
	p.When("Changed", v.UpdatedAt)
}
