package graph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/services/resolver/offer"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// Root is what a resolution is about: a subscription, or an installed CSV that no subscription follows and that
// stays all the same (R-RES-13).
type Root struct {
	Sub        *resolution.Subscription // nil for a CSV that no subscription follows
	Installed  *resolution.Installed    // what the subscription follows, or the CSV itself; nil where nothing is
	Node       NodeID                   // of Installed
	Candidates []NodeID                 // of a subscription, by preference
	Missing    []resolution.Statement   // why there are none
	// Faults prevent what the subscription asks for. InstalledFaults are those of what is installed, whatever the
	// subscription asks for.
	Faults          []Fault
	InstalledFaults []Fault
	reads           []int32
}

// name orders roots: subscriptions first, both by name.
func (r *Root) name() string {
	if r.Sub != nil {
		return "s:" + r.Sub.Name
	}
	return "z:" + r.Installed.CSV
}

// CSV is the name of what is installed, "" where nothing is.
func (r *Root) CSV() string {
	if r.Installed == nil {
		return ""
	}
	return r.Installed.CSV
}

// Text names a root in a sentence.
func (r *Root) Text() string {
	if r.Sub != nil {
		return "subscription " + r.Sub.Name
	}
	return "clusterserviceversion " + r.CSV()
}

// rootsOf are the subscriptions of an input, and the installed CSVs that none of them follows.
func (g *Graph) rootsOf(in *resolution.Input) []*Root {
	var out []*Root
	followed := map[string]bool{}
	for i := range in.Subscriptions {
		rt := &Root{Sub: &in.Subscriptions[i], Node: None}
		for j := range in.Installed {
			inst := &in.Installed[j]
			if rt.Installed == nil && (inst.Subscription == rt.Sub.Name || inst.CSV == rt.Sub.InstalledCSV) {
				rt.Installed, rt.Node = inst, NodeID(j)
				followed[inst.CSV] = true
				g.followed[j] = cmp.Or(g.followed[j], rt.Sub.Name)
			}
		}
		out = append(out, rt)
	}
	for i := range in.Installed {
		if inst := &in.Installed[i]; !followed[inst.CSV] {
			out = append(out, &Root{Installed: inst, Node: NodeID(i)})
		}
	}
	slices.SortFunc(out, func(a, b *Root) int { return cmp.Compare(a.name(), b.name()) })
	return out
}

// findCandidates finds the candidates of a subscription, by preference.
//
//	nothing installed    startingCSV alone, or each channel from the head down
//	something installed  what follows it in the channel, nearest the head first; then itself
//	a rollback from it   what it goes back to, alone, whatever its channel
//
// The first question without answer is what is missing (RESOLVER-NOTES 2.1); that holds for subscriptions
// with an installed CSV, too: a package, channel or catalog that has gone fails them (2.2).
func (r *Root) findCandidates(g *Graph) {
	g.Reader.Into(&r.reads)
	catalogs, ok := r.catalogs(g)
	if !ok {
		return
	}
	found := lookup{sub: r.Sub, catalogs: catalogs, back: r.RollsBack()}
	for _, ch := range r.channels(g, catalogs, &found) {
		r.inChannel(g, ch, &found)
	}
	if !found.complete() {
		r.Candidates, r.Missing = nil, found.statements(g)
		return
	}
	if r.Installed != nil && !r.RollsBack() {
		r.Candidates = append(r.Candidates, r.Node)
	}
	if len(r.Candidates) == 0 {
		r.Missing = found.statements(g)
	}
}

