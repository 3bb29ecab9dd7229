package why

import (
	"cmp"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/offer"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// Operator explains one operator of the namespace, named by its CSV, by its subscription or by its package; ok is
// false where there is none of that name.
func Operator(f Facts, name string) (l Answer, ok bool) {
	f.Input.Effort = f.effort()
	s, ok := f.subject(name)
	if !ok {
		return Answer{}, false
	}
	return s.answer(), true
}

// Plan explains of every bundle of a component why it is this one and not a newer one, in the order of its bundles.
func Plan(f Facts, c resolution.Component) []Answer {
	f.Input.Effort = f.effort()
	out := make([]Answer, 0, len(c.Bundles))
	for i := range c.Bundles {
		b := &c.Bundles[i]
		s := &subject{f: f, pkg: b.Package, planned: b, component: &c, reached: b.CSV, version: b.Version}
		for _, name := range b.Subscriptions {
			s.sub = f.subscription(name)
		}
		s.installed = f.ofPackage(b.Package)
		out = append(out, s.answer())
	}
	return out
}

// subject is what one answer is about.
type subject struct {
	f         Facts
	pkg       string
	sub       *resolution.Subscription // that follows it
	installed *resolution.Installed
	planned   *resolution.Planned
	component *resolution.Component
	verdict   *decide.Verdict
	// reached is what newer is compared with: what is installed, or in the answer about a plan what it brings.
	reached string
	version string
	probes  int
}

func (f Facts) subscription(name string) *resolution.Subscription {
	for i := range f.Input.Subscriptions {
		if f.Input.Subscriptions[i].Name == name {
			return &f.Input.Subscriptions[i]
		}
	}
	return nil
}

func (f Facts) ofPackage(pkg string) *resolution.Installed {
	for i := range f.Input.Installed {
		if f.Input.Installed[i].Package == pkg {
			return &f.Input.Installed[i]
		}
	}
	return nil
}

// subject finds what a name means: a CSV, else a subscription, else a package.
func (f Facts) subject(name string) (*subject, bool) {
	s := &subject{f: f}
	for i := range f.Input.Installed {
		if f.Input.Installed[i].CSV == name {
			s.installed = &f.Input.Installed[i]
		}
	}
	if s.installed == nil {
		s.sub = f.subscription(name)
	}
	switch {
	case s.installed != nil:
		s.pkg = s.installed.Package
	case s.sub != nil:
		s.pkg = s.sub.Package
	default:
		s.pkg = f.packageOf(name)
	}
	s.complete()
	return s, s.installed != nil || s.sub != nil || s.planned != nil
}

// packageOf is the package that a name means: that of a planned CSV, else itself.
func (f Facts) packageOf(name string) string {
	for _, c := range f.Result.Components {
		for _, b := range c.Bundles {
			if b.CSV == name {
				return b.Package
			}
		}
	}
	return name
}

// complete finds what belongs together: subscription, installed operator, planned bundle and component.
func (s *subject) complete() {
	if s.installed == nil {
		s.installed = s.followed()
	}
	if s.sub == nil && s.installed != nil && s.installed.Subscription != "" {
		s.sub = s.f.subscription(s.installed.Subscription)
	}
	if s.sub == nil {
		for i := range s.f.Input.Subscriptions {
			if s.installed == nil && s.f.Input.Subscriptions[i].Package == s.pkg {
				s.sub = &s.f.Input.Subscriptions[i]
				break
			}
		}
	}
	s.find()
	if s.installed != nil {
		s.reached, s.version = s.installed.CSV, s.installed.Version
	}
}

// followed is what the subscription follows, else what is installed of the package.
func (s *subject) followed() *resolution.Installed {
	if s.sub == nil {
		return s.f.ofPackage(s.pkg)
	}
	for i := range s.f.Input.Installed {
		if have := &s.f.Input.Installed[i]; have.Subscription == s.sub.Name || have.CSV == s.sub.InstalledCSV {
			return have
		}
	}
	return nil
}

// find searches for the component that is about the subject.
func (s *subject) find() {
	for i := range s.f.Result.Components {
		c := &s.f.Result.Components[i]
		mine := s.sub != nil && slices.Contains(c.Subscriptions, s.sub.Name) || s.sub == nil &&
			slices.Contains(c.Packages, s.pkg)
		if !mine || s.component != nil && c.Failure == nil {
			continue
		}
		s.component = c
		if i < len(s.f.Verdicts) {
			s.verdict = &s.f.Verdicts[i]
		}
		for j := range c.Bundles {
			if c.Bundles[j].Package == s.pkg {
				s.planned = &c.Bundles[j]
			}
		}
	}
}

func (s *subject) answer() Answer {
	l := Answer{Package: s.pkg, CSV: s.reached, Version: s.version, Because: s.because(), NotTaken: []NotTaken{}}
	if s.reached == "" && s.planned != nil {
		l.CSV, l.Version = s.planned.CSV, s.planned.Version
	}
	if s.installed != nil && s.installed.CSV == s.reached {
		l.Phase = s.phase(s.installed.CSV)
	}
	if s.sub != nil {
		l.Subscription, l.Channel = s.sub.Name, s.sub.Channel
		if s.sub.Catalog != "" {
			l.Catalog = s.f.Input.CatalogNamed(*s.sub).String()
		}
	}
	for _, o := range s.newer() {
		if len(l.NotTaken) == MaxNotTaken {
			l.More++
			continue
		}
		l.NotTaken = append(l.NotTaken, NotTaken{
			CSV: o.csv, Version: o.version, Catalog: o.catalog.Key.String(), Revision: o.catalog.Revision,
			Channels: o.channels, Reasons: s.reasons(o),
		})
	}
	return l
}

func (s *subject) phase(csv string) string {
	for _, i := range s.f.State.Installed {
		if i.Name == csv {
			return i.Phase
		}
	}
	for _, i := range s.f.Input.Installed {
		if i.CSV == csv {
			return i.Phase
		}
	}
	return ""
}

// choice is one version of one catalog.
type choice struct {
	catalog  resolution.Catalog
	csv      string
	version  string
	parsed   semver.Version
	entries  map[string]offer.Entry // by channel
	channels []string
	bundle   *offer.Operator
}

// newer are the versions above what is reached, the newest first; where nothing is reached, all above what is planned,
// and that itself.
func (s *subject) newer() []*choice {
	var out []*choice
	for _, c := range s.f.Input.View.Catalogs() {
		if !c.Ready {
			continue
		}
		for _, o := range choices(c, s.f.Input.View.Package(c.Key, s.pkg)) {
			if s.above(o) {
				out = append(out, o)
			}
		}
	}
	slices.SortFunc(out, func(a, b *choice) int {
		return cmp.Or(b.parsed.Compare(a.parsed), cmp.Compare(a.catalog.Key.String(), b.catalog.Key.String()),
			cmp.Compare(a.csv, b.csv))
	})
	return out
}

func (s *subject) above(o *choice) bool {
	base := s.version
	if s.reached == "" && s.planned != nil {
		if o.csv == s.planned.CSV && o.catalog.Key == s.planned.Catalog {
			return true
		}
		base = s.planned.Version
	}
	if o.csv == s.reached {
		return false
	}
	return o.bundle.HasVersion && o.parsed.GT(parse(base))
}

// parse reads a version; one that cannot be read counts as 0.0.0, as in the search for successors (R-GRA-9).
func parse(text string) semver.Version {
	v, err := semver.Parse(text)
	if err != nil {
		return semver.Version{}
	}
	return v
}

// choices are the bundles of a package, each once with the channels that lead to it.
func choices(c resolution.Catalog, p *offer.Package) []*choice {
	if p == nil {
		return nil
	}
	var out []*choice
	by := map[string]*choice{}
	for _, ch := range p.Channels {
		for name, e := range ch.All {
			o := by[name]
			if o == nil {
				o = &choice{
					catalog: c, csv: name, version: e.Bundle.VersionText(), parsed: e.Bundle.Version,
					entries: map[string]offer.Entry{}, bundle: e.Bundle,
				}
				by[name] = o
				out = append(out, o)
			}
			o.entries[ch.Name] = e
			o.channels = append(o.channels, ch.Name)
		}
	}
	return out
}
