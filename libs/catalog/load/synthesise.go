package load

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/internal/layout"
	"github.com/chandler-fleet/chandler/libs/catalog/internal/value"
	"github.com/chandler-fleet/chandler/libs/catalog/validate"
)

// synthesise makes a package of bundle directories alone. A bundle joins the channels that its
// annotations name, and so does all that it replaces, directly or not: channels share one replacement
// graph and are entry points into it (R-GRA-4). Edges come from the CSV: replaces, skips and the
// annotation olm.skipRange (R-GRA-3). Where a ci.yaml beside the directories says so, they come from the
// versions instead: see semverEdges. In the legacy layout a package manifest names the channels.
//
// Nobody checked such a graph before it came here, so what is wrong with it are warnings: the
// channel is served, and a subscription to it says what is wrong (R-GRA-15).
func (g *group) synthesise() {
	g.Severity = catalog.SeverityWarning
	if !value.Label(g.Name) {
		g.Reportf(g.dirs[0].Place, catalog.SeverityWarning, "R-CAT-20",
			"bundles of package %q are left out: its name must be a DNS-1123 label", g.Name)
		return
	}
	byName := map[string]*validate.BundleDraft{}
	for _, d := range g.dirs {
		if first, twice := byName[d.Bundle.Name]; twice {
			g.sameBundle(first, d)
			continue
		}
		byName[d.Bundle.Name] = d
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		if d := byName[name]; g.usable(d) {
			g.Bundles = append(g.Bundles, d)
		} else {
			delete(byName, name)
		}
	}
	g.joinByManifests(byName)
	mode := g.mode()
	members := g.members(byName, mode)
	g.dropOutsiders(members)
	if len(members) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		c := channelOf(g.Name, name, members[name], byName)
		if mode == layout.Replaces {
			g.joinHeads(c, byName)
		} else {
			g.semverEdges(c, byName, mode == layout.SemverSkipPatch)
		}
		g.Channels = append(g.Channels, c)
	}
	g.Packages = []*validate.PackageDraft{g.describe()}
}

// usable reports whether later steps can rely on the bundle; what they cannot take is left out.
func (g *group) usable(d *validate.BundleDraft) bool {
	if _, err := semver.Parse(d.Bundle.Version); err != nil {
		g.Reportf(d.In("version"), catalog.SeverityWarning, "R-CAT-26",
			"bundle %q is left out: version %q of its CSV is no semantic version: %v", d.Bundle.Name, d.Bundle.Version,
			err)
		return false
	}
	if why := validate.CheckEntryNames(catalog.Entry{Replaces: d.CSV.Replaces, Skips: d.CSV.Skips}); why != "" {
		g.Reportf(d.In("replaces"), catalog.SeverityWarning, "R-CAT-23", "bundle %q is left out: %s", d.Bundle.Name,
			why)
		return false
	}
	for _, p := range d.Bundle.Properties {
		if why := value.Name(p.Type, catalog.MaxBlobNameBytes); why != "" {
			g.Reportf(d.In("name"), catalog.SeverityWarning, "R-CAT-25",
				"bundle %q is left out: the type %.40q of a property %s", d.Bundle.Name, p.Type, why)
			return false
		}
		for _, issue := range g.Properties.Check(p.Type, p.Value) {
			if !issue.Warning {
				g.Reportf(d.In(p.Type), catalog.SeverityWarning, "R-CAT-25", "bundle %q is left out: property %s: %s",
					d.Bundle.Name, p.Type, issue.Text)
				return false
			}
		}
	}
	return true
}

// members returns the bundles of each channel.
func (g *group) members(byName map[string]*validate.BundleDraft, mode layout.Mode) map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for _, d := range g.Bundles {
		for _, c := range d.Joins {
			if out[c] == nil {
				out[c] = map[string]bool{}
			}
			if mode == layout.Replaces {
				join(out[c], byName, d)
			} else {
				out[c][d.Bundle.Name] = true
			}
		}
	}
	return out
}

// join adds a bundle and what it replaces to a channel; of a package manifest, whose bundles name no
// channels of their own, also what it skips.
func join(channel map[string]bool, byName map[string]*validate.BundleDraft, d *validate.BundleDraft) {
	for d != nil && !channel[d.Bundle.Name] {
		channel[d.Bundle.Name] = true
		for _, s := range d.CSV.Skips {
			if skipped := byName[s]; skipped != nil && skipped.Packaged {
				channel[s] = true
			}
		}
		d = byName[d.CSV.Replaces]
	}
}

