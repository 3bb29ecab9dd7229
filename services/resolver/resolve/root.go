package resolve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/services/resolver/offer"
)

// root is what a resolution is about: a subscription, or an installed CSV that no subscription follows and that
// stays all the same (R-RES-13).
type root struct {
	sub       *Subscription // nil for a CSV that no subscription follows
	installed *Installed    // what the subscription follows, or the CSV itself; nil where nothing is
	node      nodeID        // of installed
	cands     []nodeID      // of a subscription, by preference
	missing   []Statement   // why there are none
	faults    []failure
	burden    []failure // faults of what is installed, whatever the subscription asks for
	reads     []int32
	state     state
}

// state is what is asked of a root. Whoever cannot have it is explained, and goes one state down.
type state uint8

const (
	// wanted: one of the candidates of the subscription is to be chosen.
	wanted state = iota
	// staying: the installed CSV stays, with everything that it requires.
	staying
	// held: it stays although it may not: it clashes with another one, is deprecated, or lacks something. What
	// is met of its requirements today stays so.
	held
	// fixed: it stays, and nothing is asked for it.
	fixed
	// absent: nothing is installed, and the subscription gets nothing.
	absent
)

// name orders roots: subscriptions first, both by name.
func (r *root) name() string {
	if r.sub != nil {
		return "s:" + r.sub.Name
	}
	return "z:" + r.installed.CSV
}

func compareRoots(a, b *root) int { return cmp.Compare(a.name(), b.name()) }

// csv is the name of what is installed, "" where nothing is.
func (r *root) csv() string {
	if r.installed == nil {
		return ""
	}
	return r.installed.CSV
}

// demote lowers what is asked of a root that cannot have it.
func (r *root) demote() {
	switch {
	case r.state == wanted && r.installed == nil:
		r.state = absent
	case r.state < fixed:
		r.state++
	}
}

// stays says whether the installed CSV of a root is not to be moved.
func (r *root) stays() bool { return r.state == staying || r.state == held || r.state == fixed }

// roots are the subscriptions, and the installed CSVs that none of them follows.
func (r *resolution) roots(w *world) []*root {
	var out []*root
	followed := map[string]bool{}
	for i := range r.in.Subscriptions {
		rt := &root{sub: &r.in.Subscriptions[i], node: none}
		for j := range r.in.Installed {
			inst := &r.in.Installed[j]
			if rt.installed == nil && (inst.Subscription == rt.sub.Name || inst.CSV == rt.sub.InstalledCSV) {
				rt.installed, rt.node = inst, nodeID(j)
				followed[inst.CSV] = true
				w.followed[j] = cmp.Or(w.followed[j], rt.sub.Name)
			}
		}
		out = append(out, rt)
	}
	for i := range r.in.Installed {
		if inst := &r.in.Installed[i]; !followed[inst.CSV] {
			out = append(out, &root{installed: inst, node: nodeID(i), state: staying})
		}
	}
	slices.SortFunc(out, compareRoots)
	return out
}

// look finds the candidates of a subscription, by preference.
//
//	nothing installed    startingCSV alone, or each channel from the head down
//	something installed  what follows it in the channel, nearest the head first; then itself
//	a rollback from it   what it goes back to, alone, whatever its channel
//
// The first question without answer tells what is missing (RESOLVER-NOTES 2.1); that holds for subscriptions
// with an installed CSV, too: a package, channel or catalog that has gone fails them (2.2).
func (r *root) look(w *world) {
	w.ask.noting(&r.reads)
	catalogs, ok := r.catalogs(w)
	if !ok {
		return
	}
	found := finding{sub: r.sub, catalogs: catalogs, back: r.goesBack()}
	for _, ch := range r.channels(w, catalogs, &found) {
		r.inChannel(w, ch, &found)
	}
	if !found.complete() {
		r.cands, r.missing = nil, found.statements(w)
		return
	}
	if r.installed != nil && !r.goesBack() {
		r.cands = append(r.cands, r.node)
	}
	if len(r.cands) == 0 {
		r.missing = found.statements(w)
	}
}

// catalogs are those that the subscription names: one, or all where it names none.
func (r *root) catalogs(w *world) ([]int32, bool) {
	if r.sub.Catalog == "" {
		w.ask.visible()
		out := make([]int32, 0, len(w.catalogs))
		for i := range w.catalogs {
			out = append(out, int32(i))
		}
		return out, true
	}
	c, ok := w.ask.find(r.sub)
	if !ok {
		r.missing = []Statement{catalogMissing(r.sub, w.ask.visible())}
		return nil, false
	}
	if !c.Ready {
		r.faults = append(r.faults, failure{class: ClassCatalogUnavailable, statement: catalogNotReady(r.sub, c)})
		return nil, false
	}
	i := slices.IndexFunc(w.catalogs, func(o Catalog) bool { return o.Key == c.Key })
	return []int32{int32(i)}, true
}

