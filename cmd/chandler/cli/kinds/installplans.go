package kinds

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/eventtext"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// PhaseRequiresApproval is the phase of a plan that waits for people.
const PhaseRequiresApproval = "RequiresApproval"

// PhaseComplete is the phase of a plan that was carried out, and PhaseSucceeded that of an operator that runs.
const (
	PhaseComplete  = "Complete"
	PhaseSucceeded = "Succeeded"
)

// ApprovedText says what an approval came to.
func ApprovedText(now model.InstallPlan) string {
	did := "approved"
	if now.MissingApprovals > 0 {
		did = fmt.Sprintf("approved by you; %s of other people still missing",
			printer.Plural(now.MissingApprovals, "approval"))
	}
	if now.WaitsFor == model.WaitsForWindow {
		did += "; it waits for its " + waitText(now)
	}
	return did
}

func describeInstallPlan(p *printer.Page, v model.InstallPlan) {
	p.Scope(v.Cluster, v.Namespace, v.Name)
	p.Metadata(v.Metadata)
	p.Line("ID", v.ID)
	p.Line("Component", v.Component)
	p.Line("Digest", v.Digest)
	p.Line("Approval", approvalText(v))
	p.Line("Phase", v.Phase)
	describeTerms(p, v)
	if v.Failure != nil {
		p.Line("Failed", fmt.Sprintf("step %d: %s", v.Failure.Step, v.Failure.Reason))
	}
	p.Line("Message", v.Message)
	p.Line("Superseded by", v.SupersededBy)
	p.Line("Because", v.SupersededReason)
	p.Line("Takes over", v.TakesOver)
	p.When("Proposed", v.ProposedAt)
	p.Section("Bundles")
	p.Row("CSV", "VERSION", "CHANNEL", "CATALOG", "REPLACES", "WHY")
	for _, b := range v.Bundles {
		p.Row(b.CSV, b.Version, printer.Or(b.Channel, printer.None), b.Catalog, printer.Or(b.Replaces, printer.None),
			eventtext.Why(b))
	}
	describeChanges(p, v.Changes)
	describeRemovedAPIs(p, v.RemovedAPIs)
	describeSteps(p, v.Document)
	p.Line("Steps", strconv.Itoa(v.Steps))
}

// describeSteps shows what a plan does, object by object; a document of another version shows in -o json alone.
func describeSteps(p *printer.Page, document json.RawMessage) {
	var d installplan.Document
	if len(document) == 0 || json.Unmarshal(document, &d) != nil || len(d.Steps) == 0 {
		return
	}
	p.Section("Objects")
	for i, s := range d.Steps {
		p.Row(strconv.Itoa(i+1), s.Kind, strings.TrimPrefix(s.Namespace+"/"+s.Name, "/"), s.Resolving)
	}
}

// FormText is a value of a field, for people.
func FormText(raw json.RawMessage, of model.Difference) string {
	switch {
	case len(raw) > 0:
		return string(raw)
	case len(of.Has) == 0 && len(of.Wants) == 0:
		return "a value that is not shown"
	}
	return "nothing"
}

