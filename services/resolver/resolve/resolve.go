package resolve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/digest"
)

// resolution is one call of Resolve.
type resolution struct {
	in       Input
	group    OperatorGroup
	catalogs []Catalog // visible, by key
	ask      *asker
}

// Resolve decides what a namespace should run. It is deterministic: the same input gives the same bytes
// (R-RES-7). It never fails as a whole: what cannot be planned is a component with a Failure.
func Resolve(in Input) Result {
	r := newResolution(in)
	if s, class := r.prevented(); s != nil {
		return r.refuse(*s, class)
	}
	out := Result{Semantics: r.in.Semantics, Components: []Component{}}
	for _, c := range r.clusters() {
		sol := c.solve(r.limit())
		out.Components = append(out.Components, r.components(c, sol)...)
	}
	return out.sorted()
}

func newResolution(in Input) *resolution {
	r := &resolution{in: in.canonical(), catalogs: slices.Clone(in.View.Catalogs())}
	slices.SortFunc(r.catalogs, func(a, b Catalog) int { return compareKeys(a.Key, b.Key) })
	return r
}

// prevented is what stops a resolution before anything is looked at.
func (r *resolution) prevented() (*Statement, Class) {
	if r.in.Semantics != Semantics {
		return &Statement{Kind: UnknownSemantics, Text: fmt.Sprintf("semantics %q is not known here: want %s", r.in.Semantics, Semantics)}, ClassSemantics
	}
	if n := len(r.in.OperatorGroups); n != 1 {
		return &Statement{Kind: OperatorGroupCount, Text: fmt.Sprintf("expected 1 OperatorGroup in the namespace, found %d", n)}, ClassOperatorGroup
	}
	r.group = r.in.OperatorGroups[0]
	if r.group.ExcludeGlobalCatalogs {
		r.catalogs = slices.DeleteFunc(r.catalogs, func(c Catalog) bool { return c.Key.Namespace != r.in.Scope.Namespace })
	}
	if !r.group.FailForward {
		return nil, ""
	}
	staying, err := forward(r.in.Installed)
	if err != nil {
		return &Statement{Kind: InstalledState, Text: err.Error()}, ClassInstalledState
	}
	r.in.Installed = staying
	return nil, ""
}

// refuse gives each subscription its own failure of the same kind.
func (r *resolution) refuse(s Statement, class Class) Result {
	out := Result{Semantics: r.in.Semantics, Components: []Component{}}
	r.ask = newAsker(r.in.View, r.catalogs)
	w := newWorld(r.ask, &Input{})
	for i := range r.in.Subscriptions {
		c := &cluster{w: w, roots: []*root{{sub: &r.in.Subscriptions[i], node: none}}}
		t := c.tell()
		t.say(s)
		comp := r.failed(c, failed{roots: c.roots, explanation: t.explanation(class, c.roots)})
		comp.Input.Policy, comp.Input.Installed = r.in.Policy, r.in.Installed
		out.Components = append(out.Components, comp)
	}
	return out.sorted()
}

// clusters looks up everything that the subscriptions and the installed CSVs reach.
func (r *resolution) clusters() []*cluster {
	r.ask = newAsker(r.in.View, r.catalogs)
	w := newWorld(r.ask, &r.in)
	roots := r.roots(w)
	for _, rt := range roots {
		if rt.sub != nil {
			rt.look(w)
		}
	}
	w.expand(roots)
	w.occupy()
	return w.clusters(roots, r.group.Shared)
}

func (r *resolution) limit() int {
	if n := r.in.Policy.MaxConflicts; n > 0 {
		return n
	}
	return MaxConflicts
}

