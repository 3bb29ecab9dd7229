package cli

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/author"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/preview"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// whatIf is what chandler plan is to suppose.
type whatIf struct {
	applyOptions
	output

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

func (a *app) planCommand() *cobra.Command {
	var w whatIf
	c := &cobra.Command{
		Use:   "plan --what-if (-f FILE | --package NAME | --catalog NAME --revision DIGEST | --remove KIND/NAME)",
		Short: "Show the install plans that a change would lead to, and change nothing",
		Long: `Asks what would be decided if something were changed: a subscription, an operator group or an approval policy from
a file or from flags, a catalog's revision, priority or absence, or the removal of one of these or of an operator.
The answer is made of the very plans that would be proposed, with their digests, on every namespace that the change
touches, of what would be superseded, and of what could not be planned and why.

--cluster and --namespace say where subscriptions and operator groups are. Where only catalogs and policies change, they
narrow the answer to one cluster and namespace; a narrowed preview of such a change cannot be applied.

Of a subscription that is there, what flags cannot say stays as it is: labels, annotations and the configuration. A file
is the whole of what it says.

Nothing is changed without --apply. A preview is kept for an hour; until then chandler plan apply carries it out,
as long as nothing that it rests on has changed.`,
		Example: `  chandler plan --what-if -f subscription.yaml --cluster east-1
  chandler plan --what-if --package tidegauge --channel steady --catalog fleet --cluster east-1 -n ports
  chandler plan --what-if --catalog fleet --revision sha256:3f0c…
  chandler plan --what-if --remove approvalpolicy/careful
  chandler plan apply 0b0e2f5c-…`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("priority") {
				w.catalog.Priority = &w.priority
			}
			return a.planWhatIf(cmd.Context(), w)
		},
	}
	fileFlags(c, &w.files, &w.clusters, &w.namespace)
	c.Flags().Lookup("cluster").Usage = "cluster that the change is for, several with commas; of a catalog's or policy's change, the one to look at"
	c.Flags().Lookup("namespace").Usage = "namespace of what names none; of a catalog's or policy's change, the one to look at"
	w.output.flags(c)
	f := c.Flags()
	f.Bool("what-if", true, "say what would be done, which is all that is done without --apply")
	f.StringVar(&w.name, "name", "", "name of the subscription (that of the package without it)")
	f.StringVar(&w.spec.Package, "package", "", "package to subscribe to")
	f.StringVar(&w.spec.Channel, "channel", "", "channel of the package")
	f.StringVar(&w.spec.Catalog, "catalog", "", "catalog of the package, or the catalog that is changed")
	f.StringVar(&w.spec.StartingCSV, "starting-csv", "", "first version")
	f.StringVar(&w.spec.Approval, "approval", "", "Automatic or Manual")
	f.StringVar(&w.catalog.Revision, "revision", "", "stored revision that the catalog is to serve")
	f.BoolVar(&w.disable, "disable", false, "the catalog is not offered any more")
	f.BoolVar(&w.enable, "enable", false, "the catalog is offered again")
	f.Int32Var(&w.priority, "priority", 0, "priority of the catalog")
	f.StringSliceVar(&w.remove, "remove", nil, "kind/name that is gone: of subscription, operatorgroup, catalog, approvalpolicy, operator")
	f.StringVar(&w.validate, "validate", "", "strict or lenient about package and channel")
	f.BoolVar(&w.apply, "apply", false, "carry it out at once")
	c.AddCommand(a.planApplyCommand(), a.planShowCommand(), a.planCheckCommand())
	return c
}

func (a *app) planApplyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "apply ID", Short: "Carry out a preview while it holds", Args: needs(1),
		Long: `Carries out what was previewed, all of it or nothing, as long as nothing that the preview rests on has changed: what
did is named. Applying again says the same again.`,
		Example: "  chandler plan apply 0b0e2f5c-…",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			return a.applyPreview(cmd.Context(), c, args[0])
		},
	}
}

