package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/services/resolver/offer"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/resolve/graph"
	"github.com/chandler-fleet/chandler/services/resolver/resolve/search"
)

// MaxStatements bounds an explanation: a person reads some lines, not hundreds; what is left out is counted.
const MaxStatements = 40

// Failure explains a failure of a partition. reads are the numbers of what it asked the catalogs.
func Failure(p *graph.Partition, f search.Failure) (e resolution.Explanation, reads []int32) {
	x := &explainer{Partition: p, f: f, texts: map[string]bool{}, demanded: map[graph.NodeID]bool{}}
	p.Reader.Into(&x.reads)
	about := f.Roots
	if len(f.Reasons) > 0 {
		about = x.contradiction()
	} else {
		for _, r := range f.Roots {
			x.add(x.exists(r))
		}
		x.add(f.Statements...)
		for _, why := range f.Kept {
			x.add(x.requires(why.A, why.B))
		}
		if f.Undecided != nil {
			x.add(x.undecided(*f.Undecided))
		}
	}
	return x.explanation(about), x.reads
}

// explainer collects the statements of one explanation, each once.
type explainer struct {
	*graph.Partition

	f        search.Failure
	all      []resolution.Statement
	texts    map[string]bool
	reads    []int32
	demanded map[graph.NodeID]bool // that something of the contradiction demands
}

func (x *explainer) add(list ...resolution.Statement) {
	for _, s := range list {
		if !x.texts[s.Text] {
			x.texts[s.Text] = true
			x.all = append(x.all, s)
		}
	}
}

// wanted says whether a root is a subscription that wanted something new when it failed.
func (x *explainer) wanted(root int) bool { return x.f.States[root] == search.Wanted }

// contradiction adds reasons that contradict each other, and returns the roots among them.
func (x *explainer) contradiction() []int {
	var roots []int
	for _, why := range x.f.Reasons {
		x.demands(why)
		if why.Kind == search.ByRoot {
			roots = append(roots, int(why.A))
		}
	}
	for _, why := range x.f.Reasons {
		x.reason(why)
	}
	slices.Sort(roots)
	return roots
}

// demands notes the nodes that a reason asks for.
func (x *explainer) demands(why search.Reason) {
	var nodes []graph.NodeID
	switch why.Kind {
	case search.ByRoot:
		if r := x.Roots[why.A]; x.wanted(int(why.A)) {
			nodes = r.Candidates
		} else {
			nodes = []graph.NodeID{r.Node}
		}
	case search.ByRequirement:
		nodes = x.Requirements[why.B].Candidates
	default:
	}
	for _, n := range nodes {
		x.demanded[n] = true
	}
}

// reason adds the statements of one reason.
func (x *explainer) reason(why search.Reason) {
	switch why.Kind {
	case search.ByRoot:
		x.add(x.exists(int(why.A)))
		if x.wanted(int(why.A)) {
			x.add(x.wants(x.Roots[why.A]))
		}
	case search.BySlot:
		x.add(x.clash(graph.SlotID(why.A)))
	case search.ByReplaces:
		x.add(x.replaces(graph.NodeID(why.A), graph.NodeID(why.B)))
	case search.ByRequirement:
		x.add(x.requires(why.A, why.B))
	default:
		x.add(x.forbidden(why))
	}
}

func (x *explainer) explanation(roots []int) resolution.Explanation {
	e := resolution.Explanation{Reason: resolution.ReasonPrevented, Class: x.f.Class, Subscriptions: []string{}}
	if e.Class == resolution.ClassUnsatisfiable {
		e.Reason = resolution.ReasonNotSatisfiable
	}
	for _, i := range roots {
		if r := x.Roots[i]; r.Sub != nil && x.wanted(i) {
			e.Subscriptions = append(e.Subscriptions, r.Sub.Name)
		} else {
			e.CSVs = append(e.CSVs, r.CSV())
		}
	}
	slices.SortStableFunc(x.all, func(a, b resolution.Statement) int { return cmp.Compare(a.Text, b.Text) })
	e.Statements = x.all[:min(MaxStatements, len(x.all))]
	e.More = len(x.all) - len(e.Statements)
	if x.f.Coarse {
		e.Coarse = true
		e.Statements = append(slices.Clone(e.Statements), resolution.Statement{
			Kind: resolution.SearchTooLong,
			Text: "these reasons contradict each other, but the conflict is too hard to tell whether all of them are " +
				"needed; " +
				"fewer may be enough",
		})
	}
	return e
}

func (x *explainer) exists(root int) resolution.Statement {
	r := x.Roots[root]
	switch {
	case r.Sub == nil:
		return resolution.Statement{
			Kind: resolution.UnmanagedCSV, Bundle: r.CSV(), Package: r.Installed.Package,
			Text: fmt.Sprintf("clusterserviceversion %s exists and is not referenced by a subscription", r.CSV()),
		}
	case !x.wanted(root):
		return resolution.Statement{
			Kind: resolution.SubscriptionNeeds, Subscription: r.Sub.Name, Package: r.Sub.Package, Bundle: x.ID(r.Node),
			Text: fmt.Sprintf("%s stays, since subscription %s that follows it cannot be resolved", x.ID(r.Node),
				r.Sub.Name),
		}
	}
	return resolution.Statement{
		Kind: resolution.SubscriptionExists, Subscription: r.Sub.Name, Package: r.Sub.Package,
		Text: fmt.Sprintf("subscription %s to package %s exists", r.Sub.Name, r.Sub.Package),
	}
}