// notes are what files beside bundle directories say of them.
type notes struct {
	modes     map[string]layout.Mode   // of ci.yaml, by directory
	manifests map[string]manifestDraft // package manifests of the legacy layout, by directory
}

// manifestDraft is a package manifest and where it stands.
type manifestDraft struct {
	validate.Place
	layout.Package
}

// mode is how the graph of the package is made (R-CAT-75). Directories of one package that say different
// things are odd: the first by path counts.
func (g *group) mode() layout.Mode {
	first, mode := "", layout.Replaces
	for _, d := range g.Bundles {
		dir := path.Dir(d.Dir)
		m := cmp.Or(g.notes.modes[dir], layout.Replaces)
		switch {
		case first == "":
			first, mode = dir, m
		case m != mode:
			g.Reportf(validate.Place{File: dir}, catalog.SeverityWarning, "R-CAT-75",
				"bundles of package %q lie here with updateGraph %s, and in %s with %s, which counts; let %s say the "+
					"same in both", g.Name, m, first, mode, layout.FileCI)
			return mode
		}
	}
	return mode
}

// semverEdges gives a channel the edges of its versions; what CSVs replace and skip does not count, their
// skipRange does (R-CAT-75):
//
//	semver        each version replaces the next lower one
//	skippatch     the highest patch of a minor version skips the lower ones, and replaces the highest
//	              patch of the minor version below: so whoever has an older patch moves at once
func (g *group) semverEdges(c *validate.ChannelDraft, byName map[string]*validate.BundleDraft, skipPatch bool) {
	// checked by usable
	version := func(e catalog.Entry) semver.Version { return semver.MustParse(byName[e.Name].Bundle.Version) }
	entries := c.Body.Entries
	slices.SortFunc(entries, func(a, b catalog.Entry) int {
		return cmp.Or(version(b).Compare(version(a)), cmp.Compare(b.Name, a.Name))
	})
	for i := range entries {
		e := &entries[i]
		c.Entries[i] = byName[e.Name].In("version")
		e.Replaces, e.Skips = "", nil
		if i > 0 && version(entries[i-1]).EQ(version(*e)) {
			g.Reportf(c.Entries[i], catalog.SeverityWarning, "R-CAT-75",
				"the versions of %q and %q have no order, which %s needs; give one another version", entries[i-1].Name,
				e.Name, layout.Semver)
		}
	}
	head := 0 // of the minor version that is looked at
	for i := 1; i < len(entries); i++ {
		h, v := version(entries[head]), version(entries[i])
		if skipPatch && h.Major == v.Major && h.Minor == v.Minor {
			entries[head].Skips = append(entries[head].Skips, entries[i].Name)
			continue
		}
		entries[head].Replaces = entries[i].Name
		head = i
	}
}

