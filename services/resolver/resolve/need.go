package resolve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/services/resolver/offer"
)

// MaxCandidates bounds the candidates of all requirements of one resolution together, so that a hostile catalog
// meets a fixed bound and a named error (DESIGN D10). Real namespaces have some thousands.
const MaxCandidates = 1_000_000

// need is a requirement of bundles of one catalog: what may meet it, by preference (R-RES-35).
type need struct {
	req    *offer.Requirement
	cands  []nodeID
	faults []failure
	reads  []int32
	asked  int32 // how many shapes have it
}

// needKey names a requirement by what it asks for, and the catalog that comes first for who asks; or the one
// catalog that is asked.
type needKey struct {
	req     string
	catalog int32
}

// offers are what one catalog has for a requirement, by preference. They are the same whoever asks.
type offers struct {
	cands  []nodeID
	faults []failure
	reads  []int32
}

// failure is a fault in the catalogs' content that prevents a resolution whatever is chosen.
type failure struct {
	class     Class
	statement Statement
}

// expand looks up what the shapes ask for, and what that asks for, until nothing is new.
func (w *world) expand() {
	for ; w.expanded < len(w.shapes); w.expanded++ { // shapes grow meanwhile
		s := w.shapes[w.expanded]
		if len(s.op.Requires) == 0 {
			continue
		}
		needs := make([]int32, 0, len(s.op.Requires))
		for _, r := range s.op.Requires {
			needs = append(needs, w.need(r, s.catalog))
		}
		w.shapes[w.expanded].needs = needs
	}
}

// need finds or fills a requirement of bundles of a catalog: what is installed comes first, then that
// catalog, then the others by priority, those of the namespace first, by name.
func (w *world) need(r *offer.Requirement, own int32) int32 {
	k := needKey{r.Key(), own}
	if n, ok := w.needOf[k]; ok {
		w.needs[n].asked++
		return n
	}
	n := need{req: r, asked: 1}
	w.ask.noting(&n.reads)
	w.ask.visible()
	n.cands, n.faults = w.amongInstalled(r)
	if own != installedCatalog {
		n.add(w.inCatalog(r, own))
	}
	for c := range w.catalogs {
		if int32(c) != own {
			n.add(w.inCatalog(r, int32(c)))
		}
	}
	if w.candidates += len(n.cands); w.candidates > MaxCandidates {
		n.cands, n.faults = nil, append(n.faults, tooMany(r))
	}
	w.needs = append(w.needs, n)
	w.needOf[k] = int32(len(w.needs) - 1)
	return w.needOf[k]
}

func tooMany(r *offer.Requirement) failure {
	return failure{class: ClassTooHard, statement: Statement{
		Kind: SearchTooLong, Requirement: r.Text,
		Text: fmt.Sprintf("the requirements that this namespace reaches have more than %d candidates together, and those of a requirement for an operator %s are not looked at any more", MaxCandidates, r.Text),
	}}
}

func (n *need) add(o *offers) {
	n.cands = append(n.cands, o.cands...)
	n.faults = append(n.faults, o.faults...)
	n.reads = append(n.reads, o.reads...)
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

// inCatalog asks one catalog.
func (w *world) inCatalog(r *offer.Requirement, in int32) *offers {
	k := needKey{r.Key(), in}
	if o := w.offers[k]; o != nil {
		return o
	}
	o := &offers{}
	w.offers[k] = o
	w.ask.noting(&o.reads)
	var rest []nodeID // of channels that are not their package's default one
	for _, name := range w.packages(r, w.catalogs[in].Key) {
		p := w.ask.pkg(w.catalogs[in].Key, name)
		if p == nil {
			continue
		}
		for i := range p.Channels {
			into := &rest
			if p.Channels[i].Default {
				into = &o.cands
			}
			w.inChannel(r, in, p, &p.Channels[i], into, &o.faults)
		}
	}
	o.cands = append(o.cands, rest...)
	return o
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

// inChannel adds the matching entries from the head down. A malformed channel that holds a match is a fault
// (RESOLVER-NOTES 3.3): its order is not known.
func (w *world) inChannel(r *offer.Requirement, in int32, p *offer.Package, ch *offer.Channel, into *[]nodeID, faults *[]failure) {
	if ch.Err != nil {
		for _, e := range ch.All {
			if r.Matches(e.Bundle) {
				*faults = append(*faults, malformedChannel(w.catalogs[in].Key, p, ch))
				return
			}
		}
		return
	}
	for i := range ch.Entries {
		if r.Matches(ch.Entries[i].Bundle) {
			*into = append(*into, w.entry(in, p, ch, i))
		}
	}
}

func malformedChannel(c CatalogKey, p *offer.Package, ch *offer.Channel) failure {
	return failure{class: ClassInvalidChannel, statement: Statement{
		Kind: ChannelMalformed, Catalog: c.String(), Revision: string(p.Digest), Package: p.Name, Channel: ch.Name,
		Text: fmt.Sprintf("catalog %s: %v", c, ch.Err),
	}}
}

// malformed is the fault of a bundle whose requirements cannot be read (RESOLVER-NOTES 2.8); ok is false where
// all can.
func (w *world) malformed(n nodeID) (failure, bool) {
	op := w.op(n)
	if op.Malformed == "" {
		return failure{}, false
	}
	s := Statement{Kind: RequirementMalformed, Bundle: op.Name, Package: op.Package}
	if w.isInstalled(n) {
		s.Text = fmt.Sprintf("%s has a requirement that cannot be read: %s", w.id(n), op.Malformed)
	} else {
		s.Catalog, s.Revision = w.catalogOf(n).String(), w.revision(n)
		s.Text = fmt.Sprintf("bundle %s of package %s in catalog %s has a requirement that cannot be read: %s", op.Name, op.Package, s.Catalog, op.Malformed)
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
