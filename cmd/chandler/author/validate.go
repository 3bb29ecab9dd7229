package author

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/cmd/chandler/plain"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/lint"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/libs/rules"
)

// Formats of results that are no documents.
const (
	formatText = "text"
	formatJSON = "json"
	formatYAML = "yaml"
)

// verdict is the result for programs: passed and error as R-CAT-43 has them, and all that is known.
type verdict struct {
	Passed      bool              `json:"passed"`
	Error       *verdictError     `json:"error,omitempty"`
	Errors      int               `json:"errors"`
	Warnings    int               `json:"warnings"`
	Packages    int               `json:"packages"`
	Bundles     int               `json:"bundles"`
	Quarantined []load.Quarantine `json:"quarantined,omitempty"`
	Findings    catalog.Findings  `json:"findings"`
}

type verdictError struct {
	Message string `json:"message"`
}

func (t *tool) validateCommand() *cobra.Command {
	var format string
	var lenient, withLint bool
	c := &cobra.Command{
		Use:   "validate REF",
		Short: "Say all that is wrong with a catalog, where, and how to fix it",
		Long: `Says all that is wrong with a catalog, or with one bundle: the place, the rule, and how to fix it. Errors
keep a catalog from being served; warnings are served without the part that they name. What Chandler takes from
published catalogs because OLM takes it, such as a key that occurs twice, and what leaves a bundle out, is an error
here: --lenient makes it the warning that it is where users install.

The exit status is 0 where nothing forbids to serve the catalog, 1 where something does, and 2 where it
cannot be read at all.

` + references,
		Example: "  chandler catalog validate ./catalog\n  chandler catalog validate registry.test/ops/catalog:v1 -o " +
			"json",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := oneOf("output", format, formatText, formatJSON, formatYAML); err != nil {
				return err
			}
			return t.sources.with(c.Context(), args[0], func(r *tree) error {
				v, err := t.validate(c.Context(), r, lenient, withLint)
				if err != nil {
					return err
				}
				if err := v.write(t.Out, format); err != nil {
					return err
				}
				if !v.Passed {
					return &ExitError{Code: exitFindings}
				}
				return nil
			})
		},
	}
	c.Flags().StringVarP(&format, "output", "o", formatText, "text, json or yaml")
	c.Flags().BoolVar(&lenient, "lenient", false,
		"pass where every error belongs to packages that can be left out, and say which; read bundles as where users "+
			"install")
	c.Flags().BoolVar(&withLint, "lint", false, "look into bundle directories as well, as chandler catalog lint does")
	t.sources.sourceFlags(c)
	return c
}

func (t *tool) validate(ctx context.Context, r *tree, lenient, withLint bool) (verdict, error) {
	v := verdict{Findings: catalog.Findings{}}
	var err error
	if r.bundle() {
		err = v.readBundle(r, lenient)
	} else {
		c, lerr := t.sources.load(ctx, r, load.Options{Lenient: lenient})
		if lerr != nil {
			return v, lerr
		}
		err = v.readCatalog(c, lenient)
	}
	if withLint {
		more, lerr := lintAll(ctx, r, lint.Options{})
		if lerr != nil {
			return v, lerr
		}
		if v.Findings = append(v.Findings, more...); err == nil {
			err = more.Err()
		}
	}
	v.Passed = err == nil
	if err != nil {
		v.Error = &verdictError{err.Error()}
	}
	v.Errors = v.Findings.Errors()
	for _, f := range v.Findings {
		if f.Severity == catalog.SeverityWarning {
			v.Warnings++
		}
	}
	return v, nil
}

// readBundle takes what is found in one bundle. The error is the verdict on it.
func (v *verdict) readBundle(r *tree, lenient bool) error {
	b, findings := load.ReadBundle(r.fs, r.labels, r.image)
	if !lenient {
		findings = findings.Strict()
	}
	if v.Findings = append(v.Findings, findings...); b.Package != "" {
		v.Packages, v.Bundles = 1, 1
	}
	return v.Findings.Err()
}

// readCatalog takes what is found in a catalog. The error is the verdict on it.
func (v *verdict) readCatalog(c *load.Catalog, lenient bool) error {
	v.Findings, v.Quarantined = append(v.Findings, c.Findings...), c.Quarantined
	if !lenient {
		v.Findings = v.Findings.Strict()
	}
	v.Packages = len(c.Packages)
	for _, p := range c.Packages {
		v.Bundles += len(p.Bundles)
	}
	if err := c.Err(); err != nil || lenient {
		return err
	}
	return v.Findings.Err()
}

