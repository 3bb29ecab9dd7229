package validate

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/internal/value"
)

// CheckChannels holds the rules about entries and the graph (R-CAT-23, 30, 33, 35..38).
func (g *Drafts) CheckChannels() {
	have := map[string]bool{}
	for _, b := range g.Bundles {
		have[b.Bundle.Name] = true
	}
	for _, c := range g.Channels {
		if len(c.Body.Entries) == 0 {
			g.Reportf(c.Place, catalog.SeverityError, "R-CAT-33",
				"channel %q has no entries; add a bundle or remove the channel", c.Body.Name)
			continue
		}
		var absent []string
		var firstAbsent Place
		seen := map[string]bool{}
		whole := true
		for i, e := range c.Body.Entries {
			switch {
			case e.Name == "":
				whole = false
				g.Reportf(c.Entries[i], catalog.SeverityError, "R-CAT-23",
					"an entry of channel %q has no name; name its bundle", c.Body.Name)
			case seen[e.Name]:
				whole = false
				g.Reportf(c.Entries[i], catalog.SeverityError, "R-CAT-23",
					"entry %q occurs twice in channel %q; keep one",
					e.Name, c.Body.Name)
			case !have[e.Name]:
				if len(absent) == 0 {
					firstAbsent = c.Entries[i]
				}
				absent = append(absent, e.Name)
			}
			seen[e.Name] = true
			g.checkEdges(c, i)
		}
		if len(absent) > 0 {
			g.Reportf(firstAbsent, catalog.SeverityError, "R-CAT-30",
				"no olm.bundle blobs found in package %q for olm.channel entries of %q: %s; add the bundles, or name "+
					"them in replaces and skips only", g.Name, c.Body.Name, quoted(absent))
		}
		if whole {
			g.checkGraph(c)
		}
	}
}

// checkEdges holds R-CAT-38, and that what an entry names can be a name (R-CAT-23).
func (g *Drafts) checkEdges(c *ChannelDraft, i int) {
	e := c.Body.Entries[i]
	if why := CheckEntryNames(e); why != "" {
		g.Reportf(c.Entries[i], catalog.SeverityError, "R-CAT-23", "entry %.253q of channel %q: %s", e.Name,
			c.Body.Name,
			why)
	}
	if n := slices.Index(e.Skips, ""); n >= 0 {
		g.Reportf(c.EdgeAt(i, "skips", "#"+strconv.Itoa(n)), g.Severity, "R-CAT-38",
			"entry %q of channel %q skips an empty name; remove it", e.Name, c.Body.Name)
	}
	if e.SkipRange == "" {
		return
	}
	if _, err := catalog.ParseRange(e.SkipRange); err != nil {
		at := c.EdgeAt(i, "skipRange")
		if at.Line == 0 { // of a CSV, whose channels have the same: reported once
			g.Reportf(at, g.Severity, "R-CAT-38", "skipRange of bundle %q: %v; correct the annotation olm.skipRange",
				e.Name, err)
			return
		}
		g.Reportf(at, g.Severity, "R-CAT-38", "skipRange of entry %q in channel %q: %v", e.Name, c.Body.Name, err)
	}
}

// CheckEntryNames returns why a name in an edge of the entry cannot be a name, "" where all can.
func CheckEntryNames(e catalog.Entry) string {
	for _, n := range append([]string{e.Replaces}, e.Skips...) {
		if why := value.Name(n, catalog.MaxNameBytes); why != "" {
			return fmt.Sprintf("the name %.40q in replaces or skips %s", n, why)
		}
	}
	return ""
}

