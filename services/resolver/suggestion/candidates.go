package suggestion

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// candidates are changes that might help, nearest first.
func (s *search) candidates() iter.Seq[Suggestion] {
	return func(yield func(Suggestion) bool) {
		for _, part := range []func() []Suggestion{
			s.groups, s.ownIntent, s.globalCatalogs, s.otherIntents, s.policies, s.upgrades, s.removals, s.leavingOut,
			s.unhealthy,
		} {
			for _, r := range part() {
				if !yield(r) {
					return
				}
			}
		}
	}
}

func (s *search) globalCatalogs() []Suggestion {
	if len(s.in.OperatorGroups) != 1 || !s.in.OperatorGroups[0].ExcludeGlobalCatalogs {
		return nil
	}
	name := s.in.OperatorGroups[0].Name
	return []Suggestion{{
		Kind: GlobalCatalogs, Target: ofGroup + name, Change: []Change{{fieldExclude, "true", "false"}},
		Text: fmt.Sprintf("let operator group %s see the catalogs of the hub", name),
	}}
}

func (s *search) ownIntent() []Suggestion { return s.intents(s.subscription(s.own)) }

func (s *search) otherIntents() []Suggestion {
	var out []Suggestion
	for _, name := range s.involved() {
		if name != s.own {
			out = append(out, s.intents(s.subscription(name))...)
		}
	}
	return out
}

func (s *search) subscription(name string) *resolution.Subscription {
	for i := range s.in.Subscriptions {
		if s.in.Subscriptions[i].Name == name {
			return &s.in.Subscriptions[i]
		}
	}
	return nil
}

// intents are changes of what one subscription asks for.
func (s *search) intents(sub *resolution.Subscription) []Suggestion {
	if sub == nil {
		return nil
	}
	out := s.startingCSVs(*sub)
	out = append(out, s.channels(*sub)...)
	out = append(out, s.catalogs(*sub)...)
	return append(out, s.names(*sub)...)
}

// follows says whether something is installed that the subscription follows: startingCSV does not count then.
func (s *search) follows(sub resolution.Subscription) bool {
	return slices.ContainsFunc(s.in.Installed, func(i resolution.Installed) bool {
		return i.Subscription == sub.Name ||
			i.CSV == sub.InstalledCSV
	})
}

func (s *search) pkg(k resolution.CatalogKey, name string) *offered {
	if !slices.ContainsFunc(s.in.View.Catalogs(), func(c resolution.Catalog) bool { return c.Key == k && c.Ready }) {
		return nil
	}
	if p := s.in.View.Package(k, name); p != nil {
		return &offered{p.Channels}
	}
	return nil
}

// startingCSVs are other first versions: without one, whatever the channel gives; else those of the channel from
// the head down.
func (s *search) startingCSVs(sub resolution.Subscription) []Suggestion {
	if sub.StartingCSV == "" || s.follows(sub) {
		return nil
	}
	out := []Suggestion{intent(StartingCSV, sub, fmt.Sprintf("take startingCSV %s out of subscription %s",
		sub.StartingCSV, sub.Name),
		Change{fieldStartingCSV, sub.StartingCSV, ""})}
	p := s.pkg(s.in.CatalogNamed(sub), sub.Package)
	for _, csv := range p.csvs(sub.Channel) {
		if csv != sub.StartingCSV {
			out = append(out, intent(StartingCSV, sub, fmt.Sprintf("let subscription %s start with %s instead of %s",
				sub.Name, csv, sub.StartingCSV),
				Change{fieldStartingCSV, sub.StartingCSV, csv}))
		}
	}
	return out
}

func (s *search) channels(sub resolution.Subscription) []Suggestion {
	if sub.Channel == "" {
		return nil
	}
	p := s.pkg(s.in.CatalogNamed(sub), sub.Package)
	var out []Suggestion
	for _, name := range p.channels() {
		if name == sub.Channel {
			continue
		}
		change, dropped := p.fitted(sub, name)
		change = append(change, Change{fieldChannel, sub.Channel, name})
		out = append(out, intent(Channel, sub, fmt.Sprintf("move subscription %s from channel %s to channel %s%s",
			sub.Name, sub.Channel, name, dropped), change...))
	}
	return out
}

// catalogs are other ones that have the package.
func (s *search) catalogs(sub resolution.Subscription) []Suggestion {
	if sub.Catalog == "" {
		return nil
	}
	mine := s.in.CatalogNamed(sub)
	var out []Suggestion
	for _, c := range s.preferred() {
		p := s.pkg(c.Key, sub.Package)
		if c.Key == mine || p == nil {
			continue
		}
		channel := p.channelLike(sub.Channel)
		change, dropped := p.fitted(sub, channel)
		change = append(change, Change{fieldCatalog, sub.Catalog, c.Key.Name},
			Change{fieldCatalogNamespace, sub.CatalogNamespace, c.Key.Namespace})
		text := fmt.Sprintf("let subscription %s follow catalog %s instead of %s", sub.Name, c.Key, mine)
		if channel != sub.Channel {
			change = append(change, Change{fieldChannel, sub.Channel, channel})
			text += ", in channel " + channel
		}
		out = append(out, intent(Catalog, sub, text+dropped, change...))
	}
	return out
}

// names are packages of similar names, as the explanation lists them.
func (s *search) names(sub resolution.Subscription) []Suggestion {
	if s.component.Failure == nil {
		return nil
	}
	var out []Suggestion
	for _, st := range s.component.Failure.Statements {
		if st.Kind != resolution.PackageNotFound || st.Subscription != sub.Name {
			continue
		}
		for _, name := range st.Choices {
			p := s.pkg(s.in.CatalogNamed(sub), name)
			if p == nil {
				continue
			}
			channel := p.channelLike(sub.Channel)
			change, dropped := p.fitted(sub, channel)
			change = append(change, Change{fieldPackage, sub.Package, name})
			text := fmt.Sprintf("let subscription %s name package %s instead of %s", sub.Name, name, sub.Package)
			if channel != sub.Channel {
				change = append(change, Change{fieldChannel, sub.Channel, channel})
				text += ", in channel " + channel
			}
			out = append(out, intent(PackageName, sub, text+dropped, change...))
		}
	}
	return out
}

// preferred are the catalogs, those of higher priority first; a View gives them in any order.
func (s *search) preferred() []resolution.Catalog {
	return slices.SortedFunc(slices.Values(s.in.View.Catalogs()), func(a, b resolution.Catalog) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Key.String(), b.Key.String()))
	})
}

func intent(k Kind, sub resolution.Subscription, text string, change ...Change) Suggestion {
	change = slices.DeleteFunc(change, func(c Change) bool { return c.From == c.To })
	return Suggestion{Kind: k, Target: ofSubscription + sub.Name, Change: change, Text: text}
}
