package plans

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/documents"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/olm"
	"github.com/chandler-fleet/chandler/cmd/chandler/preview"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// previewOptions is what chandler plan is to suppose.
type previewOptions struct {
	documents.Options
	printer.Output

	name     string
	spec     model.SubscriptionSpec
	catalog  model.PreviewCatalog
	disable  bool
	enable   bool
	priority int32
	remove   []string
	apply    bool
	validate string
}

// PlanCommand is chandler plan.
func PlanCommand(a *command.Env) *cobra.Command {
	var w previewOptions
	c := &cobra.Command{
		Use:   "plan (-f FILE | --package NAME | --catalog NAME --revision DIGEST | --remove KIND/NAME)",
		Short: "Preview the install plans that a change would lead to",
		Long: `Previews what would be decided after a change: of a subscription, an operator group or an approval policy from a
file or from flags; of a catalog's revision, priority or availability; or the removal of one of these or of an
operator. The preview shows, for every namespace that the change affects, the install plans that would be proposed
with their digests, the plans that would be superseded, and what could not be planned and why.

--cluster and --namespace are the place of subscriptions and operator groups. If only catalogs and policies change,
they narrow the preview to one cluster and namespace; such a narrowed preview cannot be applied.

Flags leave the labels, annotations and configuration of an existing subscription as they are. A file replaces all
of it.

Nothing is changed without --apply. A preview is kept for an hour; until then chandler plan apply applies it, if
nothing that it is based on has changed.`,
		Example: `  chandler plan -f subscription.yaml --cluster east-1
  chandler plan --package tidegauge --channel steady --catalog fleet --cluster east-1 -n ports
  chandler plan --catalog fleet --revision sha256:3f0c…
  chandler plan --remove approvalpolicy/careful
  chandler plan apply 0b0e2f5c-…`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("priority") {
				w.catalog.Priority = &w.priority
			}
			return showChange(cmd.Context(), a, w)
		},
	}
	documents.Flags(c, &w.Options)
	c.Flags().Lookup(
		"cluster").Usage = "cluster of the change, several with commas; for a change of a catalog or policy the one " +
		"cluster to preview"
	c.Flags().Lookup(
		"namespace").Usage = "namespace of documents without one; for a change of a catalog or policy the one " +
		"namespace to preview"
	w.Output.Flags(c)
	f := c.Flags()
	f.StringVar(&w.name, "name", "", "name of the subscription (default: that of the package)")
	f.StringVar(&w.spec.Package, "package", "", "package to subscribe to")
	f.StringVar(&w.spec.Channel, "channel", "", "channel of the package")
	f.StringVar(&w.spec.Catalog, "catalog", "", "catalog of the package, or the catalog to change")
	f.StringVar(&w.spec.StartingCSV, "starting-csv", "", "version to start with")
	f.StringVar(&w.spec.Approval, "approval", "", "Automatic or Manual")
	f.StringVar(&w.catalog.Revision, "revision", "", "stored revision that the catalog serves instead")
	f.BoolVar(&w.disable, "disable", false, "stop offering the catalog")
	f.BoolVar(&w.enable, "enable", false, "offer the catalog again")
	f.Int32Var(&w.priority, "priority", 0, "priority of the catalog")
	f.StringSliceVar(&w.remove, "remove", nil,
		"kind/name to remove: a subscription, operatorgroup, catalog, approvalpolicy or operator")
	f.StringVar(&w.validate, "validate", "", "strict or lenient check of package and channel")
	f.BoolVar(&w.apply, "apply", false, "apply the change at once")
	c.AddCommand(planApplyCommand(a), planShowCommand(a), planCheckCommand(a), planObjectsCommand(a),
		planRightsCommand(a), planLabelCommand(a), planDiffCommand(a), planCommentCommand(a))
	return c
}

func planApplyCommand(a *command.Env) *cobra.Command {
	return &cobra.Command{
		Use: "apply ID", Short: "Apply a preview", Args: command.RequireArgs(1),
		Long: `Applies the change that was previewed, all of it or nothing, if nothing that the preview is based on has changed;
otherwise the error names what changed. Applying it again gives the same answer.`,
		Example: "  chandler plan apply 0b0e2f5c-…",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			return applyPreview(cmd.Context(), a, c, args[0])
		},
	}
}

