package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// WhyCommand is chandler why.
func WhyCommand(a *command.Env) *cobra.Command {
	var s command.Scope
	var o printer.Output
	c := &cobra.Command{
		Use:   "why OPERATOR",
		Short: "Explain why an operator is installed, and why newer versions are not",
		Long: `Explains why an operator is installed in a namespace, and for every newer version that a catalog offers why it is
not installed. OPERATOR is a ClusterServiceVersion, a subscription or a package of the namespace.`,
		Example: `  chandler why tidegauge --cluster east-1 -n ports
  chandler why east-1/ports/tidegauge.v1.2.0 -o yaml`,
		Args: command.RequireArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return why(cmd.Context(), a, s, o, args[0]) },
	}
	s.Flags(c)
	printer.DocumentFlag(c, &o)
	return c
}

func why(ctx context.Context, a *command.Env, s command.Scope, o printer.Output, name string) error {
	if err := printer.CheckDocument(o); err != nil {
		return err
	}
	ref, err := kinds.Operators(a).InContext(a, s, name)
	if err != nil {
		return err
	}
	c, err := a.Client()
	if err != nil {
		return err
	}
	w, err := c.WhyOperator(ctx, ref)
	if err != nil {
		return command.OrNoCluster(ctx, c, ref.Cluster, err)
	}
	if o.Format != printer.FormatTable {
		return o.Write(a.Out, nil, []printer.Item{{Value: w}}, true)
	}
	var t printer.Text
	writeWhy(&t, w, fmt.Sprintf("in %s on %s", ref.Namespace, ref.Cluster))
	return a.Say("%s", t.String())
}

func writeWhy(t *printer.Text, w model.OperatorReasoning, where string) {
	t.Put("", subjectOf(w)+" "+where+followed(w)+".")
	if len(w.Because) > 0 {
		t.Heading("Why it is there:")
	}
	for _, b := range w.Because {
		t.Put("  - ", b.Text)
	}
	if len(w.NotTaken) == 0 {
		t.Heading("No visible catalog has a newer version.")
		return
	}
	t.Heading("Newer versions, and why they are not installed:")
	for list := w.NotTaken; len(list) > 0; {
		alike := 1
		for alike < len(list) && sameReasons(list[0], list[alike]) {
			alike++
		}
		n := list[0]
		t.Put("  ", fmt.Sprintf("%s in catalog %s, channel %s", names(list[:alike]), n.Catalog,
			strings.Join(n.Channels, ", ")))
		for _, r := range n.Reasons {
			t.Put("    - ", r.Text)
		}
		list = list[alike:]
	}
	if w.More > 0 {
		t.Put("  ", fmt.Sprintf("and %d older ones of these", w.More))
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
	return fmt.Sprintf(", subscription %s, channel %s of catalog %s", w.Subscription, printer.Or(w.Channel, "(any)"),
		printer.Or(w.Catalog, "(any)"))
}