// components tells what a cluster came to: its failures, and a plan or nothing to do for each piece of the rest.
// Where the operator group asks for joint plans one failure is everybody's, as with OLM (R-RES-63).
func (r *resolution) components(c *cluster, sol solution) []Component {
	if r.group.Shared && len(sol.failures) > 0 {
		f := sol.failures[0]
		f.roots = c.roots
		return []Component{r.failed(c, f)}
	}
	var out []Component
	for _, f := range sol.failures {
		out = append(out, r.failed(c, f))
	}
	s := settle(c, sol.choices)
	for _, p := range s.pieces(r.group.Shared) {
		if comp, ok := r.component(s, p); ok {
			out = append(out, comp)
		}
	}
	return out
}

// failed tells of roots that cannot have what is asked of them.
func (r *resolution) failed(c *cluster, f failed) Component {
	comp := r.frame(c, f.roots, f.reads)
	comp.Failure = &f.explanation
	return comp.named()
}

// component tells of a piece; ok is false for one that only holds CSVs that stay as they are.
func (r *resolution) component(s *settled, p piece) (Component, bool) {
	roots := make([]*root, 0, len(p.roots))
	for _, rt := range p.roots {
		switch {
		case rt.state == wanted:
			roots = append(roots, rt)
		case rt.node != none && len(p.planned) > 0: // lacks what is planned; its subscription, if any, was told of already
			roots = append(roots, &root{installed: rt.installed, node: rt.node, state: rt.state})
		}
	}
	if len(roots) == 0 && len(p.planned) == 0 {
		return Component{}, false
	}
	var reads []int32
	r.ask.noting(&reads)
	fetched := r.fetched(s.w, p.planned) // before the input is noted: it belongs to it
	blocked, loading := r.strictly(p.planned)
	c := r.frame(s.c, roots, reads)
	if blocked != nil {
		blocked.Subscriptions = c.Subscriptions
	}
	c.Blocked, c.Loading = blocked, loading
	for _, n := range s.inOrder(p.planned) {
		b := s.bundle(n)
		if f, asked := fetched[n]; asked {
			b.Content, b.Image, b.Unfetched = f.Content, s.w.op(n).Image, f.Reason
		}
		c.Bundles = append(c.Bundles, b)
		c.Packages = append(c.Packages, b.Package)
	}
	for _, rt := range roots {
		if rt.state == wanted {
			c.Outcomes = append(c.Outcomes, s.outcome(rt))
		}
	}
	return c.named(), true
}

// unaskable is why an image that cannot be asked for is not there, as catalog.bundles-fetched.v1 would say it.
const unaskable = "InvalidBundle"

// fetched asks for the content of chosen bundles that their catalog names by image alone.
func (r *resolution) fetched(w *world, planned []nodeID) map[nodeID]Fetched {
	out := map[nodeID]Fetched{}
	for _, n := range planned {
		op := w.op(n)
		if op.Content != "" || op.Image == "" {
			continue
		}
		out[n] = Fetched{Reason: unaskable}
		if b := (BundleImage{Image: op.Image, Package: op.Package, Bundle: op.Name}); b.Askable() {
			out[n] = r.ask.image(w.catalogOf(n), b)
		}
	}
	return out
}

// strictly explains why nothing new may be planned: a catalog that the namespace sees is unhealthy, and its own
// namespace is strict about that (R-CAT-99). loading says that such a catalog is loaded for the first time.
// Where nothing is planned, nobody asks.
func (r *resolution) strictly(planned []nodeID) (blocked *Explanation, loading bool) {
	if len(planned) == 0 {
		return nil, false
	}
	var sick []Statement
	for _, c := range r.catalogs {
		h := r.ask.health(c.Key)
		loading = loading || h == Loading
		if reason, is := h.reason(); is {
			sick = append(sick, catalogUnhealthy(c, reason))
		}
	}
	if len(sick) > 0 {
		blocked = &Explanation{Reason: ReasonCatalogsUnhealthy, Class: ClassCatalogUnhealthy, Statements: sick}
	}
	return blocked, loading
}

