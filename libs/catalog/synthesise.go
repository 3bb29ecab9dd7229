package catalog

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/chandler-fleet/chandler/libs/catalog/internal/layout"
	"github.com/chandler-fleet/chandler/libs/catalog/internal/value"
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
	g.severity = SeverityWarning
	if !value.Label(g.name) {
		g.addf(g.dirs[0].place, SeverityWarning, "R-CAT-20", "bundles of package %q are left out: its name must be a DNS-1123 label", g.name)
		return
	}
	byName := map[string]*bundleDraft{}
	for _, d := range g.dirs {
		if first, twice := byName[d.bundle.Name]; twice {
			g.sameBundle(first, d)
			continue
		}
		byName[d.bundle.Name] = d
	}
	for _, name := range sortedKeys(byName) {
		if d := byName[name]; g.usable(d) {
			g.bundles = append(g.bundles, d)
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
	for _, name := range sortedKeys(members) {
		c := channelOf(g.name, name, members[name], byName)
		if mode == layout.Replaces {
			g.joinHeads(c, byName)
		} else {
			g.semverEdges(c, byName, mode == layout.SemverSkipPatch)
		}
		g.channels = append(g.channels, c)
	}
	g.packages = []*packageDraft{g.describe()}
}

// usable reports whether later steps can rely on the bundle; what they cannot take is left out.
func (g *group) usable(d *bundleDraft) bool {
	if _, err := semver.Parse(d.bundle.Version); err != nil {
		g.addf(d.in("version"), SeverityWarning, "R-CAT-26", "bundle %q is left out: version %q of its CSV is no semantic version: %v", d.bundle.Name, d.bundle.Version, err)
		return false
	}
	if why := (Entry{Replaces: d.csv.replaces, Skips: d.csv.skips}).unnameable(); why != "" {
		g.addf(d.in("replaces"), SeverityWarning, "R-CAT-23", "bundle %q is left out: %s", d.bundle.Name, why)
		return false
	}
	for _, p := range d.bundle.Properties {
		if why := value.Name(p.Type, MaxBlobNameBytes); why != "" {
			g.addf(d.in("name"), SeverityWarning, "R-CAT-25", "bundle %q is left out: the type %.40q of a property %s", d.bundle.Name, p.Type, why)
			return false
		}
		for _, issue := range g.properties.Check(p.Type, p.Value) {
			if !issue.Warning {
				g.addf(d.in(p.Type), SeverityWarning, "R-CAT-25", "bundle %q is left out: property %s: %s", d.bundle.Name, p.Type, issue.Text)
				return false
			}
		}
	}
	return true
}

// members returns the bundles of each channel.
func (g *group) members(byName map[string]*bundleDraft, mode layout.Mode) map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for _, d := range g.bundles {
		for _, c := range d.joins {
			if out[c] == nil {
				out[c] = map[string]bool{}
			}
			if mode == layout.Replaces {
				join(out[c], byName, d)
			} else {
				out[c][d.bundle.Name] = true
			}
		}
	}
	return out
}

// join adds a bundle and what it replaces to a channel; of a package manifest, whose bundles name no
// channels of their own, also what it skips.
func join(channel map[string]bool, byName map[string]*bundleDraft, d *bundleDraft) {
	for d != nil && !channel[d.bundle.Name] {
		channel[d.bundle.Name] = true
		for _, s := range d.csv.skips {
			if skipped := byName[s]; skipped != nil && skipped.packaged {
				channel[s] = true
			}
		}
		d = byName[d.csv.replaces]
	}
}

// notes are what files beside bundle directories say of them.
type notes struct {
	modes     map[string]layout.Mode   // of ci.yaml, by directory
	manifests map[string]manifestDraft // package manifests of the legacy layout, by directory
}

// manifestDraft is a package manifest and where it stands.
type manifestDraft struct {
	place
	layout.Package
}

