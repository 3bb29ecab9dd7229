package author

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/author/template"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/fbc"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
)

func (t *tool) templateCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "template", Short: "Expand the short form of a package into documents",
		Long: `Expands the short form in which an author keeps a package. Bundles are images, or directories that are
named from where the template lies, such as ./1.2.0. What comes out is valid, or nothing does.`,
	}
	c.AddCommand(
		t.expandCommand("basic", template.Basic, "Fill in bundles that are named by their image alone",
			"schema: olm.template.basic\n  entries:\n  - {schema: olm.package, name: tidegauge, defaultChannel: "+
				"steady}\n"+
				"  - {schema: olm.channel, package: tidegauge, name: steady, entries: [{name: tidegauge.v1.0.0}]}\n  "+
				"- {schema: olm.bundle, image: registry.test/ops/tidegauge-bundle:v1.0.0}"),
		t.expandCommand("semver", template.Semver,
			"Make channels of versions: <archetype>-v<X> and <archetype>-v<X>.<Y>",
			"schema: olm.semver\n  generateMajorChannels: true\n  generateMinorChannels: false\n  stable:\n    "+
				"bundles:\n    - image: registry.test/ops/tidegauge-bundle:v1.0.0"),
		t.expandCommand("substitutes", template.Substitutes, "Put images in place of other bundles",
			"schema: olm.template.substitutes\n  entries: []  # as of a basic template\n  substitutions:\n"+
				"  - name: registry.test/ops/tidegauge-bundle:v1.0.0-2\n    base: "+
				"registry.test/ops/tidegauge-bundle:v1.0.0"))
	return c
}

func (t *tool) expandCommand(name, schema, short, form string) *cobra.Command {
	var format string
	c := &cobra.Command{
		Use: name + " FILE", Short: short, Args: cobra.ExactArgs(1),
		Long:    short + ". FILE is - for standard input. Its form:\n\n  " + form,
		Example: "  chandler catalog template " + name + " tidegauge.yaml -o yaml > tidegauge/catalog.yaml",
		RunE: func(c *cobra.Command, args []string) error {
			f, err := fbc.ParseFormat(format)
			if err != nil {
				return err
			}
			text, base, err := t.sources.read(args[0])
			if err != nil {
				return err
			}
			blobs, err := template.Expand(c.Context(), schema, text, t.renderer(base))
			if err != nil {
				return err
			}
			return spooled(func(dir string) error {
				err := writeFile(filepath.Join(dir, "catalog"),
					func(w io.Writer) error { return fbc.Write(w, f, fbc.All(blobs)) })
				return errors.Join(err, t.check(c.Context(), dir))
			}, t.Out)
		},
	}
	formatFlag(c, &format, fbc.YAML)
	t.sources.sourceFlags(c)
	return c
}

// read reads a small file; base is the directory that it lies in.
func (t *sources) read(file string) (text []byte, base string, err error) {
	if file == stdin {
		text, err = io.ReadAll(io.LimitReader(t.In, catalog.MaxDocumentBytes+1))
		return text, ".", err
	}
	text, err = os.ReadFile(file)
	return text, filepath.Dir(file), err
}

// renderer reads bundles for templates. What is wrong with one that can be used is told.
func (t *tool) renderer(base string) template.Render {
	return func(ctx context.Context, ref string) (b template.Bundle, err error) {
		r, err := t.sources.openBundle(ctx, base, ref)
		if err != nil {
			return b, err
		}
		defer func() { err = errors.Join(err, r.close()) }()
		f, findings := load.ReadBundle(r.fs, r.labels, r.image)
		if err := t.reportFindings(findings); err != nil {
			return b, err
		}
		blob, err := fbc.FromBundle(f)
		return template.Bundle{Package: f.Package, Name: f.Bundle.Name, Version: f.Bundle.Version, Blob: blob}, err
	}
}
