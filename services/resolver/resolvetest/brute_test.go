package resolvetest_test

import (
	"cmp"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// brute resolves a namespace by trying everything in the order of preference.
type brute struct {
	w         *scenario
	installed []*operator // by name
	entries   map[entry]*operator
	roots     []choice
	staying   []*operator
	held      []*operator
	excluded  map[[2]*operator]bool // an upgrade and the CSV that it replaces, or a bundle that may not take a CSV over
}

// follows says whether a subscription follows a CSV.
func follows(s resolution.Subscription, i resolution.Installed) bool {
	return i.Subscription == s.Name || i.CSV == s.InstalledCSV
}

type entry struct {
	catalog            resolution.CatalogKey
	pkg, channel, name string
}

// choice is something of which one option has to be taken.
type choice struct {
	subscription string // "" for a requirement
	follows      bool   // the subscription follows something installed
	options      []*operator
}

// newBrute looks at the subscriptions that are wanted. What the others follow stays, as does what nobody follows
// (RESOLVER-NOTES 7.1). What is held stays whatever speaks against it, and only what it has today of its requirements
// has to stay met. Choices for what stays are made in the order of the subscriptions,
// then of the CSVs.
func newBrute(w *scenario, wanted func(sub string) bool, held func(csv string) bool) *brute {
	b := &brute{w: w, entries: map[entry]*operator{}, excluded: map[[2]*operator]bool{}}
	subs := slices.SortedFunc(slices.Values(w.in.Subscriptions),
		func(x, y resolution.Subscription) int { return cmp.Compare(x.Name, y.Name) })
	subs = slices.DeleteFunc(subs, func(s resolution.Subscription) bool { return !wanted(s.Name) })
	// keeper is the first subscription that does not let go of a CSV, "" where there is none.
	keeper := func(i resolution.Installed) string {
		out := ""
		for _, s := range w.in.Subscriptions {
			if follows(s, i) && !wanted(s.Name) && (out == "" || s.Name < out) {
				out = s.Name
			}
		}
		return out
	}
	all := slices.SortedFunc(slices.Values(w.in.Installed), func(x, y resolution.Installed) int {
		return cmp.Or(first(keeper(x) != "", keeper(y) != ""), cmp.Compare(keeper(x), keeper(y)),
			cmp.Compare(x.CSV, y.CSV))
	})
	for _, i := range all {
		o := &operator{
			name: i.CSV, pkg: i.Package, version: semver.MustParse(i.Version),
			properties: parse(i.Properties), installed: true,
		}
		o.followed = slices.ContainsFunc(w.in.Subscriptions,
			func(s resolution.Subscription) bool { return follows(s, i) })
		b.installed = append(b.installed, o)
		switch {
		case o.followed && keeper(i) == "":
		case held(i.CSV):
			b.held = append(b.held, o)
		default:
			b.staying = append(b.staying, o)
		}
	}
	for _, o := range b.held {
		o.asks = slices.DeleteFunc(slices.Clone(o.asks),
			func(c constraint) bool { return !slices.ContainsFunc(b.installed, c.met) })
	}
	slices.SortFunc(b.installed, func(x, y *operator) int { return cmp.Compare(x.name, y.name) })
	for _, s := range subs {
		b.roots = append(b.roots, choice{
			subscription: s.Name, options: b.candidates(s),
			follows: slices.ContainsFunc(w.in.Installed, func(i resolution.Installed) bool { return follows(s, i) }),
		})
	}
	return b
}

// candidates are the options of a subscription (RESOLVER-NOTES §2, §4).
func (b *brute) candidates(s resolution.Subscription) []*operator {
	at := slices.IndexFunc(b.installed, func(o *operator) bool {
		return slices.ContainsFunc(b.w.in.Installed, func(i resolution.Installed) bool {
			return i.CSV == o.name &&
				follows(s, i)
		})
	})
	var out []*operator
	known := false
	for _, cat := range b.w.visible() {
		p := b.w.find(cat.Key, s.Package)
		if p == nil || s.Catalog != "" && cat.Key != (resolution.CatalogKey{
			Name: s.Catalog, Namespace: s.CatalogNamespace,
		}) {
			continue
		}
		for _, c := range channels(*p) {
			switch {
			case s.Channel != "" && c.Name != s.Channel:
				continue
			case at >= 0:
				out = append(out, b.upgrades(cat.Key, *p, c, b.installed[at])...)
			default:
				out = append(out, b.fresh(cat.Key, *p, c, s.StartingCSV)...)
			}
			known = true
		}
	}
	if at >= 0 && known {
		out = append(out, b.installed[at])
	}
	return out
}

// fresh are the entries of a channel for a new subscription (RESOLVER-NOTES 2.3).
func (b *brute) fresh(key resolution.CatalogKey, p catalog.Package, c catalog.Channel, starting string) []*operator {
	var out []*operator
	if starting != "" {
		if slices.ContainsFunc(c.Entries, func(e catalog.Entry) bool { return e.Name == starting }) {
			out = append(out, b.entry(key, p, c.Name, starting))
		}
		return out
	}
	for _, e := range ordered(c) {
		out = append(out, b.entry(key, p, c.Name, e.Name))
	}
	return out
}

// upgrades are the entries that lead away from what is installed (RESOLVER-NOTES 2.4).
func (b *brute) upgrades(key resolution.CatalogKey, p catalog.Package, c catalog.Channel, from *operator) []*operator {
	var out []*operator
	for _, e := range ordered(c) {
		in := func(semver.Version) bool { return false }
		if r, err := semver.ParseRange(e.SkipRange); err == nil && e.SkipRange != "" {
			in = r
		}
		if e.Replaces == from.name || slices.Contains(e.Skips, from.name) || in(from.version) {
			o := b.entry(key, p, c.Name, e.Name)
			b.excluded[[2]*operator{o, from}], b.excluded[[2]*operator{from, o}] = true, true
			out = append(out, o)
		}
	}
	return out
}

// entry is always the same operator for the same entry.
func (b *brute) entry(key resolution.CatalogKey, p catalog.Package, channel, name string) *operator {
	e := entry{key, p.Name, channel, name}
	if b.entries[e] == nil {
		b.entries[e] = b.w.bundle(key, p, channel, name)
	}
	return b.entries[e]
}

// providers are the options of a requirement (RESOLVER-NOTES §4).
func (b *brute) providers(asker *operator, c constraint) []*operator {
	var out []*operator
	for _, o := range b.installed {
		if c.met(o) {
			out = append(out, o)
		}
	}
	for _, cat := range slices.SortedFunc(slices.Values(b.w.visible()), func(x, y resolution.Catalog) int {
		return cmp.Or(first(x.Key == asker.catalog, y.Key == asker.catalog), cmp.Compare(y.Priority, x.Priority),
			first(x.Key.Namespace == b.w.in.Scope.Namespace, y.Key.Namespace == b.w.in.Scope.Namespace),
			cmp.Compare(x.Key.Name, y.Key.Name))
	}) {
		for _, defaults := range []bool{true, false} {
			for _, p := range b.w.packages[cat.Key] {
				for _, ch := range channels(p) {
					if (ch.Name == p.DefaultChannel) == defaults {
						out = append(out, b.meeting(c, cat.Key, p, ch)...)
					}
				}
			}
		}
	}
	return out
}

func (b *brute) meeting(c constraint, key resolution.CatalogKey, p catalog.Package, ch catalog.Channel) []*operator {
	var out []*operator
	for _, e := range ordered(ch) {
		if o := b.entry(key, p, ch.Name, e.Name); c.met(o) {
			out = append(out, o)
		}
	}
	return out
}

// solve finds the first solution in the order of preference in which no CSV is taken over that somebody needs.
func (b *brute) solve() ([]*operator, bool) {
	for {
		taken, ok := b.attempt()
		if !ok || !b.apart(taken) {
			return taken, ok
		}
	}
}

// apart forbids the takeovers that leave somebody without what it requires.
func (b *brute) apart(taken []*operator) bool {
	over := map[*operator]*operator{} // CSVs that no subscription follows, and what takes them over
	for _, o := range taken {
		at := slices.IndexFunc(b.installed, func(i *operator) bool {
			return !o.installed && !i.followed &&
				i.name == o.replaces
		})
		if at >= 0 && over[b.installed[at]] == nil && !b.there(o) && !b.upgrade(taken, o) {
			over[b.installed[at]] = o
		}
	}
	found := false
	for _, o := range taken {
		for _, ask := range o.asks {
			met := slices.DeleteFunc(slices.Clone(taken), func(p *operator) bool { return !ask.met(p) })
			if over[o] != nil || slices.ContainsFunc(met, func(p *operator) bool { return over[p] == nil }) {
				continue
			}
			for _, p := range met {
				b.excluded[[2]*operator{p, over[p]}], b.excluded[[2]*operator{over[p], p}] = true, true
				found = true
			}
		}
	}
	return found
}

// there says whether a bundle is installed already.
func (b *brute) there(o *operator) bool {
	return slices.ContainsFunc(b.installed, func(i *operator) bool {
		return i.name == o.name &&
			(i.pkg == "" || i.pkg == o.pkg)
	})
}

// upgrade says whether a bundle answers a subscription that follows something.
func (b *brute) upgrade(taken []*operator, o *operator) bool {
	return slices.ContainsFunc(b.roots, func(c choice) bool {
		at := slices.IndexFunc(c.options, func(p *operator) bool { return slices.Contains(taken, p) })
		return c.follows && c.options[at] == o
	})
}

func (b *brute) attempt() ([]*operator, bool) {
	taken := slices.Clone(b.held)
	for _, o := range b.staying {
		if !b.fits(taken, o) {
			return nil, false
		}
		taken = append(taken, o)
	}
	return b.extend(taken)
}

// extend makes the first open choice in every way, breadth first: subscriptions, then what the taken ones require in
// the order of taking (RESOLVER-NOTES §4 Search).
func (b *brute) extend(taken []*operator) ([]*operator, bool) {
	open, found := b.open(taken)
	if !found {
		return taken, true
	}
	for _, o := range open.options {
		if b.fits(taken, o) {
			if all, ok := b.extend(append(slices.Clone(taken), o)); ok {
				return all, true
			}
		}
	}
	return nil, false
}

func (b *brute) open(taken []*operator) (choice, bool) {
	for _, c := range b.roots {
		if !slices.ContainsFunc(c.options, func(o *operator) bool { return slices.Contains(taken, o) }) {
			return c, true
		}
	}
	for _, o := range taken {
		for _, ask := range o.asks {
			options := b.providers(o, ask)
			if !slices.ContainsFunc(options, func(p *operator) bool { return slices.Contains(taken, p) }) {
				return choice{options: options}, true
			}
		}
	}
	return choice{}, false
}

// fits says whether an operator may stand beside what is taken (RESOLVER-NOTES §6, §8).
func (b *brute) fits(taken []*operator, o *operator) bool {
	if o.deprecated || o.forbidden || twice(o.apis) {
		return false
	}
	return !slices.ContainsFunc(taken, func(t *operator) bool {
		return b.excluded[[2]*operator{t, o}] || t.pkg == o.pkg && o.pkg != "" ||
			slices.ContainsFunc(t.apis, func(api catalog.GVK) bool { return slices.Contains(o.apis, api) })
	})
}

func twice(apis []catalog.GVK) bool {
	for i, api := range apis {
		if slices.Contains(apis[:i], api) {
			return true
		}
	}
	return false
}
