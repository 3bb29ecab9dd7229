// Package prune cuts a catalog down to what is wanted and what that depends on. It is pure: Make decides
// on a catalog that was loaded, Plan.Apply carries it out document by document.
package prune

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// Selection is what a person wants to keep of one package.
type Selection struct {
	Package string
	Channel string // "" for all
	Range   string // of versions; "" for all
	in      semver.Range
}

// Parse reads PACKAGE, PACKAGE:CHANNEL, PACKAGE@RANGE or PACKAGE:CHANNEL@RANGE.
func Parse(s string) (Selection, error) {
	var out Selection
	rest, versions, ranged := s, "", false
	if i := strings.LastIndex(s, "@"); i >= 0 {
		rest, versions, ranged = s[:i], s[i+1:], true
	}
	pkg, channel, inChannel := strings.Cut(rest, ":")
	if pkg == "" || inChannel && channel == "" || ranged && strings.TrimSpace(versions) == "" {
		return out, errs.New(errs.Invalid,
			"%q is no selection; write PACKAGE, PACKAGE:CHANNEL or PACKAGE:CHANNEL@RANGE, such as "+
				"tidegauge:steady@>=1.1.0", s)
	}
	out = Selection{Package: pkg, Channel: channel, Range: versions}
	if ranged {
		r, err := catalog.ParseRange(versions)
		if err != nil {
			return out, errs.Wrap(errs.Invalid, err, "selection %q", s)
		}
		out.in = r
	}
	return out, nil
}

// String is the form that Parse reads.
func (s Selection) String() string {
	out := s.Package
	if s.Channel != "" {
		out += ":" + s.Channel
	}
	if s.Range != "" {
		out += "@" + s.Range
	}
	return out
}

// holds reports whether a version is selected.
func (s Selection) holds(version string) bool {
	if s.in == nil {
		return true
	}
	v, err := semver.Parse(version)
	return err == nil && s.in(v)
}

// wanted is what the selections of one package come to: the bundles of each channel that stays.
type wanted map[string]map[string]bool

// choose gathers the selections of one package. One that selects nothing is an error.
func choose(p catalog.Package, selections []Selection) (wanted, error) {
	out := wanted{}
	for _, s := range selections {
		channels := p.Channels
		if s.Channel != "" {
			c, ok := p.Channel(s.Channel)
			if !ok {
				return nil, errs.New(errs.NotFound, "package %s has no channel %q; it has %s", p.Name, s.Channel,
					channelNames(p))
			}
			channels = []catalog.Channel{c}
		}
		some := false
		for _, c := range channels {
			for _, e := range c.Entries {
				if b, _ := p.Bundle(e.Name); s.holds(b.Version) {
					if out[c.Name] == nil {
						out[c.Name] = map[string]bool{}
					}
					out[c.Name][e.Name], some = true, true
				}
			}
		}
		if !some {
			return nil, errs.New(errs.NotFound, "no version of package %s is in %q", p.Name, s)
		}
	}
	return out, nil
}

// Chosen returns whether a bundle is selected, without what it depends on. No selection selects all.
func Chosen(packages []catalog.Package, selections []Selection) (func(pkg, bundle string) bool, error) {
	if len(selections) == 0 {
		return func(string, string) bool { return true }, nil
	}
	grouped, err := group(packages, selections)
	if err != nil {
		return nil, err
	}
	chosen := map[string]wanted{}
	for _, p := range packages {
		if s := grouped[p.Name]; s != nil {
			if chosen[p.Name], err = choose(p, s); err != nil {
				return nil, err
			}
		}
	}
	return func(pkg, bundle string) bool {
		for _, bundles := range chosen[pkg] {
			if bundles[bundle] {
				return true
			}
		}
		return false
	}, nil
}

// group sorts selections by package; each must exist.
func group(packages []catalog.Package, selections []Selection) (map[string][]Selection, error) {
	out := map[string][]Selection{}
	for _, s := range selections {
		if !slices.ContainsFunc(packages, func(p catalog.Package) bool { return p.Name == s.Package }) {
			return nil, errs.New(errs.NotFound, "the catalog has no package %q%s", s.Package, near(packages, s.Package))
		}
		out[s.Package] = append(out[s.Package], s)
	}
	return out, nil
}

