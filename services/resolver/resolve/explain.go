package resolve

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

// told collects the statements of one explanation, each once.
type told struct {
	w     *world
	all   []Statement
	texts map[string]bool
	reads []int32
	of    map[nodeID]bool // that something of the contradiction demands
}

func (c *cluster) tell() *told {
	t := &told{w: c.w, texts: map[string]bool{}, of: map[nodeID]bool{}}
	c.w.ask.noting(&t.reads)
	return t
}

func (t *told) say(list ...Statement) {
	for _, s := range list {
		if !t.texts[s.Text] {
			t.texts[s.Text] = true
			t.all = append(t.all, s)
		}
	}
}

// failure tells of roots that fail for what is said.
func (c *cluster) failure(class Class, roots []*root, said ...Statement) failed {
	t := c.tell()
	for _, r := range roots {
		t.say(t.exists(r))
	}
	t.say(said...)
	return failed{roots: t.anew(roots), explanation: t.explanation(class, roots), reads: t.reads}
}

// anew are roots as a failure is told of them: a subscription that failed before is not told of again, only the CSV
// that it left.
func (t *told) anew(roots []*root) []*root {
	out := make([]*root, 0, len(roots))
	for _, r := range roots {
		if r.state != wanted {
			r = &root{installed: r.installed, node: r.node, state: r.state}
		}
		out = append(out, r)
	}
	return out
}

// conflict tells of roots that fail because of reasons which contradict each other. Without any one of them the
// others would not.
func (c *cluster) conflict(roots []*root, reasons []reason) failed {
	t := c.tell()
	var named []*root
	for _, why := range reasons {
		t.demands(c, why)
		if why.kind == byRoot {
			named = append(named, c.roots[why.a])
		}
	}
	for _, why := range reasons {
		t.because(c, why)
	}
	slices.SortFunc(named, compareRoots)
	return failed{roots: t.anew(roots), explanation: t.explanation(ClassUnsatisfiable, named), reads: t.reads}
}

func (t *told) explanation(class Class, roots []*root) Explanation {
	e := Explanation{Reason: ReasonPrevented, Class: class, Subscriptions: []string{}}
	if class == ClassUnsatisfiable {
		e.Reason = ReasonNotSatisfiable
	}
	for _, r := range roots {
		if r.sub != nil && r.state == wanted {
			e.Subscriptions = append(e.Subscriptions, r.sub.Name)
		} else {
			e.CSVs = append(e.CSVs, r.csv())
		}
	}
	slices.SortStableFunc(t.all, func(a, b Statement) int { return cmp.Compare(a.Text, b.Text) })
	e.Statements = first(t.all, MaxStatements)
	e.More = len(t.all) - len(e.Statements)
	return e
}

// coarse says of an explanation that not all of it may be needed.
func (e Explanation) coarse() Explanation {
	e.Coarse = true
	e.Statements = append(slices.Clone(e.Statements), Statement{
		Kind: SearchTooLong,
		Text: "these reasons contradict each other, but the conflict is too hard to tell whether all of them are needed; fewer may be enough",
	})
	return e
}

// demands notes the nodes that a reason asks for.
func (t *told) demands(c *cluster, why reason) {
	var nodes []nodeID
	switch why.kind {
	case byRoot:
		if r := c.roots[why.a]; r.state == wanted {
			nodes = r.cands
		} else {
			nodes = []nodeID{r.node}
		}
	case byNeed:
		nodes = c.w.needs[why.b].cands
	default:
	}
	for _, n := range nodes {
		t.of[n] = true
	}
}

// because says one reason.
func (t *told) because(c *cluster, why reason) {
	switch why.kind {
	case byRoot:
		r := c.roots[why.a]
		t.say(t.exists(r))
		if r.state == wanted {
			t.say(t.wants(r))
		}
	case bySlot:
		t.say(t.clash(slotID(why.a)))
	case byReplaces:
		t.say(t.replaces(nodeID(why.a), nodeID(why.b)))
	case byNeed:
		t.say(t.requires(why.a, why.b))
	default:
		t.say(t.forbidden(why))
	}
}

// text names a root in a sentence.
func (r *root) text() string {
	if r.sub != nil {
		return "subscription " + r.sub.Name
	}
	return "clusterserviceversion " + r.csv()
}

func (t *told) exists(r *root) Statement {
	switch {
	case r.sub == nil:
		return Statement{
			Kind: UnmanagedCSV, Bundle: r.csv(), Package: r.installed.Package,
			Text: fmt.Sprintf("clusterserviceversion %s exists and is not referenced by a subscription", r.csv()),
		}
	case r.state != wanted:
		return Statement{
			Kind: SubscriptionNeeds, Subscription: r.sub.Name, Package: r.sub.Package, Bundle: t.w.id(r.node),
			Text: fmt.Sprintf("%s stays, since subscription %s that follows it cannot be resolved", t.w.id(r.node), r.sub.Name),
		}
	}
	return Statement{
		Kind: SubscriptionExists, Subscription: r.sub.Name, Package: r.sub.Package,
		Text: fmt.Sprintf("subscription %s to package %s exists", r.sub.Name, r.sub.Package),
	}
}

func (t *told) wants(r *root) Statement {
	s := Statement{Kind: SubscriptionNeeds, Subscription: r.sub.Name, Package: r.sub.Package, Choices: t.ids(r.cands)}
	if s.Revision = t.w.revision(r.cands[0]); s.Revision != "" {
		s.Catalog = t.w.catalogOf(r.cands[0]).String()
	}
	switch {
	case r.installed == nil:
		s.Text = fmt.Sprintf("subscription %s requires %s", s.Subscription, t.list(r.cands, "or"))
	case len(r.cands) == 1:
		s.Text = fmt.Sprintf("subscription %s follows %s, which has no successor in channel %s of package %s",
			s.Subscription, t.w.id(r.node), cmp.Or(r.sub.Channel, "(any)"), r.sub.Package)
	default:
		s.Text = fmt.Sprintf("subscription %s follows %s and requires %s", s.Subscription, t.w.id(r.node), t.list(r.cands, "or"))
	}
	return s
}

