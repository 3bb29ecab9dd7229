package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
)

// Graph is the update graph of one channel (§2). It is made of entries alone: versions matter only to
// skipRange (R-GRA-2). All answers are deterministic and do not depend on the order of entries. Building
// it takes time and memory in proportion to the channel, whatever edges that has; see MaxPathWork for
// what walks through ranges may cost.
type Graph struct {
	entries map[string]Entry
	order   []string        // head first, as "replaces" leads; skipped entries included
	at      map[string]int  // places in order
	skipped map[string]bool // names that some other entry skips
	// by and ranges lead from what may be installed to its successors, as places in order, ascending:
	// by the name that an entry replaces or skips, and by ranges.
	by     map[string][]int
	ranges []rangeEdge
}

// rangeEdge is an entry that succeeds every version in a range.
type rangeEdge struct {
	at   int
	cost int // of asking, see MaxPathWork
	in   semver.Range
}

// GraphReason says why a channel cannot be followed (R-GRA-15).
type GraphReason string

// The reasons.
const (
	ReasonEmpty      GraphReason = "Empty"
	ReasonNoHead     GraphReason = "NoHead"
	ReasonManyChains GraphReason = "ManyChains"
	ReasonCycle      GraphReason = "Cycle"
)

// GraphError is a channel that has no unique order. Names are the heads or the cycle.
type GraphError struct {
	Reason  GraphReason
	Channel string
	Names   []string
}

// Error is the text of R-GRA-15, with the names that one has to look at.
func (e *GraphError) Error() string {
	switch e.Reason {
	case ReasonNoHead:
		return fmt.Sprintf("no channel heads (entries not replaced by another entry) found in channel %q: %s",
			e.Channel, strings.Join(e.Names, ", "))
	case ReasonCycle:
		return fmt.Sprintf("a cycle exists in the chain of replacement of channel %q: %s", e.Channel,
			strings.Join(e.Names, " -> "))
	case ReasonManyChains:
		return fmt.Sprintf(
			"a unique replacement chain within a channel is required to determine the relative order between channel "+
				"entries, but %d heads were found in channel %q: %s",
			len(e.Names), e.Channel, strings.Join(e.Names, ", "))
	default:
		return fmt.Sprintf("channel %q has no entries", e.Channel)
	}
}

// NewGraph orders the entries of a channel. Its error is a *GraphError.
func NewGraph(c Channel) (*Graph, error) {
	g := &Graph{entries: make(map[string]Entry, len(c.Entries)), skipped: map[string]bool{}}
	for _, e := range c.Entries {
		g.entries[e.Name] = e
	}
	heads := Heads(c)
	switch {
	case len(c.Entries) == 0:
		return nil, &GraphError{Reason: ReasonEmpty, Channel: c.Name}
	case len(heads) == 0:
		return nil, &GraphError{Reason: ReasonNoHead, Channel: c.Name, Names: slices.Sorted(maps.Keys(g.entries))}
	case len(heads) > 1:
		return nil, &GraphError{Reason: ReasonManyChains, Channel: c.Name, Names: heads}
	}
	for _, e := range c.Entries {
		for _, s := range e.Skips {
			if s != e.Name {
				g.skipped[s] = true
			}
		}
	}
	chain, cycle := g.chain(heads[0])
	if cycle {
		return nil, &GraphError{Reason: ReasonCycle, Channel: c.Name, Names: chain}
	}
	g.order = chain
	g.link()
	return g, nil
}

// link notes the edges of all entries that may be installed.
func (g *Graph) link() {
	g.at, g.by = make(map[string]int, len(g.order)), map[string][]int{}
	for i, name := range g.order {
		g.at[name] = i
		if g.skipped[name] {
			continue
		}
		e := g.entries[name]
		g.edge(e.Replaces, i)
		for _, n := range e.Skips {
			g.edge(n, i)
		}
		if e.SkipRange == "" {
			continue
		}
		if in, err := ParseRange(e.SkipRange); err == nil {
			g.ranges = append(g.ranges, rangeEdge{at: i, cost: 1 + len(e.SkipRange), in: in})
		}
	}
}