// mode is how the graph of the package is made (R-CAT-75). Directories of one package that say different
// things are odd: the first by path counts.
func (g *group) mode() layout.Mode {
	first, mode := "", layout.Replaces
	for _, d := range g.bundles {
		dir := path.Dir(d.dir)
		m := cmp.Or(g.notes.modes[dir], layout.Replaces)
		switch {
		case first == "":
			first, mode = dir, m
		case m != mode:
			g.addf(place{file: dir}, SeverityWarning, "R-CAT-75", "bundles of package %q lie here with updateGraph %s, and in %s with %s, which counts; let %s say the same in both", g.name, m, first, mode, layout.FileCI)
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
func (g *group) semverEdges(c *channelDraft, byName map[string]*bundleDraft, skipPatch bool) {
	version := func(e Entry) semver.Version { return semver.MustParse(byName[e.Name].bundle.Version) } // checked by usable
	entries := c.body.Entries
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(version(b).Compare(version(a)), cmp.Compare(b.Name, a.Name))
	})
	for i := range entries {
		e := &entries[i]
		c.entries[i] = byName[e.Name].in("version")
		e.Replaces, e.Skips = "", nil
		if i > 0 && version(entries[i-1]).EQ(version(*e)) {
			g.addf(c.entries[i], SeverityWarning, "R-CAT-75", "the versions of %q and %q have no order, which %s needs; give one another version", entries[i-1].Name, e.Name, layout.Semver)
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
func (g *group) joinByManifests(byName map[string]*bundleDraft) {
	for _, dir := range sortedKeys(g.notes.manifests) {
		m := g.notes.manifests[dir]
		if m.Name != g.name {
			continue
		}
		known := map[string]bool{}
		for i, c := range m.Channels {
			at := m.in("channels", "#"+strconv.Itoa(i), "currentCSV")
			known[c.Name] = true
			d := byName[c.CurrentCSV]
			switch {
			case c.Name == "":
				g.addf(at, SeverityWarning, "R-CAT-76", "a channel of the package manifest is left out: it has no name")
			case value.Name(c.Name, MaxNameBytes) != "":
				g.addf(at, SeverityWarning, "R-CAT-76", "channel %.40q of the package manifest is left out: its name %s", c.Name, value.Name(c.Name, MaxNameBytes))
			case d == nil:
				g.addf(at, SeverityWarning, "R-CAT-76", "channel %q of the package manifest is left out: its currentCSV %q is in no directory beside it, or is left out itself", c.Name, c.CurrentCSV)
			default:
				d.joins = append(d.joins, c.Name)
			}
		}
		if m.DefaultChannel != "" && !known[m.DefaultChannel] {
			g.addf(m.in("defaultChannel"), SeverityWarning, "R-CAT-31", "default channel %q of the package manifest is no channel of it; name one of: %s", m.DefaultChannel, strings.Join(sortedKeys(known), ", "))
		}
		for _, d := range g.dirs {
			if path.Dir(d.dir) == dir {
				d.preferred = m.DefaultChannel
			}
		}
	}
}

// dropOutsiders leaves out bundles that are in no channel (R-CAT-29, R-CAT-52).
func (g *group) dropOutsiders(members map[string]map[string]bool) {
	g.bundles = slices.DeleteFunc(g.bundles, func(d *bundleDraft) bool {
		for _, m := range members {
			if m[d.bundle.Name] {
				return false
			}
		}
		g.addf(d.place, SeverityWarning, "R-CAT-52", "bundle %q is left out: it names no channel; set the annotation %s", d.bundle.Name, AnnotationChannels)
		return true
	})
}

func channelOf(pkg, name string, members map[string]bool, byName map[string]*bundleDraft) *channelDraft {
	c := &channelDraft{pkg: pkg}
	c.body.Name = name
	for _, m := range sortedKeys(members) {
		d := byName[m]
		c.body.Entries = append(c.body.Entries, Entry{
			Name: m, Replaces: d.csv.replaces, Skips: d.csv.skips,
			SkipRange: d.csv.skipRange,
		})
		c.entries = append(c.entries, d.in("replaces"))
		if c.file == "" {
			c.place = d.in("name")
		}
	}
	return c
}

// describe makes the package: the default channel that the newest bundle names, else the first by
// name (R-CAT-55); description and icon of the newest bundle of that channel.
func (g *group) describe() *packageDraft {
	p := &packageDraft{}
	p.body.Name = g.name
	newest := slices.Clone(g.bundles)
	slices.SortFunc(newest, func(a, b *bundleDraft) int {
		va, vb := semver.MustParse(a.bundle.Version), semver.MustParse(b.bundle.Version) // checked by usable
		return cmp.Or(vb.Compare(va), cmp.Compare(a.bundle.Name, b.bundle.Name))
	})
	known := map[string]*channelDraft{}
	for _, c := range g.channels {
		known[c.body.Name] = c
	}
	p.body.DefaultChannel = g.channels[0].body.Name
	for _, d := range newest {
		if known[d.preferred] != nil {
			p.body.DefaultChannel = d.preferred
			break
		}
	}
	p.place = g.bundles[0].place
	for _, d := range newest {
		if slices.ContainsFunc(known[p.body.DefaultChannel].body.Entries, func(e Entry) bool { return e.Name == d.bundle.Name }) {
			p.body.Description = d.csv.description
			p.body.Icon = d.csv.icon
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
	g.addf(byName[heads[0]].in("replaces"), SeverityWarning, "R-CAT-35", "channel %q had several heads, which were put in order of version: %s; let the newest replace or skip the others",
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
