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
	"github.com/chandler-fleet/chandler/cmd/chandler/olm"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
)

// KindFleetSubscription is an operator for many clusters.
const KindFleetSubscription = "fleetsubscription"

func fleetSubscriptions(a *command.Env) Kind {
	show := func(f fleetmodel.FleetSubscription) printer.Item {
		phase := printer.Or(f.Status.WaitsFor, "Pending")
		number, clusters, csv := printer.None, printer.None, printer.None
		failed := 0
		if r := f.Status.Rollout; r != nil {
			number, phase, clusters, csv = strconv.Itoa(r.Number), RolloutPhase(*r), Done(r.Clusters), r.Target.CSV
			failed = r.Clusters.Failed
		}
		return printer.Item{
			Name: KindFleetSubscription + "/" + f.Name, Value: f, Subject: f.Name, Stream: events.KindFleetSubscription,
			Describe: func(p *printer.Page) { describeFleetSubscription(p, f) },
			Cells: []any{
				f.Name, csv, number, phase, clusters, failed, printer.Age(a.Now(), f.CreatedAt), f.Spec.Package,
				printer.Or(f.Spec.Channel, "<default>"), f.Spec.Catalog, f.Spec.Namespace,
			},
		}
	}
	return Kind{
		Document: olm.KindFleetSubscription, Names: []string{KindFleetSubscription, "fleetsubscriptions", "fsub"},
		partial: true, // the configuration
		columns: []printer.Column{
			{Name: "Name"},
			{Name: "CSV", Cut: 4},
			{Name: "Rollout", Cut: 5},
			{Name: "Phase"},
			{Name: "Clusters"},
			{Name: "Failed", Cut: 3},
			{Name: "Age", Cut: 6},
			{Name: "Package", Wide: true},
			{Name: "Channel", Wide: true},
			{Name: "Catalog", Wide: true},
			{Name: "Namespace", Wide: true},
		},
		List: func(ctx context.Context, c *client.Client, _ client.Selection) ([]printer.Item, error) {
			list, err := c.FleetSubscriptions(ctx)
			return printer.Items(list, err, show)
		},
		Get: func(ctx context.Context, c *client.Client, r client.Ref) (printer.Item, error) {
			v, err := c.FleetSubscription(ctx, r.Name)
			return printer.OneItem(v, err, show)
		},
		Remove: func(ctx context.Context, c *client.Client, r client.Ref) (model.Removed, error) {
			return c.DeleteFleetSubscription(ctx, r.Name)
		},
	}
}

// RolloutPhase is the phase of a rollout with why it halted.
func RolloutPhase(r fleetmodel.Rollout) string {
	if r.Reason == "" {
		return r.Phase
	}
	return r.Phase + " (" + r.Reason + ")"
}

// Done is how many clusters have what they should, of how many.
func Done(c fleetmodel.RolloutCounts) string { return fmt.Sprintf("%d/%d", c.Succeeded, c.Total) }

// CountsText lists clusters by what they are doing.
func CountsText(c fleetmodel.RolloutCounts) string {
	var parts []string
	for _, one := range []struct {
		n    int
		word string
	}{
		{c.Succeeded, "succeeded"},
		{c.Failed, "failed"},
		{c.Changing, "changing"},
		{c.Waiting, "waiting"},
		{c.Unreachable, "unreachable"},
		{c.Skipped, "skipped"},
	} {
		if one.n > 0 {
			parts = append(parts, strconv.Itoa(one.n)+" "+one.word)
		}
	}
	return printer.Or(strings.Join(parts, ", "), "no cluster")
}

func describeFleetSubscription(p *printer.Page, f fleetmodel.FleetSubscription) {
	s := f.Spec
	p.Line("Name", f.Name)
	p.Line("Package", s.Package)
	p.Line("Channel", printer.Or(s.Channel, "the default one"))
	p.Line("Catalog", s.Catalog)
	p.Line("Versions", versionsText(s.Versions))
	p.Line("Namespace", s.Namespace)
	p.Line("Approval", s.Approval)
	for _, o := range s.Overrides {
		p.Line("Override", overrideText(o))
	}
	p.Line("Operator group", s.OperatorGroup.Name)
	p.Line("Clusters", placementText(s.Placement))
	for _, w := range s.Strategy.Waves {
		p.Line("Wave", waveText(w))
	}
	p.Line("Max failures", s.Strategy.MaxFailures)
	p.Line("Max unreachable", s.Strategy.MaxUnreachable)
	if s.Adopt {
		p.Line("Takes over", "subscriptions of its name that no fleet subscription owns")
	}
	p.Line("Clusters that leave", s.DeletionPolicy)
	p.Line("Waits for", WaitsText(f.Status.WaitsFor))
	p.Line("Held back", HeldText(f.Status.HeldBack))
	p.When("Created", f.CreatedAt)
	p.When("Changed", f.UpdatedAt)
	if r := f.Status.Rollout; r != nil {
		DescribeRollout(p, *r)
	}
}

// placementText is a placement on one line.
func placementText(l fleetmodel.FleetPlacement) string {
	var parts []string
	add := func(lead, text string) {
		if text != "" {
			parts = append(parts, strings.TrimSpace(lead+" "+text))
		}
	}
	add("", strings.Join(l.Clusters, "|"))
	add("labels", l.Selector)
	add("except", strings.Join(l.Except, "|"))
	if l.Count > 0 {
		add("at most", strconv.Itoa(l.Count))
	}
	add("spread by", l.SpreadBy)
	for _, t := range l.Tolerations {
		add("tolerates", strings.TrimSuffix(t.Key+"="+t.Value, "="))
	}
	return strings.Join(parts, ", ")
}