func installPlans(a *command.Env) Kind {
	key := func(p model.InstallPlan) string { return p.Cluster + "/" + p.Namespace + "/" + p.Name }
	show := func(p model.InstallPlan) printer.Item {
		csvs := make([]string, len(p.Bundles))
		for i, b := range p.Bundles {
			csvs[i] = b.CSV
		}
		reason := printer.None
		if p.Blocked != nil {
			reason = p.Blocked.Reason
		}
		if p.Failure != nil {
			reason = p.Failure.Reason
		}
		return printer.Item{
			Name: "installplan/" + key(p), Value: p, Subject: key(p), Stream: events.KindInstallPlan,
			Describe: func(d *printer.Page) { describeInstallPlan(d, p) }, Cells: []any{
				p.Cluster, p.Namespace, p.Name, printer.Or(strings.Join(csvs, ","), printer.None), approvalText(p),
				p.Phase, printer.Or(waitText(p), printer.None), printer.Age(a.Now(), p.ProposedAt),
				strconv.Itoa(p.Steps), reason, printer.Short(p.Digest), p.ID, printer.Labels(p.Labels),
			},
		}
	}
	return Kind{
		Document: "InstallPlan",
		Names:    []string{"installplan", "installplans", "ip", "plan", "plans"},
		scoped:   true,
		filters: []string{
			FlagCluster, FlagNamespace, FlagPhase, FlagBlocked, FlagLabel, FlagFields, FlagClusters,
		},
		sorts: []string{"name", "cluster", "phase", "created", "changed"},
		columns: []printer.Column{
			{Name: "Cluster"},
			{Name: "Namespace"},
			{Name: "Name"},
			{Name: "CSV", Cut: 8},
			{Name: "Approval", Cut: 7},
			{Name: "Phase"},
			{Name: "Waits For", Cut: 6},
			{Name: "Age", Cut: 9},
			{Name: "Steps", Wide: true},
			{Name: "Reason", Wide: true},
			{Name: "Digest", Wide: true},
			{Name: "ID", Wide: true},
			{Name: "Labels", Wide: true},
		},
		List: func(ctx context.Context, c *client.Client, s client.Selection) ([]printer.Item, error) {
			list, err := c.InstallPlans(ctx, s)
			return printer.Items(list, err, show)
		},
		Get: func(ctx context.Context, c *client.Client, r client.Ref) (printer.Item, error) {
			v, err := FindPlan(ctx, c, r)
			return printer.OneItem(v, err, show)
		},
	}
}

// FindPlan returns the whole plan of a name.
func FindPlan(ctx context.Context, c *client.Client, r client.Ref) (model.InstallPlan, error) {
	p, err := c.PlanNamed(ctx, r)
	if client.IsStatus(err, http.StatusNotFound) {
		err = notFound("install plan", r)
	}
	return p, err
}

// DescribeCheck adds what stands in the way of a plan that has not begun. That nobody can say so now is no reason not
// to describe the rest.
func DescribeCheck(ctx context.Context, c *client.Client, p *printer.Page, it printer.Item) error {
	v, ok := it.Value.(model.InstallPlan)
	if !ok || v.Begun || v.EndedAt != nil {
		return nil
	}
	check, err := c.CheckPlan(ctx, v.ID)
	switch {
	case client.IsStatus(err, http.StatusServiceUnavailable), client.IsStatus(err, http.StatusNotFound),
		client.IsStatus(err, http.StatusConflict):
		p.Line("In its cluster", fmt.Sprintf("(%v)", err))
		return nil
	case err != nil:
		return err
	}
	p.Line("In its cluster", summary(check))
	for _, o := range check.Shared {
		for _, d := range o.Differences {
			p.Line("Differs", fmt.Sprintf("%s %s: the cluster (%s) has %s, %s has %s", o.Object, d.Path, o.Holder,
				FormText(d.Has, d), o.Operator, FormText(d.Wants, d)))
		}
	}
	return nil
}

// DescribeComments adds what people said of a plan. Who may not read it sees the rest.
func DescribeComments(ctx context.Context, c *client.Client, p *printer.Page, it printer.Item) error {
	v, ok := it.Value.(model.InstallPlan)
	if !ok {
		return nil
	}
	list, err := c.PlanComments(ctx, v.ID)
	switch {
	case client.IsStatus(err, http.StatusForbidden), client.IsStatus(err, http.StatusNotFound):
		return nil
	case err != nil || len(list) == 0:
		return err
	}
	p.Section("Comments")
	for _, x := range list {
		p.Row(p.Age(x.At), x.By, printer.Or(strings.ToLower(x.About), "comment"), x.Text)
	}
	return nil
}