// requires tells what a bundle asks for, and why that cannot be had.
func (t *told) requires(at, need int32) Statement {
	n := t.node(at)
	req, cands := t.w.needs[need].req, t.w.needs[need].cands
	s := Statement{
		Kind: UnmetRequirement, Bundle: t.w.id(n), Package: t.w.op(n).Package, Revision: t.w.revision(n),
		Requirement: req.Text, Choices: t.ids(cands), Text: t.w.requiring(n, req),
	}
	if !t.w.isInstalled(n) {
		s.Catalog = t.w.catalogOf(n).String()
	}
	_, names, anchored := req.Anchors()
	switch {
	case len(cands) > 0:
		s.Text += "; there is " + t.list(cands, "and")
	case anchored && len(names) > 0:
		s.Choices = t.versions(names)
		s.Text += "; " + versionsText(names, s.Choices) + t.notReady()
	default:
		s.Text += "; nothing installed and no visible catalog has one" + t.notReady()
	}
	return s
}

// node is one of those of a shape that the contradiction demands, else any.
func (t *told) node(at int32) nodeID {
	found := none
	for n := range t.w.nodes {
		if t.w.nodes[n].shape != at {
			continue
		}
		if t.of[nodeID(n)] {
			return nodeID(n)
		}
		if found == none {
			found = nodeID(n)
		}
	}
	return found
}

// versions are those of packages that the visible catalogs offer.
func (t *told) versions(packages []string) []string {
	var out []string
	for i := range t.w.catalogs {
		for _, name := range packages {
			p := t.w.ask.pkg(t.w.catalogs[i].Key, name)
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
	return first(out, maxChoices)
}

func versionsText(packages, versions []string) string {
	names := strings.Join(packages, " or ")
	if len(versions) == 0 {
		return "no visible catalog has package " + names
	}
	return "the visible catalogs have " + names + " " + strings.Join(versions, ", ")
}

// notReady names visible catalogs that could not be asked.
func (t *told) notReady() string {
	var names []string
	for _, c := range t.w.ask.visible() {
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

func (t *told) forbidden(why reason) Statement {
	n := t.node(why.a)
	op := t.w.op(n)
	s := Statement{Bundle: t.w.id(n), Package: op.Package, Revision: t.w.revision(n)}
	if !t.w.isInstalled(n) {
		s.Catalog = t.w.catalogOf(n).String()
	}
	switch why.kind {
	case byPolicy:
		return t.w.forbidden(n)
	case byDeprecated:
		s.Kind, s.Text = BundleDeprecated, fmt.Sprintf("bundle %s is deprecated", s.Bundle)
	default:
		s.Kind, s.Text = DuplicateAPI, fmt.Sprintf("bundle %s lists %s twice and so excludes itself", s.Bundle, op.Twice)
	}
	return s
}

func (t *told) replaces(n, csv nodeID) Statement {
	return Statement{
		Kind: ReplacesConflict, Bundle: t.w.id(n), Other: t.w.id(csv), Package: t.w.op(n).Package, Revision: t.w.revision(n),
		Text: fmt.Sprintf("%s conflicts with %s: one takes the place of the other", t.w.id(n), t.w.id(csv)),
	}
}

// clash tells that a slot has one holder, and who of the contradiction wants it.
func (t *told) clash(s slotID) Statement {
	var who []nodeID
	for _, n := range t.w.slots.holders[s] {
		if t.of[n] {
			who = append(who, n)
		}
	}
	who = t.spread(who)
	out := Statement{Choices: t.ids(who)}
	if len(who) > 0 {
		out.Bundle, out.Package = t.w.id(who[0]), t.w.op(who[0]).Package
		out.Other = t.w.id(who[len(who)-1])
	}
	if sl := t.w.slots.all[s]; sl.pkg != "" {
		out.Kind, out.Package = PackageUnique, sl.pkg
		out.Text = "there can be only one operator from package " + sl.pkg
	} else {
		out.Kind = APIUnique
		out.Text = fmt.Sprintf("there can be only one provider of %s (%s/%s)", sl.api.Kind, sl.api.Group, sl.api.Version)
	}
	out.Text += ": " + t.list(who, "and")
	return out
}

// spread orders nodes so that a short list shows all sides: the first of each package, then the others; what is
// installed comes last of both.
func (t *told) spread(nodes []nodeID) []nodeID {
	slices.SortStableFunc(nodes, func(a, b nodeID) int { return compareBool(t.w.isInstalled(a), t.w.isInstalled(b)) })
	var out, others []nodeID
	seen := map[string]bool{}
	for _, n := range nodes {
		side := t.w.op(n).Package
		if t.w.isInstalled(n) {
			side = "installed " + t.w.op(n).Name
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

func (t *told) ids(nodes []nodeID) []string {
	out := make([]string, 0, maxChoices)
	for _, n := range first(nodes, maxChoices) {
		out = append(out, t.w.id(n))
	}
	return out
}

// list names nodes in a sentence; word goes before the last.
func (t *told) list(nodes []nodeID, word string) string {
	names := make([]string, 0, len(nodes))
	for _, n := range nodes {
		names = append(names, t.w.id(n))
	}
	return listed(names, word)
}

func first[T any](list []T, n int) []T { return list[:min(n, len(list))] }
