package resolve

import (
	"cmp"
	"slices"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/services/resolver/offer"
	"github.com/chandler-fleet/chandler/services/resolver/sat"
)

// nodeID is the place of a node in its world; none is no node.
type nodeID int32

const none nodeID = -1

// node is something that can be chosen: an installed CSV, or a bundle as an entry of one channel of one
// catalog. The same bundle in two channels is two nodes, which exclude each other (RESOLVER-NOTES 6.1).
type node struct {
	shape   int32
	channel string
	edge    *offer.Entry   // how the channel leads to it; nil for an installed CSV
	of      *offer.Package // the document that it comes from; nil for an installed CSV
}

// shape is what all nodes of one operator of one catalog have in common.
type shape struct {
	op      *offer.Operator
	catalog int32   // in world.catalogs; installedCatalog for an installed CSV
	needs   []int32 // of its requirements, in their order; the first ones alone where a walk ended early
	slots   []slotID
	policy  int32 // the first bound that forbids it; -1 where none does
	walk    int32 // the last one that came by; 0 where none did
}

// installedCatalog is the catalog of what is installed.
const installedCatalog = -1

// world is everything that the roots of a namespace reach: what may be chosen for them, what that asks for,
// and so on, whether it will be chosen or not (RESOLVER-NOTES 2.8). The first nodes are the installed CSVs, in
// the order of their names.
type world struct {
	ask       *asker
	namespace string
	effort    *Effort
	bounds    []bound
	catalogs  []Catalog // that are ready, in the order of preference where nobody has an own one
	csvs      map[string]nodeID
	followed  []string // by installed node: the subscription that follows it, "" where none does

	nodes   []node
	shapes  []shape
	shapeOf map[shapeKey]int32
	chains  map[chainKey][]nodeID // nodes of a channel's entries, in their order; none where there is none yet
	aside   map[entryKey]nodeID   // nodes of entries outside the order
	slots   slots
	lits    []sat.Lit // by node, once there are clusters; each cluster counts its own
	needs   []need
	needOf  map[needKey]int32
	offers  map[needKey]*offers // by requirement and the catalog that is asked
	reach   int                 // MaxReach, or what the policy says
	walks   int32
}

