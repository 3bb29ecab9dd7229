package v2

import (
	"cmp"
	"slices"
)

// node is something that can be chosen: an installed CSV, or a bundle as an entry of one channel of one
// catalog. The same bundle in two channels is two nodes, which exclude each other (RESOLVER-NOTES 6.1).
type node struct {
	op        *operator
	installed bool
	follower  string // the subscription of an installed CSV; "" where none follows it
	catalog   Catalog
	channel   string
	edge      entry // how the channel leads to it
	// slots are what at most one chosen node may hold: its package, its APIs, its name, and the name
	// of the CSV that it upgrades.
	slots []slot

	chosen bool
	why    *choice // what it was taken for
}

// id is how explanations name a node: catalog/channel/name, or "installed name".
func (n *node) id() string {
	if n.installed {
		return "installed " + n.op.name
	}
	return n.catalog.Key.String() + "/" + n.channel + "/" + n.op.name
}

type nodeKey struct {
	catalog CatalogKey
	pkg     string
	channel string
	name    string
}

// world holds the nodes of one component while it is solved.
type world struct {
	ask       *asker
	namespace string
	table     *slotTable
	nodes     map[nodeKey]*node
	holder    []*node // by slot; nil is free
	installed []*node // by name
}

func newWorld(ask *asker, namespace string, table *slotTable) *world {
	return &world{ask: ask, namespace: namespace, table: table, nodes: map[nodeKey]*node{}, holder: make([]*node, len(table.names))}
}

// occupy gives a node the slots of its operator.
func (w *world) occupy(n *node) {
	n.slots = w.table.slots(n.op)
	w.grow()
}

// grow makes room for slots that were numbered since.
func (w *world) grow() {
	for len(w.holder) < len(w.table.names) {
		w.holder = append(w.holder, nil)
	}
}

func (w *world) addInstalled(op *operator, follower string) {
	n := &node{op: op, installed: true, follower: follower}
	w.occupy(n)
	w.installed = append(w.installed, n)
}

// entry returns the node of a channel entry, always the same one.
func (w *world) entry(c Catalog, ch *channel, e entry) *node {
	k := nodeKey{catalog: c.Key, pkg: e.bundle.pkg, channel: ch.name, name: e.name}
	if n := w.nodes[k]; n != nil {
		return n
	}
	n := &node{op: e.bundle, catalog: c, channel: ch.name, edge: e}
	w.occupy(n)
	w.nodes[k] = n
	return n
}

// fits says whether a node could be chosen beside what is chosen already.
func (w *world) fits(n *node) bool {
	if n.op.deprecated || n.op.twice != "" {
		return false
	}
	for _, s := range n.slots {
		if h := w.holder[s]; h != nil && h != n {
			return false
		}
	}
	return true
}

// candidates are the nodes that may meet a requirement of a bundle of catalog own, by preference
// (R-RES-35): installed ones; then the catalog that the asking bundle comes from, then catalogs by priority,
// those of the namespace first, by name; in a catalog default channels first, then package, channel,
// and from the head down.
func (w *world) candidates(r *requirement, own CatalogKey) ([]*node, error) {
	var out []*node
	for _, n := range w.installed {
		if r.matches(n.op) {
			out = append(out, n)
		}
	}
	for _, c := range w.preferred(own) {
		found, err := w.inCatalog(r, c)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

func (w *world) preferred(own CatalogKey) []Catalog {
	cats := slices.Clone(w.ask.visible())
	slices.SortFunc(cats, func(a, b Catalog) int {
		return cmp.Or(
			compareBool(b.Key == own, a.Key == own),
			cmp.Compare(b.Priority, a.Priority),
			compareBool(b.Key.Namespace == w.namespace, a.Key.Namespace == w.namespace),
			cmp.Compare(a.Key.Name, b.Key.Name),
			cmp.Compare(a.Key.Namespace, b.Key.Namespace))
	})
	return slices.DeleteFunc(cats, func(c Catalog) bool { return !c.Ready })
}

// inCatalog gives the matching entries of one catalog in order: default channels before others.
func (w *world) inCatalog(r *requirement, c Catalog) ([]*node, error) {
	var first, rest []*node
	for _, name := range w.packages(r, c.Key) {
		p := w.ask.pkg(c.Key, name)
		if p == nil {
			continue
		}
		for i := range p.channels {
			found, err := w.inChannel(r, c, name, &p.channels[i])
			if err != nil {
				return nil, err
			}
			if p.channels[i].isDefault {
				first = append(first, found...)
			} else {
				rest = append(rest, found...)
			}
		}
	}
	return append(first, rest...), nil
}

// inChannel gives the matching entries from the head down. A malformed channel that holds a match is an error
// (RESOLVER-NOTES 3.3): its order is not known.
func (w *world) inChannel(r *requirement, c Catalog, pkg string, ch *channel) ([]*node, error) {
	if ch.err != nil {
		if matchesAny(r, ch) {
			return nil, &failure{class: ClassInvalidChannel, statement: malformedChannel(c, pkg, ch)}
		}
		return nil, nil
	}
	var out []*node
	for _, e := range ch.entries {
		if r.matches(e.bundle) {
			out = append(out, w.entry(c, ch, e))
		}
	}
	return out, nil
}

func matchesAny(r *requirement, ch *channel) bool {
	for _, e := range ch.all {
		if r.matches(e.bundle) {
			return true
		}
	}
	return false
}

// packages are those of a catalog that may hold a match, sorted.
func (w *world) packages(r *requirement, c CatalogKey) []string {
	apis, names, ok := r.anchors()
	if !ok {
		return w.ask.names(c)
	}
	var out []string
	for _, api := range apis {
		out = append(out, w.ask.providers(c, api)...)
	}
	out = append(out, names...)
	slices.Sort(out)
	return slices.Compact(out)
}

// touched notes what a requirement's answer depends on beside catalogs; all is true where any bundle
// may matter.
func (r *requirement) touched(t *slotTable, into *slotSet) (all bool) {
	apis, names, ok := r.anchors()
	for _, api := range apis {
		into.add(t.id(slotAPI + APIName(api)))
	}
	for _, p := range names {
		into.add(t.id(slotPackage + p))
	}
	return !ok
}
