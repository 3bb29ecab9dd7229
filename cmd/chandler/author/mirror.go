package author

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/plain"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
)

// image is one image of a selection, and what needs it.
type image struct {
	Image  string   `json:"image"`
	Digest string   `json:"digest,omitempty"`
	Bundle bool     `json:"bundle"` // the image of a bundle, not one that an operator runs
	Needs  []string `json:"neededBy"`
}

func (t *tool) mirrorListCommand() *cobra.Command {
	var format string
	var keep []string
	c := &cobra.Command{
		Use:   "mirror-list REF",
		Short: "Show every image that a catalog, or a part of it, can make a cluster pull",
		Long: `Shows every image that a cluster pulls for what is selected: bundle images and all images that the
operators name as related. A site that is cut off needs these, beside the catalog itself. Images that are
named by a tag are told on standard error: what a tag means can change after the copy.

A selection is PACKAGE, PACKAGE:CHANNEL or PACKAGE:CHANNEL@RANGE as of chandler catalog prune, without
what the packages depend on: prune first, then list.

` + references,
		Example: "  chandler catalog mirror-list ./catalog --package 'tidegauge:steady@>=1.1.0'",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := oneOf("output", format, formatText, formatJSON, formatYAML); err != nil {
				return err
			}
			return t.sources.with(c.Context(), args[0], func(r *tree) error {
				cat, err := t.valid(c.Context(), r)
				if err != nil {
					return err
				}
				images, err := images(cat, keep)
				if err != nil {
					return err
				}
				return t.writeImages(images, format)
			})
		},
	}
	c.Flags().StringVarP(&format, "output", "o", formatText, "text, json or yaml")
	c.Flags().StringArrayVar(&keep, "package", nil, "only what this selects; may be given several times")
	t.sources.sourceFlags(c)
	return c
}

// images gathers the images of a selection, in order (R-DIS-2).
func images(c *load.Catalog, keep []string) ([]image, error) {
	all := map[string]*image{}
	add := func(ref, by string, bundle bool) {
		if ref == "" {
			return
		}
		i := all[ref]
		if i == nil {
			_, digest, _ := strings.Cut(ref, "@")
			i = &image{Image: ref, Digest: digest}
			all[ref] = i
		}
		i.Bundle = i.Bundle || bundle
		if !slices.Contains(i.Needs, by) {
			i.Needs = append(i.Needs, by)
		}
	}
	selected, err := selection(c, keep)
	if err != nil {
		return nil, err
	}
	for _, p := range c.Packages {
		for _, b := range p.Bundles {
			if !selected(p.Name, b.Name) {
				continue
			}
			add(b.Image, b.Name, true)
			for _, r := range b.RelatedImages {
				add(r.Image, b.Name, r.Image == b.Image)
			}
		}
	}
	out := make([]image, 0, len(all))
	for _, i := range all {
		out = append(out, *i)
	}
	slices.SortFunc(out, func(a, b image) int { return strings.Compare(a.Image, b.Image) })
	return out, nil
}

func (t *tool) writeImages(images []image, format string) error {
	var tags []string
	for _, i := range images {
		if i.Digest == "" {
			tags = append(tags, i.Image)
		}
	}
	if len(tags) > 0 {
		const shown = 5
		more := ""
		if len(tags) > shown {
			more = fmt.Sprintf(" and %d more", len(tags)-shown)
		}
		t.printNote(
			"warning R-DIS-2: %d of %s are named by a tag, which can mean another image after the copy: %s%s; name "+
				"them by digest in their bundles",
			len(tags), count(len(images), "image"), strings.Join(tags[:min(shown, len(tags))], ", "), more)
	}
	if format != formatText {
		return writeValue(t.Out, format, map[string]any{"images": images})
	}
	for _, i := range images {
		if _, err := fmt.Fprintln(t.Out, plain.Text(i.Image)); err != nil {
			return err
		}
	}
	return nil
}