// frame fills what a component has whatever came of it.
func (r *resolution) frame(c *cluster, roots []*root, reads []int32) Component {
	out := Component{Packages: []string{}, Subscriptions: []string{}, Approval: Automatic}
	for _, rt := range roots {
		if rt.node != none {
			op := c.w.op(rt.node)
			out.Packages = append(out.Packages, cmp.Or(op.Package, op.Name))
		}
		if rt.sub != nil {
			out.Subscriptions = append(out.Subscriptions, rt.sub.Name)
			out.Packages = append(out.Packages, rt.sub.Package)
			if rt.sub.Approval == Manual {
				out.Approval = Manual
			}
		}
	}
	out.Input = r.record(c, reads)
	return out
}

// record is the input of one cluster: what was consulted, what is installed, and what was asked for. It says
// nothing of other clusters.
func (r *resolution) record(c *cluster, reads []int32) Record {
	rec := Record{
		Semantics: r.in.Semantics, Scope: r.in.Scope, Policy: r.policy(c), OperatorGroups: r.in.OperatorGroups,
		Subscriptions: []Subscription{}, Installed: []Installed{}, Catalogs: []Catalog{}, Reads: r.ask.sorted(append(reads, c.reads...)),
	}
	for _, rt := range c.roots {
		if rt.sub != nil {
			rec.Subscriptions = append(rec.Subscriptions, *rt.sub)
		}
	}
	for _, n := range c.nodes {
		if c.w.isInstalled(n) {
			rec.Installed = append(rec.Installed, r.in.Installed[n])
		}
	}
	rec.Catalogs = r.consulted(rec.Reads)
	return rec
}

// consulted are the catalogs that reads name, or all where all were asked, without revisions; and without priorities
// where these decided nothing. A catalog that nobody of the cluster asked may come, go or move.
func (r *resolution) consulted(reads []Read) []Catalog {
	all := slices.ContainsFunc(reads, func(q Read) bool { return q.Kind == ReadVisible })
	named := map[CatalogKey]bool{}
	for _, q := range reads {
		named[q.Catalog] = true
		if c, ok := r.ask.named(q.Catalog); ok && q.Kind == ReadCatalog && q.Answer != "" {
			named[c.Key] = true
		}
	}
	out := []Catalog{}
	for _, k := range r.catalogs {
		k.Revision = ""
		if !all {
			k.Priority = 0
		}
		if all || named[k.Key] {
			out = append(out, k)
		}
	}
	return out
}

// policy is what concerns a cluster: a bound on other packages changes nothing in it.
func (r *resolution) policy(c *cluster) Policy {
	p := r.in.Policy
	p.Bounds = nil
	for i := range c.w.bounds {
		b := &c.w.bounds[i]
		if slices.ContainsFunc(c.nodes, func(n nodeID) bool { return !c.w.isInstalled(n) && b.concerns(c.w.op(n).Package, c.w.catalogOf(n)) }) {
			p.Bounds = append(p.Bounds, b.Bound)
		}
	}
	return p
}

// named gives a component its name: the packages joined by "+".
func (c Component) named() Component {
	c.Packages = sortedSet(c.Packages)
	c.Name = componentName(c.Packages)
	return c
}

// maxComponentName bounds a component's name, which stands in every event of its plans.
const maxComponentName = 200

func componentName(packages []string) string {
	name := strings.Join(packages, "+")
	if len(name) <= maxComponentName {
		return name
	}
	const shown = 3
	return fmt.Sprintf("%s+%d-more-%s", strings.Join(packages[:shown], "+"), len(packages)-shown, digest.Bytes([]byte(name)).Short())
}

func (r Result) sorted() Result {
	reads := map[Read]bool{}
	for _, c := range r.Components {
		for _, read := range c.Input.Reads {
			reads[read] = true
		}
	}
	r.Reads = make([]Read, 0, len(reads))
	for read := range reads {
		r.Reads = append(r.Reads, read)
	}
	slices.SortFunc(r.Reads, compareReads)
	slices.SortFunc(r.Components, func(a, b Component) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(strings.Join(a.Subscriptions, ","), strings.Join(b.Subscriptions, ",")))
	})
	return r
}
