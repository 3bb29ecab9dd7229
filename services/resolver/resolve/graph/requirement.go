package graph

import (
	"fmt"
	"maps"
	"slices"

	"github.com/chandler-fleet/chandler/services/resolver/offer"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// MaxReach bounds what is visited for one root, so that a hostile catalog meets a fixed bound and a named error
// (DESIGN D10). The unit is a comparison of a bundle with a requirement; a rule costs as many as it takes longer. Real
// namespaces have some thousands, and 2 to 3 million for each rule that has to be asked of every published bundle.
const MaxReach = 20_000_000

// What else is counted, in the same unit, for the memory that it takes.
const (
	packageCost   = 1
	candidateCost = 20
)

// Requirement is one of bundles of one catalog: what may meet it, by preference (R-RES-35).
type Requirement struct {
	Offer      *offer.Requirement
	Candidates []NodeID // what is installed comes first
	Users      int32    // how many operators have it
	faults     []Fault
	reads      []int32
	cost       int
	walk       int32 // the last one that came by
}

// requirementKey names a requirement by what it asks for, and the catalog that comes first for who asks; or the one
// catalog that is asked.
type requirementKey struct {
	req     string
	catalog int32
}

// offers are what one catalog has for a requirement, by preference. They are the same whoever asks.
type offers struct {
	catalog int32
	found   []found
	cands   []NodeID // of what was found, once it is known that the requirement is visited as a whole
	faults  []Fault
	reads   []int32
	cost    int
}

// found is an entry that meets a requirement.
type found struct {
	pkg     *offer.Package
	channel *offer.Channel
	entry   int32
}

// expand looks up what each root reaches: what its candidates ask for, what may meet that, and so on. One walk takes
// in root after root, since most have much in common. A root with which it gets too long is visited again by itself:
// what other roots reach does not decide whether this one reaches too much.
func (g *Graph) expand(roots []*Root) {
	k := g.walk()
	for _, r := range roots {
		if _, _, done := k.root(r); done {
			continue
		}
		k = g.walk()
		own, f, done := k.root(r)
		if done {
			continue
		}
		r.reads = append(r.reads, k.reads...)
		if own {
			r.InstalledFaults = append(r.InstalledFaults, f)
		} else {
			r.Faults = append(r.Faults, f)
		}
		k = g.walk()
	}
}

// walk goes through what roots reach, everything once. Where it ends early, what it did not come to stays without
// requirements; nobody but the root that fails for it has to do with that.
type walk struct {
	g      *Graph
	number int32
	left   int     // of the bound
	queue  []int32 // operators
	stuck  *offer.Requirement
	reads  []int32 // of the requirement where it got stuck
}

func (g *Graph) walk() *walk {
	g.walks++
	return &walk{g: g, number: g.walks, left: g.reach}
}

// root takes in what a root reaches, beginning with what is installed. Where that is too much, own says whether what is
// installed reaches too much by itself.
func (k *walk) root(r *Root) (own bool, f Fault, done bool) {
	if r.Node != None && !k.nodes(r.Node) {
		return true, k.tooMuch(r), false
	}
	if !k.nodes(r.Candidates...) {
		return false, k.tooMuch(r), false
	}
	return false, Fault{}, true
}

func (k *walk) tooMuch(r *Root) Fault {
	return Fault{Class: resolution.ClassTooHard, Statement: resolution.Statement{
		Kind: resolution.SearchTooLong, Requirement: k.stuck.Text,
		Text: fmt.Sprintf("what %s reaches takes more than %d comparisons of bundles with requirements; "+
			"a requirement for an operator %s is the first that is not looked at any more",
			r.Text(), k.g.reach, k.stuck.Text),
	}}
}

// nodes takes in what some nodes reach. It returns false where that is too much.
func (k *walk) nodes(from ...NodeID) bool {
	k.enqueue(from)
	for len(k.queue) > 0 {
		at := k.queue[0]
		k.queue = k.queue[1:]
		for i, r := range k.g.Operators[at].Offer.Requires {
			if !k.requires(at, i, r) {
				k.stuck = r
				return false
			}
		}
	}
	return true
}

func (k *walk) enqueue(nodes []NodeID) {
	for _, n := range nodes {
		at := k.g.Nodes[n].Operator
		if s := &k.g.Operators[at]; s.walk != k.number {
			s.walk = k.number
			k.queue = append(k.queue, at)
		}
	}
}

// requires takes in the i-th requirement of a operator. Requirements that are known already count, too.
func (k *walk) requires(at int32, i int, r *offer.Requirement) bool {
	g := k.g
	if i == len(g.Operators[at].Requirements) {
		n, ok := k.requirement(r, g.Operators[at].Catalog)
		if !ok {
			return false
		}
		g.Requirements[n].Users++
		g.Operators[at].Requirements = append(g.Operators[at].Requirements, n)
	}
	n := &g.Requirements[g.Operators[at].Requirements[i]]
	if n.walk == k.number {
		return true
	}
	n.walk = k.number
	if k.left -= n.cost; k.left < 0 {
		return false
	}
	k.enqueue(n.Candidates)
	return true
}

// requirement finds or fills a requirement of bundles of a catalog: what is installed comes first, then that catalog,
// then the others by priority, those of the namespace first, by name. Where it takes more than is left nothing of it
// is kept but the questions.
func (k *walk) requirement(r *offer.Requirement, own int32) (number int32, ok bool) {
	g := k.g
	key := requirementKey{r.Key(), own}
	if n, known := g.needOf[key]; known {
		return n, true
	}
	n := Requirement{Offer: r, cost: r.CompileCost()}
	g.Reader.Into(&n.reads)
	g.Reader.Visible()
	offered := make([]*offers, 0, len(g.Catalogs))
	for i := range g.Catalogs {
		in := inTurn(own, int32(i))
		o, whole := g.inCatalog(r, in, k.left-n.cost)
		n.reads = append(n.reads, o.reads...)
		if n.cost += o.cost; !whole {
			k.reads = n.reads
			return 0, false
		}
		offered = append(offered, o)
	}
	n.Candidates, n.faults = g.amongInstalled(r)
	n.cost += candidateCost * len(n.Candidates)
	for _, o := range offered {
		n.Candidates = append(n.Candidates, g.found(o)...)
		n.faults = append(n.faults, o.faults...)
	}
	g.Requirements = append(g.Requirements, n)
	g.needOf[key] = int32(len(g.Requirements) - 1)
	return g.needOf[key], true
}

// inTurn is the i-th catalog to ask where one, if any, comes before its turn.
func inTurn(own, i int32) int32 {
	switch {
	case i > own:
		return i
	case i == 0:
		return own
	}
	return i - 1
}

// found makes nodes of what a catalog offers.
func (g *Graph) found(o *offers) []NodeID {
	if o.cands == nil && len(o.found) > 0 {
		o.cands = make([]NodeID, 0, len(o.found))
		for _, f := range o.found {
			o.cands = append(o.cands, g.entry(o.catalog, f.pkg, f.channel, int(f.entry)))
		}
		o.found = nil
	}
	return o.cands
}

// amongInstalled are the installed CSVs that meet a requirement, by name. OLM takes those of one package for
// entries of one channel that has no name and no order, and reads one CSV only of those that no subscription
// follows: two of one package cannot be distinguished, and whoever has the requirement fails (RESOLVER-NOTES 3.4).
func (g *Graph) amongInstalled(r *offer.Requirement) ([]NodeID, []Fault) {
	var out []NodeID
	var faults []Fault
	first := map[string]NodeID{}
	unfollowed := false
	for i, follower := range g.followed {
		n := NodeID(i)
		if !r.Matches(g.Op(n)) {
			continue
		}
		out = append(out, n)
		if follower == "" {
			if unfollowed {
				continue
			}
			unfollowed = true
		}
		pkg := g.Op(n).Package
		if other, ok := first[pkg]; ok {
			faults = append(faults, g.twoOfOnePackage(r, other, n))
			continue
		}
		first[pkg] = n
	}
	return out, faults
}

// inCatalog asks one catalog. whole is false where that takes more than limit; what is returned then is the
// questions up to there, which are the same whatever was asked before.
func (g *Graph) inCatalog(r *offer.Requirement, in int32, limit int) (o *offers, whole bool) {
	k := requirementKey{r.Key(), in}
	if known := g.offers[k]; known != nil && known.cost <= limit {
		return known, true
	}
	o = &offers{catalog: in}
	g.Reader.Into(&o.reads)
	var rest []found // of channels that are not their package's default one
	for _, name := range g.packages(r, g.Catalogs[in].Key) {
		if o.cost += packageCost; o.cost > limit {
			return o, false
		}
		p := g.Reader.Package(g.Catalogs[in].Key, name)
		if p == nil {
			continue
		}
		for i := range p.Channels {
			into := &o.found
			if !p.Channels[i].Default {
				into = &rest
			}
			o.inChannel(g, r, p, &p.Channels[i], into, limit)
			if o.cost > limit {
				return o, false
			}
		}
	}
	o.found = append(o.found, rest...)
	g.offers[k] = o
	return o, true
}

// packages are those of a catalog that may hold a match, sorted.
func (g *Graph) packages(r *offer.Requirement, c resolution.CatalogKey) []string {
	apis, names, ok := r.Anchors()
	if !ok {
		return g.Reader.Names(c)
	}
	if len(apis) == 1 && len(names) == 0 {
		return g.Reader.Providers(c, apis[0])
	}
	var out []string
	for _, api := range apis {
		out = append(out, g.Reader.Providers(c, api)...)
	}
	out = append(out, names...)
	slices.Sort(out)
	return slices.Compact(out)
}

// inChannel adds the matching entries from the head down, as long as that does not take too much. A malformed channel
// that holds a match is a fault (RESOLVER-NOTES 3.3): its order is not known.
func (o *offers) inChannel(g *Graph, r *offer.Requirement, p *offer.Package, ch *offer.Channel, into *[]found,
	limit int,
) {
	if ch.Err != nil {
		for _, name := range slices.Sorted(maps.Keys(ch.All)) { // in an order, so that the cost is always the same
			if o.cost > limit {
				return
			}
			if o.compare(r, ch.All[name].Bundle) {
				o.faults = append(o.faults, malformedChannel(g.Catalogs[o.catalog].Key, p, ch))
				return
			}
		}
		return
	}
	for i := 0; i < len(ch.Entries) && o.cost <= limit; i++ {
		if o.compare(r, ch.Entries[i].Bundle) {
			o.cost += candidateCost
			*into = append(*into, found{p, ch, int32(i)})
		}
	}
}

// compare compares a bundle with a requirement, and counts that.
func (o *offers) compare(r *offer.Requirement, op *offer.Operator) bool {
	met, cost := r.Compare(op)
	o.cost += cost
	return met
}

// complete says whether all that an operator requires was looked up.
func (o *Operator) complete() bool { return len(o.Requirements) == len(o.Offer.Requires) }
