package author

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/plain"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/catalog-indexer/index"
)

// difference is what differs between two catalogs, for programs.
type difference struct {
	From    digest.Digest   `json:"from"`
	To      digest.Digest   `json:"to"`
	Changes []packageChange `json:"changes"`
}

// packageChange is one package: what the event of a revision says, and the edges that changed.
type packageChange struct {
	events.PackageChange

	Edges []edges `json:"edges,omitempty"`
}

// edges names the entries of a channel whose replaces, skips or skipRange changed.
type edges struct {
	Channel string   `json:"channel"`
	Entries []string `json:"entries"`
}

func (t *tool) diffCommand() *cobra.Command {
	var format string
	var status bool
	c := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Say what differs between two catalogs",
		Long: `Says what clusters would notice: packages, channel heads, default channels, bundles that are new, gone or
changed in place, edges, deprecations. The order of documents and files is no difference.

` + references,
		Example: "  chandler catalog diff registry.test/ops/catalog:v1 ./catalog",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if err := oneOf("output", format, formatText, formatJSON, formatYAML); err != nil {
				return err
			}
			d, err := t.diff(c.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			if err := d.write(t.Out, format); err != nil {
				return err
			}
			if status && len(d.Changes) > 0 {
				return &ExitError{Code: ExitDiffers}
			}
			return nil
		},
	}
	c.Flags().StringVarP(&format, "output", "o", formatText, "text, json or yaml")
	c.Flags().BoolVar(&status, "exit-code", false, "end with status 3 where something differs")
	t.sources.sourceFlags(c)
	return c
}

// side is one of the two catalogs.
type side struct {
	revision digest.Digest
	digests  index.Revision
	packages map[string]catalog.Package
}

func (t *tool) side(ctx context.Context, ref string) (side, error) {
	s := side{packages: map[string]catalog.Package{}}
	err := t.sources.with(ctx, ref, func(r *tree) error {
		c, err := t.valid(ctx, r)
		if err != nil {
			return fmt.Errorf("%s: %w", ref, err)
		}
		s.digests = c.Digests()
		for _, p := range c.Packages {
			s.packages[p.Name] = p
		}
		s.revision, err = c.Revision(s.digests)
		return err
	})
	return s, err
}

func (t *tool) diff(ctx context.Context, before, after string) (difference, error) {
	a, err := t.side(ctx, before)
	if err != nil {
		return difference{}, err
	}
	b, err := t.side(ctx, after)
	if err != nil {
		return difference{}, err
	}
	d := difference{From: a.revision, To: b.revision, Changes: []packageChange{}}
	for _, name := range index.Touched(a.digests, b.digests) {
		// One package at a time, which always fits: the bound on the changes of one event is none here.
		changes, _, err := index.Changes(index.Input{
			Before: only(a.digests, name), After: only(b.digests, name), Old: only(a.packages, name),
			New: only(b.packages, name),
		})
		if err != nil {
			return difference{}, err
		}
		for _, c := range changes {
			d.Changes = append(d.Changes, packageChange{c, rewired(a.packages[name], b.packages[name])})
		}
	}
	return d, nil
}

func only[V any](m map[string]V, name string) map[string]V {
	out := map[string]V{}
	if v, ok := m[name]; ok {
		out[name] = v
	}
	return out
}

// rewired compares the entries that both sides have.
func rewired(old, now catalog.Package) []edges {
	var out []edges
	for _, c := range now.Channels {
		was, there := old.Channel(c.Name)
		if !there {
			continue
		}
		e := edges{Channel: c.Name}
		for _, entry := range c.Entries {
			i := slices.IndexFunc(was.Entries, func(o catalog.Entry) bool { return o.Name == entry.Name })
			if i >= 0 && !sameEdges(was.Entries[i], entry) {
				e.Entries = append(e.Entries, entry.Name)
			}
		}
		if len(e.Entries) > 0 {
			out = append(out, e)
		}
	}
	return out
}

func sameEdges(a, b catalog.Entry) bool {
	set := func(e catalog.Entry) []string {
		s := slices.Clone(e.Skips)
		slices.Sort(s)
		return slices.Compact(s)
	}
	return a.Replaces == b.Replaces && a.SkipRange == b.SkipRange && slices.Equal(set(a), set(b))
}

func (d difference) write(w io.Writer, format string) error {
	if format != formatText {
		return writeValue(w, format, d)
	}
	var b strings.Builder
	counts := map[string]int{}
	for _, c := range d.Changes {
		counts[c.Change]++
		c.text(&b)
	}
	if len(d.Changes) == 0 {
		b.WriteString("no difference\n")
	} else {
		fmt.Fprintf(&b, "%s added, %d removed, %d changed\n", count(counts[index.Added], "package"),
			counts[index.Removed], counts[index.Changed])
	}
	_, err := io.WriteString(w, plain.Text(b.String()))
	return err
}

// text writes one package for people.
func (c packageChange) text(b *strings.Builder) {
	line := func(format string, args ...any) { fmt.Fprintf(b, "    "+format+"\n", args...) }
	switch c.Change {
	case index.Added:
		fmt.Fprintf(b, "+ package %s\n", c.Package)
	case index.Removed:
		fmt.Fprintf(b, "- package %s\n", c.Package)
	default:
		fmt.Fprintf(b, "~ package %s\n", c.Package)
	}
	from := b.Len()
	for _, h := range c.Heads {
		switch {
		case h.From == "":
			line("channel %s: new, head %s", h.Channel, h.To)
		case h.To == "":
			line("channel %s: gone, head was %s", h.Channel, h.From)
		default:
			line("channel %s: head %s -> %s", h.Channel, h.From, h.To)
		}
	}
	c.details(line)
	for _, name := range c.BundlesAdded {
		line("+ bundle %s", name)
	}
	for _, name := range c.BundlesRemoved {
		line("- bundle %s", name)
	}
	for _, name := range c.BundlesMutated {
		line("! bundle %s changed in place: clusters that have it keep what they have (R-CAT-64)", name)
	}
	for _, e := range c.Edges {
		line("channel %s: other edges of %s", e.Channel, strings.Join(e.Entries, ", "))
	}
	if b.Len() == from && c.Change == index.Changed {
		line("description, icon, properties or display metadata")
	}
}

// details writes what the event says beside heads and bundles.
func (c packageChange) details(line func(format string, args ...any)) {
	if c.Change == index.Changed && c.DefaultChannelFrom != c.DefaultChannelTo {
		line("default channel: %s -> %s", c.DefaultChannelFrom, c.DefaultChannelTo)
	}
	for _, what := range c.Deprecated {
		line("deprecated: %s", subject(what))
	}
	for _, what := range c.Undeprecated {
		line("no longer deprecated: %s", subject(what))
	}
}

// subject turns the event's word for what is deprecated into one for people.
func subject(what string) string {
	kind, name, _ := strings.Cut(strings.TrimPrefix(what, "olm."), "/")
	if name == "" {
		return "the package"
	}
	return kind + " " + name
}
