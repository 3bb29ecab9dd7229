package catalogs

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func catalogPackagesCommand(a *command.Env) *cobra.Command {
	var o printer.Output
	c := onCatalog(a, cobra.Command{
		Use: "packages", Short: "List the packages of a catalog",
		Long: "Lists the packages of the revision that a catalog serves. chandler describe package shows one in " +
			"full.",
		Example: "  chandler catalog packages fleet -o wide",
	}, func(ctx context.Context, c *client.Client, r client.Ref) error {
		list, err := c.Packages(ctx, r)
		columns := []printer.Column{
			{Name: "Name"},
			{Name: "Default Channel"},
			{Name: "Channels"},
			{Name: "Bundles"},
			{Name: "Deprecated", Wide: true},
			{Name: "Digest", Wide: true},
		}
		return printer.List(a, &o, printer.Table{Plural: "packages", Columns: columns}, list, err,
			func(p model.PackageSummary) printer.Item {
				return printer.Item{
					Name: "package/" + p.Name, Value: p,
					Cells: []any{
						p.Name, p.DefaultChannel, p.Channels, p.Bundles, printer.Or(p.Deprecated, printer.None),
						printer.Short(p.Digest),
					},
				}
			})
	})
	o.Flags(c)
	return c
}

func findingsCommand(a *command.Env) *cobra.Command {
	var o printer.Output
	var variant, severity, pkg string
	c := onCatalog(a, cobra.Command{
		Use: "findings", Short: "List the findings of the last poll of a catalog",
		Long: `Lists what was wrong when the indexer last read the catalog: rule, package, place and how to fix it. An error keeps
the package from being served, a warning does not. chandler rules explains a rule.`,
		Example: "  chandler catalog findings fleet --severity error --package tidegauge",
	}, func(ctx context.Context, c *client.Client, r client.Ref) error {
		list, err := c.Findings(ctx, r, variant, severity, pkg)
		items, err := printer.Items(list, err, func(f model.Finding) printer.Item {
			return printer.Item{
				Name: "finding/" + f.Rule, Value: f,
				Cells: []any{
					f.Severity, f.Rule, printer.Or(f.Package, printer.None),
					printer.Or(findingPlace(f), printer.None), f.Message,
				},
			}
		})
		if err != nil {
			return err
		}
		columns := printer.Columns("Severity", "Rule", "Package", "Place", "Message")
		if err := o.Show(a, printer.Table{Plural: "findings", Columns: columns}, items, false); err != nil ||
			o.Machine() {
			return err
		}
		named := make([]string, len(list))
		for i, f := range list {
			named[i] = f.Rule
		}
		return a.Hint(named)
	})
	o.Flags(c)
	c.Flags().StringVar(&variant, "variant", "", "Kubernetes minor version of a templated catalog")
	c.Flags().StringVar(&severity, "severity", "", "error, warning or info")
	c.Flags().StringVar(&pkg, "package", "", "only of this package")
	return c
}

func findingPlace(f model.Finding) string {
	switch {
	case f.Line == 0:
		return f.File
	case f.Column == 0:
		return fmt.Sprintf("%s:%d", f.File, f.Line)
	default:
		return fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
	}
}

// revisionsCommand shows what a catalog has served and what changed each time.
func revisionsCommand(a *command.Env) *cobra.Command {
	var o printer.Output
	c := onCatalog(a, cobra.Command{
		Use: "revisions", Short: "List the revisions of a catalog, newest first, and what changed each time",
		Long: `Lists the stored revisions of a catalog. chandler plan and chandler shadow take their digests with --revision.
Mutated bundles have changed content under the same name: where they are installed, they stay as they are.`,
		Example: "  chandler catalog revisions fleet",
	}, func(ctx context.Context, c *client.Client, r client.Ref) error {
		list, err := c.Revisions(ctx, r)
		columns := printer.Columns("Revision", "Kubernetes", "Age", "Packages", "Bundles", "Changes", "Mutated")
		return printer.List(a, &o, printer.Table{Plural: "revisions", Columns: columns}, list, err,
			func(v model.Revision) printer.Item {
				return printer.Item{Name: "revision/" + printer.Short(v.Revision), Value: v, Cells: []any{
					printer.Short(v.Revision), printer.Or(v.Variant, printer.None), printer.Age(a.Now(), v.Created),
					v.Packages, v.Bundles, printer.Or(kinds.ChangesText(v.Changes), printer.None),
					printer.Or(strings.Join(kinds.Mutated(v.Changes), ", "), printer.None),
				}}
			})
	})
	o.Flags(c)
	return c
}

// blobsCommand shows documents that Chandler has no meaning for (R-CAT-8); with --raw it writes their bytes.
func blobsCommand(a *command.Env) *cobra.Command {
	var o printer.Output
	var schema, pkg, name string
	var raw bool
	c := onCatalog(a, cobra.Command{
		Use: "blobs", Short: "List the documents of a catalog whose schemas Chandler does not know",
		Long: `Lists the documents of a catalog that Chandler stores but does not interpret, such as those of other tools. With
--raw they are written as they are.`,
		Example: "  chandler catalog blobs fleet --schema example.test/notes --raw",
	}, func(ctx context.Context, c *client.Client, r client.Ref) error {
		list, err := c.Blobs(ctx, r, schema, pkg, name)
		if err == nil && raw {
			return rawBlobs(a, list)
		}
		columns := printer.Columns("Schema", "Package", "Name", "Bytes", "Digest")
		return printer.List(a, &o, printer.Table{Plural: "blobs", Columns: columns}, list, err,
			func(b model.Blob) printer.Item {
				return printer.Item{
					Name: "blob/" + printer.Short(b.Digest), Value: b,
					Cells: []any{
						b.Schema, printer.Or(b.Package, printer.None), printer.Or(b.Name, printer.None),
						len(b.Body), printer.Short(b.Digest),
					},
				}
			})
	})
	o.Flags(c)
	c.Flags().StringVar(&schema, "schema", "", "only of this schema")
	c.Flags().StringVar(&pkg, "package", "", "only of this package")
	c.Flags().StringVar(&name, "name", "", "only of this name")
	c.Flags().BoolVar(&raw, "raw", false, "write the documents byte for byte, each on lines of its own")
	return c
}

func rawBlobs(a *command.Env, list []model.Blob) error {
	for _, b := range list {
		if _, err := fmt.Fprintf(a.Out, "%s\n", b.Body); err != nil {
			return fmt.Errorf("write a blob of schema %s: %w", b.Schema, err)
		}
	}
	return nil
}
