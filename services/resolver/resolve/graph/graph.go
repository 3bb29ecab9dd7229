package graph

import (
	"cmp"
	"slices"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/services/resolver/offer"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// NodeID is the index of a node in its graph; None is no node.
type NodeID int32

// None is no node.
const None NodeID = -1

// Node is something that can be chosen: an installed CSV, or a bundle as an entry of one channel of one
// catalog. The same bundle in two channels is two nodes, which exclude each other (RESOLVER-NOTES 6.1).
type Node struct {
	Operator int32 // in Graph.Operators
	Channel  string
	Entry    *offer.Entry   // how the channel leads to it; nil for an installed CSV
	pkg      *offer.Package // the document that it comes from; nil for an installed CSV
}

// Operator is a bundle of one catalog, or an installed CSV, with what all of its nodes have in common.
type Operator struct {
	Offer        *offer.Operator
	Catalog      int32   // in Graph.Catalogs; installedCatalog for an installed CSV
	Requirements []int32 // in the order of the bundle; incomplete where a walk ended early
	Slots        []SlotID
	Bound        int32 // the first one that forbids it; -1 where none does
	walk         int32 // the last one that came by; 0 where none did
}

// installedCatalog is the catalog of what is installed.
const installedCatalog = -1

// Graph is everything that the roots of a namespace reach. The first nodes are the installed CSVs, in the order of
// their names.
type Graph struct {
	Reader    *Reader
	Effort    *resolution.Effort
	Bounds    []resolution.CompiledBound
	Catalogs  []resolution.Catalog // that are ready, in the order of preference where nobody has an own one
	Nodes     []Node
	Operators []Operator
	// Requirements are those of all operators, each once for a catalog that comes first.
	Requirements []Requirement
	// Place is the index of each node in its partition.
	Place []int32

	namespace  string
	roots      []*Root
	csvs       map[string]NodeID
	followed   []string // by installed node: the subscription that follows it, "" where none does
	operatorOf map[operatorKey]int32
	chains     map[chainKey][]NodeID // nodes of a channel's entries, in their order; None where there is none yet
	unordered  map[entryKey]NodeID   // nodes of entries outside the order
	slots      slots
	needOf     map[requirementKey]int32
	offers     map[requirementKey]*offers // by requirement and the catalog that is asked
	reach      int                        // MaxReach, or what the policy says
	walks      int32
}

type operatorKey struct {
	op      *offer.Operator
	catalog int32
}

type chainKey struct {
	channel *offer.Channel
	catalog int32
}

type entryKey struct {
	chainKey

	name string
}

// Build looks up everything that the subscriptions and the installed CSVs of an input reach. The input is in
// canonical order.
func Build(in *resolution.Input, r *Reader) *Graph {
	g := newGraph(in, r)
	g.roots = g.rootsOf(in)
	for _, rt := range g.roots {
		if rt.Sub != nil {
			rt.findCandidates(g)
		}
	}
	g.expand(g.roots)
	g.fillSlots()
	return g
}

func newGraph(in *resolution.Input, r *Reader) *Graph {
	g := &Graph{
		Reader: r, namespace: in.Scope.Namespace, Effort: in.Effort, Bounds: resolution.CompileBounds(in.Policy.Bounds),
		csvs: make(map[string]NodeID, len(in.Installed)), operatorOf: map[operatorKey]int32{},
		chains: map[chainKey][]NodeID{}, unordered: map[entryKey]NodeID{}, slots: newSlots(),
		needOf: map[requirementKey]int32{}, offers: map[requirementKey]*offers{},
		reach: cmp.Or(in.Policy.MaxReach, MaxReach),
	}
	for _, c := range r.catalogs {
		if c.Ready {
			g.Catalogs = append(g.Catalogs, c)
		}
	}
	slices.SortFunc(g.Catalogs, func(a, b resolution.Catalog) int {
		return cmp.Or(
			cmp.Compare(b.Priority, a.Priority),
			compareBool(b.Key.Namespace == g.namespace, a.Key.Namespace == g.namespace),
			cmp.Compare(a.Key.Name, b.Key.Name),
			cmp.Compare(a.Key.Namespace, b.Key.Namespace))
	})
	for _, i := range in.Installed {
		op := offer.NewOperator(i.CSV, i.Package, i.Version, i.Content, i.Properties)
		g.Nodes = append(g.Nodes, Node{Operator: g.operator(op, installedCatalog)})
		if _, twice := g.csvs[i.CSV]; !twice {
			g.csvs[i.CSV] = NodeID(len(g.followed))
		}
		g.followed = append(g.followed, "")
	}
	return g
}

// Op is what the operator of a node offers and requires.
func (g *Graph) Op(n NodeID) *offer.Operator { return g.Operators[g.Nodes[n].Operator].Offer }

// OperatorOf is the operator of a node.
func (g *Graph) OperatorOf(n NodeID) *Operator { return &g.Operators[g.Nodes[n].Operator] }

// IsInstalled says whether a node is an installed CSV.
func (g *Graph) IsInstalled(n NodeID) bool { return int(n) < len(g.followed) }

// AlreadyInstalled says whether a bundle is installed: there is a CSV of its name and package, or one whose package
// nobody knows.
func (g *Graph) AlreadyInstalled(n NodeID) bool {
	csv := g.installedNamed(g.Op(n).Name)
	return csv != None && (g.Op(csv).Package == "" || g.Op(csv).Package == g.Op(n).Package)
}

// installedNamed is the node of an installed CSV, None where it is not there.
func (g *Graph) installedNamed(csv string) NodeID {
	if n, ok := g.csvs[csv]; ok {
		return n
	}
	return None
}

// TakesOver is the installed CSV that a bundle replaces though no subscription follows it: its entry names it as its
// predecessor (RESOLVER-NOTES 7.1). None where there is none.
func (g *Graph) TakesOver(n NodeID) NodeID {
	if g.IsInstalled(n) {
		return None
	}
	if over := g.installedNamed(g.Nodes[n].Entry.Replaces); over != None && g.followed[over] == "" {
		return over
	}
	return None
}

// CatalogOf is the catalog that a node comes from; the zero key for an installed CSV.
func (g *Graph) CatalogOf(n NodeID) resolution.CatalogKey {
	if c := g.OperatorOf(n).Catalog; c != installedCatalog {
		return g.Catalogs[c].Key
	}
	return resolution.CatalogKey{}
}

// ID is how explanations name a node: catalog/channel/name, or "installed name".
func (g *Graph) ID(n NodeID) string {
	if g.IsInstalled(n) {
		return "installed " + g.Op(n).Name
	}
	return g.CatalogOf(n).String() + "/" + g.Nodes[n].Channel + "/" + g.Op(n).Name
}

// Revision is the digest of the package document that a node comes from, "" for an installed CSV.
func (g *Graph) Revision(n NodeID) string {
	if p := g.Nodes[n].pkg; p != nil {
		return string(p.Digest)
	}
	return ""
}

// Compare orders nodes by name, channel and catalog.
func (g *Graph) Compare(a, b NodeID) int {
	return cmp.Or(cmp.Compare(g.Op(a).Name, g.Op(b).Name), cmp.Compare(g.Nodes[a].Channel, g.Nodes[b].Channel),
		g.CatalogOf(a).Compare(g.CatalogOf(b)))
}

// operator finds or makes what the nodes of an operator share.
func (g *Graph) operator(op *offer.Operator, in int32) int32 {
	k := operatorKey{op, in}
	if o, ok := g.operatorOf[k]; ok {
		return o
	}
	o := Operator{Offer: op, Catalog: in, Bound: -1}
	o.Slots = make([]SlotID, 0, 1+len(op.APIs))
	if op.Package != "" {
		o.Slots = append(o.Slots, g.slots.ofPackage(op.Package))
	}
	for _, api := range op.APIs {
		o.Slots = append(o.Slots, g.slots.ofAPI(api))
	}
	if in != installedCatalog {
		o.Bound = g.forbidding(op, g.Catalogs[in].Key)
	}
	g.Operators = append(g.Operators, o)
	g.operatorOf[k] = int32(len(g.Operators) - 1)
	return g.operatorOf[k]
}

// forbidding is the first bound that forbids an operator of a catalog, -1 where none does.
func (g *Graph) forbidding(op *offer.Operator, c resolution.CatalogKey) int32 {
	for i := range g.Bounds {
		if b := &g.Bounds[i]; b.Concerns(op.Package, c) && !b.Allows(op) {
			return int32(i)
		}
	}
	return -1
}

// entry returns the node of the i-th entry of a channel, always the same one.
func (g *Graph) entry(in int32, p *offer.Package, ch *offer.Channel, i int) NodeID {
	k := chainKey{ch, in}
	chain := g.chains[k]
	if chain == nil {
		chain = make([]NodeID, len(ch.Entries))
		for j := range chain {
			chain[j] = None
		}
		g.chains[k] = chain
	}
	if chain[i] == None {
		chain[i] = g.add(in, p, ch.Name, &ch.Entries[i])
	}
	return chain[i]
}

// named returns the node of an entry by name, in the order of its channel or not (R-GRA-12).
func (g *Graph) named(in int32, p *offer.Package, ch *offer.Channel, name string) NodeID {
	for i := range ch.Entries {
		if ch.Entries[i].Name == name {
			return g.entry(in, p, ch, i)
		}
	}
	k := entryKey{chainKey{ch, in}, name}
	n, ok := g.unordered[k]
	if !ok {
		e := ch.All[name]
		n = g.add(in, p, ch.Name, &e)
		g.unordered[k] = n
	}
	return n
}

func (g *Graph) add(in int32, p *offer.Package, channel string, e *offer.Entry) NodeID {
	g.Nodes = append(g.Nodes, Node{Operator: g.operator(e.Bundle, in), Channel: channel, Entry: e, pkg: p})
	return NodeID(len(g.Nodes) - 1)
}

// SlotID is the index of a slot in its graph.
type SlotID int32

// Slot is what at most one chosen node may have: a package name, or an API (R-RES-11, R-RES-12).
type Slot struct {
	Package string // "" for an API
	API     catalog.GVK
}

type slots struct {
	all  []Slot
	pkgs map[string]SlotID
	apis map[catalog.GVK]SlotID
	// holders are the nodes of each slot, once the graph is complete.
	holders [][]NodeID
}

func newSlots() slots { return slots{pkgs: map[string]SlotID{}, apis: map[catalog.GVK]SlotID{}} }

func (s *slots) ofPackage(pkg string) SlotID {
	id, ok := s.pkgs[pkg]
	if !ok {
		id = SlotID(len(s.all))
		s.all = append(s.all, Slot{Package: pkg})
		s.pkgs[pkg] = id
	}
	return id
}

func (s *slots) ofAPI(api catalog.GVK) SlotID {
	id, ok := s.apis[api]
	if !ok {
		id = SlotID(len(s.all))
		s.all = append(s.all, Slot{API: api})
		s.apis[api] = id
	}
	return id
}

// Slot is one of the graph's.
func (g *Graph) Slot(s SlotID) Slot { return g.slots.all[s] }

// Holders are the nodes that have a slot if they are chosen.
func (g *Graph) Holders(s SlotID) []NodeID { return g.slots.holders[s] }

// fillSlots lists the holders of each slot.
func (g *Graph) fillSlots() {
	sizes := make([]int32, len(g.slots.all))
	total := 0
	for i := range g.Nodes {
		for _, s := range g.OperatorOf(NodeID(i)).Slots {
			sizes[s]++
			total++
		}
	}
	room := make([]NodeID, total)
	g.slots.holders = make([][]NodeID, len(sizes))
	for s, n := range sizes {
		g.slots.holders[s], room = room[:0:n], room[n:]
	}
	for i := range g.Nodes {
		for _, s := range g.OperatorOf(NodeID(i)).Slots {
			g.slots.holders[s] = append(g.slots.holders[s], NodeID(i))
		}
	}
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
