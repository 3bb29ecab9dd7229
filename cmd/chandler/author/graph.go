package author

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/author/graph"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
)

func (t *tool) graphCommand() *cobra.Command {
	var channel, format string
	c := &cobra.Command{
		Use:   "graph REF PACKAGE",
		Short: "Draw the update graph of a package",
		Long: `Writes the update graph of a package as text that Mermaid or Graphviz draws: one box for each channel, heads on top,
replaces solid, skips dashed, skip ranges dotted, deprecated bundles gray, names without a bundle outlined.

` + references,
		Example: "  chandler catalog graph ./catalog tidegauge -o dot | dot -Tsvg > tidegauge.svg\n  chandler " +
			"catalog graph ./catalog tidegauge --channel steady",
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			draw := graph.Mermaid
			if format == "dot" {
				draw = graph.Dot
			}
			if err := oneOf("output", format, "mermaid", "dot"); err != nil {
				return err
			}
			return t.sources.with(c.Context(), args[0], func(r *tree) error {
				p, err := t.pkg(c, r, args[1])
				if err != nil {
					return err
				}
				g, err := graph.Of(p, channel)
				if err != nil {
					return err
				}
				return draw(t.Out, g)
			})
		},
	}
	c.Flags().StringVarP(&format, "output", "o", "mermaid", "mermaid or dot")
	c.Flags().StringVar(&channel, "channel", "", "draw this channel alone")
	t.sources.sourceFlags(c)
	return c
}

// pkg loads one package. Errors in other packages do not matter here.
func (t *tool) pkg(c *cobra.Command, r *tree, name string) (catalog.Package, error) {
	cat, err := t.sources.load(c.Context(), r, load.Options{Lenient: true})
	if err != nil {
		return catalog.Package{}, err
	}
	for _, p := range cat.Packages {
		if p.Name == name {
			return p, nil
		}
	}
	var own catalog.Findings
	for _, f := range cat.Findings {
		if f.Package == name {
			own = append(own, f)
		}
	}
	if err := t.reportFindings(own); err != nil {
		return catalog.Package{}, err
	}
	return catalog.Package{}, fmt.Errorf("%s has no package %q; chandler catalog list packages shows what there is",
		r.name, name)
}
