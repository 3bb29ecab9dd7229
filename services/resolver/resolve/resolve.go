package resolve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/resolve/explain"
	"github.com/chandler-fleet/chandler/services/resolver/resolve/graph"
	"github.com/chandler-fleet/chandler/services/resolver/resolve/plan"
	"github.com/chandler-fleet/chandler/services/resolver/resolve/search"
)

// run is one call of Resolve.
type run struct {
	in       resolution.Input
	group    resolution.OperatorGroup
	catalogs []resolution.Catalog // visible, by key
	reader   *graph.Reader
}

// Resolve decides what a namespace should run. It is deterministic: the same input gives the same bytes
// (R-RES-7). It never fails as a whole: what cannot be planned is a component with a Failure.
func Resolve(in resolution.Input) resolution.Result {
	r := &run{in: in.Canonical(), catalogs: slices.Clone(in.View.Catalogs())}
	slices.SortFunc(r.catalogs, func(a, b resolution.Catalog) int { return a.Key.Compare(b.Key) })
	if s, class := r.prevented(); s != nil {
		return r.refuse(*s, class)
	}
	r.reader = graph.NewReader(r.in.View, r.catalogs)
	out := resolution.Result{Semantics: r.in.Semantics, Components: []resolution.Component{}}
	for _, p := range graph.Build(&r.in, r.reader).Partitions(r.group.Shared) {
		s := search.Solve(p, cmp.Or(max(r.in.Policy.MaxConflicts, 0), search.MaxConflicts))
		out.Components = append(out.Components, r.components(p, &s)...)
	}
	return sorted(out)
}

// prevented is what stops a resolution before the catalogs are asked.
func (r *run) prevented() (*resolution.Statement, resolution.Class) {
	if r.in.Semantics != resolution.Semantics {
		return &resolution.Statement{
			Kind: resolution.UnknownSemantics,
			Text: fmt.Sprintf("semantics %q is not known here: want %s", r.in.Semantics, resolution.Semantics),
		}, resolution.ClassSemantics
	}
	if n := len(r.in.OperatorGroups); n != 1 {
		return &resolution.Statement{
			Kind: resolution.OperatorGroupCount, Text: fmt.Sprintf(
				"expected 1 OperatorGroup in the namespace, found %d", n),
		}, resolution.ClassOperatorGroup
	}
	r.group = r.in.OperatorGroups[0]
	if r.group.ExcludeGlobalCatalogs {
		r.catalogs = slices.DeleteFunc(r.catalogs,
			func(c resolution.Catalog) bool { return c.Key.Namespace != r.in.Scope.Namespace })
	}
	if !r.group.FailForward {
		return nil, ""
	}
	staying, err := graph.FailForward(r.in.Installed)
	if err != nil {
		return &resolution.Statement{Kind: resolution.InstalledState, Text: err.Error()}, resolution.ClassInstalledState
	}
	r.in.Installed = staying
	return nil, ""
}

// refuse gives each subscription its own failure of the same kind.
func (r *run) refuse(s resolution.Statement, class resolution.Class) resolution.Result {
	out := resolution.Result{Semantics: r.in.Semantics, Components: []resolution.Component{}}
	r.reader = graph.NewReader(r.in.View, r.catalogs)
	nothing := graph.Build(&resolution.Input{}, r.reader)
	for i := range r.in.Subscriptions {
		p := &graph.Partition{Graph: nothing, Roots: []*graph.Root{{Sub: &r.in.Subscriptions[i], Node: graph.None}}}
		c := r.newComponent(p, p.Roots, nil)
		c.Input.Policy, c.Input.Installed = r.in.Policy, r.in.Installed
		c.Failure = &resolution.Explanation{
			Reason: resolution.ReasonPrevented, Class: class, Subscriptions: c.Subscriptions,
			Statements: []resolution.Statement{s},
		}
		out.Components = append(out.Components, named(c))
	}
	return sorted(out)
}

// components are what a partition comes to: its failures, and a plan or nothing to do for each part of the rest.
// Where the operator group asks for joint plans one failure is everybody's, as with OLM (R-RES-63).
func (r *run) components(p *graph.Partition, s *search.Solution) []resolution.Component {
	if r.group.Shared && len(s.Failures) > 0 {
		return []resolution.Component{r.failed(p, s.Failures[0], p.Roots)}
	}
	var out []resolution.Component
	for _, f := range s.Failures {
		out = append(out, r.failed(p, f, withoutFailed(p, f.Roots, f.States)))
	}
	done := plan.New(p, s)
	for _, part := range done.Parts(r.group.Shared) {
		if c, ok := r.component(done, part, s.States); ok {
			out = append(out, c)
		}
	}
	return out
}

// withoutFailed are roots without the subscriptions that failed before: of these, only the CSV is left.
func withoutFailed(p *graph.Partition, roots []int, states []search.State) []*graph.Root {
	out := make([]*graph.Root, 0, len(roots))
	for _, i := range roots {
		rt := p.Roots[i]
		if states[i] != search.Wanted {
			rt = &graph.Root{Installed: rt.Installed, Node: rt.Node}
		}
		out = append(out, rt)
	}
	return out
}

// failed is the component of roots that cannot have what is asked of them.
func (r *run) failed(p *graph.Partition, f search.Failure, roots []*graph.Root) resolution.Component {
	e, reads := explain.Failure(p, f)
	c := r.newComponent(p, roots, reads)
	c.Failure = &e
	return named(c)
}