// lintAll lints every bundle directory of a tree. Bundles whose manifests stand inline have no files.
func lintAll(ctx context.Context, r *tree, o lint.Options) (catalog.Findings, error) {
	if r.bundle() {
		return lintOne(r.fs, ".", o)
	}
	var out catalog.Findings
	err := fs.WalkDir(r.fs, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil || !d.IsDir() || !isBundle(r.fs, name):
			return nil //nolint:nilerr // what cannot be read is told by the load
		}
		sub, err := fs.Sub(r.fs, name)
		if err != nil {
			return err
		}
		findings, err := lintOne(sub, name, o)
		out = append(out, findings...)
		return err
	})
	return out, err
}

// lintOne lints one bundle; places are below dir.
func lintOne(fsys fs.FS, dir string, o lint.Options) (catalog.Findings, error) {
	b, err := lint.Read(fsys)
	if err != nil {
		return nil, err
	}
	findings := lint.Check(b, o)
	for i := range findings {
		findings[i].File = path.Join(dir, findings[i].File)
	}
	return findings, nil
}

// ruleHint says how the rules are explained that findings name, "" where there are none.
func ruleHint(findings catalog.Findings) string {
	named := make([]string, len(findings))
	for i, f := range findings {
		named[i] = f.Rule
	}
	return rules.Hint(strings.Join(named, " "))
}

func (v *verdict) write(w io.Writer, format string) error {
	if format != formatText {
		return writeValue(w, format, v)
	}
	for _, f := range v.Findings {
		if _, err := fmt.Fprintln(w, plain.Text(f.String())); err != nil {
			return err
		}
	}
	for _, q := range v.Quarantined {
		if _, err := fmt.Fprintf(w, "package %s is left out: %s\n", plain.Text(q.Package),
			count(q.Findings, "error")); err != nil {
			return err
		}
	}
	word := "passed"
	if !v.Passed {
		word = "failed"
	}
	_, err := fmt.Fprintf(w, "%s: %s, %s, %s, %s\n", word, count(v.Packages, "package"), count(v.Bundles, "bundle"),
		count(v.Errors, "error"), count(v.Warnings, "warning"))
	if hint := ruleHint(v.Findings); err == nil && hint != "" {
		_, err = fmt.Fprintln(w, hint)
	}
	return err
}

// writeValue writes one value for programs.
func writeValue(w io.Writer, format string, v any) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	raw = append(raw, '\n')
	if format == formatYAML {
		if raw, err = yaml.JSONToYAML(raw); err != nil {
			return err
		}
	}
	_, err = w.Write(raw)
	return err
}

func (t *tool) lintCommand() *cobra.Command {
	var format string
	var groups []string
	c := &cobra.Command{
		Use:   "lint REF",
		Short: "Look for what is unwise in a bundle, or in all bundles of a directory",
		Long: `Looks into the manifests of a bundle (or of every bundle directory of a tree) for what a cluster, a user or
a later upgrade would stumble over. The groups structure, csv, crd and objects are looked at always; hub,
practice and other where they are asked for.

The exit status is 1 where there are errors.

` + references,
		Example: "  chandler catalog lint ./tidegauge/1.2.0 --group hub,practice",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := oneOf("output", format, formatText, formatJSON, formatYAML); err != nil {
				return err
			}
			o := lint.Options{Groups: lint.Default()}
			for _, name := range groups {
				g, err := lint.ParseGroup(name)
				if err != nil {
					return err
				}
				o.Groups = append(o.Groups, g)
			}
			return t.sources.with(c.Context(), args[0],
				func(r *tree) error { return t.lint(c.Context(), r, o, format) })
		},
	}
	c.Flags().StringVarP(&format, "output", "o", formatText, "text, json or yaml")
	c.Flags().StringSliceVar(&groups, "group", nil, "look at these groups as well: hub, practice, other")
	t.sources.sourceFlags(c)
	return c
}

func (t *tool) lint(ctx context.Context, r *tree, o lint.Options, format string) error {
	findings, err := lintAll(ctx, r, o)
	if err != nil {
		return err
	}
	v := verdict{
		Passed: findings.Err() == nil, Errors: findings.Errors(),
		Findings: append(catalog.Findings{}, findings...),
	}
	if !v.Passed {
		v.Error = &verdictError{findings.Err().Error()}
	}
	if format != formatText {
		if err := writeValue(t.Out, format, v); err != nil {
			return err
		}
	} else {
		for _, f := range findings {
			if _, err := fmt.Fprintln(t.Out, plain.Text(f.String())); err != nil {
				return err
			}
		}
		t.printNote("%s", count(len(findings), "finding"))
		if hint := ruleHint(findings); hint != "" {
			t.printNote("%s", hint)
		}
	}
	if !v.Passed {
		return &ExitError{Code: exitFindings}
	}
	return nil
}
