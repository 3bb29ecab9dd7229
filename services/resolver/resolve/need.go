package resolve

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/services/resolver/offer"
)

// MaxReach bounds what is looked at for one root, so that a hostile catalog meets a fixed bound and a named error
// (DESIGN D10). The unit is a comparison of a bundle with a requirement; a rule costs as many as it takes longer. Real
// namespaces have some thousands, and 2 to 3 million for each rule that has to be asked of every published bundle.
const MaxReach = 20_000_000

// What else is counted, in the same unit, for the memory that it takes.
const (
	packageCost   = 1
	candidateCost = 20
)

// need is a requirement of bundles of one catalog: what may meet it, by preference (R-RES-35).
type need struct {
	req    *offer.Requirement
	cands  []nodeID
	faults []failure
	reads  []int32
	cost   int
	asked  int32 // how many shapes have it
	walk   int32 // the last one that came by
}

// needKey names a requirement by what it asks for, and the catalog that comes first for who asks; or the one
// catalog that is asked.
type needKey struct {
	req     string
	catalog int32
}

// offers are what one catalog has for a requirement, by preference. They are the same whoever asks.
type offers struct {
	catalog int32
	found   []found
	cands   []nodeID // of what was found, once it is known that the requirement is looked at as a whole
	faults  []failure
	reads   []int32
	cost    int
}

// found is an entry that meets a requirement.
type found struct {
	pkg     *offer.Package
	channel *offer.Channel
	entry   int32
}

// failure is a fault in the catalogs' content that prevents a resolution whatever is chosen.
type failure struct {
	class     Class
	statement Statement
}

// expand looks up what each root reaches: what its candidates ask for, what may meet that, and so on. One walk takes
// in root after root, since most have much in common. A root with which it gets too long is looked at again by itself:
// what other roots reach does not decide whether this one reaches too much.
func (w *world) expand(roots []*root) {
	k := w.walk()
	for _, r := range roots {
		if _, _, done := k.root(r); done {
			continue
		}
		k = w.walk()
		own, f, done := k.root(r)
		if done {
			continue
		}
		r.reads = append(r.reads, k.reads...)
		if own {
			r.burden = append(r.burden, f)
		} else {
			r.faults = append(r.faults, f)
		}
		k = w.walk()
	}
}

// walk goes through what roots reach, everything once. Where it ends early, what it did not come to stays without
// requirements; nobody but the root that fails for it has to do with that.
type walk struct {
	w      *world
	number int32
	left   int     // of the bound
	queue  []int32 // shapes
	stuck  *offer.Requirement
	reads  []int32 // of the requirement where it got stuck
}

func (w *world) walk() *walk {
	w.walks++
	return &walk{w: w, number: w.walks, left: w.reach}
}

// root takes in what a root reaches, beginning with what is installed. Where that is too much, own says whether what is
// installed reaches too much by itself.
func (k *walk) root(r *root) (own bool, f failure, done bool) {
	if r.node != none && !k.nodes(r.node) {
		return true, k.tooMuch(r), false
	}
	if !k.nodes(r.cands...) {
		return false, k.tooMuch(r), false
	}
	return false, failure{}, true
}

func (k *walk) tooMuch(r *root) failure {
	return failure{class: ClassTooHard, statement: Statement{
		Kind: SearchTooLong, Requirement: k.stuck.Text,
		Text: fmt.Sprintf("what %s reaches takes more than %d comparisons of bundles with requirements; a requirement for an operator %s is the first that is not looked at any more",
			r.text(), k.w.reach, k.stuck.Text),
	}}
}

// nodes takes in what some nodes reach. It returns false where that is too much.
func (k *walk) nodes(from ...nodeID) bool {
	k.enqueue(from)
	for len(k.queue) > 0 {
		at := k.queue[0]
		k.queue = k.queue[1:]
		for i, r := range k.w.shapes[at].op.Requires {
			if !k.requires(at, i, r) {
				k.stuck = r
				return false
			}
		}
	}
	return true
}

