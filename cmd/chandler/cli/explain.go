package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/eventtext"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// How explanations are laid out.
const (
	textWidth         = 96 // of a line, so that a little may stand before it; words longer than that, such as digests, go over it
	describedRemedies = 3  // that describe shows
)

func (a *app) explainCommand() *cobra.Command {
	var s scope
	var o output
	c := &cobra.Command{
		Use:   "explain (subscription/NAME | installplan/NAME)",
		Short: "Say why a subscription resolves as it does or a plan is what it is, and what would help",
		Long: `Explains the last decision about a subscription, or the decision that an install plan is. The decision is made
again from its recorded input and compared with the record. What would help a subscription that does
not resolve is found on what holds now: the namespace is resolved with each change that is offered, and what
comes of it is compared with what is known of the bundles and of the cluster.

A subscription may also be named by its package, or by the ClusterServiceVersion that it has.`,
		Example: `  chandler explain subscription/harbor-master --cluster east-1 -n ports
  chandler explain installplan/east-1/ports/install-7x2kq -o json`,
		Args: needs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return a.explain(cmd.Context(), s, o, args) },
	}
	s.flags(c)
	documentFlag(c, &o)
	return c
}

func (a *app) whyCommand() *cobra.Command {
	var s scope
	var o output
	c := &cobra.Command{
		Use:   "why OPERATOR",
		Short: "Say why an operator is there, and for every newer version why it is not taken",
		Long: `Says why an operator is in a namespace, and for every newer version that a catalog offers why it is not taken.
OPERATOR is a ClusterServiceVersion, a subscription or a package of the namespace.`,
		Example: `  chandler why tidegauge --cluster east-1 -n ports
  chandler why east-1/ports/tidegauge.v1.2.0 -o yaml`,
		Args: needs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.why(cmd.Context(), s, o, args[0]) },
	}
	s.flags(c)
	documentFlag(c, &o)
	return c
}

// documentFlag is --output of what has no table.
func documentFlag(c *cobra.Command, o *output) {
	c.Flags().StringVarP(&o.format, "output", "o", "", "json or yaml")
}

func checkDocument(o output) error {
	if o.format != formatTable && o.format != formatJSON && o.format != formatYAML {
		return usagef("output format %q: want json or yaml", o.format)
	}
	return nil
}

func (a *app) explain(ctx context.Context, s scope, o output, args []string) error {
	if err := checkDocument(o); err != nil {
		return err
	}
	d, err := a.decision(ctx, s, args)
	if err != nil {
		return err
	}
	if o.format != formatTable {
		return o.write(a.Out, nil, []item{{value: d}}, true)
	}
	var t prose
	t.decision(d)
	return a.say("%s", t.String())
}

// decision asks for the explanation of a subscription or of a plan.
func (a *app) decision(ctx context.Context, s scope, args []string) (model.Decision, error) {
	t, err := a.target(s, args)
	if err != nil {
		return model.Decision{}, err
	}
	kind := t.resource.singular()
	if len(t.refs) != 1 || kind != kindSubscription && kind != "installplan" {
		return model.Decision{}, usagef("say what to explain: subscription/NAME or installplan/NAME")
	}
	c, err := a.client()
	if err != nil {
		return model.Decision{}, err
	}
	if kind == kindSubscription {
		ref, err := named(ctx, c, kindSubscription, t.refs[0])
		if err != nil {
			return model.Decision{}, err
		}
		return c.ExplainSubscription(ctx, ref)
	}
	p, err := findPlan(ctx, c, t.refs[0])
	if err != nil {
		return model.Decision{}, orNoCluster(ctx, c, t.refs[0].Cluster, err)
	}
	return c.ExplainPlan(ctx, p.ID)
}

