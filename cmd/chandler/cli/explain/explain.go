// Package explain holds the commands that explain decisions and rules: chandler explain, why and rules.
package explain

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/eventtext"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Command is chandler explain.
func Command(a *command.Env) *cobra.Command {
	var s command.Scope
	var o printer.Output
	c := &cobra.Command{
		Use:   "explain (subscription/NAME | installplan/NAME | KIND[.FIELD...])",
		Short: "Explain the decision about a subscription or an install plan, and suggest changes; or the fields of a kind",
		Long: `Explains the last decision about a subscription, or the decision behind an install plan. The decision is recomputed
from its recorded input and compared with the record. For a subscription that does not resolve, changes are
suggested: each was verified by resolving the namespace with it as it is now, and checked against what is known of
the bundles and the cluster.

A subscription can also be named by its package, or by the ClusterServiceVersion that it has.

A kind alone, or a field of it, is described as kubectl explain does: which fields it has, in the words of the API
document that the gateway serves.`,
		Example: `  chandler explain sub.spec
  chandler explain subscription/harbor-master --cluster east-1 -n ports
  chandler explain installplan/east-1/ports/install-7x2kq -o json`,
		Args: command.RequireArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return explain(cmd.Context(), a, s, o, args) },
	}
	s.Flags(c)
	printer.DocumentFlag(c, &o)
	return c
}

func explain(ctx context.Context, a *command.Env, s command.Scope, o printer.Output, args []string) error {
	if err := printer.CheckDocument(o); err != nil {
		return err
	}
	if len(args) == 1 && !strings.Contains(args[0], "/") {
		if o.Format != printer.FormatTable {
			return command.Usagef("the fields of a kind are text: leave -o out, or read /api/v1/openapi.json")
		}
		return explainFields(ctx, a, args[0])
	}
	d, err := decision(ctx, a, s, args)
	if err != nil {
		return err
	}
	if o.Format != printer.FormatTable {
		return o.Write(a.Out, nil, []printer.Item{{Value: d}}, true)
	}
	var t printer.Text
	writeDecision(&t, d)
	return a.Say("%s", t.String())
}

// decision asks for the explanation of a subscription or of a plan.
func decision(ctx context.Context, a *command.Env, s command.Scope, args []string) (model.Decision, error) {
	t, err := kinds.ParseTarget(a, s, args)
	if err != nil {
		return model.Decision{}, err
	}
	kind := t.Kind.Singular()
	if len(t.Refs) != 1 || kind != kinds.KindSubscription && kind != "installplan" {
		return model.Decision{}, command.Usagef(
			"only subscriptions and install plans can be explained: give subscription/NAME or installplan/NAME")
	}
	c, err := a.Client()
	if err != nil {
		return model.Decision{}, err
	}
	if kind == kinds.KindSubscription {
		ref, err := kinds.Resolve(ctx, c, kinds.KindSubscription, t.Refs[0])
		if err != nil {
			return model.Decision{}, err
		}
		return c.ExplainSubscription(ctx, ref)
	}
	p, err := kinds.FindPlan(ctx, c, t.Refs[0])
	if err != nil {
		return model.Decision{}, command.OrNoCluster(ctx, c, t.Refs[0].Cluster, err)
	}
	return c.ExplainPlan(ctx, p.ID)
}

func writeDecision(t *printer.Text, d model.Decision) {
	t.Put("", outcome(d))
	if len(d.Statements) > 0 {
		t.Heading("Why:")
	}
	for _, s := range d.Statements {
		t.Put("  - ", s.Text)
	}
	if d.More > 0 {
		t.Put("  - ", fmt.Sprintf("and %d more reasons", d.More))
	}
	if len(d.Conflict) > 1 {
		t.Put("  ", "These conflict; without any one of them the others can be resolved: "+
			strings.Join(d.Conflict, ", ")+".")
	}
	writeSuggestions(t, d)
	for _, b := range d.Bundles {
		t.Put("  - ", b.CSV+", "+eventtext.Why(b))
	}
	for _, w := range d.Why {
		t.WriteString("\n")
		writeWhy(t, w, "planned for "+d.Namespace+" on "+d.Cluster)
	}
	writeRecord(t, d)
}

func outcome(d model.Decision) string {
	where := fmt.Sprintf("%s in %s on %s", d.Subscription, d.Namespace, d.Cluster)
	switch {
	case d.Subscription == "":
		return fmt.Sprintf("Install plan %s for %s on %s brings:", d.PlanName, d.Namespace, d.Cluster)
	case d.Outcome == "Failed":
		return fmt.Sprintf("Subscription %s does not resolve: %s (%s).", where, d.Reason, d.Class)
	case d.Outcome == "Planned":
		return fmt.Sprintf("Subscription %s resolves to %s.", where, d.CSV)
	default:
		return fmt.Sprintf("Subscription %s has %s; no newer version is offered.", where, d.CSV)
	}
}

func writeSuggestions(t *printer.Text, d model.Decision) {
	if d.Outcome != "Failed" {
		return
	}
	if d.Resolves {
		t.Heading("The subscription resolves now: the reasons above no longer apply.")
		for _, w := range d.Waits {
			t.Put("  - ", "it waits: "+w)
		}
		return
	}
	if len(d.Remedies) == 0 {
		t.Heading(noSuggestion(d))
		return
	}
	t.Heading("Suggestions, nearest first (each was verified by resolving the namespace with it):")
	for i, r := range d.Remedies {
		t.Put(fmt.Sprintf("  %d. ", i+1), r.Text)
		for _, also := range r.Also {
			t.Put("     ", also)
		}
		if r.Manifest != "" {
			t.Put("     ", "chandler apply --cluster "+d.Cluster+" -f - with:")
			t.WriteString("       " + strings.ReplaceAll(strings.TrimSpace(r.Manifest), "\n", "\n       ") + "\n")
		}
	}
}

func noSuggestion(d model.Decision) string {
	if d.Exhausted {
		return "No single change was found that helps. Not all possible changes were tried."
	}
	return "No single change was found that helps."
}

// writeRecord says whether the decision made again is what was recorded.
func writeRecord(t *printer.Text, d model.Decision) {
	if d.Agrees {
		t.Heading(fmt.Sprintf("Recomputed from its recorded input (%s, %s), the decision is the same.",
			printer.Short(d.Input), d.Semantics))
		return
	}
	t.Heading(fmt.Sprintf("Recomputed from its recorded input (%s, %s), the decision is NOT the same:",
		printer.Short(d.Input), d.Semantics))
	for _, x := range d.Differences {
		t.Put("  - ", fmt.Sprintf("%s: recorded %s, now %s", x.What, printer.Or(x.Recorded, printer.None),
			printer.Or(x.Again, printer.None)))
	}
}