func (x *explainer) wants(r *graph.Root) resolution.Statement {
	s := resolution.Statement{
		Kind: resolution.SubscriptionNeeds, Subscription: r.Sub.Name, Package: r.Sub.Package,
		Choices: x.ids(r.Candidates),
	}
	if s.Revision = x.Revision(r.Candidates[0]); s.Revision != "" {
		s.Catalog = x.CatalogOf(r.Candidates[0]).String()
	}
	switch {
	case r.Installed == nil:
		s.Text = fmt.Sprintf("subscription %s requires %s", s.Subscription, x.list(r.Candidates, "or"))
	case len(r.Candidates) == 1:
		s.Text = fmt.Sprintf("subscription %s follows %s, which has no successor in channel %s of package %s",
			s.Subscription, x.ID(r.Node), cmp.Or(r.Sub.Channel, "(any)"), r.Sub.Package)
	default:
		s.Text = fmt.Sprintf("subscription %s follows %s and requires %s", s.Subscription, x.ID(r.Node),
			x.list(r.Candidates, "or"))
	}
	return s
}

// requires states what a bundle asks for, and why that cannot be had.
func (x *explainer) requires(at, requirement int32) resolution.Statement {
	n := x.node(at)
	req, cands := x.Requirements[requirement].Offer, x.Requirements[requirement].Candidates
	s := resolution.Statement{
		Kind: resolution.UnmetRequirement, Bundle: x.ID(n), Package: x.Op(n).Package, Revision: x.Revision(n),
		Requirement: req.Text, Choices: x.ids(cands), Text: x.requiring(n, req),
	}
	if !x.IsInstalled(n) {
		s.Catalog = x.CatalogOf(n).String()
	}
	_, names, anchored := req.Anchors()
	switch {
	case len(cands) > 0:
		s.Text += "; there is " + x.list(cands, "and")
	case anchored && len(names) > 0:
		s.Choices = x.versions(names)
		s.Text += "; " + versionsText(names, s.Choices) + x.notReady()
	default:
		s.Text += "; nothing installed and no visible catalog has one" + x.notReady()
	}
	return s
}

// requiring is the sentence of a requirement: who asks for what, with the author's own words.
func (x *explainer) requiring(n graph.NodeID, r *offer.Requirement) string {
	text := fmt.Sprintf("%s requires an operator %s", x.ID(n), r.Text)
	if !x.IsInstalled(n) {
		text = "bundle " + text
	}
	if r.Message == "" {
		return text
	}
	return text + " (" + strings.TrimSpace(r.Message) + ")"
}

// node is one of those of an operator that the contradiction demands, else any.
func (x *explainer) node(operator int32) graph.NodeID {
	found := graph.None
	for n := range x.Nodes {
		if x.Nodes[n].Operator != operator {
			continue
		}
		if x.demanded[graph.NodeID(n)] {
			return graph.NodeID(n)
		}
		if found == graph.None {
			found = graph.NodeID(n)
		}
	}
	return found
}

// versions are those of packages that the visible catalogs offer.
func (x *explainer) versions(packages []string) []string {
	var out []string
	for i := range x.Catalogs {
		for _, name := range packages {
			p := x.Reader.Package(x.Catalogs[i].Key, name)
			if p == nil {
				continue
			}
			for _, ch := range p.Channels {
				for _, e := range ch.Entries {
					if v := e.Bundle.VersionText(); v != "" && !slices.Contains(out, v) {
						out = append(out, v)
					}
				}
			}
		}
	}
	return graph.FirstChoices(out)
}

func versionsText(packages, versions []string) string {
	names := strings.Join(packages, " or ")
	if len(versions) == 0 {
		return "no visible catalog has package " + names
	}
	return "the visible catalogs have " + names + " " + strings.Join(versions, ", ")
}

