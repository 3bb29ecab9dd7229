package author

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/libs/catalog/fbc"
)

func (t *tool) migrateCommand() *cobra.Command {
	var format, name string
	var replace bool
	c := &cobra.Command{
		Use:   "migrate REF DIR",
		Short: "Turn any catalog into a directory of documents, one file for each package",
		Long: `Writes a catalog of any form, an old database or the package-manifest layout too, as a directory of
file-based documents: a directory for each package, and in it one file. With --level, what is old-fashioned
inside the documents is brought up to date as well.

Where the source cannot be read whole, nothing is written. Old forms allow what documents do not, such as a
channel with two heads: then the result is written, what must be fixed is told, and the status is 1.

` + references,
		Example: "  chandler catalog migrate index.db ./catalog --level " + levelMetadata,
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			f, err := fbc.ParseFormat(format)
			if err != nil {
				return err
			}
			do, err := level("level", name)
			if err != nil {
				return err
			}
			return t.sources.with(c.Context(), args[0], func(r *tree) error {
				return t.migrate(c.Context(), r, args[1], replace, f, do)
			})
		},
	}
	formatFlag(c, &format, fbc.YAML)
	levelFlag(c, "level", &name)
	c.Flags().BoolVar(&replace, "replace", false, "put the result in place of a directory that is there")
	t.sources.sourceFlags(c)
	return c
}

// migrate writes a catalog anew. Its faults do not keep it from being written: the source has them, too.
func (t *tool) migrate(ctx context.Context, r *tree, to string, replace bool, f fbc.Format, do change) error {
	var faults error
	err := writeDir(to, replace, func(dir string) error {
		if err := t.fill(ctx, r, dir, f, do); err != nil {
			return err
		}
		found, err := errorsIn(ctx, dir)
		if err != nil {
			return err
		}
		faults = t.reportFindings(found)
		return nil
	})
	if err != nil {
		return err
	}
	if faults != nil {
		return &ExitError{exitFindings, fmt.Errorf("%s is written, and has to be fixed: %w", to, faults)}
	}
	t.printNote("%s is written; chandler catalog dockerfile %s makes the recipe of its image", to, to)
	return nil
}

// composition is what a maintainer keeps of a catalog that others write (R-CAT-67).
type composition struct {
	Name       string `json:"name"`
	Repo       string `json:"repo"`
	Tag        string `json:"tag"`
	References []struct {
		Name  string `json:"name"`
		Image string `json:"image"`
	} `json:"references"`
}

func (t *tool) composeCommand() *cobra.Command {
	var base, to string
	var replace bool
	c := &cobra.Command{
		Use:   "compose CONFIG",
		Short: "Put a catalog together from the catalogs of several authors",
		Long: `Renders every reference of a configuration into a directory of its own, <name>/<reference>/index.yaml,
looks whether all of them together are a valid catalog, and writes the recipe of its image,
<name>.Dockerfile. The configuration is

  name: harbour            # the directory
  repo: registry.test/ops/harbour-catalog
  tag: v1
  references:
  - name: tidegauge
    image: registry.test/tidegauge/catalog:v1   # or any other reference

` + references,
		Example: "  chandler catalog compose harbour.yaml --replace",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			text, dir, err := t.sources.read(args[0])
			if err != nil {
				return err
			}
			config, err := parseComposition(text)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			if to == "" {
				to = dir
			}
			return t.compose(c.Context(), config, filepath.Join(to, config.Name), base, replace)
		},
	}
	binaryFlag(c, &base)
	c.Flags().StringVar(&to, "to", "", "where the directory is made (default: beside the configuration)")
	c.Flags().BoolVar(&replace, "replace", false,
		"put the result in place of a directory that is there, and keep its recipe")
	t.sources.sourceFlags(c)
	return c
}

func parseComposition(text []byte) (composition, error) {
	var c composition
	if err := yaml.UnmarshalStrict(text, &c); err != nil {
		return c, fmt.Errorf("the configuration does not have the right form: %s",
			strings.TrimPrefix(err.Error(), "error unmarshaling JSON: while decoding JSON: "))
	}
	plain := func(s string) bool { return filepath.IsLocal(s) && filepath.Base(s) == s && s[0] != '.' }
	switch {
	case !plain(c.Name):
		return c, fmt.Errorf("name %q must be the name of a directory", c.Name)
	case len(c.References) == 0:
		return c, errors.New("the configuration has no references")
	}
	seen := map[string]bool{}
	for i, r := range c.References {
		switch {
		case !plain(r.Name):
			return c, fmt.Errorf("the name %q of reference %d must be the name of a directory", r.Name, i+1)
		case r.Image == "":
			return c, fmt.Errorf("reference %s has no image", r.Name)
		case seen[r.Name]:
			return c, fmt.Errorf("reference %s stands there twice", r.Name)
		}
		seen[r.Name] = true
	}
	return c, nil
}

func (t *tool) compose(ctx context.Context, config composition, dir, base string, replace bool) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	b := t.sources.bar("rendering references", int64(len(config.References)), false)
	defer b.end()
	err = writeDir(abs, replace, func(tmp string) error {
		for _, r := range config.References {
			below := filepath.Join(tmp, r.Name)
			if err := os.Mkdir(below, 0o755); err != nil {
				return err
			}
			f, err := os.Create(filepath.Join(below, "index.yaml"))
			if err != nil {
				return err
			}
			err = t.render(ctx, f, fbc.YAML, asIs, []string{r.Image})
			if err = errors.Join(err, f.Close()); err != nil {
				return fmt.Errorf("reference %s: %w", r.Name, err)
			}
			b.add(1)
		}
		return t.check(ctx, tmp)
	})
	if err != nil {
		return err
	}
	file, err := writeDockerfile(abs, base)
	switch _, there := os.Stat(abs + ".Dockerfile"); {
	case err != nil && replace && there == nil:
		file = abs + ".Dockerfile"
	case err != nil:
		return err
	}
	t.printNote("%s and %s are written; build and push them as %s:%s", dir, filepath.Base(file), config.Repo,
		config.Tag)
	return nil
}
