package prune

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// need is one thing that a bundle needs from another one.
type need struct {
	text string
	met  func(p catalog.Package, b catalog.Bundle) bool
}

// constraint is the part of olm.constraint that names other bundles (R-RES, §3.4). Rules in CEL and
// negations cannot be turned into something to look for.
type constraint struct {
	Package *catalog.PackageRequired `json:"package"`
	GVK     *catalog.GVK             `json:"gvk"`
	All     *struct {
		Constraints []constraint `json:"constraints"`
	} `json:"all"`
	Any *struct {
		Constraints []constraint `json:"constraints"`
	} `json:"any"`
}

// close adds packages until what stays has all that it needs, or nothing more can be found.
func (p *Plan) close(packages []catalog.Package) error {
	told := map[string]bool{}
	for again := true; again; {
		again = false
		for _, name := range p.Packages() {
			added, err := p.follow(packages, p.kept[name], told)
			if err != nil {
				return err
			}
			again = again || added
		}
	}
	return nil
}

// follow adds what the bundles of one package need. told holds needs that were dealt with.
func (p *Plan) follow(packages []catalog.Package, k *kept, told map[string]bool) (bool, error) {
	some := false
	for _, b := range k.doc.Bundles {
		if !k.bundles[b.Name] {
			continue
		}
		all, err := needs(b)
		if err != nil {
			return some, err
		}
		for _, n := range all {
			key := n.text + " " + b.Name
			if told[key] || p.met(n) {
				continue
			}
			told[key] = true
			added, err := p.add(packages, n, b.Name)
			if err != nil {
				return some, err
			}
			some = some || added
		}
	}
	return some, nil
}

// met reports whether a bundle that stays has what is needed.
func (p *Plan) met(n need) bool {
	for _, k := range p.kept {
		for _, b := range k.doc.Bundles {
			if k.bundles[b.Name] && n.met(k.doc, b) {
				return true
			}
		}
	}
	return false
}

// add finds a channel that offers what a bundle needs, and keeps all of it. What a person has chosen a
// part of is not widened.
func (p *Plan) add(packages []catalog.Package, n need, by string) (bool, error) {
	var left string
	for _, doc := range packages {
		channel, ok := offering(doc, n)
		if !ok {
			continue
		}
		k := p.kept[doc.Name]
		if k != nil && k.chosen {
			left = doc.Name
			continue
		}
		if k == nil {
			k = &kept{doc: doc}
			p.kept[doc.Name] = k
		}
		k.selections = append(k.selections, Selection{Package: doc.Name, Channel: channel})
		p.Notes = append(p.Notes, fmt.Sprintf("package %s, channel %s, is kept as well: %s needs %s", doc.Name, channel,
			by, n.text))
		return true, k.settle()
	}
	switch {
	case left != "":
		p.Unmet = append(p.Unmet, fmt.Sprintf(
			"%s needs %s, which package %s has in versions that the selection leaves out", by, n.text, left))
	default:
		p.Unmet = append(p.Unmet, fmt.Sprintf("%s needs %s, which nothing in this catalog has", by, n.text))
	}
	return false, nil
}

// offering returns the channel of a package that has what is needed: the default one if it can be, else
// the first by name.
func offering(p catalog.Package, n need) (string, bool) {
	channels := slices.Clone(p.Channels)
	slices.SortStableFunc(channels, func(a, b catalog.Channel) int {
		switch p.DefaultChannel {
		case a.Name:
			return -1
		case b.Name:
			return 1
		}
		return 0
	})
	for _, c := range channels {
		for _, e := range c.Entries {
			if b, ok := p.Bundle(e.Name); ok && n.met(p, b) {
				return c.Name, true
			}
		}
	}
	return "", false
}

// needs gathers what a bundle needs.
func needs(b catalog.Bundle) ([]need, error) {
	var out []need
	packages, err := b.RequiredPackages()
	if err != nil {
		return nil, err
	}
	for _, r := range packages {
		out = append(out, onPackage(r))
	}
	apis, err := b.RequiredGVKs()
	if err != nil {
		return nil, err
	}
	for _, g := range apis {
		out = append(out, onAPI(g))
	}
	for _, prop := range b.Properties {
		if prop.Type != catalog.TypeConstraint {
			continue
		}
		var c constraint
		if err := json.Unmarshal(prop.Value, &c); err != nil {
			return nil, errs.Wrap(errs.Invalid, err, "%s of bundle %s", prop.Type, b.Name)
		}
		out = append(out, c.needs()...)
	}
	return out, nil
}

func (c constraint) needs() []need {
	switch {
	case c.Package != nil:
		return []need{onPackage(*c.Package)}
	case c.GVK != nil:
		return []need{onAPI(*c.GVK)}
	case c.All != nil:
		var out []need
		for _, below := range c.All.Constraints {
			out = append(out, below.needs()...)
		}
		return out
	case c.Any != nil:
		return c.anyOf()
	}
	return nil
}

// anyOf is one need that each of the alternatives meets. Of an alternative that has several parts, one
// part is enough here: the resolver has the last word on what can be installed together.
func (c constraint) anyOf() []need {
	var texts []string
	var alternatives []need
	for _, below := range c.Any.Constraints {
		for _, n := range below.needs() {
			texts, alternatives = append(texts, n.text), append(alternatives, n)
		}
	}
	if len(alternatives) == 0 {
		return nil
	}
	return []need{{strings.Join(texts, " or "), func(p catalog.Package, b catalog.Bundle) bool {
		return slices.ContainsFunc(alternatives, func(n need) bool { return n.met(p, b) })
	}}}
}

func onPackage(r catalog.PackageRequired) need {
	in, err := catalog.ParseRange(r.VersionRange)
	return need{
		fmt.Sprintf("package %s %s", r.PackageName, r.VersionRange),
		func(p catalog.Package, b catalog.Bundle) bool {
			v, verr := semver.Parse(b.Version)
			return err == nil && verr == nil && p.Name == r.PackageName && in(v)
		},
	}
}

func onAPI(g catalog.GVK) need {
	return need{"API " + g.String(), func(_ catalog.Package, b catalog.Bundle) bool {
		apis, err := b.Provides()
		return err == nil && slices.Contains(apis, g)
	}}
}
