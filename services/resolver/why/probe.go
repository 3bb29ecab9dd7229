package why

import (
	"fmt"
	"slices"

	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
)

// probeName is the subscription that asks for a version where none follows the operator. No subscription of a
// person can have that name.
const probeName = "(this question)"

// probe resolves the namespace with the very version, and returns what fails then; nothing where all goes well.
func (s *subject) probe(o *choice) []Reason {
	in := s.f.Input
	in.Installed = slices.DeleteFunc(slices.Clone(in.Installed),
		func(i resolution.Installed) bool { return i.Package == s.pkg })
	in.Subscriptions = slices.Clone(in.Subscriptions)
	ask := resolution.Subscription{Name: probeName, Approval: resolution.Automatic}
	if s.sub != nil {
		ask = *s.sub
		in.Subscriptions = slices.DeleteFunc(in.Subscriptions,
			func(sub resolution.Subscription) bool { return sub.Name == ask.Name })
	}
	ask.Package, ask.Catalog, ask.CatalogNamespace, ask.CatalogHidden = s.pkg, o.catalog.Key.Name,
		o.catalog.Key.Namespace, false
	ask.Channel, ask.StartingCSV, ask.InstalledCSV = s.channelsOf(o)[0], o.csv, ""
	in.Subscriptions = append(in.Subscriptions, ask)
	in.Policy.MaxConflicts = probeConflicts
	fine := resolving(s.f.Result)
	var out []Reason
	for _, c := range resolve.Resolve(in).Components {
		if c.Failure == nil {
			continue
		}
		if slices.ContainsFunc(c.Failure.Subscriptions, func(name string) bool {
			return name == ask.Name ||
				fine[name]
		}) {
			out = append(out, because(c.Failure, o.csv)...)
		}
	}
	return out
}

func resolving(r resolution.Result) map[string]bool {
	out := map[string]bool{}
	for _, c := range r.Components {
		for _, name := range c.Subscriptions {
			out[name] = c.Failure == nil
		}
	}
	return out
}

// codes are what statements mean. Those that are not here say who asks, not what is in the way.
var codes = map[resolution.StatementKind]Code{ //nolint:gochecknoglobals // a table
	resolution.UnmetRequirement:     Dependency,
	resolution.PackageUnique:        Conflict,
	resolution.APIUnique:            Conflict,
	resolution.ReplacesConflict:     Conflict,
	resolution.DuplicateAPI:         Conflict,
	resolution.BundleDeprecated:     Deprecated,
	resolution.PolicyForbids:        Policy,
	resolution.CatalogUnhealthy:     CatalogUnhealthy,
	resolution.ClusterCordoned:      ClusterCordoned,
	resolution.CatalogNotReady:      CatalogLoading,
	resolution.BundleImagePending:   ImagePending,
	resolution.BundleImageFailed:    ImageFailed,
	resolution.ChannelMalformed:     InvalidContent,
	resolution.RequirementMalformed: InvalidContent,
	resolution.NotInstallable:       NotInstallable,
}

// because are the statements of a failure as reasons; requirements first, since they name who wants what. That a
// package has one operator says something only where nothing else does.
func because(e *resolution.Explanation, csv string) []Reason {
	var needs, others, same []Reason
	for _, st := range e.Statements {
		code, ok := codes[st.Kind]
		if !ok {
			continue
		}
		r := Reason{Code: code, Text: st.Text, Policy: st.Policy, Requirement: st.Requirement, Bundle: st.Bundle}
		if st.Other != "" {
			r.Bundle = st.Other
		}
		switch {
		case code == Dependency:
			needs = append(needs, r)
		case st.Kind == resolution.PackageUnique:
			same = append(same, r)
		default:
			others = append(others, r)
		}
	}
	out := slices.Concat(needs, others)
	if len(out) == 0 {
		out = same
	}
	if len(out) > 0 {
		return out
	}
	for _, st := range e.Statements {
		out = append(out, Reason{Code: Unresolved, Text: st.Text})
	}
	if len(out) == 0 {
		out = []Reason{{Code: Unresolved, Text: fmt.Sprintf("with %s the namespace does not resolve (%s)", csv,
			e.Class)}}
	}
	return out
}