// summary is a check in a line.
func summary(c model.PlanCheck) string {
	var parts []string
	for _, o := range c.Obstacles {
		parts = append(parts, o.Reason)
	}
	if n := len(c.Permissions); n > 0 {
		parts = append(parts, printer.Plural(n, "missing permission"))
	}
	for _, o := range c.Shared {
		switch o.Choice {
		case "":
			parts = append(parts, o.Object+" of "+o.Holder+" differs from what "+o.Operator+" installs")
		default:
			parts = append(parts, o.Object+": "+strings.ToLower(o.Choice))
		}
	}
	for _, v := range c.CRDs {
		switch {
		case !v.Safe && len(v.OverriddenBy) > 0:
			parts = append(parts, v.CRD+" is overridden by "+strings.Join(v.OverriddenBy, ", "))
		case !v.Safe:
			parts = append(parts, v.CRD+" cannot be changed safely")
		case !v.Reversible:
			parts = append(parts, v.CRD+" cannot be changed back without data loss")
		}
	}
	if n := len(c.RemovedAPIs); n > 0 {
		parts = append(parts, printer.Plural(n, "use")+" of APIs that the next version of Kubernetes removes")
	}
	switch {
	case len(parts) == 0:
		return "no obstacles"
	case c.Ready:
		return "no obstacles; " + strings.Join(parts, "; ")
	}
	return strings.Join(parts, "; ") + " (chandler plan check)"
}

// uuidLength tells an id from a name: names of plans are shorter.
const uuidLength = 36

// IsID tells an id from a name.
func IsID(name string) bool { return len(name) == uuidLength }

// scopeSlashes are those of cluster/namespace/name.
const scopeSlashes = 2

// NamedPlan finds the plan that a person names, and returns it with a client to go on with.
func NamedPlan(ctx context.Context, a *command.Env, s command.Scope, name string) (
	*client.Client, model.InstallPlan, error,
) {
	c, err := a.Client()
	if err != nil {
		return nil, model.InstallPlan{}, err
	}
	if s, err = a.InContext(s); err != nil {
		return nil, model.InstallPlan{}, err
	}
	plans := installPlans(a)
	if kind, rest, found := strings.Cut(name, "/"); found && slices.Contains(plans.Names, kind) &&
		strings.Count(name, "/") != scopeSlashes {
		name = rest // as kind/name, which chandler get -o name writes
	}
	if IsID(name) {
		p, err := c.InstallPlan(ctx, name)
		return c, p, err
	}
	if !strings.Contains(name, "/") && (s.Cluster == "" || s.Namespace == "") {
		// A name is enough where one plan alone has it; the server says where they are where several do.
		p, err := c.PlanNamed(ctx, client.Ref{Cluster: s.Cluster, Namespace: s.Namespace, Name: name})
		return c, p, command.OrNoCluster(ctx, c, s.Cluster, err)
	}
	ref, err := plans.Ref(s, name)
	if err != nil {
		return nil, model.InstallPlan{}, err
	}
	p, err := FindPlan(ctx, c, ref)
	return c, p, command.OrNoCluster(ctx, c, ref.Cluster, err)
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
		return printer.Plural(p.MissingApprovals, "approval")
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

// describeTerms shows what policies make of a plan.
func describeTerms(p *printer.Page, v model.InstallPlan) {
	p.Line("Policies", strings.Join(v.Policies, ", "))
	if wait := waitText(v); v.Blocked != nil && wait == v.Blocked.Reason {
		p.Line("Waits for", wait+" ("+v.Blocked.Class+")")
	} else {
		p.Line("Waits for", wait)
	}
	for _, g := range v.Windows {
		for _, w := range g.Windows {
			p.Line("Window", windowText(w)+" ("+g.Policy+")")
		}
	}
	if v.Approvers > 1 {
		p.Line("Approvers", fmt.Sprintf("%d, %s missing", v.Approvers, strconv.Itoa(v.MissingApprovals)))
	}
	for _, g := range v.Approvals {
		p.Line("Approved by", fmt.Sprintf("%s, until %s", g.By, g.Expires.UTC().Format("2006-01-02 15:04 MST")))
	}
	for _, c := range v.Choices {
		text := fmt.Sprintf("%s %s, by %s, %s", strings.ToLower(c.Choice), c.Object, c.By,
			c.At.UTC().Format("2006-01-02 15:04 MST"))
		if c.Reason != "" {
			text += ": " + c.Reason
		}
		p.Line("Choice", text)
	}
}
