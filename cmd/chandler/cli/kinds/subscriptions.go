package kinds

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func describeSubscription(p *printer.Page, s model.Subscription) {
	p.Scope(s.Cluster, s.Namespace, s.Name)
	p.Metadata(s.Metadata)
	p.Line("Package", s.Spec.Package)
	p.Line("Channel", s.Spec.Channel)
	p.Line("Catalog", strings.TrimPrefix(s.Spec.CatalogNamespace+"/"+s.Spec.Catalog, "/"))
	p.Line("Starting CSV", s.Spec.StartingCSV)
	p.Line("Approval", printer.Or(s.Spec.Approval, "Automatic"))
	if s.Generated {
		p.Line("Created for", "a dependency")
	}
	p.Line("Owner", owner(s))
	if t := s.Target; t != nil {
		p.Line("Target", fmt.Sprintf("%s (rollout %d)", t.CSV, t.Rollout))
	}
	p.Line("State", s.Status.State)
	p.Line("Installed", s.Status.InstalledCSV)
	p.Line("Phase", s.Status.Phase)
	p.Line("Current", s.Status.CurrentCSV)
	if r := s.Status.Rollback; r != nil {
		p.Line("Rollback", r.From+" to "+r.To)
	}
	if r := s.Status.InstallPlan; r != nil {
		p.Line("Install plan", fmt.Sprintf("%s (%s)", r.Name, r.Phase))
	}
	p.When("Created", s.CreatedAt)
	p.Document("Config", s.Spec.Config)
	p.Conditions(s.Status.Conditions)
	if s.Status.Explanation != nil {
		p.Section("Why it does not resolve")
		for _, sentence := range s.Status.Explanation.Sentences() {
			p.Row(sentence)
		}
	}
}

// owner names the fleet subscription that asks for a subscription.
func owner(s model.Subscription) string {
	if s.Owner == "" {
		return ""
	}
	return "fleetsubscription/" + s.Owner
}

// describedSuggestions is how many suggestions describe shows.
const describedSuggestions = 3

// DescribeSuggestions adds what would help a subscription that does not resolve. That nobody can say so now is no
// reason not to describe the rest.
func DescribeSuggestions(ctx context.Context, c *client.Client, p *printer.Page, it printer.Item) error {
	s, ok := it.Value.(model.Subscription)
	if !ok || s.Status.Explanation == nil {
		return nil
	}
	d, err := c.ExplainSubscription(ctx, client.Ref{Cluster: s.Cluster, Namespace: s.Namespace, Name: s.Name})
	switch {
	case client.IsStatus(err, http.StatusServiceUnavailable), client.IsStatus(err, http.StatusNotFound):
		p.Section("Suggestions")
		p.Row(fmt.Sprintf("(%v)", err))
		return nil
	case err != nil || len(d.Remedies) == 0:
		return err
	}
	p.Section("Suggestions")
	for _, r := range d.Remedies[:min(len(d.Remedies), describedSuggestions)] {
		p.Row(r.Text)
	}
	if more := len(d.Remedies) - describedSuggestions; more > 0 {
		p.Row(fmt.Sprintf("(%d more: chandler explain %s)", more, it.Name))
	}
	return nil
}

// Subscriptions is the kind of subscriptions.
func Subscriptions(a *command.Env) Kind {
	key := func(s model.Subscription) string { return s.Cluster + "/" + s.Namespace + "/" + s.Name }
	show := func(s model.Subscription) printer.Item {
		plan := printer.None
		if s.Status.InstallPlan != nil {
			plan = s.Status.InstallPlan.Name
		}
		return printer.Item{
			Name: "subscription/" + key(s), Value: s, Subject: key(s), Stream: events.KindSubscription,
			Describe: func(p *printer.Page) { describeSubscription(p, s) }, Cells: []any{
				s.Cluster, s.Namespace, s.Name, s.Spec.Package, printer.Or(s.Spec.Channel, printer.None),
				printer.Or(s.Status.InstalledCSV, printer.None), printer.Or(s.Status.Phase, printer.None),
				printer.Or(s.ShownState(), printer.None), printer.Age(a.Now(), s.CreatedAt), s.Spec.Catalog,
				printer.Or(s.Spec.Approval, "Automatic"), printer.Or(s.Status.CurrentCSV, printer.None), plan,
				printer.Or(owner(s), printer.None), printer.Labels(s.Labels),
			},
		}
	}
	return Kind{
		Document: "Subscription",
		partial:  true, // the configuration and the annotations
		Names:    []string{"subscription", "subscriptions", "sub", "subs"},
		scoped:   true,
		filters: []string{
			FlagCluster, FlagNamespace, FlagPackage, FlagCatalog, FlagState, FlagPhase, FlagLabel, FlagFields,
			FlagClusters,
		},
		sorts: []string{"name", "package", "created", "changed"},
		columns: []printer.Column{
			{Name: "Cluster"},
			{Name: "Namespace"},
			{Name: "Name"},
			{Name: "Package", Cut: 9},
			{Name: "Channel", Cut: 8},
			{Name: "Installed", Cut: 5},
			{Name: "Phase", Cut: 6},
			{Name: "State"},
			{Name: "Age", Cut: 7},
			{Name: "Catalog", Wide: true},
			{Name: "Approval", Wide: true},
			{Name: "Current", Wide: true},
			{Name: "Plan", Wide: true},
			{Name: "Owner", Wide: true},
			{Name: "Labels", Wide: true},
		},
		List: func(ctx context.Context, c *client.Client, s client.Selection) ([]printer.Item, error) {
			list, err := c.Subscriptions(ctx, s)
			return printer.Items(list, err, show)
		},
		Get: func(ctx context.Context, c *client.Client, r client.Ref) (printer.Item, error) {
			r, err := Resolve(ctx, c, KindSubscription, r)
			if err != nil {
				return printer.Item{}, err
			}
			v, err := c.Subscription(ctx, r)
			return printer.OneItem(v, err, show)
		},
		Remove: func(ctx context.Context, c *client.Client, r client.Ref) (model.Removed, error) {
			return c.DeleteSubscription(ctx, r)
		},
	}
}
