package why

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/services/resolver/offer"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// reasons are why a version is not taken; at least one.
func (s *subject) reasons(o *choice) []Reason {
	if s.moves(o) {
		return s.waits()
	}
	out := s.plain(o)
	if len(out) == 0 {
		out = s.searched(o)
	}
	return out[:min(len(out), maxReasons)]
}

// moves says whether the plan moves to the version.
func (s *subject) moves(o *choice) bool {
	return s.planned != nil && s.planned.CSV == o.csv && s.planned.Catalog == o.catalog.Key &&
		s.planned.CSV != s.reached
}

// plain are the reasons that are known without trying.
func (s *subject) plain(o *choice) []Reason {
	out := s.policies(o)
	if o.bundle.Deprecated {
		out = append(out, Reason{
			Code: Deprecated, Bundle: o.csv,
			Text: fmt.Sprintf("catalog %s says that %s is deprecated and may not be chosen any more", o.catalog.Key,
				o.csv),
		})
	}
	if g := s.f.Input.OperatorGroups; len(g) == 1 && g[0].ExcludeGlobalCatalogs &&
		o.catalog.Key.Namespace != s.f.Input.Scope.Namespace {
		out = append(out, Reason{Code: HiddenCatalog, Text: fmt.Sprintf(
			"operator group %s excludes catalogs of the hub, such as %s", g[0].Name, o.catalog.Key)})
	}
	if s.sub == nil {
		return out
	}
	if slices.Contains(s.sub.Avoids, o.csv) && s.sub.Rollback.From != o.csv {
		out = append(out, Reason{Code: RolledBack, Text: fmt.Sprintf(
			"a rollout of subscription %s went back from it; it is taken again once the fleet subscription is set again",
			s.sub.Name)})
	}
	if s.sub.Rollback.From == o.csv {
		out = append(out, Reason{Code: RolledBack, Text: fmt.Sprintf(
			"subscription %s went back from it to %s; it is taken again once the subscription is changed", s.sub.Name,
			s.sub.Rollback.To)})
	}
	if s.sub.Catalog != "" && s.f.Input.CatalogNamed(*s.sub) != o.catalog.Key {
		return append(out, Reason{Code: OtherCatalog, Text: fmt.Sprintf(
			"it is in catalog %s, and subscription %s follows catalog %s", o.catalog.Key, s.sub.Name,
			s.f.Input.CatalogNamed(*s.sub))})
	}
	if s.sub.Channel != "" && !slices.Contains(o.channels, s.sub.Channel) {
		return append(out, Reason{Code: OtherChannel, Text: fmt.Sprintf(
			"it is in channel %s, and subscription %s follows channel %s", strings.Join(o.channels, ", "), s.sub.Name,
			s.sub.Channel)})
	}
	return append(out, s.skipped(o)...)
}

// policies are the bounds that forbid the version.
func (s *subject) policies(o *choice) []Reason {
	var out []Reason
	for _, b := range s.f.Input.Policy.Bounds {
		if !fits(b.Packages, s.pkg) || !fits(b.Catalogs, o.catalog.Key.String()) {
			continue
		}
		if text := broken(b, o); text != "" {
			out = append(out, Reason{
				Code: Policy, Policy: b.Policy,
				Text: fmt.Sprintf("approval policy %s %s", b.Policy, text),
			})
		}
	}
	return out
}

// broken says which bound of a policy the version breaks; "" for none.
func broken(b resolution.Bound, o *choice) string {
	if pin, err := semver.Parse(b.Pin); b.Pin != "" && b.Pin != o.csv && (err != nil || !pin.EQ(o.parsed)) {
		return "pins " + b.Pin
	}
	if b.Range != "" {
		if in, err := catalog.ParseRange(b.Range); err != nil || !in(o.parsed) {
			return "allows versions in " + b.Range
		}
	}
	if b.Ceiling != "" && o.parsed.GT(parse(b.Ceiling)) {
		return "allows nothing beyond " + b.Ceiling
	}
	return ""
}

// fits says whether a list of names, or of prefixes followed by "*", holds a name; an empty one holds all.
func fits(list []string, name string) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(p string) bool {
		prefix, open := strings.CutSuffix(p, "*")
		return p == name || open && strings.HasPrefix(name, prefix)
	})
}

// skipped says that in every channel that may be followed another entry skips the version.
func (s *subject) skipped(o *choice) []Reason {
	var by string
	for _, name := range s.channelsOf(o) {
		ch := s.channel(o, name)
		if slices.ContainsFunc(ch.Entries, func(e offer.Entry) bool { return e.Name == o.csv }) || ch.Err != nil {
			return nil
		}
		for _, e := range ch.Entries {
			if slices.Contains(e.Skips, o.csv) {
				by = e.Name
			}
		}
	}
	if by == "" {
		return nil
	}
	return []Reason{{Code: Skipped, Bundle: by, Text: fmt.Sprintf("%s skips it", by)}}
}