// edge notes that the entry at i succeeds a name, once.
func (g *Graph) edge(name string, i int) {
	if at := g.by[name]; name != "" && (len(at) == 0 || at[len(at)-1] != i) {
		g.by[name] = append(at, i)
	}
}

// Heads returns the entries that no other entry replaces or skips, sorted (R-CAT-35).
func Heads(c Channel) []string {
	incoming := map[string]bool{}
	for _, e := range c.Entries {
		incoming[e.Replaces] = incoming[e.Replaces] || e.Replaces != ""
		for _, s := range e.Skips {
			incoming[s] = true
		}
	}
	var heads []string
	for _, e := range c.Entries {
		if !incoming[e.Name] {
			heads = append(heads, e.Name)
		}
	}
	slices.Sort(heads)
	return slices.Compact(heads)
}

// chain follows "replaces" from a name through the entries of the channel. A name that is no entry
// ends it: such a virtual node has no content (R-GRA-11).
func (g *Graph) chain(from string) (names []string, cycle bool) {
	seen := map[string]bool{}
	for name := from; ; {
		e, ok := g.entries[name]
		if !ok {
			return names, false
		}
		names = append(names, name)
		if seen[name] {
			return names, true
		}
		seen[name] = true
		name = e.Replaces
	}
}

// Head is the channel's newest entry (R-GRA-1).
func (g *Graph) Head() Entry { return g.entries[g.order[0]] }

// Ordered returns the entries from head to tail, without those that another entry skips (R-GRA-9).
func (g *Graph) Ordered() []Entry {
	out := make([]Entry, 0, len(g.order))
	for _, name := range g.order {
		if !g.skipped[name] {
			out = append(out, g.entries[name])
		}
	}
	return out
}

// Entry returns an entry of the channel by its name.
func (g *Graph) Entry(name string) (Entry, bool) {
	e, ok := g.entries[name]
	return e, ok
}

// Skipped reports whether another entry skips the name: it shall not be installed any more (R-GRA-3).
func (g *Graph) Skipped(name string) bool { return g.skipped[name] }