func (k *walk) enqueue(nodes []nodeID) {
	for _, n := range nodes {
		at := k.w.nodes[n].shape
		if s := &k.w.shapes[at]; s.walk != k.number {
			s.walk = k.number
			k.queue = append(k.queue, at)
		}
	}
}

// requires takes in the i-th requirement of a shape. Requirements that are known already count, too.
func (k *walk) requires(at int32, i int, r *offer.Requirement) bool {
	w := k.w
	if i == len(w.shapes[at].needs) {
		n, ok := k.need(r, w.shapes[at].catalog)
		if !ok {
			return false
		}
		w.needs[n].asked++
		w.shapes[at].needs = append(w.shapes[at].needs, n)
	}
	n := &w.needs[w.shapes[at].needs[i]]
	if n.walk == k.number {
		return true
	}
	n.walk = k.number
	if k.left -= n.cost; k.left < 0 {
		return false
	}
	k.enqueue(n.cands)
	return true
}

// need finds or fills a requirement of bundles of a catalog: what is installed comes first, then that catalog, then
// the others by priority, those of the namespace first, by name. Where it takes more than is left nothing of it is
// kept but the questions.
func (k *walk) need(r *offer.Requirement, own int32) (number int32, ok bool) {
	w := k.w
	key := needKey{r.Key(), own}
	if n, known := w.needOf[key]; known {
		return n, true
	}
	n := need{req: r, cost: r.CompileCost()}
	w.ask.noting(&n.reads)
	w.ask.visible()
	offered := make([]*offers, 0, len(w.catalogs))
	for i := range w.catalogs {
		in := inTurn(own, int32(i))
		o, whole := w.inCatalog(r, in, k.left-n.cost)
		n.reads = append(n.reads, o.reads...)
		if n.cost += o.cost; !whole {
			k.reads = n.reads
			return 0, false
		}
		offered = append(offered, o)
	}
	n.cands, n.faults = w.amongInstalled(r)
	n.cost += candidateCost * len(n.cands)
	for _, o := range offered {
		n.cands = append(n.cands, w.found(o)...)
		n.faults = append(n.faults, o.faults...)
	}
	w.needs = append(w.needs, n)
	w.needOf[key] = int32(len(w.needs) - 1)
	return w.needOf[key], true
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
func (w *world) found(o *offers) []nodeID {
	if o.cands == nil && len(o.found) > 0 {
		o.cands = make([]nodeID, 0, len(o.found))
		for _, f := range o.found {
			o.cands = append(o.cands, w.entry(o.catalog, f.pkg, f.channel, int(f.entry)))
		}
		o.found = nil
	}
	return o.cands
}

// amongInstalled are the installed CSVs that meet a requirement, by name. OLM takes those of one package for
// entries of one channel that has no name and no order, and looks at one CSV only of those that no subscription
// follows: two of one package cannot be told apart, and whoever has the requirement fails (RESOLVER-NOTES 3.4).
func (w *world) amongInstalled(r *offer.Requirement) ([]nodeID, []failure) {
	var out []nodeID
	var faults []failure
	first := map[string]nodeID{}
	unfollowed := false
	for i, follower := range w.followed {
		n := nodeID(i)
		if !r.Matches(w.op(n)) {
			continue
		}
		out = append(out, n)
		if follower == "" {
			if unfollowed {
				continue
			}
			unfollowed = true
		}
		pkg := w.op(n).Package
		if other, ok := first[pkg]; ok {
			faults = append(faults, w.inNoOrder(r, other, n))
			continue
		}
		first[pkg] = n
	}
	return out, faults
}

func (w *world) inNoOrder(r *offer.Requirement, a, b nodeID) failure {
	return failure{class: ClassInvalidChannel, statement: Statement{
		Kind: ChannelMalformed, Bundle: w.id(a), Other: w.id(b), Package: w.op(a).Package, Requirement: r.Text,
		Text: fmt.Sprintf("%s and %s are two operators of one package %q, and which of them counts for a requirement %s is not known; one of them has to go first",
			w.id(a), w.id(b), w.op(a).Package, r.Text),
	}}
}

// inCatalog asks one catalog. whole is false where that takes more than limit; what is returned then is the
// questions up to there, which are the same whatever was asked before.
func (w *world) inCatalog(r *offer.Requirement, in int32, limit int) (o *offers, whole bool) {
	k := needKey{r.Key(), in}
	if known := w.offers[k]; known != nil && known.cost <= limit {
		return known, true
	}
	o = &offers{catalog: in}
	w.ask.noting(&o.reads)
	var rest []found // of channels that are not their package's default one
	for _, name := range w.packages(r, w.catalogs[in].Key) {
		if o.cost += packageCost; o.cost > limit {
			return o, false
		}
		p := w.ask.pkg(w.catalogs[in].Key, name)
		if p == nil {
			continue
		}
		for i := range p.Channels {
			into := &o.found
			if !p.Channels[i].Default {
				into = &rest
			}
			o.inChannel(w, r, p, &p.Channels[i], into, limit)
			if o.cost > limit {
				return o, false
			}
		}
	}
	o.found = append(o.found, rest...)
	w.offers[k] = o
	return o, true
}

// packages are those of a catalog that may hold a match, sorted.
func (w *world) packages(r *offer.Requirement, c CatalogKey) []string {
	apis, names, ok := r.Anchors()
	if !ok {
		return w.ask.names(c)
	}
	if len(apis) == 1 && len(names) == 0 {
		return w.ask.providers(c, apis[0])
	}
	var out []string
	for _, api := range apis {
		out = append(out, w.ask.providers(c, api)...)
	}
	out = append(out, names...)
	slices.Sort(out)
	return slices.Compact(out)
}

// inChannel adds the matching entries from the head down, as long as that does not take too much. A malformed channel
// that holds a match is a fault (RESOLVER-NOTES 3.3): its order is not known.
func (o *offers) inChannel(w *world, r *offer.Requirement, p *offer.Package, ch *offer.Channel, into *[]found, limit int) {
	if ch.Err != nil {
		for _, name := range slices.Sorted(maps.Keys(ch.All)) { // in an order, so that the cost is always the same
			if o.cost > limit {
				return
			}
			if o.compare(r, ch.All[name].Bundle) {
				o.faults = append(o.faults, malformedChannel(w.catalogs[o.catalog].Key, p, ch))
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

func malformedChannel(c CatalogKey, p *offer.Package, ch *offer.Channel) failure {
	return failure{class: ClassInvalidChannel, statement: Statement{
		Kind: ChannelMalformed, Catalog: c.String(), Revision: string(p.Digest), Package: p.Name, Channel: ch.Name,
		Text: fmt.Sprintf("catalog %s: %v", c, ch.Err),
	}}
}

// looked says whether all that a shape requires was looked up.
func (s *shape) looked() bool { return len(s.needs) == len(s.op.Requires) }

// malformed is the fault of a bundle whose requirements cannot be read (RESOLVER-NOTES 2.8); ok is false where
// all can.
func (w *world) malformed(n nodeID) (failure, bool) {
	op := w.op(n)
	if !w.shapes[w.nodes[n].shape].looked() || op.Malformed() == "" {
		return failure{}, false
	}
	s := Statement{Kind: RequirementMalformed, Bundle: op.Name, Package: op.Package}
	if w.isInstalled(n) {
		s.Text = fmt.Sprintf("%s has a requirement that cannot be read: %s", w.id(n), op.Malformed())
	} else {
		s.Catalog, s.Revision = w.catalogOf(n).String(), w.revision(n)
		s.Text = fmt.Sprintf("bundle %s of package %s in catalog %s has a requirement that cannot be read: %s", op.Name, op.Package, s.Catalog, op.Malformed())
	}
	return failure{class: ClassInvalidConstraint, statement: s}, true
}

// requiring is the sentence of a requirement: who asks for what, with the author's own words.
func (w *world) requiring(n nodeID, r *offer.Requirement) string {
	text := fmt.Sprintf("%s requires an operator %s", w.id(n), r.Text)
	if !w.isInstalled(n) {
		text = "bundle " + text
	}
	if r.Message == "" {
		return text
	}
	return text + " (" + strings.TrimSpace(r.Message) + ")"
}
