package plans

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/author"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/documents"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/preview"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

type shadowOptions struct {
	documents.Options
	printer.Output

	in   model.ShadowRequest
	all  bool
	fail bool
}

// ShadowCommand is chandler shadow.
func ShadowCommand(a *command.Env) *cobra.Command {
	var o shadowOptions
	c := &cobra.Command{
		Use:   "shadow [--catalog NAME --revision DIGEST | -f POLICY]",
		Short: "Recompute recorded decisions and list differences",
		Long: `Recomputes the last decision about each subscription from its recorded input: with the running version of Chandler,
or with another revision of a catalog, or with an approval policy from a file. Lists the differences and their
reasons. Nothing is changed. With --all every decision in the log is recomputed, with --from and --to those between
two positions.`,
		Example: `  chandler shadow --fail-on-difference
  chandler shadow --catalog fleet --revision sha256:3f0c…
  chandler shadow -f policy.yaml --cluster east-1`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return shadow(cmd.Context(), a, o) },
	}
	documents.Flags(c, &o.Options)
	c.Flags().Lookup("filename").Usage = "file with the approval policy, - for standard input"
	c.Flags().Lookup("cluster").Usage = "only decisions on this cluster"
	c.Flags().Lookup("namespace").Usage = "only decisions in namespaces of this name"
	o.Output.Flags(c)
	f := c.Flags()
	f.StringVar(&o.in.Catalog, "catalog", "", "catalog that serves another revision")
	f.StringVar(&o.in.Revision, "revision", "", "stored revision that the catalog serves instead")
	f.BoolVar(&o.all, "all", false, "every recorded decision, not only the last one of each subscription")
	f.StringVar(&o.in.From, "from", "", "recompute decisions after this position")
	f.StringVar(&o.in.To, "to", "", "recompute decisions up to this position")
	f.BoolVar(&o.fail, "fail-on-difference", false, "end with status 3 if there are differences")
	return c
}

// beginning is the position before the first event.
const beginning = "1-0"

func shadow(ctx context.Context, a *command.Env, o shadowOptions) error {
	if err := shadowInput(a, &o); err != nil {
		return err
	}
	c, err := a.Client()
	if err != nil {
		return err
	}
	if o.in.Cluster != "" { // without decisions nothing would differ
		if err := command.CheckCluster(ctx, c, o.in.Cluster); err != nil {
			return err
		}
	}
	total := model.Shadow{Differences: []previewapi.ShadowDifference{}}
	err = c.Shadow(ctx, o.in, func(p model.Shadow) error {
		total.Same, total.Missing, total.Differences = total.Same+p.Same, total.Missing+p.Missing,
			append(total.Differences, p.Differences...)
		return nil
	})
	if err != nil {
		return err
	}
	if err := showShadow(a, o.Output, total); err != nil {
		return err
	}
	if o.fail && len(total.Differences) > 0 {
		return &author.ExitError{Code: command.ExitDiffers}
	}
	return nil
}

// shadowInput completes what is asked.
func shadowInput(a *command.Env, o *shadowOptions) error {
	if len(o.Clusters) > 1 {
		return command.Usagef("--cluster takes one cluster, or leave it out for all")
	}
	if len(o.Clusters) == 1 {
		o.in.Cluster = o.Clusters[0]
	}
	o.in.Namespace = o.Namespace
	if o.all {
		o.in.From = printer.Or(o.in.From, beginning)
	}
	if len(o.Files) == 0 {
		return nil
	}
	documents, err := documents.Read(a, o.Options)
	if err != nil {
		return err
	}
	if len(documents) != 1 || documents[0].Policy == nil {
		return command.Usagef("-f takes exactly one ApprovalPolicy, and nothing else")
	}
	o.in.Policy = &model.PreviewPolicy{Name: documents[0].Name, Spec: documents[0].Policy}
	return nil
}

func showShadow(a *command.Env, o printer.Output, s model.Shadow) error {
	if o.Machine() {
		return o.Write(a.Out, nil, []printer.Item{{Name: "shadow", Value: s}}, true)
	}
	rows, lines := preview.Differences(s)
	return o.Rows(a, preview.DifferenceColumns, rows, lines)
}
