package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
)

// Graph is the update graph of one channel (§2). It is made of entries alone: versions matter only to
// skipRange (R-GRA-2). All answers are deterministic and do not depend on the order of entries.
type Graph struct {
	entries map[string]Entry
	order   []string        // head first, as "replaces" leads; skipped entries included
	skipped map[string]bool // names that some other entry skips
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
		return fmt.Sprintf("no channel heads (entries not replaced by another entry) found in channel %q: %s", e.Channel, strings.Join(e.Names, ", "))
	case ReasonCycle:
		return fmt.Sprintf("a cycle exists in the chain of replacement of channel %q: %s", e.Channel, strings.Join(e.Names, " -> "))
	case ReasonManyChains:
		return fmt.Sprintf("a unique replacement chain within a channel is required to determine the relative order between channel entries, but %d heads were found in channel %q: %s",
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
		return nil, &GraphError{Reason: ReasonNoHead, Channel: c.Name, Names: sortedKeys(g.entries)}
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
	return g, nil
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
	return sortedKeys(named)
}

// Successors returns what an installed bundle may be updated to, nearest the head first (R-GRA-9):
// the entries that replace or skip its name, or whose skipRange holds its version. version is the
// installed one, "" where it is not known (then no range matches). Where the installed bundle is
// itself in the chain, only entries nearer to the head are given: nothing moves backwards (R-GRA-14).
func (g *Graph) Successors(name, version string) []Entry {
	v, err := semver.Parse(version)
	known := err == nil
	var out []Entry
	for _, n := range g.order {
		if n == name {
			break
		}
		if g.skipped[n] {
			continue
		}
		if e := g.entries[n]; e.succeeds(name, v, known) {
			out = append(out, e)
		}
	}
	return out
}

// succeeds reports whether e is a direct successor (R-GRA-3).
func (e Entry) succeeds(name string, v semver.Version, known bool) bool {
	if name != "" && (e.Replaces == name || slices.Contains(e.Skips, name)) {
		return true
	}
	if e.SkipRange == "" || !known {
		return false
	}
	r, err := ParseRange(e.SkipRange)
	return err == nil && r(v)
}

// Channel returns a channel of the package by its name.
func (p Package) Channel(name string) (Channel, bool) {
	i := slices.IndexFunc(p.Channels, func(c Channel) bool { return c.Name == name })
	if i < 0 {
		return Channel{}, false
	}
	return p.Channels[i], true
}

// Bundle returns a bundle of the package by its name.
func (p Package) Bundle(name string) (Bundle, bool) {
	i := slices.IndexFunc(p.Bundles, func(b Bundle) bool { return b.Name == name })
	if i < 0 {
		return Bundle{}, false
	}
	return p.Bundles[i], true
}