// catalogs are those that the subscription names: one, or all where it names none.
func (r *Root) catalogs(g *Graph) ([]int32, bool) {
	if r.Sub.Catalog == "" {
		g.Reader.Visible()
		out := make([]int32, 0, len(g.Catalogs))
		for i := range g.Catalogs {
			out = append(out, int32(i))
		}
		return out, true
	}
	c, ok := g.Reader.Find(r.Sub)
	if !ok {
		r.Missing = []resolution.Statement{catalogMissing(r.Sub, g.Reader.Visible())}
		return nil, false
	}
	if !c.Ready {
		r.Faults = append(r.Faults, Fault{
			Class:     resolution.ClassCatalogUnavailable,
			Statement: catalogNotReady(r.Sub, c),
		})
		return nil, false
	}
	i := slices.IndexFunc(g.Catalogs, func(o resolution.Catalog) bool { return o.Key == c.Key })
	return []int32{int32(i)}, true
}

// joinedChannel is a channel as a subscription sees it: in one catalog, or in several where it names none.
type joinedChannel struct {
	name      string
	isDefault bool
	parts     []part
}

type part struct {
	catalog int32
	pkg     *offer.Package
	channel *offer.Channel
}

// channels are those that the subscription means, the default one first, then by name.
func (r *Root) channels(g *Graph, catalogs []int32, found *lookup) []*joinedChannel {
	var out []*joinedChannel
	for _, c := range catalogs {
		p := g.Reader.Package(g.Catalogs[c].Key, r.Sub.Package)
		if p == nil {
			continue
		}
		found.packages = append(found.packages, p)
		for i := range p.Channels {
			ch := &p.Channels[i]
			if r.Sub.Channel != "" && ch.Name != r.Sub.Channel && !r.RollsBack() || len(ch.All) == 0 {
				continue
			}
			found.channel = true
			at := slices.IndexFunc(out, func(s *joinedChannel) bool { return s.name == ch.Name })
			if at < 0 {
				at = len(out)
				out = append(out, &joinedChannel{name: ch.Name})
			}
			out[at].isDefault = out[at].isDefault || ch.Default
			out[at].parts = append(out[at].parts, part{c, p, ch})
		}
	}
	slices.SortFunc(out, func(a, b *joinedChannel) int {
		return cmp.Or(compareBool(b.isDefault, a.isDefault), cmp.Compare(a.name, b.name))
	})
	return out
}

// RollsBack says whether a rollback from what is installed was asked for.
func (r *Root) RollsBack() bool {
	return r.Sub != nil && r.Installed != nil && r.Sub.Rollback.From == r.Installed.CSV
}

// back takes what a rollback leads to, where it is met first.
func (r *Root) back(g *Graph, s *joinedChannel, found *lookup) {
	for _, p := range s.parts {
		if _, ok := p.channel.All[r.Sub.Rollback.To]; ok && !found.entries {
			r.Candidates = append(r.Candidates, g.named(p.catalog, p.pkg, p.channel, r.Sub.Rollback.To))
			found.entries = true
		}
	}
}

func (r *Root) inChannel(g *Graph, s *joinedChannel, found *lookup) {
	if r.RollsBack() {
		r.back(g, s, found)
		return
	}
	if r.Installed == nil && r.Sub.StartingCSV != "" {
		r.start(g, s, found)
		return
	}
	found.entries = true
	if len(s.parts) > 1 {
		r.joined(g, s)
		return
	}
	p := s.parts[0]
	if p.channel.Err != nil {
		r.Faults = append(r.Faults, malformedChannel(g.Catalogs[p.catalog].Key, p.pkg, p.channel))
		return
	}
	for i := range p.channel.Entries {
		if r.takes(&p.channel.Entries[i]) {
			r.Candidates = append(r.Candidates, g.entry(p.catalog, p.pkg, p.channel, i))
		}
	}
}

// start takes the starting CSV alone, wherever it is and whatever the shape of the channel
// (RESOLVER-NOTES 2.3).
func (r *Root) start(g *Graph, s *joinedChannel, found *lookup) {
	var at []part
	for _, p := range s.parts {
		if _, ok := p.channel.All[r.Sub.StartingCSV]; ok {
			at = append(at, p)
		}
	}
	switch len(at) {
	case 0:
		return
	case 1:
		r.alone(g, at[0])
	default:
		r.Faults = append(r.Faults, r.ambiguous(g, s))
	}
	found.entries = true
}