// Virtual returns the names that entries replace or skip and that are no entries themselves, sorted (R-GRA-11).
func (g *Graph) Virtual() []string {
	named := map[string]bool{}
	for _, e := range g.entries {
		for _, n := range append([]string{e.Replaces}, e.Skips...) {
			if _, entry := g.entries[n]; n != "" && !entry {
				named[n] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(named))
}

// OffChain returns the entries that "replaces" from the head does not lead to and that no other entry
// skips, sorted: what R-CAT-36 calls stranded bundles.
func (g *Graph) OffChain() []string {
	var out []string
	for name := range g.entries {
		if _, on := g.at[name]; !on && !g.skipped[name] {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Successors returns what an installed bundle may be updated to, nearest the head first (R-GRA-9):
// the entries that replace or skip its name, or whose skipRange holds its version. version is the
// installed one, "" where it is not known (then no range matches). Where the installed bundle is
// itself in the chain, only entries nearer to the head are given: nothing moves backwards (R-GRA-14).
func (g *Graph) Successors(name, version string) []Entry {
	var out []Entry
	for _, i := range g.successors(name, version, nil) {
		out = append(out, g.entries[g.order[i]])
	}
	return out
}

// successors returns places in order, ascending, and takes what it costs from work, unless that is nil;
// where that is not enough it returns fewer.
func (g *Graph) successors(name, version string, work *int) []int {
	limit, on := g.at[name]
	if !on {
		limit = len(g.order)
	}
	var out []int
	for _, i := range g.by[name] {
		if i < limit {
			out = append(out, i)
		}
	}
	v, err := semver.Parse(version)
	if err != nil {
		return out
	}
	for _, r := range g.ranges {
		if r.at >= limit {
			break
		}
		if work != nil {
			if *work -= r.cost; *work < 0 {
				break
			}
		}
		if r.in(v) {
			out = append(out, r.at)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// MaxPathWork bounds what one walk through a channel may spend on ranges, in bytes of ranges that are
// asked: a channel of 100,000 entries, each with a range of its own, would else be asked 10^10 times.
// The largest real channels need some 10^5.
const MaxPathWork = 50_000_000

// Path is a way from an installed bundle to newer ones.
type Path struct {
	// Steps are the entries to install one after another, each a successor of the one before.
	Steps []Entry
	// ReachesHead says that the last step, or what is installed where there is none, is the head.
	ReachesHead bool
	// Limited says that MaxPathWork was met, so that there may be more or shorter steps.
	Limited bool
}

// NextPath is how a subscription moves: always to the successor nearest the head, one at a time, until
// the head (R-GRA-6, R-GRA-8, R-GRA-9). versions are those of the bundles, see Package.Versions.
func (g *Graph) NextPath(name, version string, versions map[string]string) Path {
	var p Path
	work := MaxPathWork
	for name != g.order[0] {
		next := g.successors(name, version, &work)
		if p.Limited = work < 0; len(next) == 0 || p.Limited {
			return p
		}
		e := g.entries[g.order[next[0]]]
		p.Steps = append(p.Steps, e)
		name, version = e.Name, versions[e.Name]
	}
	p.ReachesHead = true
	return p
}

// ShortestPath is the way to the head with the fewest steps; of equally short ones the one whose steps
// are nearest the head, the first first. Without a way it has no steps.
func (g *Graph) ShortestPath(name, version string, versions map[string]string) Path {
	if name == g.order[0] {
		return Path{ReachesHead: true}
	}
	work := MaxPathWork
	before := map[int]int{} // place -> the one before on the way, -1 for what is installed
	const installed = -1
	level := []int{installed}
	for len(level) > 0 && work >= 0 {
		var next []int
		for _, at := range level {
			n, v := name, version
			if at != installed {
				n = g.order[at]
				v = versions[n]
			}
			for _, s := range g.successors(n, v, &work) {
				if _, met := before[s]; !met {
					before[s] = at
					next = append(next, s)
				}
			}
		}
		if _, there := before[0]; there {
			p := Path{ReachesHead: true, Limited: work < 0}
			for at := 0; at != installed; at = before[at] {
				p.Steps = append(p.Steps, g.entries[g.order[at]])
			}
			slices.Reverse(p.Steps)
			return p
		}
		level = next
	}
	return Path{Limited: work < 0}
}

// Dead are entries from where nothing leads on.
type Dead struct {
	// Stranded are entries, but the head, that have no successor: whoever has one installed never
	// leaves it (R-GRA-7).
	Stranded []string
	// Cut are entries from which no way leads to the head; the stranded ones are among them.
	Cut []string
}

// Dead finds the entries that updates cannot leave, or only to such. Virtual nodes have no version, and
// are not looked at: nobody has them installed.
func (g *Graph) Dead(versions map[string]string) Dead {
	var d Dead
	work := MaxPathWork
	names := slices.Clone(g.order)
	for _, name := range slices.Sorted(maps.Keys(g.entries)) {
		if _, on := g.at[name]; !on {
			names = append(names, name)
		}
	}
	leads := make([]bool, len(g.order)) // successors lie nearer the head: they are known before
	for i, name := range names {
		if i == 0 {
			leads[0] = true
			continue
		}
		stuck, reaches := true, false
		for _, s := range g.successors(name, versions[name], &work) {
			stuck = false
			if leads[s] {
				reaches = true
				break
			}
		}
		if i < len(leads) {
			leads[i] = reaches
		}
		if stuck {
			d.Stranded = append(d.Stranded, name)
		}
		if !reaches {
			d.Cut = append(d.Cut, name)
		}
	}
	slices.Sort(d.Stranded)
	slices.Sort(d.Cut)
	return d
}