type shapeKey struct {
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

func newWorld(ask *asker, in *Input) *world {
	w := &world{
		ask: ask, namespace: in.Scope.Namespace, effort: in.Effort, bounds: compileBounds(in.Policy.Bounds),
		csvs: make(map[string]nodeID, len(in.Installed)), shapeOf: map[shapeKey]int32{}, chains: map[chainKey][]nodeID{}, aside: map[entryKey]nodeID{},
		slots: newSlots(), needOf: map[needKey]int32{}, offers: map[needKey]*offers{}, reach: cmp.Or(in.Policy.MaxReach, MaxReach),
	}
	for _, c := range ask.catalogs {
		if c.Ready {
			w.catalogs = append(w.catalogs, c)
		}
	}
	slices.SortFunc(w.catalogs, func(a, b Catalog) int {
		return cmp.Or(
			cmp.Compare(b.Priority, a.Priority),
			compareBool(b.Key.Namespace == w.namespace, a.Key.Namespace == w.namespace),
			cmp.Compare(a.Key.Name, b.Key.Name),
			cmp.Compare(a.Key.Namespace, b.Key.Namespace))
	})
	for _, i := range in.Installed {
		op := offer.NewOperator(i.CSV, i.Package, i.Version, i.Content, i.Properties)
		w.nodes = append(w.nodes, node{shape: w.shape(op, installedCatalog)})
		if _, twice := w.csvs[i.CSV]; !twice {
			w.csvs[i.CSV] = nodeID(len(w.followed))
		}
		w.followed = append(w.followed, "")
	}
	return w
}

func (w *world) op(n nodeID) *offer.Operator { return w.shapes[w.nodes[n].shape].op }

func (w *world) isInstalled(n nodeID) bool { return int(n) < len(w.followed) }

// already says whether a bundle is there: a CSV of its name and package, or one whose package nobody knows.
func (w *world) already(n nodeID) bool {
	there := w.installedNamed(w.op(n).Name)
	return there != none && (w.op(there).Package == "" || w.op(there).Package == w.op(n).Package)
}

// installedNamed is the node of an installed CSV, none where it is not there.
func (w *world) installedNamed(csv string) nodeID {
	if n, ok := w.csvs[csv]; ok {
		return n
	}
	return none
}

// takesOver is the installed CSV that a bundle takes the place of though no subscription follows it: its entry names
// it as the one before (RESOLVER-NOTES 7.1). none where there is none.
func (w *world) takesOver(n nodeID) nodeID {
	if w.isInstalled(n) {
		return none
	}
	if over := w.installedNamed(w.nodes[n].edge.Replaces); over != none && w.followed[over] == "" {
		return over
	}
	return none
}

func (w *world) catalogOf(n nodeID) CatalogKey {
	if c := w.shapes[w.nodes[n].shape].catalog; c != installedCatalog {
		return w.catalogs[c].Key
	}
	return CatalogKey{}
}

// id is how explanations name a node: catalog/channel/name, or "installed name".
func (w *world) id(n nodeID) string {
	if w.isInstalled(n) {
		return "installed " + w.op(n).Name
	}
	return w.catalogOf(n).String() + "/" + w.nodes[n].channel + "/" + w.op(n).Name
}

// revision is the digest of the package document that a node comes from, "" for an installed CSV.
func (w *world) revision(n nodeID) string {
	if of := w.nodes[n].of; of != nil {
		return string(of.Digest)
	}
	return ""
}

// shape finds or makes what the nodes of an operator share.
func (w *world) shape(op *offer.Operator, in int32) int32 {
	k := shapeKey{op, in}
	if s, ok := w.shapeOf[k]; ok {
		return s
	}
	s := shape{op: op, catalog: in, policy: -1}
	s.slots = make([]slotID, 0, 1+len(op.APIs))
	if op.Package != "" {
		s.slots = append(s.slots, w.slots.named(op.Package))
	}
	for _, api := range op.APIs {
		s.slots = append(s.slots, w.slots.api(api))
	}
	if in != installedCatalog {
		s.policy = w.forbidding(op, w.catalogs[in].Key)
	}
	w.shapes = append(w.shapes, s)
	w.shapeOf[k] = int32(len(w.shapes) - 1)
	return w.shapeOf[k]
}

// entry returns the node of the i-th entry of a channel, always the same one.
func (w *world) entry(in int32, p *offer.Package, ch *offer.Channel, i int) nodeID {
	k := chainKey{ch, in}
	chain := w.chains[k]
	if chain == nil {
		chain = make([]nodeID, len(ch.Entries))
		for j := range chain {
			chain[j] = none
		}
		w.chains[k] = chain
	}
	if chain[i] == none {
		chain[i] = w.add(in, p, ch.Name, &ch.Entries[i])
	}
	return chain[i]
}

// named returns the node of an entry by name, in the order of its channel or not (R-GRA-12).
func (w *world) named(in int32, p *offer.Package, ch *offer.Channel, name string) nodeID {
	for i := range ch.Entries {
		if ch.Entries[i].Name == name {
			return w.entry(in, p, ch, i)
		}
	}
	k := entryKey{chainKey{ch, in}, name}
	n, ok := w.aside[k]
	if !ok {
		e := ch.All[name]
		n = w.add(in, p, ch.Name, &e)
		w.aside[k] = n
	}
	return n
}

func (w *world) add(in int32, p *offer.Package, channel string, e *offer.Entry) nodeID {
	w.nodes = append(w.nodes, node{shape: w.shape(e.Bundle, in), channel: channel, edge: e, of: p})
	return nodeID(len(w.nodes) - 1)
}

// slotID numbers what at most one chosen node may hold: a package, an API (R-RES-11, R-RES-12).
type slotID int32

type slot struct {
	pkg string // "" for an API
	api catalog.GVK
}

type slots struct {
	all  []slot
	pkgs map[string]slotID
	apis map[catalog.GVK]slotID
	// holders are the nodes of each slot, once the world is complete.
	holders [][]nodeID
}

func newSlots() slots { return slots{pkgs: map[string]slotID{}, apis: map[catalog.GVK]slotID{}} }

func (s *slots) named(pkg string) slotID {
	id, ok := s.pkgs[pkg]
	if !ok {
		id = slotID(len(s.all))
		s.all = append(s.all, slot{pkg: pkg})
		s.pkgs[pkg] = id
	}
	return id
}

func (s *slots) api(api catalog.GVK) slotID {
	id, ok := s.apis[api]
	if !ok {
		id = slotID(len(s.all))
		s.all = append(s.all, slot{api: api})
		s.apis[api] = id
	}
	return id
}

// occupy lists who holds which slot.
func (w *world) occupy() {
	sizes := make([]int32, len(w.slots.all))
	total := 0
	for i := range w.nodes {
		for _, s := range w.shapes[w.nodes[i].shape].slots {
			sizes[s]++
			total++
		}
	}
	room := make([]nodeID, total)
	w.slots.holders = make([][]nodeID, len(sizes))
	for s, n := range sizes {
		w.slots.holders[s], room = room[:0:n], room[n:]
	}
	for i := range w.nodes {
		for _, s := range w.shapes[w.nodes[i].shape].slots {
			w.slots.holders[s] = append(w.slots.holders[s], nodeID(i))
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