func (a *app) planShowCommand() *cobra.Command {
	var o output
	c := &cobra.Command{
		Use: "show ID", Short: "Show a preview again", Args: needs(1),
		Long: `Shows a preview that chandler plan --what-if has made, as long as it is kept. It ends with an error where something of
it does not come out.`,
		Example: "  chandler plan show 0b0e2f5c-… -o yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			p, err := c.Preview(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := a.showPreview(o, p); err != nil {
				return err
			}
			return notForeseen(p)
		},
	}
	o.flags(c)
	return c
}

func (a *app) planWhatIf(ctx context.Context, w whatIf) error {
	if err := w.output.check(); err != nil {
		return err
	}
	in, err := a.suppose(w)
	if err != nil {
		return err
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	if err := keepUnsaid(ctx, c, w, in.Changes); err != nil {
		return err
	}
	p, err := c.AskPreview(ctx, in, model.Validate(w.validate))
	if err != nil {
		return err
	}
	if err := a.showPreview(w.output, p); err != nil {
		return err
	}
	if w.apply {
		if err := a.applyPreview(ctx, c, p.ID); err != nil {
			return err
		}
	}
	return notForeseen(p)
}

// notForeseen is the error of a preview in which something does not come out.
func notForeseen(p model.Preview) error {
	if p.Totals.Failures == 0 {
		return nil
	}
	return refused(fmt.Errorf("%s: what was asked does not come out everywhere", plural(p.Totals.Failures, "failure")))
}

func (a *app) applyPreview(ctx context.Context, c *client.Client, id string) error {
	done, err := c.ApplyPreview(ctx, id)
	if err != nil {
		return err
	}
	for _, w := range done.Writes {
		kind, _, _ := strings.Cut(w.Stream, ":")
		if err := a.say("%s/%s applied (%s)", kind, w.Subject, w.Position); err != nil {
			return err
		}
	}
	return nil
}

// suppose reads the changes from files and flags.
func (a *app) suppose(w whatIf) (model.AskPreview, error) {
	var in model.AskPreview
	if err := w.check(); err != nil {
		return in, err
	}
	if len(w.files) > 0 {
		documents, err := a.documents(w.applyOptions)
		if err != nil {
			return in, err
		}
		if in.Changes, err = preview.Changes(documents, w.clusters); err != nil {
			return in, err
		}
	}
	if w.spec.Package != "" {
		if len(w.clusters) == 0 || w.namespace == "" || w.spec.Catalog == "" {
			return in, usagef("say with --catalog, --cluster and --namespace where --package comes from and where it goes")
		}
		for _, r := range w.subscriptions() {
			spec := w.spec
			in.Changes = append(in.Changes, model.PreviewChange{Subscription: &model.PreviewSubscription{
				Cluster: r.Cluster, Namespace: r.Namespace, Name: r.Name, Action: model.PreviewApply, Spec: &spec,
			}})
		}
	} else if w.spec.Catalog != "" {
		c, err := a.supposeCatalog(w)
		if err != nil {
			return in, err
		}
		in.Changes = append(in.Changes, c)
	}
	for _, name := range w.remove {
		list, err := a.supposeRemoved(w, name)
		if err != nil {
			return in, err
		}
		in.Changes = append(in.Changes, list...)
	}
	if len(in.Changes) == 0 {
		return in, usagef("say what to suppose: -f, --package, --catalog with what becomes of it, or --remove")
	}
	return narrow(in, w)
}

// subscriptions are those that --package is about.
func (w whatIf) subscriptions() []client.Ref {
	if w.spec.Package == "" {
		return nil
	}
	refs := make([]client.Ref, len(w.clusters))
	for i, cluster := range w.clusters {
		refs[i] = client.Ref{Cluster: cluster, Namespace: w.namespace, Name: or(w.name, w.spec.Package)}
	}
	return refs
}

// keepUnsaid leaves to the subscriptions that flags change what no flag can say: labels, annotations, the configuration,
// and the namespace of a catalog that stays the same. A document of a file is the whole, and is sent as it is.
func keepUnsaid(ctx context.Context, c *client.Client, w whatIf, changes []model.PreviewChange) error {
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
			if s == nil || s.Spec == nil || r != (client.Ref{Cluster: s.Cluster, Namespace: s.Namespace, Name: s.Name}) {
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
func (w whatIf) check() error {
	settings := w.catalog.Revision != "" || w.catalog.Priority != nil || w.disable || w.enable
	if settings && (w.spec.Package != "" || w.spec.Catalog == "") {
		return usagef("--revision, --priority, --disable and --enable say what becomes of a --catalog: give one, and no --package")
	}
	if s := w.spec; s.Package == "" && w.name+s.Channel+s.StartingCSV+s.Approval != "" {
		return usagef("--name, --channel, --starting-csv and --approval are about a subscription: give its --package")
	}
	return nil
}

// narrow looks at what --cluster and --namespace say where the change itself is about the whole fleet.
func narrow(in model.AskPreview, w whatIf) (model.AskPreview, error) {
	if slices.ContainsFunc(in.Changes, func(c model.PreviewChange) bool { return c.Catalog == nil && c.ApprovalPolicy == nil }) {
		return in, nil
	}
	if len(w.clusters) > 1 {
		return in, usagef("the change of a catalog or a policy is about the whole fleet: --cluster narrows the answer to one cluster, and several are given")
	}
	if len(w.clusters) == 1 {
		in.Cluster = w.clusters[0]
	}
	in.Namespace = w.namespace
	return in, nil
}

func (a *app) supposeCatalog(w whatIf) (model.PreviewChange, error) {
	if w.disable && w.enable {
		return model.PreviewChange{}, usagef("either --disable or --enable, not both")
	}
	ref, err := a.catalogs().ref(scope{}, w.spec.Catalog)
	if err != nil {
		return model.PreviewChange{}, err
	}
	c := w.catalog
	c.Name, c.Cluster, c.Namespace = ref.Name, ref.Cluster, ref.Namespace
	if w.disable || w.enable {
		c.Disabled = &w.disable
	}
	if c.Revision == "" && c.Disabled == nil && c.Priority == nil {
		return model.PreviewChange{}, usagef("say what becomes of the catalog: --revision, --priority, --disable or --enable")
	}
	return model.PreviewChange{Catalog: &c}, nil
}

// supposeRemoved reads kind/name, and kind/cluster/namespace/name.
func (a *app) supposeRemoved(w whatIf, name string) ([]model.PreviewChange, error) {
	s := scope{namespace: w.namespace}
	if len(w.clusters) == 1 {
		s.cluster = w.clusters[0]
	}
	t, err := a.target(s, []string{name})
	if err != nil {
		return nil, err
	}
	var out []model.PreviewChange
	for _, r := range t.refs {
		c, err := preview.Removed(t.resource.names[0], r.Cluster, r.Namespace, r.Name)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, usagef("%q is not kind/name", name)
	}
	return out, nil
}

// showPreview writes a preview: a line for each plan and what becomes of others, then the sentences.
func (a *app) showPreview(o output, p model.Preview) error {
	if o.machine() {
		return o.write(a.Out, nil, []item{{name: "preview/" + p.ID, value: p}}, true)
	}
	var rows [][]any
	lines := warnings(p.Warnings)
	for _, s := range p.Items {
		more, sentences := preview.Rows(s)
		rows, lines = append(rows, more...), append(lines, sentences...)
	}
	if err := a.table(o, preview.Columns, rows, lines); err != nil {
		return err
	}
	t := p.Totals
	if err := a.say("%s, %d superseded, %s in %s; %d of them unchanged.", plural(t.Plans, "plan"), t.Superseded, plural(t.Failures, "failure"), plural(t.Scopes, "namespace"), t.Unchanged); err != nil {
		return err
	}
	if !p.Applicable {
		return a.say("Preview %s cannot be applied: %s.", p.ID, p.NotApplicable)
	}
	return a.say("Preview %s, until %s: chandler plan apply %s", p.ID, p.ExpiresAt.UTC().Format("15:04 UTC"), p.ID)
}

type shadowOptions struct {
	applyOptions
	output

	in   model.AskShadow
	all  bool
	fail bool
}

func (a *app) shadowCommand() *cobra.Command {
	var o shadowOptions
	c := &cobra.Command{
		Use:   "shadow [--catalog NAME --revision DIGEST | -f POLICY]",
		Short: "Make recorded decisions again and list what comes out differently",
		Long: `Makes the last decision about each subscription again, from what was recorded of it: by the version of Chandler
that runs, or beside another revision of a catalog, or an approval policy from a file. Lists what would come out
differently and why. Nothing is changed. With --all, every decision in the log is made again, or with --from and
--to those between two positions.`,
		Example: `  chandler shadow --fail-on-difference
  chandler shadow --catalog fleet --revision sha256:3f0c…
  chandler shadow -f policy.yaml --cluster east-1`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.shadow(cmd.Context(), o) },
	}
	fileFlags(c, &o.files, &o.clusters, &o.namespace)
	c.Flags().Lookup("filename").Usage = "file with the approval policy, - for standard input"
	c.Flags().Lookup("cluster").Usage = "only decisions on this cluster"
	c.Flags().Lookup("namespace").Usage = "only decisions in namespaces of this name"
	o.output.flags(c)
	f := c.Flags()
	f.StringVar(&o.in.Catalog, "catalog", "", "catalog that is to serve another revision")
	f.StringVar(&o.in.Revision, "revision", "", "stored revision that the catalog is to serve")
	f.BoolVar(&o.all, "all", false, "every recorded decision, not the last one of each subscription")
	f.StringVar(&o.in.From, "from", "", "position behind which decisions are made again")
	f.StringVar(&o.in.To, "to", "", "position up to which decisions are made again")
	f.BoolVar(&o.fail, "fail-on-difference", false, "end with status 1 where anything comes out differently")
	return c
}

// beginning is the position before the first event.
const beginning = "1-0"

func (a *app) shadow(ctx context.Context, o shadowOptions) error {
	if err := a.shadowInput(&o); err != nil {
		return err
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	total := model.Shadow{Differences: []previewapi.ShadowDifference{}}
	err = c.Shadow(ctx, o.in, func(p model.Shadow) error {
		total.Same, total.Missing, total.Differences = total.Same+p.Same, total.Missing+p.Missing, append(total.Differences, p.Differences...)
		return nil
	})
	if err != nil {
		return err
	}
	if err := a.showShadow(o.output, total); err != nil {
		return err
	}
	if o.fail && len(total.Differences) > 0 {
		return &author.ExitError{Code: exitFailed}
	}
	return nil
}

// shadowInput completes what is asked.
func (a *app) shadowInput(o *shadowOptions) error {
	if err := o.output.check(); err != nil {
		return err
	}
	if len(o.clusters) > 1 {
		return usagef("decisions are made again on one cluster or on all")
	}
	if len(o.clusters) == 1 {
		o.in.Cluster = o.clusters[0]
	}
	o.in.Namespace = o.namespace
	if o.all {
		o.in.From = or(o.in.From, beginning)
	}
	if len(o.files) == 0 {
		return nil
	}
	documents, err := a.documents(o.applyOptions)
	if err != nil {
		return err
	}
	if len(documents) != 1 || documents[0].Policy == nil {
		return usagef("decisions are made again beside one ApprovalPolicy: the files hold something else")
	}
	o.in.Policy = &model.PreviewPolicy{Name: documents[0].Name, Spec: documents[0].Policy}
	return nil
}

func (a *app) showShadow(o output, s model.Shadow) error {
	if o.machine() {
		return o.write(a.Out, nil, []item{{name: "shadow", value: s}}, true)
	}
	rows, lines := preview.Differences(s)
	return a.table(o, preview.DifferenceColumns, rows, lines)
}