// joinByManifests gives the current CSVs of package manifests the channels that name them (R-CAT-76).
func (g *group) joinByManifests(byName map[string]*validate.BundleDraft) {
	for _, dir := range slices.Sorted(maps.Keys(g.notes.manifests)) {
		m := g.notes.manifests[dir]
		if m.Name != g.Name {
			continue
		}
		known := map[string]bool{}
		for i, c := range m.Channels {
			at := m.In("channels", "#"+strconv.Itoa(i), "currentCSV")
			known[c.Name] = true
			d := byName[c.CurrentCSV]
			switch {
			case c.Name == "":
				g.Reportf(at, catalog.SeverityWarning, "R-CAT-76",
					"a channel of the package manifest is left out: it has no name")
			case value.Name(c.Name, catalog.MaxNameBytes) != "":
				g.Reportf(at, catalog.SeverityWarning, "R-CAT-76",
					"channel %.40q of the package manifest is left out: its name %s", c.Name,
					value.Name(c.Name, catalog.MaxNameBytes))
			case d == nil:
				g.Reportf(at, catalog.SeverityWarning, "R-CAT-76",
					"channel %q of the package manifest is left out: its currentCSV %q is in no directory beside it, "+
						"or is left out itself", c.Name, c.CurrentCSV)
			default:
				d.Joins = append(d.Joins, c.Name)
			}
		}
		if m.DefaultChannel != "" && !known[m.DefaultChannel] {
			g.Reportf(m.In("defaultChannel"), catalog.SeverityWarning, "R-CAT-31",
				"default channel %q of the package manifest is no channel of it; name one of: %s", m.DefaultChannel,
				strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		for _, d := range g.dirs {
			if path.Dir(d.Dir) == dir {
				d.Preferred = m.DefaultChannel
			}
		}
	}
}

// dropOutsiders leaves out bundles that are in no channel (R-CAT-29, R-CAT-52).
func (g *group) dropOutsiders(members map[string]map[string]bool) {
	g.Bundles = slices.DeleteFunc(g.Bundles, func(d *validate.BundleDraft) bool {
		for _, m := range members {
			if m[d.Bundle.Name] {
				return false
			}
		}
		g.Reportf(d.Place, catalog.SeverityWarning, "R-CAT-52",
			"bundle %q is left out: it names no channel; set the annotation %s", d.Bundle.Name,
			catalog.AnnotationChannels)
		return true
	})
}

func channelOf(pkg, name string, members map[string]bool,
	byName map[string]*validate.BundleDraft,
) *validate.ChannelDraft {
	c := &validate.ChannelDraft{Package: pkg}
	c.Body.Name = name
	for _, m := range slices.Sorted(maps.Keys(members)) {
		d := byName[m]
		c.Body.Entries = append(c.Body.Entries, catalog.Entry{
			Name: m, Replaces: d.CSV.Replaces, Skips: d.CSV.Skips,
			SkipRange: d.CSV.SkipRange,
		})
		c.Entries = append(c.Entries, d.In("replaces"))
		if c.File == "" {
			c.Place = d.In("name")
		}
	}
	return c
}

// describe makes the package: the default channel that the newest bundle names, else the first by
// name (R-CAT-55); description and icon of the newest bundle of that channel.
func (g *group) describe() *validate.PackageDraft {
	p := &validate.PackageDraft{}
	p.Body.Name = g.Name
	newest := slices.Clone(g.Bundles)
	slices.SortFunc(newest, func(a, b *validate.BundleDraft) int {
		va, vb := semver.MustParse(a.Bundle.Version), semver.MustParse(b.Bundle.Version) // checked by usable
		return cmp.Or(vb.Compare(va), cmp.Compare(a.Bundle.Name, b.Bundle.Name))
	})
	known := map[string]*validate.ChannelDraft{}
	for _, c := range g.Channels {
		known[c.Body.Name] = c
	}
	p.Body.DefaultChannel = g.Channels[0].Body.Name
	for _, d := range newest {
		if known[d.Preferred] != nil {
			p.Body.DefaultChannel = d.Preferred
			break
		}
	}
	p.Place = g.Bundles[0].Place
	for _, d := range newest {
		if slices.ContainsFunc(known[p.Body.DefaultChannel].Body.Entries,
			func(e catalog.Entry) bool { return e.Name == d.Bundle.Name }) {
			p.Body.Description = d.CSV.Description
			p.Body.Icon = d.CSV.Icon
			break
		}
	}
	return p
}

// joinHeads gives a synthesised channel one head. Authors of bundle directories often leave the edges
// to a template that is not among them, so that several bundles are replaced by none. Those are put in
// order of version, the only order that is left:
//
//	the newest head          stays the head
//	each other head          follows the entry with the next higher version: as what it replaces, if it
//	                         replaced nothing of the channel so far; else it skips that whole chain
//
// Edges that authors gave stay. A channel with a cycle, or without a head, is left as it is.
func (g *group) joinHeads(c *validate.ChannelDraft, byName map[string]*validate.BundleDraft) {
	heads := catalog.Heads(c.Body)
	if len(heads) < 2 {
		return
	}
	j := joiner{entries: map[string]*catalog.Entry{}, version: map[string]semver.Version{}}
	for i := range c.Body.Entries {
		e := &c.Body.Entries[i]
		j.entries[e.Name] = e
		j.version[e.Name] = semver.MustParse(byName[e.Name].Bundle.Version) // checked by usable
	}
	slices.SortFunc(heads, func(a, b string) int {
		return cmp.Or(j.version[b].Compare(j.version[a]), cmp.Compare(b, a))
	})
	j.follow(heads[0])
	for _, h := range heads[1:] {
		j.join(h)
	}
	g.Reportf(byName[heads[0]].In("replaces"), catalog.SeverityWarning, "R-CAT-35",
		"channel %q had several heads, which were put in order of version: %s; let the newest replace or skip the "+
			"others",
		c.Body.Name, strings.Join(heads, ", "))
}

type joiner struct {
	entries map[string]*catalog.Entry
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
	for e := j.entries[head]; e != nil && !slices.Contains(j.main, e.Name) &&
		!slices.Contains(above.Skips, e.Name); e = j.entries[e.Replaces] {
		above.Skips = append(above.Skips, e.Name)
	}
}
