package offer

import (
	"cmp"
	"fmt"
	"slices"
	"unique"

	"github.com/blang/semver/v4"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/digest"
)

// Package is a catalog package made ready for resolution: versions and requirements parsed once, channels
// in order. It is immutable and may be shared between resolutions.
type Package struct {
	Name     string
	Digest   digest.Digest
	Channels []Channel // default channel first, then by name (R-RES-35 rule 5)

	apis   map[unique.Handle[catalog.GVK]]bool
	weight int // bytes in memory, for bounded caches
}

// Channel is one channel of a Package. Entries are what can be chosen, nearest the head first and without
// those that another entry skips; All holds every entry with a bundle by name (R-GRA-12).
type Channel struct {
	Name    string
	Default bool
	Entries []Entry
	All     map[string]Entry
	Err     error // the graph is malformed (R-GRA-15)
}

// Entry is a bundle as a channel leads to it.
type Entry struct {
	Name      string
	Replaces  string
	Skips     []string
	SkipRange semver.Range // nil where absent or unreadable (RESOLVER-NOTES 2.4)
	Bundle    *Operator
}

// About what things take in memory beside their texts.
const (
	entryWeight       = 350 // in a channel's order and in its map
	operatorWeight    = 800
	requirementWeight = 700 // with the functions that a range is made of
	propertyWeight    = 100
	apiWeight         = 60
)

// Index makes a package ready. It never fails: what cannot be read becomes a failure when it matters.
func Index(p catalog.Package, d digest.Digest) *Package {
	out := &Package{Name: p.Name, Digest: d, apis: map[unique.Handle[catalog.GVK]]bool{}}
	bundles := make(map[string]*Operator, len(p.Bundles))
	shared := newSharing()
	for _, b := range p.Bundles {
		op := newOperator(b.Name, p.Name, b.Version, b.Content, b.Properties, shared)
		op.Image = b.Image
		bundles[b.Name] = op
		out.weight += op.weight()
		for _, api := range op.apis {
			out.apis[api] = true
		}
	}
	out.weight += shared.weight + len(out.apis)*apiWeight
	for _, c := range p.Channels {
		out.weight += len(c.Entries) * entryWeight
		out.Channels = append(out.Channels, newChannel(p, c, bundles))
	}
	slices.SortFunc(out.Channels, func(a, b Channel) int {
		return cmp.Or(compareBool(b.Default, a.Default), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// newChannel orders a channel by its replaces chain, head first, never by version (R-GRA-2). Entries that
// another one skips stay out of the order, though they carry the chain on (R-GRA-3, R-GRA-9); so do
// entries without a bundle (R-GRA-11). A malformed channel keeps its entries by name and an error, which
// becomes a failure when the order would matter (R-GRA-15).
func newChannel(p catalog.Package, c catalog.Channel, bundles map[string]*Operator) Channel {
	out := Channel{Name: c.Name, Default: c.Name == p.DefaultChannel, All: make(map[string]Entry, len(c.Entries))}
	for _, e := range c.Entries {
		if op := bundles[e.Name]; op != nil {
			out.All[e.Name] = newEntry(e, op)
		}
	}
	g, err := catalog.NewGraph(c)
	if err != nil {
		out.Err = fmt.Errorf("package %q: %w (R-GRA-15)", p.Name, err)
		return out
	}
	for _, e := range g.Ordered() {
		if known, ok := out.All[e.Name]; ok {
			out.Entries = append(out.Entries, known)
		}
	}
	return out
}

func newEntry(e catalog.Entry, op *Operator) Entry {
	out := Entry{Name: e.Name, Replaces: e.Replaces, Skips: e.Skips, Bundle: op}
	if e.SkipRange != "" {
		if r, err := catalog.ParseRange(e.SkipRange); err == nil {
			out.SkipRange = r
		}
	}
	return out
}

// APIs are all that some bundle of the package provides, sorted.
func (p *Package) APIs() []catalog.GVK {
	out := make([]catalog.GVK, 0, len(p.apis))
	for api := range p.apis {
		out = append(out, api.Value())
	}
	slices.SortFunc(out, compareAPIs)
	return out
}

// Provides says whether some bundle of the package provides an API.
func (p *Package) Provides(api catalog.GVK) bool { return p.apis[unique.Make(api)] }

// Weight is about how many bytes the package takes in memory, for caches.
func (p *Package) Weight() int { return p.weight }

func compareAPIs(a, b catalog.GVK) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Kind, b.Kind))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
