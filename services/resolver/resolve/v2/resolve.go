package v2

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
	catalogs []Catalog
	ops      map[string]*operator // installed, by CSV
	table    *slotTable
	solved   map[string]*solution // by the roots: a component that stays the same is solved once
}

// Resolve decides what a namespace should run. It is deterministic: the same input gives the same bytes
// (R-RES-7). It never fails as a whole: what cannot be planned is a component with a Failure.
func Resolve(in Input) Result {
	in = in.canonical()
	r := &resolution{
		in: in, catalogs: slices.Clone(in.View.Catalogs()), ops: map[string]*operator{},
		table: newSlotTable(), solved: map[string]*solution{},
	}
	slices.SortFunc(r.catalogs, func(a, b Catalog) int { return compareKeys(a.Key, b.Key) })
	if s, class := r.prevented(); s != nil {
		return r.refuse(*s, class)
	}
	r.group = in.OperatorGroups[0]
	if r.group.ExcludeGlobalCatalogs {
		r.catalogs = slices.DeleteFunc(r.catalogs, func(c Catalog) bool { return c.Key.Namespace != in.Scope.Namespace })
	}
	for _, i := range r.in.Installed {
		r.ops[i.CSV] = newOperator(i.CSV, i.Package, i.Version, i.Content, i.Properties)
	}
	groups, failures := r.components()
	out := Result{Semantics: in.Semantics, Components: []Component{}}
	for _, f := range failures {
		out.Components = append(out.Components, r.failedComponent(f))
	}
	for _, g := range groups {
		if c, ok := r.component(g); ok {
			out.Components = append(out.Components, c)
		}
	}
	return out.sorted()
}