// overrideText is an override on one line.
func overrideText(o fleetmodel.FleetOverride) string {
	var what []string
	if o.Approval != "" {
		what = append(what, "approval "+o.Approval)
	}
	if len(o.Config) > 0 {
		what = append(what, "configuration")
	}
	return o.Name + ": " + strings.Join(what, " and ") + " of " +
		placementText(fleetmodel.FleetPlacement{Clusters: o.Clusters, Selector: o.Selector})
}

func waveText(w fleetmodel.RolloutWaveSpec) string {
	parts := []string{w.Name + ": " + printer.Or(w.Size, "all") + " of " + printer.Or(w.Selector, "the rest")}
	if w.SoakSeconds > 0 {
		parts = append(parts, "soaks "+(time.Duration(w.SoakSeconds)*time.Second).String())
	}
	if w.Promotion == events.PromotionManual {
		parts = append(parts, "promoted by a person")
	}
	if w.MaxFailures != "" {
		parts = append(parts, "at most "+w.MaxFailures+" fail")
	}
	for _, g := range w.Gates {
		parts = append(parts, "gate "+g.Name+" ("+g.Type+")")
	}
	return strings.Join(parts, ", ")
}

// WaitsRolledBack is the code of a fleet subscription whose version was rolled back from.
const WaitsRolledBack = "RolledBack"

// WaitsText says what the fleet controller waits for before a rollout can begin; "" for nothing.
func WaitsText(code string) string {
	if code == "" {
		return ""
	}
	text := map[string]string{
		"CatalogNotReady":  "the catalog, which is not ready",
		"PackageNotFound":  "the package, which is not in the catalog",
		"ChannelNotFound":  "the channel, which the package does not have or which cannot be read",
		"NoVersionAllowed": "a version that its versions allow",
		"BundleNotFetched": "the bundle, which is being fetched",
		"NoClusterChosen":  "a cluster that its placement chooses",
		"SpecNotReadable":  "a resolver that can read it: it was written by a newer version of Chandler",
		WaitsRolledBack:    "another version in the channel, or to be set again: what there is was rolled back from",
		"TargetNotKept":    "to be set again: the catalog does not hold what the rollback leads to any more",
	}[code]
	if text == "" {
		return code
	}
	return text + " (" + code + ")"
}

// HeldText says which clusters the budget of mass changes holds back; "" for none.
func HeldText(h *fleetmodel.FleetHeld) string {
	if h == nil {
		return ""
	}
	did := "changed"
	if h.Of == events.BudgetLeaving {
		did = "let go of"
	}
	return fmt.Sprintf("%d clusters: %d of %d were %s within the hour; goes on at %s, or by chandler fleet budget allow (%s)",
		h.Held, h.Used, h.Limit, did, At(h.Until), h.Reason)
}

// At is a moment, in the form that commands take.
func At(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// DescribeRollout writes where a rollout stands: a line for each wave.
func DescribeRollout(p *printer.Page, r fleetmodel.Rollout) {
	p.Section("Rollout")
	p.Line("  Number", fmt.Sprintf("%d, because of %s", r.Number, CauseText(r.Change)))
	p.Line("  Brings", r.Target.CSV)
	p.Line("  Phase", RolloutPhase(r))
	p.Line("  Clusters", CountsText(r.Clusters))
	if r.Phase == "Progressing" {
		p.Line("  Window", nextWindowText(r.Windows, p.Now()))
	}
	p.When("  Started", r.StartedAt)
	p.When("  Changed", r.UpdatedAt)
	p.Section("Waves")
	p.Row("NAME", "STATE", "DONE", "", "CLUSTERS")
	for _, w := range r.Waves {
		p.Row(w.Name, w.State, Done(w.Clusters), bar(w.Clusters), CountsText(w.Clusters))
	}
}

// CauseText says why a rollout begins.
func CauseText(change string) string {
	switch change {
	case events.ChangeVersion:
		return "another version"
	case events.ChangeIntent:
		return "a change of the fleet subscription"
	case events.ChangeMembership:
		return "other clusters"
	case events.ChangeRollback:
		return "a rollback"
	default:
		return change
	}
}

// barWidth leaves room for the rest of a line on a terminal as it comes.
const barWidth = 12

// bar draws clusters: those that succeeded as #, that failed or are away as !, that are being changed as >, and that
// wait as a point. Of each that there are, one is seen.
func bar(c fleetmodel.RolloutCounts) string {
	if c.Total == 0 {
		return ""
	}
	var b strings.Builder
	for _, part := range []struct {
		n    int
		mark string
	}{
		{c.Failed + c.Unreachable, "!"},
		{c.Changing, ">"},
		{c.Succeeded + c.Skipped, "#"},
	} {
		width := part.n * barWidth / c.Total
		if part.n > 0 {
			width = max(1, width)
		}
		b.WriteString(strings.Repeat(part.mark, min(width, barWidth-b.Len())))
	}
	if c.Waiting == 0 && c.Changing+c.Failed+c.Unreachable == 0 {
		return strings.Repeat("#", barWidth)
	}
	return b.String() + strings.Repeat(".", barWidth-b.Len())
}
