package v2

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
)

// root is a subscription, or an installed CSV that must stay although no subscription follows it
// (R-RES-13), or whose subscription was left out.
type root struct {
	sub       *Subscription
	csv       string     // installed: what the subscription follows, or the CSV itself; "" where nothing is
	installed *Installed // of csv
	// held is a CSV that is there although it may not: it clashes with another one, is deprecated, or
	// lacks something. What is met of its requirements has to stay so.
	held bool
}

// name orders roots: subscriptions first, both by name.
func (r root) name() string {
	if r.sub != nil {
		return "s:" + r.sub.Name
	}
	return "z:" + r.csv
}

func compareRoots(a, b root) int { return cmp.Compare(a.name(), b.name()) }

// candidates of a root, by preference. An empty list comes with the statement that says why.
//
//	CSV without subscription           itself
//	subscription, nothing installed    startingCSV alone, or the channel from the head down
//	subscription, something installed  what follows it in the channel, nearest the head first; then itself
func (r root) candidates(w *world) ([]*node, []Statement, error) {
	if r.sub == nil {
		return []*node{w.installedNamed(r.csv)}, nil, nil
	}
	cats, missing, err := r.catalogs(w)
	if err != nil {
		return nil, nil, err
	}
	if missing != nil {
		return nil, []Statement{*missing}, nil
	}
	found := finding{sub: r.sub}
	var out []*node
	for _, c := range cats {
		nodes, err := r.inPackage(w, c, &found)
		if err != nil {
			return nil, nil, err
		}
		out = append(out, nodes...)
	}
	if r.csv != "" && found.channel {
		out = append(out, w.installedNamed(r.csv))
	}
	if len(out) == 0 {
		return nil, found.statements(w), nil
	}
	return out, nil, nil
}

// catalogs are those that the subscription names: one, or all where it names none.
func (r root) catalogs(w *world) ([]Catalog, *Statement, error) {
	if r.sub.Catalog == "" {
		return w.preferred(CatalogKey{}), nil, nil
	}
	c, ok := w.ask.find(r.sub.Catalog, r.sub.CatalogNamespace)
	if !ok {
		s := catalogMissing(r.sub, w.ask.catalogs)
		return nil, &s, nil
	}
	if !c.Ready {
		return nil, nil, &failure{class: ClassCatalogUnavailable, statement: catalogNotReady(r.sub, c)}
	}
	return []Catalog{c}, nil, nil
}

// inPackage gives the candidates of one catalog.
func (r root) inPackage(w *world, c Catalog, found *finding) ([]*node, error) {
	p := w.ask.pkg(c.Key, r.sub.Package)
	if p == nil {
		found.absent = append(found.absent, c)
		return nil, nil
	}
	found.pkg = true
	found.channels = append(found.channels, p.channelNames()...)
	var out []*node
	for i := range p.channels {
		ch := &p.channels[i]
		if r.sub.Channel != "" && ch.name != r.sub.Channel {
			continue
		}
		found.channel = true
		nodes, err := r.inChannel(w, c, p.Name, ch, found)
		if err != nil {
			return nil, err
		}
		out = append(out, nodes...)
	}
	return out, nil
}

func (r root) inChannel(w *world, c Catalog, pkg string, ch *channel, found *finding) ([]*node, error) {
	if r.csv == "" && r.sub.StartingCSV != "" {
		e, ok := ch.all[r.sub.StartingCSV]
		if !ok {
			return nil, nil
		}
		return []*node{w.entry(c, ch, e)}, malformed(c, pkg, e.bundle)
	}
	if ch.err != nil {
		return nil, &failure{class: ClassInvalidChannel, statement: malformedChannel(c, pkg, ch)}
	}
	var out []*node
	for _, e := range ch.entries {
		if r.csv != "" && !r.follows(e) {
			continue
		}
		if err := malformed(c, pkg, e.bundle); err != nil {
			return nil, err
		}
		n := w.entry(c, ch, e)
		if r.csv != "" {
			w.upgrades(n, r.csv)
		}
		out = append(out, n)
	}
	found.entries = found.entries || len(ch.all) > 0
	return out, nil
}

// follows says whether an entry is a successor of what is installed (R-GRA-9). An installed CSV without
// version counts as 0.0.0; an entry never follows itself.
func (r root) follows(e entry) bool {
	if e.name == r.csv {
		return false
	}
	if e.replaces == r.csv || slices.Contains(e.skips, r.csv) {
		return true
	}
	return e.skipRange != nil && e.skipRange(r.installedVersion())
}

func (r root) installedVersion() semver.Version {
	v, err := semver.Parse(r.installed.Version)
	if err != nil {
		return semver.Version{}
	}
	return v
}

// upgrades makes a node exclude the CSV that it takes the place of.
func (w *world) upgrades(n *node, csv string) {
	if s := w.table.id(slotName + csv); !slices.Contains(n.slots, s) {
		n.slots = append(slices.Clone(n.slots), s) // the operator's list is shared
		w.grow()
	}
}

func (w *world) installedNamed(csv string) *node {
	for _, n := range w.installed {
		if n.op.name == csv {
			return n
		}
	}
	return nil
}

// malformed is the error of a candidate whose requirements cannot be read (RESOLVER-NOTES 2.8).
func malformed(c Catalog, pkg string, op *operator) error {
	if op.malformed == "" {
		return nil
	}
	return &failure{class: ClassInvalidConstraint, statement: Statement{
		Kind: RequirementMalformed, Bundle: op.name, Package: pkg, Catalog: c.Key.String(),
		Text: fmt.Sprintf("bundle %s of package %s in catalog %s has a requirement that cannot be read: %s", op.name, pkg, c.Key, op.malformed),
	}}
}

// failure is a fault in the catalogs' content that prevents a resolution whatever is chosen.
type failure struct {
	class     Class
	statement Statement
}

func (f *failure) Error() string { return f.statement.Text }