// component is that of a part; ok is false for one that only holds CSVs that stay as they are.
func (r *run) component(p *plan.Plan, part plan.Part, states []search.State) (resolution.Component, bool) {
	var members, wanted []int
	for _, i := range part.Roots {
		switch {
		case states[i] == search.Wanted:
			members, wanted = append(members, i), append(wanted, i)
		case p.Roots[i].Node != graph.None && len(part.Bundles) > 0:
			// It lacks what is planned; its subscription, if any, has failed already.
			members = append(members, i)
		}
	}
	if len(members) == 0 && len(part.Bundles) == 0 {
		return resolution.Component{}, false
	}
	var reads []int32
	r.reader.Into(&reads)
	fetched := r.fetched(p, part.Bundles) // before the input is recorded: it belongs to it
	blocked, loading := r.blocked(part.Bundles)
	c := r.newComponent(p.Partition, withoutFailed(p.Partition, members, states), reads)
	if blocked != nil {
		blocked.Subscriptions = c.Subscriptions
	}
	c.Blocked, c.Loading = blocked, loading
	for _, n := range p.InOrder(part.Bundles) {
		b := p.Bundle(n)
		if f, asked := fetched[n]; asked {
			b.Content, b.Image, b.Unfetched = f.Content, p.Op(n).Image, f.Reason
		}
		c.Bundles = append(c.Bundles, b)
		c.Packages = append(c.Packages, b.Package)
	}
	for _, i := range wanted {
		c.Outcomes = append(c.Outcomes, p.Outcome(i))
	}
	return named(c), true
}

// invalidImage is why an image that cannot be asked for is not there, as catalog.bundles-fetched.v1 would say it.
const invalidImage = "InvalidBundle"

// fetched asks for the content of chosen bundles that their catalog names by image alone.
func (r *run) fetched(p *plan.Plan, bundles []graph.NodeID) map[graph.NodeID]resolution.Fetched {
	out := map[graph.NodeID]resolution.Fetched{}
	for _, n := range bundles {
		op := p.Op(n)
		if op.Content != "" || op.Image == "" {
			continue
		}
		out[n] = resolution.Fetched{Reason: invalidImage}
		if b := (resolution.BundleImage{Image: op.Image, Package: op.Package, Bundle: op.Name}); b.Askable() {
			out[n] = r.reader.Image(p.CatalogOf(n), b)
		}
	}
	return out
}

// blocked explains why nothing new may be planned: a catalog that the namespace sees is unhealthy, and its own
// namespace is strict about that (R-CAT-99). loading says that such a catalog is loaded for the first time.
// Where nothing is planned, nothing is asked.
func (r *run) blocked(bundles []graph.NodeID) (out *resolution.Explanation, loading bool) {
	if len(bundles) == 0 {
		return nil, false
	}
	var unhealthy []resolution.Statement
	for _, c := range r.catalogs {
		h := r.reader.Health(c.Key)
		loading = loading || h == resolution.Loading
		if reason, is := h.Unhealthy(); is {
			unhealthy = append(unhealthy, explain.UnhealthyCatalog(c, reason))
		}
	}
	if len(unhealthy) > 0 {
		out = &resolution.Explanation{
			Reason: resolution.ReasonCatalogsUnhealthy, Class: resolution.ClassCatalogUnhealthy, Statements: unhealthy,
		}
	}
	return out, loading
}

// newComponent fills what a component has whatever came of it.
func (r *run) newComponent(p *graph.Partition, roots []*graph.Root, reads []int32) resolution.Component {
	out := resolution.Component{Packages: []string{}, Subscriptions: []string{}, Approval: resolution.Automatic}
	for _, rt := range roots {
		if rt.Node != graph.None {
			op := p.Op(rt.Node)
			out.Packages = append(out.Packages, cmp.Or(op.Package, op.Name))
		}
		if rt.Sub != nil {
			out.Subscriptions = append(out.Subscriptions, rt.Sub.Name)
			out.Packages = append(out.Packages, rt.Sub.Package)
			if rt.Sub.Approval == resolution.Manual {
				out.Approval = resolution.Manual
			}
		}
	}
	out.Input = r.record(p, reads)
	return out
}

// named gives a component its name: the packages joined by "+".
func named(c resolution.Component) resolution.Component {
	slices.Sort(c.Packages)
	c.Packages = slices.Compact(c.Packages)
	c.Name = componentName(c.Packages)
	return c
}

// maxComponentName bounds a component's name, which is in every event of its plans.
const maxComponentName = 200

func componentName(packages []string) string {
	name := strings.Join(packages, "+")
	if len(name) <= maxComponentName {
		return name
	}
	const shown = 3
	return fmt.Sprintf("%s+%d-more-%s", strings.Join(packages[:shown], "+"), len(packages)-shown,
		digest.Bytes([]byte(name)).Short())
}

func sorted(r resolution.Result) resolution.Result {
	reads := map[resolution.Read]bool{}
	for _, c := range r.Components {
		for _, read := range c.Input.Reads {
			reads[read] = true
		}
	}
	r.Reads = make([]resolution.Read, 0, len(reads))
	for read := range reads {
		r.Reads = append(r.Reads, read)
	}
	slices.SortFunc(r.Reads, resolution.Read.Compare)
	slices.SortFunc(r.Components, func(a, b resolution.Component) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(strings.Join(a.Subscriptions, ","),
			strings.Join(b.Subscriptions, ",")))
	})
	return r
}
