package conformance

import (
	"fmt"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/services/resolver/offer"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// member is an operator of the namespace as it would be.
type member struct {
	*offer.Operator

	plan *resolution.Planned // nil for what is installed and stays
}

// Faults says what is wrong with a result by itself, whatever OLM does: every bundle of the plan can be chosen; a
// package and an API have one bearer; every requirement is met, but for those that were not met before either;
// and every subscription without a failure has something that it may have. It shares no code with the search.
func Faults(r Run) []string {
	f := faults{Run: r}
	f.gather()
	f.unique()
	f.met()
	f.subscribed()
	return f.list
}

type faults struct {
	Run

	before  []member // what is installed
	members []member // what stays, and what comes
	list    []string
}

func (f *faults) addf(format string, args ...any) {
	f.list = append(f.list, fmt.Sprintf(format, args...))
}

// gather finds the members, and every planned bundle in its catalog.
func (f *faults) gather() {
	gone := map[string]bool{}
	for i := range f.Result.Components {
		for j := range f.Result.Components[i].Bundles {
			b := &f.Result.Components[i].Bundles[j]
			gone[b.Replaces] = true
			e, ok := f.entry(b)
			switch {
			case !ok:
				f.addf("%s is no entry of channel %s of package %s in catalog %s", b.CSV, b.Channel, b.Package,
					b.Catalog)
			case e.Bundle.Deprecated:
				f.addf("%s is deprecated", b.CSV)
			default:
				f.members = append(f.members, member{e.Bundle, b})
			}
		}
	}
	forward := slices.ContainsFunc(f.Input.OperatorGroups,
		func(g resolution.OperatorGroup) bool { return g.FailForward })
	for _, i := range f.Input.Installed {
		if forward && i.Phase == "Replacing" {
			continue // it is on its way out
		}
		m := member{offer.NewOperator(i.CSV, i.Package, i.Version, i.Content, i.Properties), nil}
		f.before = append(f.before, m)
		if !gone[i.CSV] {
			f.members = append(f.members, m)
		}
	}
}

func (f *faults) entry(b *resolution.Planned) (offer.Entry, bool) {
	p := f.Input.View.Package(b.Catalog, b.Package)
	if p == nil {
		return offer.Entry{}, false
	}
	for _, c := range p.Channels {
		if e, ok := c.All[b.CSV]; ok && c.Name == b.Channel {
			return e, true
		}
	}
	return offer.Entry{}, false
}

// unique asserts R-RES-11 and R-RES-12 of what comes. What is installed may be in a bad state already.
func (f *faults) unique() {
	packages, apis := map[string]member{}, map[catalog.GVK]member{}
	for _, m := range f.members { // what comes is first
		if other, taken := packages[m.Package]; taken && m.Package != "" && other.plan != nil {
			f.addf("%s and %s are of one package", other.Name, m.Name)
		}
		packages[m.Package] = m
		for _, api := range m.APIs {
			if other, taken := apis[api]; taken && other.plan != nil {
				f.addf("%s and %s provide %s", other.Name, m.Name, api)
			}
			apis[api] = m
		}
	}
}

// met asserts R-RES-15. A CSV whose package is unknown may be taken for the bundle of its name.
func (f *faults) met() {
	by := slices.Concat(f.members, f.namesakes())
	for _, m := range f.members {
		for _, q := range m.Requires {
			if !metBy(q, by) && (m.plan != nil || metBy(q, f.before)) {
				f.addf("%s requires an operator %s, and there would be none", m.Name, q.Text)
			}
		}
	}
}

// namesakes are the bundles in view that have the name of a CSV without package.
func (f *faults) namesakes() []member {
	var out []member
	for _, m := range f.members {
		if m.plan != nil || m.Package != "" {
			continue
		}
		for _, c := range f.Input.View.Catalogs() {
			for _, name := range f.Input.View.Packages(c.Key) {
				for _, channel := range f.Input.View.Package(c.Key, name).Channels {
					if e, ok := channel.All[m.Name]; ok {
						out = append(out, member{e.Bundle, nil})
					}
				}
			}
		}
	}
	return out
}

func metBy(q *offer.Requirement, by []member) bool {
	return slices.ContainsFunc(by, func(m member) bool { return q.Matches(m.Operator) })
}

// subscribed asserts that every subscription gets what it may have, or a failure.
func (f *faults) subscribed() {
	outcomes := map[string]resolution.Outcome{}
	told := map[string]bool{}
	for _, c := range f.Result.Components {
		for _, o := range c.Outcomes {
			outcomes[o.Subscription] = o
		}
		if c.Failure != nil {
			for _, s := range c.Subscriptions {
				told[s] = true
			}
		}
	}
	for _, s := range f.Case.Subscriptions {
		o, has := outcomes[s.Name]
		switch {
		case !has && !told[s.Name]:
			f.addf("nothing is told of subscription %s", s.Name)
		case has && told[s.Name]:
			f.addf("subscription %s is told to fail, and to get %s", s.Name, o.CSV)
		case has:
			f.due(s, o)
		}
	}
}

// due asserts that a subscription may have what it gets.
func (f *faults) due(s Subscription, o resolution.Outcome) {
	i := slices.IndexFunc(f.members, func(m member) bool {
		return m.Name == o.CSV && o.Planned == (m.plan != nil) &&
			(m.plan == nil || slices.Contains(m.plan.Subscriptions, s.Name))
	})
	if i < 0 {
		f.addf("subscription %s is said to get %s, which is not there", s.Name, o.CSV)
		return
	}
	p := f.members[i].plan
	if p == nil {
		return
	}
	if p.Package != s.Package || s.Channel != "" && p.Channel != s.Channel || s.Catalog != "" &&
		p.Catalog != (resolution.CatalogKey{Name: s.Catalog, Namespace: s.CatalogNamespace}) {
		f.addf("subscription %s asks for package %s, channel %q of %s/%s, and gets %s of package %s, channel %s of %s",
			s.Name, s.Package, s.Channel, s.CatalogNamespace, s.Catalog, p.CSV, p.Package, p.Channel, p.Catalog)
	}
	f.step(s, p)
}

// step asserts that a bundle may follow what the subscription has, or may be its first one.
func (f *faults) step(s Subscription, p *resolution.Planned) {
	i := slices.IndexFunc(f.Input.Installed, func(i resolution.Installed) bool { return i.Subscription == s.Name })
	if i < 0 {
		if s.StartingCSV != "" && p.CSV != s.StartingCSV {
			f.addf("subscription %s begins with %s, and gets %s", s.Name, s.StartingCSV, p.CSV)
		}
		return
	}
	have := f.Input.Installed[i]
	e, _ := f.entry(p)
	v, err := semver.Parse(have.Version)
	ranged := err == nil && e.SkipRange != nil && e.SkipRange(v)
	if p.Replaces != have.CSV || e.Replaces != have.CSV && !slices.Contains(e.Skips, have.CSV) && !ranged {
		f.addf("subscription %s has %s, which %s does not follow", s.Name, have.CSV, p.CSV)
	}
}
