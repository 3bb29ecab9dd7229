package plans

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/plain"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// aboutPlan makes a command be about the install plan that its first argument names. What the flags say is checked
// before anybody is asked.
func aboutPlan(
	a *command.Env, c *cobra.Command, check func() error,
	do func(ctx context.Context, c *client.Client, p model.InstallPlan, more []string) error,
) *cobra.Command {
	var s command.Scope
	s.Flags(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if err := check(); err != nil {
			return err
		}
		server, p, err := kinds.NamedPlan(cmd.Context(), a, s, args[0])
		if err != nil {
			return err
		}
		return do(cmd.Context(), server, p, args[1:])
	}
	return c
}

const planNames = "PLAN is a name within --cluster and --namespace, cluster/namespace/name, or an id."

func planObjectsCommand(a *command.Env) *cobra.Command {
	var o printer.Output
	var kind string
	var manifests bool
	c := &cobra.Command{
		Use:   "objects PLAN",
		Short: "List every object of an install plan as it will be applied",
		Long: `Lists the objects of an install plan in its order, as they will be applied: rendered, before the overlays of the
cluster (certificates, proxy, pull secrets). Each was compared with the digest that an approval binds. Values of a
configuration and data of Secrets are hidden from those who may not change the subscription.

--manifests writes the objects alone, as YAML documents, for other tools.

` + planNames,
		Example: `  chandler plan objects east-1/ports/install-7x2kq
  chandler plan objects install-7x2kq --cluster east-1 -n ports --kind Deployment --manifests`,
		Args: command.RequireArgs(1),
	}
	o.Flags(c)
	c.Flags().StringVar(&kind, "kind", "", "only objects of this kind, such as Deployment")
	c.Flags().BoolVar(&manifests, "manifests", false, "write the objects alone, as YAML documents")
	oneForm := func() error {
		if manifests && o.Format != printer.FormatTable {
			return command.Usagef("--manifests and -o are two forms: choose one")
		}
		return nil
	}
	return aboutPlan(a, c, oneForm, func(
		ctx context.Context, c *client.Client, p model.InstallPlan, _ []string,
	) error {
		list, err := c.PlanObjects(ctx, p.ID, kind)
		switch {
		case err != nil:
			return err
		case manifests:
			return writeManifests(a, list)
		}
		return o.Write(a.Out, objectColumns, objectItems(list), false)
	})
}

var objectColumns = []printer.Column{
	{Name: "STEP"},
	{Name: "OBJECT"},
	{Name: "NAMESPACE"},
	{Name: "DIGEST", Wide: true},
	{Name: "HIDDEN", Wide: true},
}

func objectItems(list []model.PlanObject) []printer.Item {
	items := make([]printer.Item, len(list))
	for i, o := range list {
		hidden := ""
		if o.Hidden {
			hidden = "some values"
		}
		name := strings.ToLower(o.Kind) + "/" + o.Name
		items[i] = printer.Item{
			Name: name, Value: o,
			Cells: []any{o.Step, o.Kind + "/" + o.Name, o.Namespace, printer.Short(o.Digest), hidden},
		}
	}
	return items
}

// writeManifests writes objects as YAML documents.
func writeManifests(a *command.Env, list []model.PlanObject) error {
	for _, o := range list {
		y, err := yaml.JSONToYAML(o.Object)
		if err != nil {
			return fmt.Errorf("step %d: %w", o.Step, err)
		}
		if _, err := fmt.Fprint(a.Out, "---\n"+plain.Text(string(y))); err != nil {
			return err
		}
	}
	return nil
}

func planRightsCommand(a *command.Env) *cobra.Command {
	var o printer.Output
	var all bool
	c := &cobra.Command{
		Use:   "rights PLAN",
		Short: "Show everything that the operators of an install plan will be allowed to do",
		Long: `Shows what the operators of an install plan will be allowed to do and what they ask of the cluster: at a first
install everything is new, at an upgrade what is new is marked. What is dangerous comes first: Secrets of all
namespaces, rights to escalate, to impersonate or to reach nodes, webhooks on pods, access to the host, privileged
pods, and the level of the Pod Security Standards that the namespace has to admit. What cannot be judged is shown as
unknown. Labels that the bundles suggest for the namespace come last; chandler plan label sets them.

` + planNames,
		Example: `  chandler plan rights east-1/ports/install-7x2kq
  chandler plan rights east-1/ports/install-7x2kq --all
  chandler plan rights east-1/ports/install-7x2kq -o json`,
		Args: command.RequireArgs(1),
	}
	printer.DocumentFlag(c, &o)
	c.Flags().BoolVar(&all, "all", false, "list every right and every demand, not the first of them")
	document := func() error { return printer.CheckDocument(o) }
	return aboutPlan(a, c, document, func(
		ctx context.Context, c *client.Client, p model.InstallPlan, _ []string,
	) error {
		r, err := c.PlanRights(ctx, p.ID)
		if err != nil {
			return err
		}
		if o.Format != printer.FormatTable {
			return o.Write(a.Out, nil, []printer.Item{{Value: r}}, true)
		}
		t := printer.Text{Width: printer.Narrow}
		for i := range r.Bundles {
			writeRights(&t, &r.Bundles[i], all)
		}
		writeSuggested(&t, r)
		return a.Say("%s", strings.TrimLeft(t.String(), "\n"))
	})
}