// stretch is a channel as a subscription sees it: in one catalog, or in several where it names none.
type stretch struct {
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
func (r *root) channels(w *world, catalogs []int32, found *finding) []*stretch {
	var out []*stretch
	for _, c := range catalogs {
		p := w.ask.pkg(w.catalogs[c].Key, r.sub.Package)
		if p == nil {
			continue
		}
		found.packages = append(found.packages, p)
		for i := range p.Channels {
			ch := &p.Channels[i]
			if r.sub.Channel != "" && ch.Name != r.sub.Channel && !r.goesBack() || len(ch.All) == 0 {
				continue
			}
			found.channel = true
			at := slices.IndexFunc(out, func(s *stretch) bool { return s.name == ch.Name })
			if at < 0 {
				at = len(out)
				out = append(out, &stretch{name: ch.Name})
			}
			out[at].isDefault = out[at].isDefault || ch.Default
			out[at].parts = append(out[at].parts, part{c, p, ch})
		}
	}
	slices.SortFunc(out, func(a, b *stretch) int {
		return cmp.Or(compareBool(b.isDefault, a.isDefault), cmp.Compare(a.name, b.name))
	})
	return out
}

// goesBack says whether a rollback from what is installed was asked for.
func (r *root) goesBack() bool {
	return r.sub != nil && r.installed != nil && r.sub.Rollback.From == r.installed.CSV
}

// back takes what a rollback leads to, where it is met first.
func (r *root) back(w *world, s *stretch, found *finding) {
	for _, p := range s.parts {
		if _, ok := p.channel.All[r.sub.Rollback.To]; ok && !found.entries {
			r.cands = append(r.cands, w.named(p.catalog, p.pkg, p.channel, r.sub.Rollback.To))
			found.entries = true
		}
	}
}

func (r *root) inChannel(w *world, s *stretch, found *finding) {
	if r.goesBack() {
		r.back(w, s, found)
		return
	}
	if r.installed == nil && r.sub.StartingCSV != "" {
		r.start(w, s, found)
		return
	}
	found.entries = true
	if len(s.parts) > 1 {
		r.joined(w, s)
		return
	}
	p := s.parts[0]
	if p.channel.Err != nil {
		r.faults = append(r.faults, malformedChannel(w.catalogs[p.catalog].Key, p.pkg, p.channel))
		return
	}
	for i := range p.channel.Entries {
		if r.takes(&p.channel.Entries[i]) {
			r.cands = append(r.cands, w.entry(p.catalog, p.pkg, p.channel, i))
		}
	}
}

// start takes the starting CSV alone, wherever it stands and whatever the shape of the channel
// (RESOLVER-NOTES 2.3).
func (r *root) start(w *world, s *stretch, found *finding) {
	var at []part
	for _, p := range s.parts {
		if _, ok := p.channel.All[r.sub.StartingCSV]; ok {
			at = append(at, p)
		}
	}
	switch len(at) {
	case 0:
		return
	case 1:
		r.alone(w, at[0])
	default:
		r.faults = append(r.faults, r.ambiguous(w, s))
	}
	found.entries = true
}

// alone takes the starting CSV of one catalog. An entry that replaces or skips itself is no head, even by itself.
func (r *root) alone(w *world, p part) {
	name := r.sub.StartingCSV
	if e := p.channel.All[name]; e.Replaces != name && !slices.Contains(e.Skips, name) {
		r.cands = append(r.cands, w.named(p.catalog, p.pkg, p.channel, name))
		return
	}
	r.faults = append(r.faults, failure{class: ClassInvalidChannel, statement: Statement{
		Kind: ChannelMalformed, Catalog: w.catalogs[p.catalog].Key.String(), Revision: string(p.pkg.Digest), Package: p.pkg.Name, Channel: p.channel.Name, Bundle: name,
		Text: fmt.Sprintf("catalog %s: entry %s of channel %s of package %s replaces itself", w.catalogs[p.catalog].Key, name, p.channel.Name, p.pkg.Name),
	}})
}

// joined takes a channel of several catalogs for one, as OLM does for a subscription that names no catalog: it
// has an order only where the catalogs complete each other.
func (r *root) joined(w *world, s *stretch) {
	c := catalog.Channel{Name: s.name}
	from := map[string]part{}
	for _, p := range s.parts {
		for name, e := range p.channel.All {
			if _, twice := from[name]; twice {
				r.faults = append(r.faults, r.ambiguous(w, s))
				return
			}
			from[name] = p
			c.Entries = append(c.Entries, catalog.Entry{Name: name, Replaces: e.Replaces, Skips: e.Skips})
		}
	}
	slices.SortFunc(c.Entries, func(a, b catalog.Entry) int { return cmp.Compare(a.Name, b.Name) })
	g, err := catalog.NewGraph(c)
	if err != nil {
		r.faults = append(r.faults, r.ambiguous(w, s))
		return
	}
	for _, e := range g.Ordered() {
		p, ok := from[e.Name]
		if !ok {
			continue
		}
		if known := p.channel.All[e.Name]; r.takes(&known) {
			r.cands = append(r.cands, w.named(p.catalog, p.pkg, p.channel, e.Name))
		}
	}
}

func (r *root) ambiguous(w *world, s *stretch) failure {
	var names []string
	for _, p := range s.parts {
		names = append(names, w.catalogs[p.catalog].Key.String())
	}
	slices.Sort(names)
	return failure{class: ClassInvalidChannel, statement: Statement{
		Kind: ChannelMalformed, Subscription: r.sub.Name, Package: r.sub.Package, Channel: s.name, Choices: names,
		Text: fmt.Sprintf("subscription %s names no catalog, and channel %s of package %s is in catalogs %s, which together are no chain with one head; name one of them",
			r.sub.Name, s.name, r.sub.Package, strings.Join(names, " and ")),
	}}
}

// takes says whether an entry is a candidate: any for a new subscription, a successor for an installed CSV
// (R-GRA-9, RESOLVER-NOTES 2.4). An installed CSV without version counts as 0.0.0. An entry may follow itself by
// its range; it is there already then, and nothing is planned. What a rollback left is none.
func (r *root) takes(e *offer.Entry) bool {
	if e.Name == r.sub.Rollback.From {
		return false
	}
	if r.installed == nil || e.Replaces == r.installed.CSV || slices.Contains(e.Skips, r.installed.CSV) {
		return true
	}
	return e.SkipRange != nil && e.SkipRange(r.version())
}

func (r *root) version() semver.Version {
	v, err := semver.Parse(r.installed.Version)
	if err != nil {
		return semver.Version{}
	}
	return v
}