// checkGraph holds R-CAT-35..37: one head from which "replaces" reaches all that is not skipped.
func (g *Drafts) checkGraph(c *ChannelDraft) {
	heads := catalog.Heads(c.Body)
	switch {
	case len(heads) == 0:
		g.Reportf(c.Place, g.Severity, "R-CAT-35",
			"no channel head found in graph of channel %q: every entry is replaced or skipped by another; take the "+
				"newest out of replaces and skips", c.Body.Name)
		return
	case len(heads) > 1:
		g.Reportf(c.EntryAt(heads[1]), g.Severity, "R-CAT-35",
			"multiple channel heads found in graph of channel %q: %s; let the newest replace or skip the others",
			c.Body.Name, strings.Join(heads, ", "))
		return
	}
	s := survey(c.Body)
	if s.cycle != nil {
		g.Reportf(c.EntryAt(s.cycle[0]), g.Severity, "R-CAT-37",
			"detected cycle in replaces chain of channel %q at entry %q: %s; let one of them replace an older version",
			c.Body.Name, s.cycle[0], chainText(s.cycle))
		return
	}
	if len(s.stranded) > 0 {
		g.Reportf(c.EntryAt(s.stranded[0]), g.Severity, "R-CAT-36",
			"channel %q contains one or more stranded bundles: %s; no replaces chain from its head %q leads to them: "+
				"let a newer entry replace or skip them", c.Body.Name, quoted(s.stranded), heads[0])
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

// CheckDeprecations holds R-CAT-32 and R-CAT-13.
func (g *Drafts) CheckDeprecations() {
	channels, bundles := map[string]bool{}, map[string]bool{}
	for _, c := range g.Channels {
		channels[c.Body.Name] = true
	}
	for _, b := range g.Bundles {
		bundles[b.Bundle.Name] = true
	}
	for n, d := range g.Deprecations {
		if n > 0 {
			g.Reportf(d.Place, catalog.SeverityError, "R-CAT-32",
				"package %q has more than one olm.deprecations; the first stands at %s; join them", g.Name,
				g.Deprecations[0].Text())
			continue
		}
		seen := map[string]bool{}
		for i, e := range d.Entries {
			if why := checkDeprecation(e, channels, bundles); why != "" {
				g.Reportf(d.EntriesAt[i], catalog.SeverityError, "R-CAT-32", "deprecation of %s %q: %s", e.Schema,
					e.Name,
					why)
			}
			key := e.Schema + " " + e.Name
			if seen[key] {
				g.Reportf(d.EntriesAt[i], catalog.SeverityError, "R-CAT-32",
					"deprecation of %s %q occurs twice; join the messages", e.Schema, e.Name)
			}
			seen[key] = true
		}
	}
}

// checkDeprecation returns why a deprecation breaks R-CAT-32, "" where it does not.
func checkDeprecation(d catalog.Deprecation, channels, bundles map[string]bool) string {
	const fix = "; correct the name, or remove the entry"
	switch {
	case d.Schema == "":
		return "the reference has no schema; set olm.package, olm.channel or olm.bundle"
	case d.Schema != catalog.SchemaPackage && d.Schema != catalog.SchemaChannel && d.Schema != catalog.SchemaBundle:
		return "the reference's schema must be olm.package, olm.channel or olm.bundle"
	case d.Schema == catalog.SchemaPackage && d.Name != "":
		return "a reference to olm.package must have no name: it means its own package"
	case d.Schema != catalog.SchemaPackage && d.Name == "":
		return "a reference to " + d.Schema + " must have a name"
	case d.Schema == catalog.SchemaChannel && !channels[d.Name]:
		return "no such channel" + fix
	case d.Schema == catalog.SchemaBundle && !bundles[d.Name]:
		return "no such bundle" + fix
	case d.Message == "":
		return "the message is empty; say what to do instead"
	}
	return ""
}

// chainSurvey is what one walk along "replaces" from the head of a channel finds.
type chainSurvey struct {
	cycle    []string // names from its first one on
	stranded []string // entries that are neither reached nor skipped, sorted
}

// survey walks a channel that has one head, with cycles or not (R-CAT-36, R-CAT-37).
func survey(c catalog.Channel) chainSurvey {
	g, err := catalog.NewGraph(c)
	if e, ok := errors.AsType[*catalog.GraphError](err); ok {
		if e.Reason != catalog.ReasonCycle {
			return chainSurvey{}
		}
		again := e.Names[len(e.Names)-1]
		return chainSurvey{cycle: e.Names[slices.Index(e.Names, again):]}
	}
	return chainSurvey{stranded: g.OffChain()}
}

func quoted(names []string) string {
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}