// writeRights writes the rights of one operator, what is dangerous first.
func writeRights(t *printer.Text, b *model.BundleRights, all bool) {
	writeDangers(t, b)
	t.Heading("May:")
	lines := make([]line, 0, len(b.Rights)+1)
	for _, r := range b.Rights {
		lines = append(lines, line{lead(len(r.New) > 0, r.Reason != ""), r.Words})
	}
	if b.MoreRights > 0 {
		lines = append(lines, line{"  - ", fmt.Sprintf("and %d more rights", b.MoreRights)})
	}
	writeLines(t, lines, all)
	if len(b.Demands) > 0 {
		t.Heading("Asks for:")
	}
	lines = lines[:0]
	for _, d := range b.Demands {
		text := d.Object
		if d.Detail != "" {
			text += ": " + d.Detail
		}
		lines = append(lines, line{lead(d.New, !d.Mild), text + " (" + d.Danger + ")"})
	}
	if b.MoreDemands > 0 {
		lines = append(lines, line{"  - ", fmt.Sprintf("and %d more demands", b.MoreDemands)})
	}
	writeLines(t, lines, all)
	if len(b.Lost) > 0 {
		t.Heading(fmt.Sprintf("No longer may what %s may: %s", b.Replaces, printer.Plural(len(b.Lost), "right")))
	}
}

// line is a text with what stands before it.
type line struct{ lead, text string }

func writeLines(t *printer.Text, lines []line, all bool) {
	for i, l := range lines {
		if i == printer.ShownChanges && !all {
			t.Put("  - ", fmt.Sprintf("… and %d more; see --all", len(lines)-i))
			return
		}
		t.Put(l.lead, plain.Cell(l.text))
	}
}

// lead marks what is new by +, and what is dangerous by !.
func lead(isNew, dangerous bool) string {
	switch {
	case isNew && dangerous:
		return " +! "
	case isNew:
		return " +  "
	case dangerous:
		return "  ! "
	}
	return "  - "
}

func baseText(b model.ReviewBase) string {
	switch b.State {
	case model.ReviewFirst:
		return "first install"
	case model.ReviewCompared:
		return "replaces " + b.Replaces
	}
	return "replaces " + b.Replaces + ", which is not known: " + b.Detail
}

// writeDangers writes what deserves a second look.
func writeDangers(t *printer.Text, b *model.BundleRights) {
	t.Heading(b.CSV + " (" + baseText(b.ReviewBase) + ")")
	if len(b.Dangers) == 0 {
		t.Put("  - ", "nothing that deserves a second look is known")
	}
	for _, d := range b.Dangers {
		where := ""
		if d.Everywhere {
			where = ", in all namespaces"
		}
		t.Put(lead(d.New, true), plain.Cell(fmt.Sprintf("%s%s: %s, such as: %s (%s)", d.Words, where,
			printer.Plural(d.Count, "time"), d.Example, d.Code)))
	}
	text := "pods need a namespace that admits the Pod Security level " + b.PodSecurity.Level
	if b.PodSecurity.Level == "unknown" {
		text = "the Pod Security level of its pods is unknown: " + b.PodSecurity.Detail
	}
	t.Put(lead(false, b.PodSecurity.Level == "privileged" || b.PodSecurity.Level == "unknown"), plain.Cell(text))
	for _, why := range b.PodSecurity.Why {
		t.Put("      ", plain.Cell(fmt.Sprintf("%s: not %s: %s %s", why.Workload, why.Level, why.Rule, why.Detail)))
	}
}

func planDiffCommand(a *command.Env) *cobra.Command {
	var o printer.Output
	c := &cobra.Command{
		Use:   "diff PLAN",
		Short: "Show what an install plan changes of what is installed",
		Long: `Shows, as a unified diff of YAML, what an install plan changes of what is installed: the bundle that it replaces,
rendered by the rules that brought it and with the same configuration. What others have changed in the cluster
meanwhile is no part of it. -o json and -o yaml list the objects with the fields and images that change, and what
the change of a definition means for custom resources.

` + planNames,
		Example: `  chandler plan diff east-1/ports/install-7x2kq
  chandler plan diff east-1/ports/install-7x2kq -o json`,
		Args: command.RequireArgs(1),
	}
	printer.DocumentFlag(c, &o)
	document := func() error { return printer.CheckDocument(o) }
	return aboutPlan(a, c, document, func(
		ctx context.Context, c *client.Client, p model.InstallPlan, _ []string,
	) error {
		if o.Format != printer.FormatTable {
			d, err := c.PlanDiff(ctx, p.ID)
			if err != nil {
				return err
			}
			return o.Write(a.Out, nil, []printer.Item{{Value: d}}, true)
		}
		text, err := c.PlanDiffText(ctx, p.ID)
		if err != nil {
			return err
		}
		lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
		for i := range lines {
			lines[i] = plain.Cell(lines[i])
		}
		return a.Say("%s", strings.Join(lines, "\n"))
	})
}