func (a *app) why(ctx context.Context, s scope, o output, name string) error {
	if err := checkDocument(o); err != nil {
		return err
	}
	ref, err := a.operators().ref(s, name)
	if err != nil {
		return err
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	w, err := c.WhyOperator(ctx, ref)
	if err != nil {
		return orNoCluster(ctx, c, ref.Cluster, err)
	}
	if o.format != formatTable {
		return o.write(a.Out, nil, []item{{value: w}}, true)
	}
	var t prose
	t.why(w, fmt.Sprintf("in %s on %s", ref.Namespace, ref.Cluster))
	return a.say("%s", t.String())
}

// describeRemedies adds what would help a subscription that does not resolve. That nobody can say so now is no reason
// not to describe the rest.
func (a *app) describeRemedies(ctx context.Context, c *client.Client, p *page, it item) error {
	s, ok := it.value.(model.Subscription)
	if !ok || s.Status.Explanation == nil {
		return nil
	}
	d, err := c.ExplainSubscription(ctx, client.Ref{Cluster: s.Cluster, Namespace: s.Namespace, Name: s.Name})
	switch {
	case client.IsStatus(err, http.StatusServiceUnavailable), client.IsStatus(err, http.StatusNotFound):
		p.section("What would help")
		p.row(fmt.Sprintf("(%v)", err))
		return nil
	case err != nil || len(d.Remedies) == 0:
		return err
	}
	p.section("What would help")
	for _, r := range d.Remedies[:min(len(d.Remedies), describedRemedies)] {
		p.row(r.Text)
	}
	if more := len(d.Remedies) - describedRemedies; more > 0 {
		p.row(fmt.Sprintf("(%d more: chandler explain %s)", more, it.name))
	}
	return nil
}

// prose is text for people, in lines of some width.
type prose struct{ strings.Builder }

// String is the text without the end of its last line.
func (t *prose) String() string { return strings.TrimRight(t.Builder.String(), "\n") }

// put writes a paragraph; its first line stands behind lead, the others below the text.
func (t *prose) put(lead, text string) {
	indent := strings.Repeat(" ", len(lead))
	line := lead
	for word := range strings.FieldsSeq(text) {
		switch {
		case len(line) == len(lead):
			line += word
		case len(line)+1+len(word) > textWidth:
			t.WriteString(line + "\n")
			line = indent + word
			lead = indent
		default:
			line += " " + word
		}
	}
	t.WriteString(line + "\n")
}

func (t *prose) heading(text string) { t.WriteString("\n" + text + "\n") }

func (t *prose) decision(d model.Decision) {
	t.put("", outcome(d))
	if len(d.Statements) > 0 {
		t.heading("Why:")
	}
	for _, s := range d.Statements {
		t.put("  - ", s.Text)
	}
	if d.More > 0 {
		t.put("  - ", fmt.Sprintf("and %d more reasons", d.More))
	}
	if len(d.Conflict) > 1 {
		t.put("  ", "These cannot live together; without any one of them the others can: "+strings.Join(d.Conflict, ", ")+".")
	}
	t.remedies(d)
	for _, b := range d.Bundles {
		t.put("  - ", b.CSV+", "+eventtext.Why(b))
	}
	for _, w := range d.Why {
		t.WriteString("\n")
		t.why(w, "planned for "+d.Namespace+" on "+d.Cluster)
	}
	t.record(d)
}

func outcome(d model.Decision) string {
	where := fmt.Sprintf("%s in %s on %s", d.Subscription, d.Namespace, d.Cluster)
	switch {
	case d.Subscription == "":
		return fmt.Sprintf("Install plan %s for %s on %s brings:", d.PlanName, d.Namespace, d.Cluster)
	case d.Outcome == "Failed":
		return fmt.Sprintf("Subscription %s does not resolve: %s (%s).", where, d.Reason, d.Class)
	case d.Outcome == "Planned":
		return fmt.Sprintf("Subscription %s moves to %s.", where, d.CSV)
	default:
		return fmt.Sprintf("Subscription %s has %s, and nothing newer is offered.", where, d.CSV)
	}
}

func (t *prose) remedies(d model.Decision) {
	if d.Outcome != "Failed" {
		return
	}
	if d.Resolves {
		t.heading("The subscription resolves now as it is: what is said above is gone.")
		for _, w := range d.Waits {
			t.put("  - ", "it waits: "+w)
		}
		return
	}
	if len(d.Remedies) == 0 {
		t.heading(noRemedy(d))
		return
	}
	t.heading("What would help, nearest first (with each the namespace was resolved again):")
	for i, r := range d.Remedies {
		t.put(fmt.Sprintf("  %d. ", i+1), r.Text)
		for _, also := range r.Also {
			t.put("     ", also)
		}
		if r.Manifest != "" {
			t.put("     ", "chandler apply --cluster "+d.Cluster+" -f - with:")
			t.WriteString("       " + strings.ReplaceAll(strings.TrimSpace(r.Manifest), "\n", "\n       ") + "\n")
		}
	}
}

func noRemedy(d model.Decision) string {
	if d.Exhausted {
		return "No single change was found that helps; there are more than were tried."
	}
	return "No single change was found that helps."
}

// record says whether the decision made again is what was recorded.
func (t *prose) record(d model.Decision) {
	if d.Agrees {
		t.heading(fmt.Sprintf("Made again from its recorded input (%s, %s), the decision is the same.", short(d.Input), d.Semantics))
		return
	}
	t.heading(fmt.Sprintf("Made again from its recorded input (%s, %s), the decision is NOT what was recorded:", short(d.Input), d.Semantics))
	for _, x := range d.Differences {
		t.put("  - ", fmt.Sprintf("%s: recorded %s, now %s", x.What, or(x.Recorded, none), or(x.Again, none)))
	}
}

func (t *prose) why(w model.OperatorReasoning, where string) {
	t.put("", subjectOf(w)+" "+where+followed(w)+".")
	if len(w.Because) > 0 {
		t.heading("Why it is there:")
	}
	for _, b := range w.Because {
		t.put("  - ", b.Text)
	}
	if len(w.NotTaken) == 0 {
		t.heading("No visible catalog has a newer version.")
		return
	}
	t.heading("Newer versions, and why they are not taken:")
	for list := w.NotTaken; len(list) > 0; {
		alike := 1
		for alike < len(list) && sameReasons(list[0], list[alike]) {
			alike++
		}
		n := list[0]
		t.put("  ", fmt.Sprintf("%s in catalog %s, channel %s", names(list[:alike]), n.Catalog, strings.Join(n.Channels, ", ")))
		for _, r := range n.Reasons {
			t.put("    - ", r.Text)
		}
		list = list[alike:]
	}
	if w.More > 0 {
		t.put("  ", fmt.Sprintf("and %d older ones of these", w.More))
	}
}

// sameReasons says whether two versions can be told of in one: what keeps them away is the same.
func sameReasons(a, b model.NewerThan) bool {
	return a.Catalog == b.Catalog && slices.Equal(a.Channels, b.Channels) &&
		slices.EqualFunc(a.Reasons, b.Reasons, func(x, y model.WhyReason) bool { return x.Text == y.Text })
}

// names are the CSVs of versions; of many the newest ones, the oldest one and how many.
func names(list []model.NewerThan) string {
	const shown = 3
	var out []string
	for _, n := range list[:min(len(list), shown)] {
		out = append(out, n.CSV)
	}
	text := strings.Join(out, ", ")
	if len(list) > shown {
		text += fmt.Sprintf(" … %s (%d versions)", list[len(list)-1].CSV, len(list))
	}
	return text
}

func subjectOf(w model.OperatorReasoning) string {
	switch {
	case w.CSV == "":
		return "Nothing of package " + w.Package + " is installed or planned"
	case w.Phase == "":
		return w.CSV
	default:
		return w.CSV + " (" + w.Phase + ")"
	}
}

func followed(w model.OperatorReasoning) string {
	if w.Subscription == "" {
		return ", which no subscription follows"
	}
	return fmt.Sprintf(", subscription %s, channel %s of catalog %s", w.Subscription, or(w.Channel, "(any)"), or(w.Catalog, "(any)"))
}

// check says everything, what is in the way first.
func (t *prose) check(c model.PlanCheck) {
	if c.Ready {
		t.put("", "Nothing stands in the way.")
	}
	for _, o := range c.Obstacles {
		t.put("", fmt.Sprintf("%s (%s): %s", o.Reason, o.Class, o.Message))
	}
	for _, o := range c.Shared {
		t.shared(o)
	}
	t.rights(c)
	for _, v := range c.CRDs {
		t.verdict(v)
	}
	t.removed(c.RemovedAPIs)
}

func (t *prose) rights(c model.PlanCheck) {
	switch {
	case c.Account == "":
	case len(c.Permissions) == 0:
		t.put("", fmt.Sprintf("It runs as %s, which may do all of it.", c.Account))
	default:
		t.heading(fmt.Sprintf("%s lacks:", c.Account))
	}
	for _, p := range c.Permissions {
		t.put("  - ", right(p))
	}
}

// right is a missing right in one line.
func right(p model.MissingPermission) string {
	what := p.URL
	if what == "" {
		what = strings.TrimSuffix(p.Resource+"."+p.Group, ".")
	}
	if p.Name != "" {
		what += " " + p.Name
	}
	if p.URL == "" {
		what += " in " + or(p.Namespace, "the whole cluster")
	}
	return fmt.Sprintf("%s %s, for %s", p.Verb, what, p.For)
}

// verdict says what changing a definition does; of one that is only created or the same there is nothing to say.
func (t *prose) verdict(v model.CRDVerdict) {
	if v.Safe && v.Reversible && len(v.Warnings) == 0 {
		return
	}
	t.heading(fmt.Sprintf("%s: %s", v.CRD, verdictText(v)))
	for _, list := range []struct {
		lead  string
		texts []string
	}{{"  ! ", v.Problems}, {"  - ", v.Warnings}, {"  - cannot be undone: ", v.Irreversible}} {
		for _, text := range list.texts {
			t.put(list.lead, text)
		}
	}
	for _, s := range v.Sample {
		t.put("    ", s)
	}
	switch {
	case v.Safe:
	case len(v.OverriddenBy) > 0:
		t.put("  - ", "overridden by "+strings.Join(v.OverriddenBy, ", "))
	case v.Finding != "":
		t.put("  - ", fmt.Sprintf("to change it all the same: chandler approve PLAN --override-crd %s --reason TEXT", v.CRD))
	default:
		t.put("  - ", "nobody can override this")
	}
}

// shared says whose an object is that another operator brings in another form, what differs, and what can be chosen.
func (t *prose) shared(o model.SharedObject) {
	where := ""
	if o.Namespace != "" {
		where = " in namespace " + o.Namespace
	}
	t.heading(fmt.Sprintf("%s%s: %s has it, and %s brings it in another form", o.Object, where, o.Holder, o.Operator))
	for _, d := range o.Differences {
		t.put("  - ", fmt.Sprintf("%s: the cluster has %s, the plan brings %s", d.Path, formText(d.Has, d), formText(d.Wants, d)))
	}
	if others := slices.DeleteFunc(slices.Clone(o.Owners), func(s string) bool { return s == o.Holder }); len(others) > 0 {
		t.put("  - ", "shared with "+strings.Join(others, ", "))
	}
	switch {
	case o.Choice != "":
		t.put("  - ", fmt.Sprintf("settled: %s, by %s", strings.ToLower(o.Choice), strings.Join(o.By, ", ")))
	case o.Refused != "":
		t.put("  ! ", "the plan's form cannot take its place: "+o.Refused)
		t.put("  ! ", "chandler approve PLAN --keep "+o.Object+", or uninstall one of the two")
	default:
		t.put("  ! ", "a person has to choose: chandler approve PLAN --keep "+o.Object+" (what the cluster has) or --take "+o.Object+" (what the plan brings)")
	}
}

// formText is a value of a field, for people.
func formText(raw json.RawMessage, of model.Difference) string {
	switch {
	case len(raw) > 0:
		return string(raw)
	case len(of.Has) == 0 && len(of.Wants) == 0:
		return "a value that is not told"
	}
	return "nothing"
}

func verdictText(v model.CRDVerdict) string {
	switch {
	case !v.Safe && len(v.OverriddenBy) > 0:
		return "it is changed although that hurts"
	case !v.Safe:
		return "it may not be changed"
	case !v.Reversible:
		return "it may be changed but not changed back without loss"
	}
	return "it may be changed and changed back"
}