// alone takes the starting CSV of one catalog. An entry that replaces or skips itself is no head, even by itself.
func (r *Root) alone(g *Graph, p part) {
	name := r.Sub.StartingCSV
	if e := p.channel.All[name]; e.Replaces != name && !slices.Contains(e.Skips, name) {
		r.Candidates = append(r.Candidates, g.named(p.catalog, p.pkg, p.channel, name))
		return
	}
	r.Faults = append(r.Faults, Fault{Class: resolution.ClassInvalidChannel, Statement: resolution.Statement{
		Kind: resolution.ChannelMalformed, Catalog: g.Catalogs[p.catalog].Key.String(), Revision: string(p.pkg.Digest),
		Package: p.pkg.Name, Channel: p.channel.Name, Bundle: name,
		Text: fmt.Sprintf("catalog %s: entry %s of channel %s of package %s replaces itself",
			g.Catalogs[p.catalog].Key, name, p.channel.Name, p.pkg.Name),
	}})
}

// joined takes a channel of several catalogs for one, as OLM does for a subscription that names no catalog: it
// has an order only where the catalogs complete each other.
func (r *Root) joined(g *Graph, s *joinedChannel) {
	c := catalog.Channel{Name: s.name}
	from := map[string]part{}
	for _, p := range s.parts {
		for name, e := range p.channel.All {
			if _, twice := from[name]; twice {
				r.Faults = append(r.Faults, r.ambiguous(g, s))
				return
			}
			from[name] = p
			c.Entries = append(c.Entries, catalog.Entry{Name: name, Replaces: e.Replaces, Skips: e.Skips})
		}
	}
	slices.SortFunc(c.Entries, func(a, b catalog.Entry) int { return cmp.Compare(a.Name, b.Name) })
	chain, err := catalog.NewGraph(c)
	if err != nil {
		r.Faults = append(r.Faults, r.ambiguous(g, s))
		return
	}
	for _, e := range chain.Ordered() {
		p, ok := from[e.Name]
		if !ok {
			continue
		}
		if known := p.channel.All[e.Name]; r.takes(&known) {
			r.Candidates = append(r.Candidates, g.named(p.catalog, p.pkg, p.channel, e.Name))
		}
	}
}

func (r *Root) ambiguous(g *Graph, s *joinedChannel) Fault {
	var names []string
	for _, p := range s.parts {
		names = append(names, g.Catalogs[p.catalog].Key.String())
	}
	slices.Sort(names)
	return Fault{Class: resolution.ClassInvalidChannel, Statement: resolution.Statement{
		Kind: resolution.ChannelMalformed, Subscription: r.Sub.Name, Package: r.Sub.Package, Channel: s.name,
		Choices: names, Text: fmt.Sprintf(
			"subscription %s names no catalog, and channel %s of package %s is in catalogs %s, "+
				"which together are no chain with one head; name one of them",
			r.Sub.Name, s.name, r.Sub.Package, strings.Join(names, " and ")),
	}}
}

// takes says whether an entry is a candidate: any for a new subscription, a successor for an installed CSV
// (R-GRA-9, RESOLVER-NOTES 2.4). An installed CSV without version counts as 0.0.0. An entry may follow itself by
// its range; it is there already then, and nothing is planned. What a rollback left is none.
func (r *Root) takes(e *offer.Entry) bool {
	if e.Name == r.Sub.Rollback.From || slices.Contains(r.Sub.Avoids, e.Name) {
		return false
	}
	if r.Installed == nil || e.Replaces == r.Installed.CSV || slices.Contains(e.Skips, r.Installed.CSV) {
		return true
	}
	return e.SkipRange != nil && e.SkipRange(r.version())
}

func (r *Root) version() semver.Version {
	v, err := semver.Parse(r.Installed.Version)
	if err != nil {
		return semver.Version{}
	}
	return v
}