// notReady names visible catalogs that could not be asked.
func (x *explainer) notReady() string {
	var names []string
	for _, c := range x.Reader.Visible() {
		if !c.Ready {
			names = append(names, c.Key.String())
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return "; not ready: " + strings.Join(names, ", ")
}

// forbidden states what forbids a bundle whatever else is chosen.
func (x *explainer) forbidden(why search.Reason) resolution.Statement {
	n := x.node(why.A)
	op := x.Op(n)
	s := resolution.Statement{Bundle: x.ID(n), Package: op.Package, Revision: x.Revision(n)}
	if !x.IsInstalled(n) {
		s.Catalog = x.CatalogOf(n).String()
	}
	switch why.Kind {
	case search.ByPolicy:
		b := &x.Bounds[x.Operators[why.A].Bound]
		s.Kind, s.Policy = resolution.PolicyForbids, b.Policy
		s.Text = fmt.Sprintf("bundle %s is forbidden by %s, which %s", s.Bundle, b.Source(), b.Text())
	case search.ByDeprecated:
		s.Kind, s.Text = resolution.BundleDeprecated, fmt.Sprintf("bundle %s is deprecated", s.Bundle)
	default:
		s.Kind, s.Text = resolution.DuplicateAPI, fmt.Sprintf("bundle %s lists %s twice and so excludes itself",
			s.Bundle, op.Twice)
	}
	return s
}

func (x *explainer) replaces(n, csv graph.NodeID) resolution.Statement {
	return resolution.Statement{
		Kind: resolution.ReplacesConflict, Bundle: x.ID(n), Other: x.ID(csv), Package: x.Op(n).Package,
		Revision: x.Revision(n), Text: fmt.Sprintf("%s conflicts with %s: one takes the place of the other", x.ID(n),
			x.ID(csv)),
	}
}

// clash states that a slot has one holder, and who of the contradiction wants it.
func (x *explainer) clash(s graph.SlotID) resolution.Statement {
	var who []graph.NodeID
	for _, n := range x.Holders(s) {
		if x.demanded[n] {
			who = append(who, n)
		}
	}
	who = x.spread(who)
	out := resolution.Statement{Choices: x.ids(who)}
	if len(who) > 0 {
		out.Bundle, out.Package = x.ID(who[0]), x.Op(who[0]).Package
		out.Other = x.ID(who[len(who)-1])
	}
	if sl := x.Slot(s); sl.Package != "" {
		out.Kind, out.Package = resolution.PackageUnique, sl.Package
		out.Text = "there can be only one operator from package " + sl.Package
	} else {
		out.Kind = resolution.APIUnique
		out.Text = fmt.Sprintf("there can be only one provider of %s (%s/%s)", sl.API.Kind, sl.API.Group,
			sl.API.Version)
	}
	out.Text += ": " + x.list(who, "and")
	return out
}

// spread orders nodes so that a short list shows all sides: the first of each package, then the others; what is
// installed comes last of both.
func (x *explainer) spread(nodes []graph.NodeID) []graph.NodeID {
	slices.SortStableFunc(nodes, func(a, b graph.NodeID) int {
		switch installed := x.IsInstalled(a); {
		case installed == x.IsInstalled(b):
			return 0
		case installed:
			return 1
		}
		return -1
	})
	var out, others []graph.NodeID
	seen := map[string]bool{}
	for _, n := range nodes {
		side := x.Op(n).Package
		if x.IsInstalled(n) {
			side = "installed " + x.Op(n).Name
		}
		if seen[side] {
			others = append(others, n)
			continue
		}
		seen[side] = true
		out = append(out, n)
	}
	return append(out, others...)
}

// undecided states for whom no answer was found.
func (x *explainer) undecided(u search.Undecided) resolution.Statement {
	names := func(roots []int) (out []string) {
		for _, r := range roots {
			out = append(out, x.Roots[r].Text())
		}
		return out
	}
	who := names(u.Roots)
	s := resolution.Statement{Kind: resolution.SearchTooLong, Choices: graph.FirstChoices(who)}
	s.Text = fmt.Sprintf("no answer was found within the budget of %d conflicts for %s", u.Limit, joined(who, "and"))
	if len(u.Beside) > 0 {
		s.Text += " beside " + joined(names(u.Beside), "and")
	}
	s.Text += "; fewer subscriptions in one namespace, or narrower ones, make the question smaller"
	return s
}

func (x *explainer) ids(nodes []graph.NodeID) []string {
	nodes = graph.FirstChoices(nodes)
	out := make([]string, 0, len(nodes))
	for _, n := range nodes {
		out = append(out, x.ID(n))
	}
	return out
}

// list names nodes in a sentence; word goes before the last.
func (x *explainer) list(nodes []graph.NodeID, word string) string {
	names := make([]string, 0, len(nodes))
	for _, n := range nodes {
		names = append(names, x.ID(n))
	}
	return joined(names, word)
}

// joined joins names, counting those beyond some: "a, b and c", "a, b, … and 3 more"; word goes before the last.
func joined(names []string, word string) string {
	shown := graph.FirstChoices(names)
	if more := len(names) - len(shown); more > 0 {
		return fmt.Sprintf("%s %s %d more", strings.Join(shown, ", "), word, more)
	}
	if len(shown) < 2 {
		return strings.Join(shown, "")
	}
	return strings.Join(shown[:len(shown)-1], ", ") + " " + word + " " + shown[len(shown)-1]
}

// UnhealthyCatalog states that nothing new is planned because of a catalog, since its namespace is strict (R-CAT-99).
func UnhealthyCatalog(c resolution.Catalog, reason string) resolution.Statement {
	return resolution.Statement{
		Kind: resolution.CatalogUnhealthy, Catalog: c.Key.String(),
		Text: fmt.Sprintf(
			"catalog %s is unhealthy (%s), and nothing new is planned while one is that this namespace sees: "+
				"repair, disable or remove it",
			c.Key, cmp.Or(reason, "it could not be loaded")),
	}
}
