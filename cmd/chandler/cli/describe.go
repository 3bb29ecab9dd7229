package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/eventtext"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// describedEvents is how many of the newest events describe shows.
const describedEvents = 20

func (a *app) describeCommand() *cobra.Command {
	var s scope
	c := &cobra.Command{
		Use:   "describe KIND NAME",
		Short: "Show everything about one thing, with its newest events",
		Long: `Shows everything about one thing, with its newest events. A subscription or an operator may be named by its package,
its subscription or its ClusterServiceVersion; what may be several is an error that lists them.`,
		Example: `  chandler describe subscription harbor-master --cluster east-1 -n ports
  chandler describe installplan/east-1/ports/install-7x2kq`,
		Args: needs(many),
		RunE: func(cmd *cobra.Command, args []string) error { return a.describe(cmd.Context(), s, args) },
	}
	s.flags(c)
	return c
}

func (s *scope) flags(c *cobra.Command) {
	c.Flags().StringVar(&s.cluster, "cluster", "", "name of the cluster")
	c.Flags().StringVarP(&s.namespace, "namespace", "n", "", "namespace")
}

func (a *app) describe(ctx context.Context, s scope, args []string) error {
	t, err := a.target(s, args)
	if err != nil {
		return err
	}
	if len(t.refs) == 0 {
		return usagef("which %s? say its name", t.resource.singular())
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	for i, ref := range t.refs {
		it, err := t.resource.get(ctx, c, ref)
		if err != nil {
			return orNoCluster(ctx, c, ref.Cluster, err)
		}
		p := a.page(a.Out)
		if i > 0 {
			p.printf("\n")
		}
		it.describe(p)
		if err := a.describeRemedies(ctx, c, p, it); err != nil {
			return err
		}
		if err := a.describeCheck(ctx, c, p, it); err != nil {
			return err
		}
		if it.subject != "" { // a package has no events of its own
			if err := a.describeEvents(ctx, c, p, it); err != nil {
				return err
			}
		}
		if err := p.flush(); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) describeEvents(ctx context.Context, c *client.Client, p *page, it item) error {
	list, err := allEvents(ctx, c, client.EventSelection{Subject: it.subject}, 0)
	list = slices.DeleteFunc(list, func(e model.Event) bool { return !strings.HasPrefix(e.Stream, string(it.stream)+":") })
	if err != nil || len(list) == 0 {
		return err
	}
	p.section("Events")
	if n := len(list) - describedEvents; n > 0 {
		p.row(fmt.Sprintf("(%d older ones: chandler events --subject %s)", n, it.subject))
		list = list[n:]
	}
	for _, e := range list {
		p.row(p.age(e.Time), e.Type, eventtext.Sentence(e))
	}
	return nil
}

func (p *page) cluster(c model.Cluster) {
	p.line("Name", c.Name)
	p.line("Labels", labels(c.Labels))
	p.line("State", c.State)
	p.line("Reason", c.Reason)
	p.line("Message", c.Message)
	p.line("Kubernetes", c.KubernetesVersion)
	if c.HolderEpoch > 0 {
		p.line("Holder epoch", strconv.FormatInt(c.HolderEpoch, 10))
	}
	p.line("Cloud tokens", c.TokenAuth)
	p.line("Mirror", c.Settings.Mirror)
	p.line("Drift", c.Settings.Drift)
	p.line("Optional kinds", c.Settings.Optional)
	p.line("Kubernetes Events", c.Settings.Events)
	p.when("Registered", c.RegisteredAt)
	if u := c.PlatformUpgrade; u != nil {
		p.section("Upgrade of the platform")
		p.row(u.Reason, u.Message)
		for _, o := range u.Operators {
			p.row(o.Namespace+"/"+o.Name, "up to "+o.MaxVersion)
		}
		for _, r := range u.RemovedAPIs {
			p.row(r.For, removedKind(r)+" is gone in Kubernetes "+r.Removed)
		}
	}
}

// describedAnnotation is how much of an annotation describe shows: some hold whole documents.
const describedAnnotation = 120

// metadata shows labels and annotations, where there are any.
func (p *page) metadata(m model.Metadata) {
	if len(m.Labels) > 0 {
		p.line("Labels", labels(m.Labels))
	}
	for _, key := range slices.Sorted(maps.Keys(m.Annotations)) {
		value := []rune(strings.Join(strings.Fields(m.Annotations[key]), " "))
		if len(value) > describedAnnotation {
			value = append(value[:describedAnnotation], '…')
		}
		p.line("Annotation", key+"="+string(value))
	}
}

// targetNamespaces are those that a group serves now, as far as that is known.
func targetNamespaces(g model.OperatorGroup, separator string) string {
	if slices.Contains(g.Targets, "") {
		return "<all>"
	}
	return or(strings.Join(g.Targets, separator), none)
}

// namespaceSelector is a selector as kubectl's -l has it, "" for none.
func namespaceSelector(s events.LabelSelector) string {
	var parts []string
	if len(s.MatchLabels) > 0 {
		parts = append(parts, labels(s.MatchLabels))
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

func (p *page) operatorGroup(g model.OperatorGroup) {
	p.scope(g.Cluster, g.Namespace, g.Name)
	p.metadata(g.Metadata)
	p.line("Target namespaces", targetNamespaces(g, ", "))
	p.line("Selector", namespaceSelector(g.Spec.Selector))
	p.line("Provided APIs", strings.Join(g.ProvidedAPIs, ", "))
	if g.Spec.StaticProvidedAPIs {
		p.line("Static", "what it provides does not follow its operators")
	}
	p.line("Service account", g.Spec.ServiceAccountName)
	p.line("Upgrade strategy", g.Spec.UpgradeStrategy)
	p.line("Colocation", g.Spec.Colocation)
	if g.Spec.ExcludeGlobalCatalogs {
		p.line("Global catalogs", "excluded")
	}
	p.when("Created", g.CreatedAt)
	p.conditions(g.Conditions)
}

func (p *page) subscription(s model.Subscription) {
	p.scope(s.Cluster, s.Namespace, s.Name)
	p.metadata(s.Metadata)
	p.line("Package", s.Spec.Package)
	p.line("Channel", s.Spec.Channel)
	p.line("Catalog", strings.TrimPrefix(s.Spec.CatalogNamespace+"/"+s.Spec.Catalog, "/"))
	p.line("Starting CSV", s.Spec.StartingCSV)
	p.line("Approval", or(s.Spec.Approval, "Automatic"))
	if s.Generated {
		p.line("Made for", "a dependency")
	}
	p.line("State", s.Status.State)
	p.line("Installed", s.Status.InstalledCSV)
	p.line("Phase", s.Status.Phase)
	p.line("Current", s.Status.CurrentCSV)
	if r := s.Status.Rollback; r != nil {
		p.line("Rollback", r.From+" to "+r.To)
	}
	if r := s.Status.InstallPlan; r != nil {
		p.line("Install plan", fmt.Sprintf("%s (%s)", r.Name, r.Phase))
	}
	p.when("Created", s.CreatedAt)
	p.document("Config", s.Spec.Config)
	p.conditions(s.Status.Conditions)
	if s.Status.Explanation != nil {
		p.section("Why it does not resolve")
		for _, sentence := range s.Status.Explanation.Sentences() {
			p.row(sentence)
		}
	}
}

func (p *page) operator(o model.Operator) {
	p.scope(o.Cluster, o.Namespace, o.Name)
	p.line("Package", o.Package)
	p.line("Version", o.Version)
	p.line("Phase", o.Phase)
	p.line("Reason", o.Reason)
	p.line("Message", o.Message)
	p.line("Content", o.Content)
	p.line("Install plan", o.Plan)
	p.when("Installed", o.InstalledAt)
	if r := o.Removal; r != nil {
		p.line("Uninstall", strings.TrimSuffix(r.Phase+" ("+r.Reason+")", " ()"))
		p.line("Because", r.Message)
	}
	p.conditions(o.Conditions)
	if o.Details != nil {
		p.operatorDetails(*o.Details)
	}
	if len(o.History) > 0 {
		p.section("Phases")
		for _, h := range o.History {
			p.row(p.age(h.Time), h.Phase, h.Reason)
		}
	}
}

func (p *page) installPlan(v model.InstallPlan) {
	p.scope(v.Cluster, v.Namespace, v.Name)
	p.metadata(v.Metadata)
	p.line("ID", v.ID)
	p.line("Component", v.Component)
	p.line("Digest", v.Digest)
	p.line("Approval", approvalText(v))
	p.line("Phase", v.Phase)
	p.terms(v)
	if v.Failure != nil {
		p.line("Failed", fmt.Sprintf("step %d: %s", v.Failure.Step, v.Failure.Reason))
	}
	p.line("Message", v.Message)
	p.line("Superseded by", v.SupersededBy)
	p.when("Proposed", v.ProposedAt)
	p.section("Bundles")
	p.row("CSV", "VERSION", "CHANNEL", "CATALOG", "REPLACES", "WHY")
	for _, b := range v.Bundles {
		p.row(b.CSV, b.Version, or(b.Channel, none), b.Catalog, or(b.Replaces, none), eventtext.Why(b))
	}
	p.changes(v.Changes)
	p.removedAPIs(v.RemovedAPIs)
	p.steps(v.Document)
	p.line("Steps", strconv.Itoa(v.Steps))
}

// steps shows what a plan does, object by object; a document of another version shows in -o json alone.
func (p *page) steps(document json.RawMessage) {
	var d installplan.Document
	if len(document) == 0 || json.Unmarshal(document, &d) != nil || len(d.Steps) == 0 {
		return
	}
	p.section("What it does")
	for i, s := range d.Steps {
		p.row(strconv.Itoa(i+1), s.Kind, strings.TrimPrefix(s.Namespace+"/"+s.Name, "/"), s.Resolving)
	}
}