func planShowCommand(a *command.Env) *cobra.Command {
	var s command.Scope
	var o printer.Output
	c := &cobra.Command{
		Use: "show PLAN|ID", Short: "Show what an install plan does, or a preview again", Args: command.RequireArgs(1),
		Long: `Shows what an approver should see of an install plan: what it brings, what deserves a second look of what its
operators will be allowed to do, and which objects change. PLAN is a name within --cluster and --namespace,
cluster/namespace/name, or an id.

With the id of a preview of chandler plan, shows that again, as long as it is kept. It ends with an error if something
could not be planned.`,
		Example: `  chandler plan show east-1/ports/install-7x2kq
  chandler plan show 0b0e2f5c-… -o yaml`,
		RunE: func(cmd *cobra.Command, args []string) error { return show(cmd.Context(), a, s, o, args[0]) },
	}
	s.Flags(c)
	o.Flags(c)
	return c
}

// show shows the preview of an id, else the install plan.
func show(ctx context.Context, a *command.Env, s command.Scope, o printer.Output, name string) error {
	if !kinds.IsID(name) {
		return showPlan(ctx, a, s, o, name)
	}
	c, err := a.Client()
	if err != nil {
		return err
	}
	p, err := c.Preview(ctx, name)
	if client.IsStatus(err, http.StatusNotFound) {
		if _, planErr := c.InstallPlan(ctx, name); planErr == nil {
			return showPlan(ctx, a, s, o, name)
		}
	}
	if err != nil {
		return err
	}
	if err := showPreview(a, o, p); err != nil {
		return err
	}
	return failuresError(p)
}

// showChange shows the install plans that a change would lead to.
func showChange(ctx context.Context, a *command.Env, w previewOptions) error {
	if err := w.Output.Check(); err != nil {
		return err
	}
	in, err := previewRequest(a, w)
	if err != nil {
		return err
	}
	c, err := a.Client()
	if err != nil {
		return err
	}
	if err := keepUnchanged(ctx, c, w, in.Changes); err != nil {
		return err
	}
	if err := KeepNamespaces(ctx, c, in.Changes); err != nil {
		return err
	}
	p, err := c.NewPreview(ctx, in, model.Validate(w.validate))
	if err != nil {
		for _, cluster := range w.Clusters {
			err = command.OrNoCluster(ctx, c, cluster, err)
		}
		return err
	}
	if err := showPreview(a, w.Output, p); err != nil {
		return err
	}
	if w.apply {
		if err := applyPreview(ctx, a, c, p.ID); err != nil {
			return err
		}
	}
	return failuresError(p)
}

// maxParts is how many changes the server takes in one preview.
const maxParts = 20

// Parts are changes in previews that the server takes. Those of one namespace stay together, since they are decided
// together, unless there are more than one preview can have.
func Parts(changes []model.PreviewChange) [][]model.PreviewChange {
	place := func(c model.PreviewChange) string {
		switch {
		case c.Subscription != nil:
			return c.Subscription.Cluster + "/" + c.Subscription.Namespace
		case c.OperatorGroup != nil:
			return c.OperatorGroup.Cluster + "/" + c.OperatorGroup.Namespace
		default:
			return "" // of the fleet, first
		}
	}
	changes = slices.Clone(changes)
	slices.SortStableFunc(changes, func(a, b model.PreviewChange) int { return cmp.Compare(place(a), place(b)) })
	var parts [][]model.PreviewChange
	var part []model.PreviewChange
	flush := func() {
		if len(part) > 0 {
			parts, part = append(parts, part), nil
		}
	}
	for len(changes) > 0 {
		n := 1
		for n < len(changes) && place(changes[n]) == place(changes[0]) {
			n++
		}
		if len(part)+n > maxParts {
			flush()
		}
		n = min(n, maxParts)
		part, changes = append(part, changes[:n]...), changes[n:]
	}
	flush()
	return parts
}

// ShowChanges shows the install plans that changes would lead to.
func ShowChanges(ctx context.Context, a *command.Env, c *client.Client, changes []model.PreviewChange) error {
	var wrong []error
	for _, part := range Parts(changes) {
		p, err := c.NewPreview(ctx, model.PreviewRequest{Changes: part}, model.ValidateDefault)
		if err != nil {
			return err
		}
		if err := showPreview(a, printer.Output{}, p); err != nil {
			return err
		}
		wrong = append(wrong, failuresError(p))
	}
	return errors.Join(wrong...)
}

