package server

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/errs"
	api "github.com/chandler-fleet/chandler/libs/registryapi"
)

// index is what one revision's answers are found by.
type index struct {
	catalog  Catalog
	packages []*pkg // sorted by name
	byName   map[string]*pkg
}

type pkg struct {
	name, defaultChannel string
	deprecation          *api.Deprecation
	channels             []*channel // sorted by name
	provides             map[string][]catalog.GVK
}

type channel struct {
	name        string
	deprecation *api.Deprecation
	graph       *catalog.Graph
	entries     []catalog.Entry // sorted by name
}

func newIndex(ctx context.Context, c Catalog, log *slog.Logger) (*index, error) {
	names, err := c.Packages(ctx)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	x := &index{catalog: c, byName: map[string]*pkg{}}
	for _, name := range slices.Compact(names) {
		doc, err := c.Package(ctx, name)
		if err != nil {
			return nil, err
		}
		p, err := newPackage(doc, log.With("package", name))
		if err != nil {
			return nil, err
		}
		if p != nil {
			x.packages = append(x.packages, p)
			x.byName[name] = p
		}
	}
	return x, nil
}

// newPackage returns nil for a package that clients could not read.
func newPackage(doc catalog.Package, log *slog.Logger) (*pkg, error) {
	p := &pkg{
		name: doc.Name, defaultChannel: doc.DefaultChannel,
		deprecation: deprecation(doc, catalog.SchemaPackage, ""), provides: map[string][]catalog.GVK{},
	}
	for _, b := range doc.Bundles {
		gvks, err := b.Provides()
		if err != nil {
			return nil, errs.Wrap(errs.Invalid, err, "package %q", doc.Name)
		}
		p.provides[b.Name] = gvks
	}
	for _, ch := range doc.Channels {
		ch.Entries = slices.DeleteFunc(slices.Clone(ch.Entries), func(e catalog.Entry) bool {
			_, known := p.provides[e.Name]
			return !known
		})
		g, err := catalog.NewGraph(ch)
		if err != nil {
			log.Warn("the channel is not served: it has no order", "channel", ch.Name, "error", err)
			continue
		}
		p.channels = append(p.channels, &channel{
			name: ch.Name, deprecation: deprecation(doc, catalog.SchemaChannel, ch.Name), graph: g, entries: ch.Entries,
		})
	}
	if p.channel(p.defaultChannel) == nil {
		log.Warn("the package is not served: its default channel is not", "channel", p.defaultChannel)
		return nil, nil
	}
	slices.SortFunc(p.channels, func(a, b *channel) int { return strings.Compare(a.name, b.name) })
	return p, nil
}

// deprecation returns what a package says of a part of itself, nil where it is not deprecated (R-CAT-13).
func deprecation(doc catalog.Package, schema, name string) *api.Deprecation {
	for _, d := range doc.Deprecations {
		if d.Schema == schema && (d.Name == name || schema == catalog.SchemaPackage) {
			return &api.Deprecation{Message: d.Message}
		}
	}
	return nil
}

func (p *pkg) channel(name string) *channel {
	for _, c := range p.channels {
		if c.name == name {
			return c
		}
	}
	return nil
}

// find returns a channel of a package by their names.
func (x *index) find(pkgName, channelName string) (*pkg, *channel, error) {
	p := x.byName[pkgName]
	if p == nil {
		return nil, nil, errs.New(errs.NotFound, "package %q is not in the catalog", pkgName)
	}
	c := p.channel(channelName)
	if c == nil {
		return nil, nil, errs.New(errs.NotFound, "package %q has no channel %q", pkgName, channelName)
	}
	return p, c, nil
}

// offers reports whether a bundle provides an API.
func (p *pkg) offers(bundle string, want catalog.GVK) bool {
	return slices.Contains(p.provides[bundle], want)
}

// replacing returns the edges that lead from a bundle to a newer one, of all packages and channels.
func (x *index) replacing(name string) []*api.ChannelEntry {
	var out []*api.ChannelEntry
	for _, p := range x.packages {
		for _, c := range p.channels {
			for _, e := range c.entries {
				if name != "" && (e.Replaces == name || slices.Contains(e.Skips, name)) {
					out = append(out, &api.ChannelEntry{
						PackageName: p.name, ChannelName: c.name, BundleName: e.Name,
						Replaces: e.Replaces,
					})
				}
			}
		}
	}
	return out
}

// providing returns the edges to bundles that provide an API, of all entries or of heads alone.
func (x *index) providing(want catalog.GVK, heads bool) []*api.ChannelEntry {
	var out []*api.ChannelEntry
	for _, p := range x.packages {
		for _, c := range p.channels {
			entries := c.entries
			if heads {
				entries = []catalog.Entry{c.graph.Head()}
			}
			for _, e := range entries {
				if p.offers(e.Name, want) {
					out = append(out, c.edges(p.name, e, heads)...)
				}
			}
		}
	}
	return out
}

// edges returns one edge for each name that an entry succeeds: what it replaces, be it nothing, and
// each that it skips, where local only those of the channel.
func (c *channel) edges(pkgName string, e catalog.Entry, local bool) []*api.ChannelEntry {
	edge := func(from string) *api.ChannelEntry {
		return &api.ChannelEntry{PackageName: pkgName, ChannelName: c.name, BundleName: e.Name, Replaces: from}
	}
	out := []*api.ChannelEntry{edge(e.Replaces)}
	for _, s := range e.Skips {
		if _, here := c.graph.Entry(s); s != e.Replaces && (here || !local) {
			out = append(out, edge(s))
		}
	}
	return out
}

// defaultProvider returns the first package, by name, whose default channel's head provides an API.
func (x *index) defaultProvider(want catalog.GVK) (*pkg, *channel, error) {
	for _, p := range x.packages {
		c := p.channel(p.defaultChannel)
		if p.offers(c.graph.Head().Name, want) {
			return p, c, nil
		}
	}
	return nil, nil, errs.New(errs.NotFound, "the head of no default channel provides %s", want)
}