// planReview is what an approver sees of a plan at once.
type planReview struct {
	Plan   model.InstallPlan `json:"plan"`
	Rights model.PlanRights  `json:"rights"`
	Diff   model.PlanDiff    `json:"diff"`
}

// showPlan shows a plan with what deserves a second look and what changes.
func showPlan(ctx context.Context, a *command.Env, s command.Scope, o printer.Output, name string) error {
	if err := printer.CheckDocument(o); err != nil {
		return err
	}
	c, p, err := kinds.NamedPlan(ctx, a, s, name)
	if err != nil {
		return err
	}
	v := planReview{Plan: p}
	if v.Rights, err = c.PlanRights(ctx, p.ID); err != nil {
		return err
	}
	if v.Diff, err = c.PlanDiff(ctx, p.ID); err != nil {
		return err
	}
	if o.Format != printer.FormatTable {
		return o.Write(a.Out, nil, []printer.Item{{Value: v}}, true)
	}
	t := printer.Text{Width: printer.Narrow}
	t.Put("", plain.Cell(fmt.Sprintf("install plan %s in %s/%s: %s, %s, digest %s", p.Name, p.Cluster, p.Namespace,
		p.Phase, printer.Plural(p.Steps, "step"), printer.Short(p.Digest))))
	for i := range v.Rights.Bundles {
		b := &v.Rights.Bundles[i]
		writeDangers(&t, b)
		writeChanges(&t, b.CSV, v.Diff.Items)
	}
	writeSuggested(&t, v.Rights)
	t.WriteString("\n")
	t.Put("", fmt.Sprintf("More: chandler plan rights|diff|objects|check %s/%s/%s", plain.Cell(p.Cluster),
		plain.Cell(p.Namespace), plain.Cell(p.Name)))
	return a.Say("%s", t.String())
}

// writeChanges lists what changes of the objects of one bundle; what differs in marks alone is counted.
func writeChanges(t *printer.Text, csv string, changes []model.ObjectChange) {
	var lines []line
	minor := 0
	for i := range changes {
		c := &changes[i]
		switch {
		case c.Resolving != csv:
			continue
		case c.Minor:
			minor++
			continue
		}
		text := []string{c.Kind + " " + c.Name}
		if c.Was != "" {
			text[0] += ", was " + c.Was
		}
		for _, i := range c.Images {
			text = append(text, fmt.Sprintf("image %s: %s -> %s", i.Container, printer.Or(i.From, "none"),
				printer.Or(i.To, "none")))
		}
		if c.CRD != nil && c.CRD.Breaking() {
			text = append(text, "existing custom resources can become invalid or unreachable")
		}
		lines = append(lines,
			line{map[string]string{"Added": "  + ", "Removed": "  - "}[c.Change], strings.Join(text, "; ")})
		if c.Change == "Changed" {
			lines[len(lines)-1].lead = "  ~ "
		}
	}
	if minor > 0 {
		lines = append(lines, line{"  ~ ", printer.Plural(minor, "object") + " in marks of the version alone"})
	}
	writeLines(t, lines, false)
}

func planCommentCommand(a *command.Env) *cobra.Command {
	var o printer.Output
	c := &cobra.Command{
		Use:   "comment PLAN [TEXT]",
		Short: "Comment on an install plan, or list what people said of it",
		Long: `Says something of an install plan; without TEXT, lists what people said of it, reasons of approvals and rejections
included. The words are stored outside the event log, and can be erased with chandler log erase.

` + planNames,
		Example: `  chandler plan comment east-1/ports/install-7x2kq 'after the storm'
  chandler plan comment east-1/ports/install-7x2kq`,
		Args: cobra.RangeArgs(1, 2),
	}
	printer.DocumentFlag(c, &o)
	document := func() error { return printer.CheckDocument(o) }
	return aboutPlan(a, c, document, func(
		ctx context.Context, c *client.Client, p model.InstallPlan, more []string,
	) error {
		if len(more) > 0 {
			said, err := c.CommentPlan(ctx, p.ID, more[0])
			if err != nil {
				return err
			}
			return a.Say("installplan/%s/%s/%s commented (%d)", p.Cluster, p.Namespace, p.Name, said.Number)
		}
		list, err := c.PlanComments(ctx, p.ID)
		if err != nil {
			return err
		}
		return o.Write(a.Out, commentColumns, commentItems(a, list), false)
	})
}

var commentColumns = []printer.Column{{Name: "AGE"}, {Name: "BY"}, {Name: "ABOUT"}, {Name: "TEXT"}}

func commentItems(a *command.Env, list []model.PlanComment) []printer.Item {
	items := make([]printer.Item, len(list))
	for i, c := range list {
		items[i] = printer.Item{Value: c, Cells: []any{
			printer.Age(a.Now(), c.At), c.By, strings.ToLower(c.About), c.Text,
		}}
	}
	return items
}