// channelsOf are the channels of a version that the subscription may follow.
func (s *subject) channelsOf(o *choice) []string {
	if s.sub == nil || s.sub.Channel == "" {
		return o.channels
	}
	return []string{s.sub.Channel}
}

func (s *subject) channel(o *choice, name string) offer.Channel {
	for _, ch := range s.f.Input.View.Package(o.catalog.Key, s.pkg).Channels {
		if ch.Name == name {
			return ch
		}
	}
	return offer.Channel{}
}

// searched is the first reason that applies where none is plain.
func (s *subject) searched(o *choice) []Reason {
	if held := s.underWay(); len(held) > 0 {
		return held
	}
	if s.planned != nil && s.planned.CSV != s.reached && o.parsed.LT(parse(s.planned.Version)) && s.sub != nil {
		return []Reason{{
			Code: PassedOver, Bundle: s.planned.CSV,
			Text: fmt.Sprintf("the plan moves to %s at once", s.planned.CSV),
		}}
	}
	broken := s.component != nil && s.component.Failure != nil
	if r := s.steps(o); r != nil && !broken {
		return []Reason{*r}
	}
	found, ok := s.tried(o)
	if !ok || len(found) > 0 {
		return found
	}
	if broken {
		return because(s.component.Failure, o.csv)
	}
	if s.sub == nil && s.installed != nil && s.planned == nil {
		return []Reason{{
			Code: NotSubscribed, Bundle: s.installed.CSV,
			Text: fmt.Sprintf("no subscription follows %s, so nothing upgrades it", s.installed.CSV),
		}}
	}
	return []Reason{{
		Code: Preference,
		Text: "it could be had, but what comes first in the order of preference goes before it: the catalog of who " +
			"asks, then priorities, default channels and heads of channels",
	}}
}

// tried are the reasons that come of trying, none where all goes well; ok is false where too much was tried, and it is
// said instead.
func (s *subject) tried(o *choice) (found []Reason, ok bool) {
	if s.probes == MaxProbes {
		return []Reason{{Code: NotLookedInto, Text: fmt.Sprintf(
			"only the newest %d versions that nothing plain speaks against are looked into", MaxProbes)}}, false
	}
	hard := []Reason{{
		Code: NotLookedInto,
		Text: "the namespace is too hard to resolve for this version to be looked into",
	}}
	if s.f.Input.Effort.Spent() {
		return hard, false
	}
	s.probes++
	if found = s.probe(o); s.f.Input.Effort.Spent() { // it was not examined to the end
		return hard, false
	}
	return found, true
}

// steps says that the channel does not lead to the version in one step from what the subscription has.
func (s *subject) steps(o *choice) *Reason {
	if s.sub == nil || s.installed == nil {
		return nil
	}
	var next string
	for _, name := range s.channelsOf(o) {
		ch := s.channel(o, name)
		target, ok := ch.All[o.csv]
		if !ok {
			continue
		}
		if follows(target, s.installed.CSV, parse(s.installed.Version)) {
			return nil
		}
		if step := firstStep(ch, s.installed.CSV, parse(s.installed.Version), o.csv); step != "" {
			next = step
		}
	}
	if next == "" {
		return &Reason{
			Code: NoPath, Bundle: s.installed.CSV,
			Text: fmt.Sprintf("no upgrade path of the channel leads there from %s", s.installed.CSV),
		}
	}
	return &Reason{Code: OneStep, Bundle: next, Text: fmt.Sprintf("one step at a time: %s comes first", next)}
}

// follows says whether an entry is a successor (R-GRA-9).
func follows(e offer.Entry, csv string, version semver.Version) bool {
	return e.Name != csv && (e.Replaces == csv || slices.Contains(e.Skips, csv) || e.SkipRange != nil &&
		e.SkipRange(version))
}

// firstStep is the first entry on a way from an installed CSV to another one, by choosable entries nearest the head;
// "" where there is no way.
func firstStep(ch offer.Channel, csv string, version semver.Version, to string) string {
	type at struct {
		csv     string
		version semver.Version
		first   string
	}
	seen := map[string]bool{csv: true}
	queue := []at{{csv, version, ""}}
	for len(queue) > 0 {
		here := queue[0]
		queue = queue[1:]
		for _, e := range ch.Entries {
			if seen[e.Name] || !follows(e, here.csv, here.version) {
				continue
			}
			seen[e.Name] = true
			first := here.first
			if first == "" {
				first = e.Name
			}
			if e.Name == to {
				return first
			}
			queue = append(queue, at{e.Name, e.Bundle.Version, first})
		}
	}
	return ""
}
