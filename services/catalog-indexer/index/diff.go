// Package index computes what differs between two revisions of a catalog. It is pure: the caller
// brings both, and records the outcome as catalog.revision-published.v1.
package index

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
)

// The words of events.PackageChange.Change.
const (
	Added   = "added"
	Removed = "removed"
	Changed = "changed"
)

// MaxChangesBytes bounds the changes of one event as JSON: half of what an event may have. Beyond it
// details are left out, those first that can be found elsewhere: the lists of single bundles and
// deprecations, then the heads, then digests and default channels. Some 6,000 names of packages fit; where
// more differ, the event says that all do.
const MaxChangesBytes = 256 << 10

// Revision is what a revision is made of: the digest of every package by name.
type Revision map[string]digest.Digest

// Touched returns the packages that differ between two revisions, sorted: those that a caller of
// Changes must bring.
func Touched(before, after Revision) []string {
	var out []string
	for name, d := range after {
		if before[name] != d {
			out = append(out, name)
		}
	}
	for name := range before {
		if _, stays := after[name]; !stays {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Input is both sides of a difference. Old and New hold the documents of the packages that Touched names.
type Input struct {
	Before, After Revision
	Old, New      map[string]catalog.Package
}

// Changes returns what differs, package by package in order of name:
//
//	package is new        added, with the head of every channel
//	package is gone       removed, with the head that every channel had
//	another digest        changed, with moved heads, another default channel, bundles added, removed and
//	                      mutated, and what is deprecated now or no longer
//
// A package that is new or gone lists no bundles and no deprecations: all of them are meant. Where even the
// names do not fit into an event, there are no changes and all is true.
func Changes(in Input) (list []events.PackageChange, all bool, err error) {
	changes := []events.PackageChange{}
	for _, name := range Touched(in.Before, in.After) {
		_, had := in.Before[name]
		_, has := in.After[name]
		old, gotOld := in.Old[name]
		now, gotNow := in.New[name]
		if had && !gotOld || has && !gotNow {
			return nil, false, fmt.Errorf("difference of package %s: its document is missing", name)
		}
		c := events.PackageChange{
			Package: name, Change: Changed, Digest: string(in.After[name]),
			Heads: moves(old, now),
		}
		switch {
		case !had:
			c.Change = Added
		case !has:
			c.Change = Removed
		default:
			bundles(&c, old, now)
			deprecations(&c, old, now)
			if old.DefaultChannel != now.DefaultChannel {
				c.DefaultChannelFrom, c.DefaultChannelTo = old.DefaultChannel, now.DefaultChannel
			}
		}
		changes = append(changes, c)
	}
	return bounded(changes)
}

// moves compares the heads of all channels. A channel without exactly one head has none (R-GRA-15).
func moves(old, now catalog.Package) []events.HeadMove {
	before, after := heads(old), heads(now)
	var out []events.HeadMove
	for channel, to := range after {
		if from := before[channel]; from != to {
			out = append(out, events.HeadMove{Channel: channel, From: from, To: to})
		}
	}
	for channel, from := range before {
		if _, stays := after[channel]; !stays {
			out = append(out, events.HeadMove{Channel: channel, From: from})
		}
	}
	slices.SortFunc(out, func(a, b events.HeadMove) int { return cmp.Compare(a.Channel, b.Channel) })
	return out
}

func heads(p catalog.Package) map[string]string {
	out := map[string]string{}
	for _, c := range p.Channels {
		if h := catalog.Heads(c); len(h) == 1 {
			out[c.Name] = h[0]
		}
	}
	return out
}

// bundles compares the bundles by name. Mutated means other manifests or another image under the same
// name; what is installed of it stays as it is (R-CAT-64).
func bundles(c *events.PackageChange, old, now catalog.Package) {
	before := map[string]catalog.Bundle{}
	for _, b := range old.Bundles {
		before[b.Name] = b
	}
	for _, b := range now.Bundles {
		was, there := before[b.Name]
		delete(before, b.Name)
		switch {
		case !there:
			c.BundlesAdded = append(c.BundlesAdded, b.Name)
		case was.Content != b.Content || was.Image != b.Image:
			c.BundlesMutated = append(c.BundlesMutated, b.Name)
		}
	}
	for name := range before {
		c.BundlesRemoved = append(c.BundlesRemoved, name)
	}
	slices.Sort(c.BundlesAdded)
	slices.Sort(c.BundlesRemoved)
	slices.Sort(c.BundlesMutated)
}

// deprecations compares what is deprecated, on all three levels (R-CAT-13); another message alone is no
// difference here, as it is content.
func deprecations(c *events.PackageChange, old, now catalog.Package) {
	before, after := deprecated(old), deprecated(now)
	for reference := range after {
		if !before[reference] {
			c.Deprecated = append(c.Deprecated, reference)
		}
	}
	for reference := range before {
		if !after[reference] {
			c.Undeprecated = append(c.Undeprecated, reference)
		}
	}
	slices.Sort(c.Deprecated)
	slices.Sort(c.Undeprecated)
}

// deprecated are references as people write them: olm.package, olm.channel/steady, olm.bundle/buoy.v1.0.0.
func deprecated(p catalog.Package) map[string]bool {
	out := map[string]bool{}
	for _, d := range p.Deprecations {
		reference := d.Schema
		if d.Name != "" {
			reference += "/" + d.Name
		}
		out[reference] = true
	}
	return out
}

// bounded leaves out details until the changes fit into an event. It is true where nothing helps.
func bounded(changes []events.PackageChange) ([]events.PackageChange, bool, error) {
	strip := []func(*events.PackageChange){
		func(*events.PackageChange) {},
		func(c *events.PackageChange) {
			c.BundlesAdded, c.BundlesRemoved, c.BundlesMutated, c.Deprecated, c.Undeprecated = nil, nil, nil, nil, nil
		},
		func(c *events.PackageChange) { c.Heads = nil },
		func(c *events.PackageChange) { *c = events.PackageChange{Package: c.Package, Change: c.Change} },
	}
	for _, s := range strip {
		for i := range changes {
			s(&changes[i])
		}
		raw, err := json.Marshal(changes)
		if err != nil {
			return nil, false, err
		}
		if len(raw) <= MaxChangesBytes {
			return changes, false, nil
		}
	}
	return []events.PackageChange{}, true, nil
}