// prevented is what stops a resolution before anything is looked at.
func (r *resolution) prevented() (*Statement, Class) {
	if r.in.Semantics != Semantics && r.in.Semantics != semanticsV1 {
		return &Statement{Kind: UnknownSemantics, Text: fmt.Sprintf("semantics %q is not known here: want %s", r.in.Semantics, Semantics)}, ClassSemantics
	}
	if n := len(r.in.OperatorGroups); n != 1 {
		return &Statement{Kind: OperatorGroupCount, Text: fmt.Sprintf("expected 1 OperatorGroup in the namespace, found %d", n)}, ClassOperatorGroup
	}
	if !r.in.OperatorGroups[0].FailForward {
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
	for i := range r.in.Subscriptions {
		rt := root{sub: &r.in.Subscriptions[i]}
		list := &statements{seen: map[string]bool{}}
		list.add(s)
		e := explanationOf(class, []root{rt}, list)
		out.Components = append(out.Components, r.failedComponent(failed{roots: []root{rt}, explanation: e}))
	}
	return out.sorted()
}

// roots are the subscriptions, and the installed CSVs that none of them follows.
func (r *resolution) roots() []root {
	var out []root
	followed := map[string]bool{}
	for i := range r.in.Subscriptions {
		rt := root{sub: &r.in.Subscriptions[i]}
		for j := range r.in.Installed {
			if inst := &r.in.Installed[j]; inst.Subscription == rt.sub.Name && rt.csv == "" {
				rt.csv, rt.installed = inst.CSV, inst
				followed[inst.CSV] = true
			}
		}
		out = append(out, rt)
	}
	for i := range r.in.Installed {
		if inst := &r.in.Installed[i]; !followed[inst.CSV] {
			out = append(out, root{csv: inst.CSV, installed: inst})
		}
	}
	slices.SortFunc(out, compareRoots)
	return out
}

func (r *resolution) problem(roots []root) problem {
	p := problem{in: &r.in, catalogs: r.catalogs, roots: roots, ops: r.ops, table: r.table}
	for _, i := range r.in.Installed {
		if !slices.ContainsFunc(roots, func(rt root) bool { return rt.csv == i.CSV }) {
			p.fixed = append(p.fixed, i.CSV)
		}
	}
	return p
}

// solve gives the solution of a set of roots. What other roots come to does not matter to it: all that is
// installed and followed by none of these stays as it is.
func (r *resolution) solve(roots []root) *solution {
	var key strings.Builder
	for _, rt := range roots {
		fmt.Fprintf(&key, "%s %t\n", rt.name(), rt.held)
	}
	if sol := r.solved[key.String()]; sol != nil {
		return sol
	}
	sol := r.problem(roots).solve(nil)
	r.solved[key.String()] = &sol
	return &sol
}

// failedComponent tells of roots that cannot live together.
func (r *resolution) failedComponent(f failed) Component {
	c := r.frame(f.roots, f.reads)
	c.Failure = &f.explanation
	return c.named(nil)
}

// component tells of a solved group; ok is false for one that only holds CSVs that stay as they are.
func (r *resolution) component(g *group) (Component, bool) {
	planned := g.sol.planned()
	fetched := r.fetched(planned, g.sol.reads) // before the input is noted: it belongs to it
	blocked, loading := r.strictly(planned, g.sol.reads)
	c := r.frame(g.roots, g.sol.reads)
	if blocked != nil {
		blocked.Subscriptions = c.Subscriptions
	}
	c.Blocked, c.Loading = blocked, loading
	if len(c.Subscriptions) == 0 && len(planned) == 0 {
		return c, false
	}
	for _, n := range inOrder(planned, g.sol.queue) {
		p := r.planned(n, g)
		if f, asked := fetched[n]; asked {
			p.Content, p.Image, p.Unfetched = f.Content, n.op.image, f.Reason
		}
		c.Bundles = append(c.Bundles, p)
	}
	for _, rt := range g.roots {
		if rt.sub != nil {
			c.Outcomes = append(c.Outcomes, outcome(rt, g.sol))
		}
	}
	return c.named(planned), true
}

// unaskable is why an image that cannot be asked for is not there, as catalog.bundles-fetched.v1 would say it.
const unaskable = "InvalidBundle"

// fetched asks for the content of chosen bundles that their catalog names by image alone.
func (r *resolution) fetched(planned []*node, ask *asker) map[*node]Fetched {
	out := map[*node]Fetched{}
	for _, n := range planned {
		if n.op.content == "" && n.op.image != "" && r.in.Semantics != semanticsV1 {
			out[n] = Fetched{Reason: unaskable}
			if b := (BundleImage{Image: n.op.image, Package: n.op.pkg, Bundle: n.op.name}); b.Askable() {
				out[n] = ask.image(n.catalog.Key, b)
			}
		}
	}
	return out
}

// strictly explains why nothing new may be planned: a catalog that the namespace sees is unhealthy, and its own
// namespace is strict about that (R-CAT-99). loading says that such a catalog is loaded for the first time.
// Where nothing is planned, nobody asks.
func (r *resolution) strictly(planned []*node, ask *asker) (blocked *Explanation, loading bool) {
	if len(planned) == 0 || r.in.Semantics == semanticsV1 {
		return nil, false
	}
	var sick []Statement
	for _, c := range r.catalogs {
		h := ask.health(c.Key)
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
func (r *resolution) frame(roots []root, reads *asker) Component {
	c := Component{Packages: []string{}, Subscriptions: []string{}, Approval: Automatic}
	for _, rt := range roots {
		if op := r.ops[rt.csv]; op != nil {
			c.Packages = append(c.Packages, cmp.Or(op.pkg, op.name))
		}
		if rt.sub != nil {
			c.Subscriptions = append(c.Subscriptions, rt.sub.Name)
			c.Packages = append(c.Packages, rt.sub.Package)
			if rt.sub.Approval == Manual {
				c.Approval = Manual
			}
		}
	}
	c.Input = r.record(roots, reads)
	return c
}

// record is the input of one component: what was consulted, what is installed, and what was asked for.
func (r *resolution) record(roots []root, reads *asker) Record {
	rec := Record{
		Semantics: r.in.Semantics, Scope: r.in.Scope, Policy: r.in.Policy, OperatorGroups: r.in.OperatorGroups,
		Subscriptions: []Subscription{}, Installed: r.in.Installed, Catalogs: []Catalog{}, Reads: []Read{},
	}
	for _, rt := range roots {
		if rt.sub != nil {
			rec.Subscriptions = append(rec.Subscriptions, *rt.sub)
		}
	}
	for _, c := range r.catalogs {
		c.Revision = ""
		rec.Catalogs = append(rec.Catalogs, c)
	}
	if reads != nil {
		rec.Reads = reads.sorted()
	}
	return rec
}

// named gives a component its name: the packages joined by "+".
func (c Component) named(planned []*node) Component {
	for _, n := range planned {
		c.Packages = append(c.Packages, n.op.pkg)
	}
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
