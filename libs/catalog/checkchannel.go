package catalog

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/chandler-fleet/chandler/libs/catalog/internal/value"
)

// checkChannels holds the rules about entries and the graph (R-CAT-23, 30, 33, 35..38).
func (g *group) checkChannels() {
	have := map[string]bool{}
	for _, b := range g.bundles {
		have[b.bundle.Name] = true
	}
	for _, c := range g.channels {
		if len(c.body.Entries) == 0 {
			g.addf(c.place, SeverityError, "R-CAT-33", "channel %q has no entries; add a bundle or remove the channel", c.body.Name)
			continue
		}
		var absent []string
		var firstAbsent place
		seen := map[string]bool{}
		whole := true
		for i, e := range c.body.Entries {
			switch {
			case e.Name == "":
				whole = false
				g.addf(c.entries[i], SeverityError, "R-CAT-23", "an entry of channel %q has no name; name its bundle", c.body.Name)
			case seen[e.Name]:
				whole = false
				g.addf(c.entries[i], SeverityError, "R-CAT-23", "entry %q occurs twice in channel %q; keep one", e.Name, c.body.Name)
			case !have[e.Name]:
				if len(absent) == 0 {
					firstAbsent = c.entries[i]
				}
				absent = append(absent, e.Name)
			}
			seen[e.Name] = true
			g.checkEdges(c, i)
		}
		if len(absent) > 0 {
			g.addf(firstAbsent, SeverityError, "R-CAT-30", "no olm.bundle blobs found in package %q for olm.channel entries of %q: %s; add the bundles, or name them in replaces and skips only", g.name, c.body.Name, quoted(absent))
		}
		if whole {
			g.checkGraph(c)
		}
	}
}

// checkEdges holds R-CAT-38, and that what an entry names can be a name (R-CAT-23).
func (g *group) checkEdges(c *channelDraft, i int) {
	e := c.body.Entries[i]
	if why := e.unnameable(); why != "" {
		g.addf(c.entries[i], SeverityError, "R-CAT-23", "entry %.253q of channel %q: %s", e.Name, c.body.Name, why)
	}
	if n := slices.Index(e.Skips, ""); n >= 0 {
		g.addf(c.edge(i, "skips", "#"+strconv.Itoa(n)), g.severity, "R-CAT-38", "entry %q of channel %q skips an empty name; remove it", e.Name, c.body.Name)
	}
	if e.SkipRange == "" {
		return
	}
	if _, err := ParseRange(e.SkipRange); err != nil {
		at := c.edge(i, "skipRange")
		if at.line == 0 { // of a CSV, whose channels have the same: told once
			g.addf(at, g.severity, "R-CAT-38", "skipRange of bundle %q: %v; correct the annotation olm.skipRange", e.Name, err)
			return
		}
		g.addf(at, g.severity, "R-CAT-38", "skipRange of entry %q in channel %q: %v", e.Name, c.body.Name, err)
	}
}

// unnameable returns why a name in an edge of the entry is none.
func (e Entry) unnameable() string {
	for _, n := range append([]string{e.Replaces}, e.Skips...) {
		if why := value.Name(n, MaxNameBytes); why != "" {
			return fmt.Sprintf("the name %.40q in replaces or skips %s", n, why)
		}
	}
	return ""
}

// edge is the place of a field of an entry: in its document, or in the CSV that the entry was made of.
func (c *channelDraft) edge(i int, path ...string) place {
	if at := c.entries[i]; at.line == 0 {
		if path[0] == "skipRange" {
			return at.in("olm.skipRange")
		}
		return at.in(path[0])
	}
	return c.in(append([]string{"entries", "#" + strconv.Itoa(i)}, path...)...)
}

// entryAt is where an entry of the channel stands.
func (c *channelDraft) entryAt(name string) place {
	i := slices.IndexFunc(c.body.Entries, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		return c.place
	}
	return c.entries[i]
}

// checkGraph holds R-CAT-35..37: one head from which "replaces" reaches all that is not skipped.
func (g *group) checkGraph(c *channelDraft) {
	heads := Heads(c.body)
	switch {
	case len(heads) == 0:
		g.addf(c.place, g.severity, "R-CAT-35", "no channel head found in graph of channel %q: every entry is replaced or skipped by another; take the newest out of replaces and skips", c.body.Name)
		return
	case len(heads) > 1:
		g.addf(c.entryAt(heads[1]), g.severity, "R-CAT-35", "multiple channel heads found in graph of channel %q: %s; let the newest replace or skip the others", c.body.Name, strings.Join(heads, ", "))
		return
	}
	s := survey(c.body)
	if s.cycle != nil {
		g.addf(c.entryAt(s.cycle[0]), g.severity, "R-CAT-37", "detected cycle in replaces chain of channel %q at entry %q: %s; let one of them replace an older version", c.body.Name, s.cycle[0], chainText(s.cycle))
		return
	}
	if len(s.stranded) > 0 {
		g.addf(c.entryAt(s.stranded[0]), g.severity, "R-CAT-36", "channel %q contains one or more stranded bundles: %s; no replaces chain from its head %q leads to them: let a newer entry replace or skip them", c.body.Name, quoted(s.stranded), heads[0])
	}
}

// chainText writes a cycle of any length in bounded words.
func chainText(names []string) string {
	const most = 10
	if len(names) > most {
		return strings.Join(names[:most], " -> ") + " -> …"
	}
	return strings.Join(names, " -> ")
}

// checkDeprecations holds R-CAT-32 and R-CAT-13.
func (g *group) checkDeprecations() {
	channels, bundles := map[string]bool{}, map[string]bool{}
	for _, c := range g.channels {
		channels[c.body.Name] = true
	}
	for _, b := range g.bundles {
		bundles[b.bundle.Name] = true
	}
	for n, d := range g.deprecations {
		if n > 0 {
			g.addf(d.place, SeverityError, "R-CAT-32", "package %q has more than one olm.deprecations; the first stands at %s; join them", g.name, g.deprecations[0].text())
			continue
		}
		seen := map[string]bool{}
		for i, e := range d.entries {
			if why := e.check(channels, bundles); why != "" {
				g.addf(d.at[i], SeverityError, "R-CAT-32", "deprecation of %s %q: %s", e.Schema, e.Name, why)
			}
			key := e.Schema + " " + e.Name
			if seen[key] {
				g.addf(d.at[i], SeverityError, "R-CAT-32", "deprecation of %s %q occurs twice; join the messages", e.Schema, e.Name)
			}
			seen[key] = true
		}
	}
}

// check returns why a deprecation breaks R-CAT-32, "" where it does not.
func (d Deprecation) check(channels, bundles map[string]bool) string {
	const mend = "; correct the name, or remove the entry"
	switch {
	case d.Schema == "":
		return "the reference has no schema; set olm.package, olm.channel or olm.bundle"
	case d.Schema != SchemaPackage && d.Schema != SchemaChannel && d.Schema != SchemaBundle:
		return "the reference's schema must be olm.package, olm.channel or olm.bundle"
	case d.Schema == SchemaPackage && d.Name != "":
		return "a reference to olm.package must have no name: it means its own package"
	case d.Schema != SchemaPackage && d.Name == "":
		return "a reference to " + d.Schema + " must have a name"
	case d.Schema == SchemaChannel && !channels[d.Name]:
		return "no such channel" + mend
	case d.Schema == SchemaBundle && !bundles[d.Name]:
		return "no such bundle" + mend
	case d.Message == "":
		return "the message is empty; say what to do instead"
	}
	return ""
}
