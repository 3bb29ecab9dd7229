package cli

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func (a *app) approvalPolicies() resource {
	show := func(p model.ApprovalPolicy) item {
		return item{name: "approvalpolicy/" + p.Name, value: p, subject: "approval/" + p.Name, stream: events.KindPolicy, describe: func(d *page) { d.approvalPolicy(p) }, cells: []any{
			p.Name, or(selectorText(p.Spec.Selector), "<all>"), or(versionsText(p.Spec.Versions), none), or(rulesText(p.Spec.Rules), none),
			len(p.Spec.Windows), max(1, p.Spec.Approvers), a.age(p.CreatedAt), p.Spec.PermissionGrowth, labels(p.Labels),
		}}
	}
	return resource{
		kind:    "ApprovalPolicy",
		names:   []string{"approvalpolicy", "approvalpolicies", "policy", "policies"},
		partial: true, // the annotations
		filters: []string{flagLabel},
		columns: []column{
			{name: "Name"},
			{name: "Selector"},
			{name: "Versions"},
			{name: "Rules"},
			{name: "Windows"},
			{name: "Approvers"},
			{name: "Age"},
			{name: "Permission Growth", wide: true},
			{name: "Labels", wide: true},
		},
		list: func(ctx context.Context, c *client.Client, s client.Selection) ([]item, error) {
			list, err := c.ApprovalPolicies(ctx, s)
			return all(list, err, show)
		},
		get: func(ctx context.Context, c *client.Client, r client.Ref) (item, error) {
			v, err := c.ApprovalPolicy(ctx, r.Name)
			return one(v, err, show)
		},
		remove: func(ctx context.Context, c *client.Client, r client.Ref) (model.Removed, error) {
			return c.DeleteApprovalPolicy(ctx, r.Name)
		},
	}
}

func applyPolicy(ctx context.Context, c *client.Client, name string, want model.SetApprovalPolicy) (string, error) {
	did := configured
	have, err := c.ApprovalPolicy(ctx, name)
	if client.IsStatus(err, http.StatusNotFound) {
		did, err = created, nil
	}
	if err != nil {
		return "", err
	}
	now, err := c.SetApprovalPolicy(ctx, name, want)
	if err != nil {
		return "", err
	}
	if did == configured && now.Stream == have.Stream && now.Version == have.Version {
		did = unchanged
	}
	return did, nil
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
		parts = append(parts, "labels "+labels(s.ClusterLabels))
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
	return fmt.Sprintf("%s %s %s, for %s", or(strings.Join(w.Days, "|"), "every day"), w.Start, w.TimeZone, time.Duration(w.Minutes)*time.Minute)
}

func (p *page) approvalPolicy(v model.ApprovalPolicy) {
	p.line("Name", v.Name)
	p.metadata(v.Metadata)
	p.line("Chooses", or(selectorText(v.Spec.Selector), "everything"))
	p.line("Versions", versionsText(v.Spec.Versions))
	p.line("Rules", rulesText(v.Spec.Rules))
	p.line("Permission growth", v.Spec.PermissionGrowth)
	for _, w := range v.Spec.Windows {
		p.line("Window", windowText(w))
	}
	p.line("Approvers", strconv.Itoa(max(1, v.Spec.Approvers)))
	if v.Spec.ApprovalSeconds > 0 {
		p.line("Approvals hold", (time.Duration(v.Spec.ApprovalSeconds) * time.Second).String())
	}
	p.when("Created", v.CreatedAt)
	p.when("Changed", v.UpdatedAt)
}

// approvalText is the approval mode of a plan, and why policies want a person.
func approvalText(p model.InstallPlan) string {
	if len(p.ManualReasons) == 0 {
		return p.Approval
	}
	return p.Approval + " (" + strings.Join(p.ManualReasons, ",") + ")"
}

// waitText is what a plan waits for, before it may begin or on its way, "" where nothing holds it.
func waitText(p model.InstallPlan) string {
	switch p.WaitsFor {
	case model.WaitsForApproval:
		return plural(p.MissingApprovals, "approval")
	case model.WaitsForWindow:
		if p.NextOpening == nil {
			return "window, which never opens"
		}
		return "window, opens " + p.NextOpening.UTC().Format("2006-01-02 15:04 MST")
	}
	if p.Blocked != nil {
		return p.Blocked.Reason
	}
	return ""
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return strconv.Itoa(n) + " " + word + "s"
}

// terms shows what policies make of a plan.
func (p *page) terms(v model.InstallPlan) {
	p.line("Policies", strings.Join(v.Policies, ", "))
	if wait := waitText(v); v.Blocked != nil && wait == v.Blocked.Reason {
		p.line("Waits for", wait+" ("+v.Blocked.Class+")")
	} else {
		p.line("Waits for", wait)
	}
	for _, g := range v.Windows {
		for _, w := range g.Windows {
			p.line("Window", windowText(w)+" ("+g.Policy+")")
		}
	}
	if v.Approvers > 1 {
		p.line("Approvers", fmt.Sprintf("%d, %s missing", v.Approvers, strconv.Itoa(v.MissingApprovals)))
	}
	for _, g := range v.Approvals {
		p.line("Approved by", fmt.Sprintf("%s, until %s", g.By, g.Expires.UTC().Format("2006-01-02 15:04 MST")))
	}
	for _, c := range v.Choices {
		text := fmt.Sprintf("%s %s, by %s, %s", strings.ToLower(c.Choice), c.Object, c.By, c.At.UTC().Format("2006-01-02 15:04 MST"))
		if c.Reason != "" {
			text += ": " + c.Reason
		}
		p.line("Settled", text)
	}
}