// near names packages that a misspelt one may have meant.
func near(packages []catalog.Package, name string) string {
	const most = 5
	var out []string
	for _, p := range packages {
		if len(out) < most && (strings.Contains(p.Name, name) || strings.Contains(name, p.Name)) {
			out = append(out, p.Name)
		}
	}
	if len(out) == 0 {
		return "; chandler catalog list packages shows what there is"
	}
	return "; is one of these meant: " + strings.Join(out, ", ")
}

func channelNames(p catalog.Package) string {
	out := make([]string, 0, len(p.Channels))
	for _, c := range p.Channels {
		out = append(out, c.Name)
	}
	return strings.Join(out, ", ")
}

// cut makes a channel of the entries that stay. Edges over gaps are closed, so that whoever has one of
// the versions that go can still update (R-GRA-7):
//
//	replaces something that goes, with a kept entry further down   replaces that one, skips what went between
//	replaces something that goes, with nothing kept further down   stays: a name without bundle (R-GRA-11)
//	an entry that only entries which go replaced or skipped        the head skips it
func cut(p catalog.Package, c catalog.Channel, keep map[string]bool) (catalog.Channel, []string) {
	entries := map[string]catalog.Entry{}
	for _, e := range c.Entries {
		entries[e.Name] = e
	}
	out := catalog.Channel{Name: c.Name, Properties: c.Properties}
	var notes []string
	for _, e := range c.Entries {
		if !keep[e.Name] {
			continue
		}
		if to, between := nextKept(entries, keep, e); len(between) > 0 && to != "" {
			e.Replaces, e.Skips = to, union(e.Skips, between)
			notes = append(notes, fmt.Sprintf("channel %s of %s: %s replaces %s now, and skips %s", c.Name, p.Name,
				e.Name, to, strings.Join(between, ", ")))
		}
		out.Entries = append(out.Entries, e)
	}
	if loose := offChain(p, out); len(loose) > 1 {
		head := slices.IndexFunc(out.Entries, func(e catalog.Entry) bool { return e.Name == loose[0] })
		out.Entries[head].Skips = union(out.Entries[head].Skips, loose[1:])
		notes = append(notes, fmt.Sprintf("channel %s of %s: %s skips %s now, which nothing else leads away from",
			c.Name, p.Name, loose[0], strings.Join(loose[1:], ", ")))
	}
	return out, notes
}

// nextKept follows replaces over entries that go; to is "" where it leads to no entry that stays.
func nextKept(entries map[string]catalog.Entry, keep map[string]bool, e catalog.Entry) (to string, between []string) {
	name := e.Replaces
	for !keep[name] {
		below, ok := entries[name]
		if !ok || slices.Contains(between, name) {
			return "", between
		}
		between = append(between, name)
		name = below.Replaces
	}
	return name, between
}

// offChain returns the head, and behind it the entries that it does not lead to and that none skips.
func offChain(p catalog.Package, c catalog.Channel) []string {
	heads := catalog.Heads(c)
	if len(heads) == 0 {
		return nil
	}
	version := func(name string) semver.Version {
		b, _ := p.Bundle(name)
		v, _ := semver.Parse(b.Version) // a package that was loaded has versions that parse
		return v
	}
	slices.SortFunc(heads, func(a, b string) int { return cmp.Or(version(b).Compare(version(a)), cmp.Compare(a, b)) })
	entries, reached := map[string]catalog.Entry{}, map[string]bool{}
	for _, e := range c.Entries {
		entries[e.Name] = e
		for _, s := range e.Skips {
			reached[s] = true
		}
	}
	for name := heads[0]; !reached[name]; name = entries[name].Replaces {
		if _, ok := entries[name]; !ok {
			break
		}
		reached[name] = true
	}
	out := []string{heads[0]}
	for _, e := range c.Entries {
		if !reached[e.Name] {
			out = append(out, e.Name)
		}
	}
	return out
}

func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, name := range b {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
