package author

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/fbc"
)

// The levels of --migrate and --level: what is brought up to date on the way (R-CAT-18, R-CAT-62).
const (
	levelNone     = "none"
	levelMetadata = "bundle-object-to-csv-metadata"
)

func levelFlag(c *cobra.Command, name string, into *string) {
	c.Flags().StringVar(into, name, levelNone, levelNone+", or "+levelMetadata+
		": display metadata in place of manifests, for bundles that have an image")
}

// change is what a level does to each document.
type change func(fbc.Blob) (fbc.Blob, error)

func asIs(b fbc.Blob) (fbc.Blob, error) { return b, nil }

// level finds a level by its name; flag is where the name stood.
func level(flag, name string) (change, error) {
	if name == levelMetadata {
		return fbc.MigrateObjects, nil
	}
	return asIs, oneOf(flag, name, levelNone, levelMetadata)
}

func (t *tool) renderCommand() *cobra.Command {
	var format, migrate string
	c := &cobra.Command{
		Use:   "render REF...",
		Short: "Write catalogs and bundles as file-based documents",
		Long: `Writes what the references hold as file-based documents, one stream for all of them: catalogs as they are,
bundles as olm.bundle, databases and running catalogs as what they mean. What is rendered and rendered
again is the same, byte by byte.

Bundles are rendered without channel entries: add-channel-entry and promote write those.

` + references,
		Example: "  chandler catalog render registry.test/ops/tidegauge-bundle:v1.2.0 -o yaml >> " +
			"tidegauge/catalog.yaml\n" +
			"  chandler catalog render index.db -o yaml > catalog/index.yaml",
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			f, err := fbc.ParseFormat(format)
			if err != nil {
				return err
			}
			do, err := level("migrate", migrate)
			if err != nil {
				return err
			}
			return t.render(c.Context(), t.Out, f, do, args)
		},
	}
	formatFlag(c, &format, fbc.JSON)
	levelFlag(c, "migrate", &migrate)
	t.sources.sourceFlags(c)
	return c
}

// render writes the documents of all references. What is wrong with some of them is told; the others are
// written all the same, and the status says that some are missing.
func (t *tool) render(ctx context.Context, w io.Writer, f fbc.Format, do change, refs []string) error {
	out := fbc.NewWriter(w, f)
	var all catalog.Findings
	for _, ref := range refs {
		err := t.sources.with(ctx, ref, func(r *tree) error {
			findings, err := t.sources.documents(ctx, r, func(b fbc.Blob) error {
				b, err := do(b)
				if err != nil {
					return err
				}
				return out.Write(b)
			})
			all = append(all, findings...)
			return err
		})
		if err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return t.reportFindings(all)
}