// KeepNamespaces leaves to operator groups the labels and annotations of their namespaces where a document does not say
// them.
func KeepNamespaces(ctx context.Context, c *client.Client, changes []model.PreviewChange) error {
	for _, change := range changes {
		g := change.OperatorGroup
		if g == nil || g.Spec == nil || g.Spec.NamespaceLabels != nil { // it says both or none
			continue
		}
		have, err := c.OperatorGroup(ctx, client.Ref{Cluster: g.Cluster, Namespace: g.Namespace, Name: g.Name})
		if client.IsStatus(err, http.StatusNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		spec := olm.KeepNamespace(*g.Spec, have.Spec) // other clusters share it
		g.Spec = &spec
	}
	return nil
}

// failuresError is the error of a preview in which something does not come out.
func failuresError(p model.Preview) error {
	if p.Totals.Failures == 0 {
		return nil
	}
	return command.Refused(fmt.Errorf("%s: the change cannot be planned everywhere",
		printer.Plural(p.Totals.Failures, "failure")))
}

func applyPreview(ctx context.Context, a *command.Env, c *client.Client, id string) error {
	done, err := c.ApplyPreview(ctx, id)
	if err != nil {
		return err
	}
	for _, w := range done.Writes {
		kind, _, _ := strings.Cut(w.Stream, ":")
		if err := a.Say("%s/%s applied (%s)", kind, w.Subject, w.Position); err != nil {
			return err
		}
	}
	return nil
}

// previewRequest reads the changes from files and flags.
func previewRequest(a *command.Env, w previewOptions) (model.PreviewRequest, error) {
	var in model.PreviewRequest
	if err := w.check(); err != nil {
		return in, err
	}
	if len(w.Files) > 0 {
		documents, err := documents.Read(a, w.Options)
		if err != nil {
			return in, err
		}
		if in.Changes, err = preview.Changes(documents, w.Clusters); err != nil {
			return in, err
		}
	}
	if w.spec.Package != "" {
		if len(w.Clusters) == 0 || w.Namespace == "" || w.spec.Catalog == "" {
			return in, command.Usagef("--package needs --catalog, --cluster and --namespace")
		}
		for _, r := range w.subscriptions() {
			spec := w.spec
			in.Changes = append(in.Changes, model.PreviewChange{Subscription: &model.PreviewSubscription{
				Cluster: r.Cluster, Namespace: r.Namespace, Name: r.Name, Action: model.PreviewApply, Spec: &spec,
			}})
		}
	} else if w.spec.Catalog != "" {
		c, err := catalogChange(a, w)
		if err != nil {
			return in, err
		}
		in.Changes = append(in.Changes, c)
	}
	for _, name := range w.remove {
		list, err := removalChanges(a, w, name)
		if err != nil {
			return in, err
		}
		in.Changes = append(in.Changes, list...)
	}
	if len(in.Changes) == 0 {
		return in, command.Usagef(
			"no change is given: use -f, --package, --remove, or --catalog with --revision, --priority, --disable or " +
				"--enable")
	}
	return narrow(in, w)
}

// subscriptions are those that --package is about.
func (w previewOptions) subscriptions() []client.Ref {
	if w.spec.Package == "" {
		return nil
	}
	refs := make([]client.Ref, len(w.Clusters))
	for i, cluster := range w.Clusters {
		refs[i] = client.Ref{Cluster: cluster, Namespace: w.Namespace, Name: printer.Or(w.name, w.spec.Package)}
	}
	return refs
}

// keepUnchanged leaves to the subscriptions that flags change what no flag can say: labels, annotations, the
// configuration, and the namespace of a catalog that stays the same. A document of a file is the whole, and is sent as
// it is.
func keepUnchanged(ctx context.Context, c *client.Client, w previewOptions, changes []model.PreviewChange) error {
	for _, r := range w.subscriptions() {
		have, err := c.Subscription(ctx, r)
		if client.IsStatus(err, http.StatusNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		for _, p := range slices.Backward(changes) { // a file may name it, too; flags are read after it
			s := p.Subscription
			if s == nil || s.Spec == nil || r != (client.Ref{
				Cluster: s.Cluster, Namespace: s.Namespace,
				Name: s.Name,
			}) {
				continue
			}
			s.Metadata, s.Spec.Config = have.Metadata, have.Spec.Config
			if s.Spec.Catalog == have.Spec.Catalog {
				s.Spec.CatalogNamespace = have.Spec.CatalogNamespace
			}
			break
		}
	}
	return nil
}

// check refuses flags that nothing would come of.
func (w previewOptions) check() error {
	settings := w.catalog.Revision != "" || w.catalog.Priority != nil || w.disable || w.enable
	if settings && (w.spec.Package != "" || w.spec.Catalog == "") {
		return command.Usagef(
			"--revision, --priority, --disable and --enable change a --catalog: give one, and no --package")
	}
	if s := w.spec; s.Package == "" && w.name+s.Channel+s.StartingCSV+s.Approval != "" {
		return command.Usagef(
			"--name, --channel, --starting-csv and --approval belong to a subscription: give its --package")
	}
	return nil
}

// narrow looks at what --cluster and --namespace say where the change itself is about the whole fleet.
func narrow(in model.PreviewRequest, w previewOptions) (model.PreviewRequest, error) {
	if slices.ContainsFunc(in.Changes, func(c model.PreviewChange) bool {
		return c.Catalog == nil &&
			c.ApprovalPolicy == nil
	}) {
		return in, nil
	}
	if len(w.Clusters) > 1 {
		return in, command.Usagef(
			"a change of a catalog or a policy affects the whole fleet: --cluster narrows the preview to one " +
				"cluster, and several are given")
	}
	if len(w.Clusters) == 1 {
		in.Cluster = w.Clusters[0]
	}
	in.Namespace = w.Namespace
	return in, nil
}

func catalogChange(a *command.Env, w previewOptions) (model.PreviewChange, error) {
	if w.disable && w.enable {
		return model.PreviewChange{}, command.Usagef("either --disable or --enable, not both")
	}
	ref, err := kinds.Catalogs(a).Ref(command.Scope{}, w.spec.Catalog)
	if err != nil {
		return model.PreviewChange{}, err
	}
	c := w.catalog
	c.Name, c.Cluster, c.Namespace = ref.Name, ref.Cluster, ref.Namespace
	if w.disable || w.enable {
		c.Disabled = &w.disable
	}
	if c.Revision == "" && c.Disabled == nil && c.Priority == nil {
		return model.PreviewChange{}, command.Usagef("--catalog needs --revision, --priority, --disable or --enable")
	}
	return model.PreviewChange{Catalog: &c}, nil
}

// removalChanges reads kind/name, and kind/cluster/namespace/name.
func removalChanges(a *command.Env, w previewOptions, name string) ([]model.PreviewChange, error) {
	s := command.Scope{Namespace: w.Namespace}
	if len(w.Clusters) == 1 {
		s.Cluster = w.Clusters[0]
	}
	t, err := kinds.ParseTarget(a, s, []string{name})
	if err != nil {
		return nil, err
	}
	var out []model.PreviewChange
	for _, r := range t.Refs {
		c, err := preview.Removed(t.Kind.Names[0], r.Cluster, r.Namespace, r.Name)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, command.Usagef("%q is not kind/name", name)
	}
	return out, nil
}

// showPreview writes a preview: a line for each plan and what becomes of others, then the sentences.
func showPreview(a *command.Env, o printer.Output, p model.Preview) error {
	if o.Machine() {
		return o.Write(a.Out, nil, []printer.Item{{Name: "preview/" + p.ID, Value: p}}, true)
	}
	var rows [][]any
	lines := printer.Warnings(p.Warnings)
	for _, s := range p.Items {
		more, sentences := preview.Rows(s)
		rows, lines = append(rows, more...), append(lines, sentences...)
	}
	if err := o.Rows(a, preview.Columns, rows, lines); err != nil {
		return err
	}
	t := p.Totals
	if err := a.Say("%s, %d superseded, %s in %s; %d of them unchanged.", printer.Plural(t.Plans, "plan"), t.Superseded,
		printer.Plural(t.Failures, "failure"), printer.Plural(t.Scopes, "namespace"), t.Unchanged); err != nil {
		return err
	}
	if !p.Applicable {
		return a.Say("Preview %s cannot be applied: %s.", p.ID, p.NotApplicable)
	}
	kept := p.ExpiresAt.UTC().Format("15:04 UTC")
	if onlyFails(p) {
		return a.Say("Preview %s is kept until %s. Nothing but failures would come of it: mend them first.", p.ID, kept)
	}
	return a.Say("Preview %s is kept until %s. To apply it: chandler plan apply %s", p.ID, kept, p.ID)
}

// onlyFails says that the changes would lead to failures that there are not today, and to nothing else.
func onlyFails(p model.Preview) bool {
	fails := func(s model.PreviewScope) bool {
		return slices.ContainsFunc(s.Failures, func(f previewapi.PreviewFailure) bool { return f.News })
	}
	return p.Totals.Plans == 0 && p.Totals.Superseded == 0 && slices.ContainsFunc(p.Items, fails)
}
