package v2

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Bounds of an explanation: a person reads some lines, not hundreds; what is left out is counted.
const (
	MaxStatements = 40
	maxChoices    = 8
)

// failed is a set of roots that cannot live together, and why.
type failed struct {
	roots       []root
	explanation Explanation
	reads       *asker
}

// explain solves a minimal unsolvable set again and collects why choices had no candidate left.
func (r *resolution) explain(core []root) failed {
	list := &statements{seen: map[string]bool{}}
	for _, rt := range core {
		list.add(rt.exists())
	}
	sol := r.problem(core).solve(list.dead)
	class := ClassUnsatisfiable
	if sol.fail != nil {
		class = sol.fail.class
		list.add(sol.fail.statement)
	}
	return failed{roots: core, explanation: explanationOf(class, core, list), reads: sol.reads}
}

func explanationOf(class Class, core []root, list *statements) Explanation {
	e := Explanation{Reason: ReasonPrevented, Class: class, Subscriptions: []string{}, More: list.more}
	if class == ClassUnsatisfiable {
		e.Reason = ReasonNotSatisfiable
	}
	for _, rt := range core {
		if rt.sub != nil {
			e.Subscriptions = append(e.Subscriptions, rt.sub.Name)
		} else {
			e.CSVs = append(e.CSVs, rt.csv)
		}
	}
	slices.SortStableFunc(list.all, func(a, b Statement) int { return cmp.Compare(a.Text, b.Text) })
	e.Statements = list.all
	return e
}

func (r root) exists() Statement {
	if r.sub == nil {
		return Statement{
			Kind: UnmanagedCSV, Bundle: r.csv,
			Text: fmt.Sprintf("clusterserviceversion %s exists and is not referenced by a subscription", r.csv),
		}
	}
	return Statement{
		Kind: SubscriptionExists, Subscription: r.sub.Name, Package: r.sub.Package,
		Text: fmt.Sprintf("subscription %s to package %s exists", r.sub.Name, r.sub.Package),
	}
}

// statements collects facts, each once, up to MaxStatements.
type statements struct {
	all  []Statement
	seen map[string]bool
	more int
}

func (l *statements) add(list ...Statement) {
	for _, s := range list {
		if l.seen[s.Text] {
			continue
		}
		l.seen[s.Text] = true
		if len(l.all) == MaxStatements {
			l.more++
			continue
		}
		l.all = append(l.all, s)
	}
}

// dead notes why a choice has no candidate left.
func (l *statements) dead(w *world, c *choice) {
	l.add(c.none...)
	switch {
	case c.req != nil:
		l.add(unmet(w, c))
		l.because(c.from)
	case c.root.sub != nil && len(c.cands) > 0:
		l.add(needs(c))
	}
	for _, n := range first(c.cands, maxChoices) {
		l.add(w.obstacles(n, l)...)
	}
}

// because tells how a chosen node came to be there, or who follows it.
func (l *statements) because(n *node) {
	if n.installed && n.follower != "" {
		l.add(Statement{
			Kind: SubscriptionNeeds, Subscription: n.follower, Bundle: n.id(), Package: n.op.pkg,
			Text: fmt.Sprintf("subscription %s follows %s", n.follower, n.id()),
		})
	}
	if n.why == nil || n.why.req == nil {
		return
	}
	l.add(Statement{
		Kind: UnmetRequirement, Bundle: n.why.from.id(), Package: n.why.from.op.pkg, Requirement: n.why.req.text,
		Text: fmt.Sprintf("bundle %s requires an operator %s%s", n.why.from.id(), n.why.req.text, n.why.req.note()),
	})
}

func (r *requirement) note() string {
	if r.message == "" {
		return ""
	}
	return " (" + r.message + ")"
}

func unmet(w *world, c *choice) Statement {
	s := Statement{Kind: UnmetRequirement, Bundle: c.from.id(), Package: c.from.op.pkg, Requirement: c.req.text, Choices: ids(c.cands)}
	s.Text = fmt.Sprintf("bundle %s requires an operator %s%s", c.from.id(), c.req.text, c.req.note())
	switch {
	case len(c.cands) > 0:
		s.Text += "; none of " + strings.Join(s.Choices, ", ") + " can be had"
	case c.req.op == needPackage:
		s.Choices = w.versions(c.req.pkg)
		s.Text += "; " + versionsText(c.req.pkg, s.Choices)
	default:
		s.Text += "; nothing installed and no visible catalog has one" + w.notReady()
	}
	return s
}

