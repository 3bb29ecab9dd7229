package suggestion

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// policies are bounds raised as far as needed, else lifted. A resolution without the policy shows how far that is.
func (s *search) policies() []Suggestion {
	var names []string
	for _, b := range s.in.Policy.Bounds {
		if !slices.Contains(names, b.Policy) {
			names = append(names, b.Policy)
		}
	}
	slices.Sort(names)
	var out []Suggestion
	for _, name := range names {
		lift := Suggestion{
			Kind: LiftBound, Target: ofPolicy + name,
			Text: fmt.Sprintf("lift the version bounds of approval policy %s", name),
		}
		if s.spent() {
			return append(out, lift)
		}
		in, _ := lift.Apply(s.in)
		if raised, ok := s.raised(name, s.resolve(in)); ok {
			out = append(out, raised)
		}
		out = append(out, lift)
	}
	return out
}

// raised is a policy's ceiling or pin moved to what is planned without it.
func (s *search) raised(name string, freely resolution.Result) (Suggestion, bool) {
	r := Suggestion{Kind: RaiseBound, Target: ofPolicy + name}
	var texts []string
	for _, b := range s.in.Policy.Bounds {
		if b.Policy != name {
			continue
		}
		top, found := highest(freely, b)
		switch {
		case !found:
		case b.Pin != "":
			r.Change = append(r.Change, Change{fieldPin, b.Pin, top.String()})
			texts = append(texts, fmt.Sprintf("move the pin of approval policy %s from %s to %s", name, b.Pin, top))
		case b.Ceiling != "":
			r.Change = append(r.Change, Change{fieldCeiling, b.Ceiling, top.String()})
			texts = append(texts, fmt.Sprintf("raise the ceiling of approval policy %s from %s to %s", name, b.Ceiling,
				top))
		}
	}
	slices.Sort(texts)
	r.Text = strings.Join(slices.Compact(texts), " and ")
	r.Change = slices.DeleteFunc(r.Change, func(c Change) bool { return c.From == c.To })
	return r, len(r.Change) > 0
}

// highest is the highest version planned of what a bound is about.
func highest(r resolution.Result, b resolution.Bound) (top semver.Version, found bool) {
	for _, c := range r.Components {
		for _, p := range c.Bundles {
			v, err := semver.Parse(p.Version)
			if err == nil && fits(b.Packages, p.Package) && fits(b.Catalogs, p.Catalog.String()) &&
				(!found || v.GT(top)) {
				top, found = v, true
			}
		}
	}
	return top, found
}

// fits says whether a list of names, or of prefixes followed by "*", holds a name; an empty one holds all.
func fits(list []string, name string) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(p string) bool {
		prefix, open := strings.CutSuffix(p, "*")
		return p == name || open && strings.HasPrefix(name, prefix)
	})
}

// upgrades are subscriptions for operators of the conflict that none follows yet, so that they may move.
func (s *search) upgrades() []Suggestion {
	var out []Suggestion
	for _, csv := range s.csvs() {
		i := s.installed(csv)
		if i == nil || i.Package == "" {
			continue
		}
		for _, c := range s.preferred() {
			p := s.pkg(c.Key, i.Package)
			for _, channel := range p.channels() {
				out = append(out, Suggestion{
					Kind: Subscribe, Target: ofOperator + csv,
					Change: []Change{
						{fieldSubscription, "", s.freeName(i.Package)},
						{fieldPackage, "", i.Package},
						{fieldChannel, "", channel},
						{fieldCatalog, "", c.Key.Name},
						{fieldCatalogNamespace, "", c.Key.Namespace},
					},
					Text: fmt.Sprintf(
						"subscribe to channel %s of package %s in catalog %s, so that the installed %s may be upgraded",
						channel, i.Package, c.Key, csv),
				})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Suggestion) int { return strings.Compare(a.Target, b.Target) })
	return out
}

// freeName is a name for a subscription to a package that none has.
func (s *search) freeName(pkg string) string {
	name := pkg
	for n := 2; s.subscription(name) != nil; n++ {
		name = fmt.Sprintf("%s-%d", pkg, n)
	}
	return name
}

func (s *search) installed(csv string) *resolution.Installed {
	for i := range s.in.Installed {
		if s.in.Installed[i].CSV == csv {
			return &s.in.Installed[i]
		}
	}
	return nil
}

// removals are installed operators taken away: those of the conflict that none follows, what another blamed
// subscription follows together with it, and last what the own one follows, which is then installed anew.
func (s *search) removals() []Suggestion {
	var out, last []Suggestion
	for _, csv := range s.csvs() {
		out = append(out, Suggestion{
			Kind: RemoveOperator, Target: ofOperator + csv,
			Text: fmt.Sprintf("remove operator %s, which no subscription follows", csv),
		})
	}
	for _, i := range s.in.Installed {
		switch {
		case i.Subscription == "" || !slices.Contains(s.involved(), i.Subscription):
		case i.Subscription == s.own:
			last = append(last, Suggestion{
				Kind: RemoveOperator, Target: ofOperator + i.CSV,
				Text: fmt.Sprintf("remove operator %s, so that subscription %s installs it anew", i.CSV, s.own),
			})
		default:
			out = append(out, Suggestion{
				Kind: RemoveOperator, Target: ofOperator + i.CSV,
				Change: []Change{{fieldSubscription, i.Subscription, ""}},
				Text:   fmt.Sprintf("remove operator %s with its subscription %s", i.CSV, i.Subscription),
			})
		}
	}
	slices.SortStableFunc(out, func(a, b Suggestion) int { return strings.Compare(a.Target, b.Target) })
	return append(out, last...)
}

func (s *search) leavingOut() []Suggestion {
	var out []Suggestion
	for _, name := range s.blamed() {
		if name != s.own && s.component.Failure != nil {
			out = append(out, Suggestion{Kind: LeaveOut, Target: ofSubscription + name, Text: "delete subscription " +
				name})
		}
	}
	return out
}

// unhealthy are catalogs that hold up what is planned, since their namespace is strict (R-CAT-99).
func (s *search) unhealthy() []Suggestion {
	if s.component.Blocked == nil {
		return nil
	}
	var out []Suggestion
	for _, st := range s.component.Blocked.Statements {
		out = append(out, Suggestion{
			Kind: DisableCatalog, Target: ofCatalog + st.Catalog,
			Text: fmt.Sprintf("disable catalog %s until it is repaired", st.Catalog),
		})
	}
	return out
}
