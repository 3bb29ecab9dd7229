package catalog

import (
	"cmp"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
)

// joinHeads gives a synthesised channel one head. Authors of bundle directories often leave the edges
// to a template that is not among them, so that several bundles are replaced by none. Those are put in
// order of version, the only order that is left:
//
//	the newest head          stays the head
//	each other head          follows the entry with the next higher version: as what it replaces, if it
//	                         replaced nothing of the channel so far; else it skips that whole chain
//
// Edges that authors gave stay. A channel with a cycle, or without a head, is left as it is.
func (g *group) joinHeads(c *channelDraft, byName map[string]*bundleDraft) {
	heads := Heads(c.body)
	if len(heads) < 2 {
		return
	}
	j := joiner{entries: map[string]*Entry{}, version: map[string]semver.Version{}}
	for i := range c.body.Entries {
		e := &c.body.Entries[i]
		j.entries[e.Name] = e
		j.version[e.Name] = semver.MustParse(byName[e.Name].bundle.Version) // checked by usable
	}
	slices.SortFunc(heads, func(a, b string) int {
		return cmp.Or(j.version[b].Compare(j.version[a]), cmp.Compare(b, a))
	})
	j.follow(heads[0])
	for _, h := range heads[1:] {
		j.join(h)
	}
	g.addf(c.place, SeverityWarning, "R-CAT-35", "channel %q had several heads, which were put in order of version: %s; let the newest replace or skip the others",
		c.body.Name, strings.Join(heads, ", "))
}

type joiner struct {
	entries map[string]*Entry
	version map[string]semver.Version
	main    []string // the chain from the head, as far as it is joined
}

// follow adds a name and what it replaces to the main chain.
func (j *joiner) follow(name string) {
	for e := j.entries[name]; e != nil && !slices.Contains(j.main, e.Name); e = j.entries[e.Replaces] {
		j.main = append(j.main, e.Name)
	}
}

// join puts the chain of another head behind the entry with the next higher version.
func (j *joiner) join(head string) {
	above := j.entries[j.main[0]]
	for _, n := range j.main {
		if v := j.version[n]; v.GTE(j.version[head]) && v.LT(j.version[above.Name]) {
			above = j.entries[n]
		}
	}
	last := j.main[len(j.main)-1]
	if above.Name == last && j.entries[above.Replaces] == nil {
		if above.Replaces != "" {
			above.Skips = append(slices.Clone(above.Skips), above.Replaces)
		}
		above.Replaces = head
		j.follow(head)
		return
	}
	above.Skips = slices.Clone(above.Skips)
	for e := j.entries[head]; e != nil && !slices.Contains(j.main, e.Name) && !slices.Contains(above.Skips, e.Name); e = j.entries[e.Replaces] {
		above.Skips = append(above.Skips, e.Name)
	}
}