// versions are those of a package that the visible catalogs offer.
func (w *world) versions(pkg string) []string {
	var out []string
	for _, c := range w.preferred(CatalogKey{}) {
		p := w.ask.pkg(c.Key, pkg)
		if p == nil {
			continue
		}
		for _, ch := range p.channels {
			for _, e := range ch.entries {
				if v := e.bundle.versionText(); v != "" && !slices.Contains(out, v) {
					out = append(out, v)
				}
			}
		}
	}
	return first(out, maxChoices)
}

func versionsText(pkg string, versions []string) string {
	if len(versions) == 0 {
		return "no visible catalog has package " + pkg
	}
	return "the visible catalogs have " + pkg + " " + strings.Join(versions, ", ")
}

// notReady names visible catalogs that could not be asked.
func (w *world) notReady() string {
	var names []string
	for _, c := range w.ask.catalogs {
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

func needs(c *choice) Statement {
	s := Statement{Kind: SubscriptionNeeds, Subscription: c.root.sub.Name, Package: c.root.sub.Package, Choices: ids(c.cands)}
	word := "one of "
	if len(c.cands) == 1 {
		word = ""
	}
	s.Text = fmt.Sprintf("subscription %s requires %s%s", s.Subscription, word, strings.Join(s.Choices, ", "))
	if len(c.cands) > len(s.Choices) {
		s.Text += fmt.Sprintf(" or %d more", len(c.cands)-len(s.Choices))
	}
	return s
}

// obstacles are what keeps a node from being chosen now.
func (w *world) obstacles(n *node, l *statements) []Statement {
	if n.op.deprecated {
		return []Statement{{Kind: BundleDeprecated, Bundle: n.id(), Package: n.op.pkg, Text: fmt.Sprintf("bundle %s is deprecated", n.id())}}
	}
	if n.op.twice != "" {
		return []Statement{{Kind: DuplicateAPI, Bundle: n.id(), Package: n.op.pkg, Text: fmt.Sprintf("bundle %s lists %s twice and so excludes itself", n.id(), n.op.twice)}}
	}
	var out []Statement
	for _, s := range n.slots {
		h := w.holder[s]
		if h == nil || h == n {
			continue
		}
		out = append(out, w.clash(n, h, w.table.names[s]))
		l.because(h)
	}
	return out
}

// clash is two nodes that want the same slot.
func (w *world) clash(n, holder *node, slotText string) Statement {
	s := Statement{Bundle: n.id(), Other: holder.id(), Package: n.op.pkg}
	name := slotText[len(slotPackage):]
	switch {
	case strings.HasPrefix(slotText, slotPackage):
		s.Kind = PackageUnique
		s.Text = fmt.Sprintf("there can be only one operator from package %s: %s and %s", name, n.id(), holder.id())
	case strings.HasPrefix(slotText, slotAPI):
		s.Kind = APIUnique
		s.Text = fmt.Sprintf("there can be only one provider of %s: %s and %s", apiText(name), n.id(), holder.id())
	case n.op.name == holder.op.name:
		s.Kind = NameUnique
		s.Text = fmt.Sprintf("there can be only one clusterserviceversion %s: %s and %s", name, n.id(), holder.id())
	default:
		s.Kind = ReplacesConflict
		s.Text = fmt.Sprintf("%s conflicts with %s: one takes the place of the other", n.id(), holder.id())
	}
	return s
}

// apiText turns APIName's form into "Kind (group/version)".
func apiText(name string) string {
	parts := strings.SplitN(name, "/", 3)
	if len(parts) != 3 {
		return name
	}
	return fmt.Sprintf("%s (%s/%s)", parts[2], parts[0], parts[1])
}

func ids(nodes []*node) []string {
	out := make([]string, 0, maxChoices)
	for _, n := range first(nodes, maxChoices) {
		out = append(out, n.id())
	}
	return out
}

func first[T any](list []T, n int) []T { return list[:min(n, len(list))] }
