package suggestion

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/operatorgroup"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// elsewhere is a namespace that is not known here: the one that an operator is to serve which can serve a
// single other namespace alone. It is no name that a namespace can have.
const elsewhere = "<the namespace to serve>"

// groups are changes of operator groups.
func (s *search) groups() []Suggestion {
	switch len(s.in.OperatorGroups) {
	case 0:
		var out []Suggestion
		for _, targets := range s.targets(nil) {
			g := decide.Group{Name: groupName, Spec: events.OperatorGroupSpec{TargetNamespaces: targets}}
			out = append(out, s.withGroup(Suggestion{
				Kind: AddGroup, Target: ofGroup + groupName,
				Text: fmt.Sprintf("create an operator group in namespace %s that targets %s", s.in.Scope.Namespace,
					named(targets)),
			}, g))
		}
		return out
	case 1:
		return s.retarget()
	}
	return s.keepOne()
}

// retarget lets the one operator group serve other namespaces, where what resolves is refused for something beside the
// resolution.
func (s *search) retarget() []Suggestion {
	if len(s.have) != 1 || s.component.Failure == nil || s.component.Failure.Class != resolution.ClassNotInstallable {
		return nil
	}
	g := s.have[0]
	from := g.Spec.TargetNamespaces
	var out []Suggestion
	for _, targets := range s.targets(from) {
		changed := g
		changed.Spec.TargetNamespaces, changed.Spec.Selector, changed.Observed = targets, events.LabelSelector{}, nil
		out = append(out, s.withGroup(Suggestion{
			Kind: GroupTargets, Target: ofGroup + g.Name,
			Change: []Change{{fieldTargets, strings.Join(from, ","), strings.Join(targets, ",")}},
			Text:   fmt.Sprintf("let operator group %s target %s", g.Name, named(targets)),
		}, changed))
	}
	return out
}

// targets are what a group may serve instead, nearest first: its own namespace, all, those listed without the own
// one, one of those, another one.
func (s *search) targets(from []string) [][]string {
	own := s.in.Scope.Namespace
	out := [][]string{{own}, nil}
	others := slices.DeleteFunc(slices.Clone(from), func(ns string) bool { return ns == own })
	if len(others) > 1 {
		out = append(out, others)
	}
	for _, ns := range others {
		out = append(out, []string{ns})
	}
	out = append(out, []string{elsewhere})
	return slices.DeleteFunc(out, func(t []string) bool { return len(from) > 0 && slices.Equal(t, from) })
}

func named(targets []string) string {
	if len(targets) == 0 {
		return decide.Targets([]string{operatorgroup.All})
	}
	if len(targets) == 1 && targets[0] == elsewhere {
		return "one namespace that is not its own"
	}
	return decide.Targets(targets) + " only"
}

func (s *search) withGroup(r Suggestion, g decide.Group) Suggestion {
	r.Group, r.Manifest = &g, manifest(s.in.Scope.Namespace, g)
	return r
}

func (s *search) keepOne() []Suggestion {
	var out []Suggestion
	names := make([]string, 0, len(s.in.OperatorGroups))
	for _, g := range s.in.OperatorGroups {
		names = append(names, g.Name)
	}
	slices.Sort(names)
	for _, name := range names {
		others := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
		out = append(out, Suggestion{
			Kind: KeepGroup, Target: ofGroup + name,
			Text: fmt.Sprintf("keep operator group %s and delete %s", name, strings.Join(others, ", ")),
		})
	}
	return out
}

// groupsWith are the operator groups as a change leaves them.
func (s *search) groupsWith(r Suggestion) []decide.Group {
	_, name, _ := strings.Cut(r.Target, "/")
	switch {
	case r.Group != nil:
		return []decide.Group{*r.Group}
	case r.Kind == KeepGroup:
		return slices.DeleteFunc(slices.Clone(s.have), func(g decide.Group) bool { return g.Name != name })
	}
	return s.have
}

// outcome resolves an input, and adds what is known against what it comes to.
func (s *search) outcome(in resolution.Input, groups []decide.Group) resolution.Result {
	r := s.resolve(in)
	if s.cluster == nil {
		return r
	}
	r.Components = slices.Clone(r.Components)
	for i, c := range r.Components {
		if c.Failure == nil {
			r.Components[i].Failure = s.cluster.Refused(in, groups, c)
		}
	}
	return r
}

// harms reports whether an installed operator could not go on that can go on now.
func (s *search) harms(in resolution.Input, r Suggestion) bool {
	if s.cluster == nil || r.Group == nil && r.Kind != KeepGroup {
		return false
	}
	if !s.read {
		s.unsupported, s.read = s.cluster.Unsupported(s.in, s.have), true
	}
	return slices.ContainsFunc(s.cluster.Unsupported(in, s.groupsWith(r)),
		func(csv string) bool { return !slices.Contains(s.unsupported, csv) })
}

// manifest is an operator group in OLM's YAML.
func manifest(namespace string, g decide.Group) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("apiVersion: operators.coreos.com/v1")
	line("kind: OperatorGroup")
	line("metadata:")
	line("  name: %s", g.Name)
	line("  namespace: %s", namespace)
	annotations(line, g.Spec)
	spec := fields(g.Spec)
	if len(spec) == 0 {
		line("spec: {}")
		return b.String()
	}
	line("spec:")
	for _, f := range spec {
		line("  %s", f)
	}
	return b.String()
}

func annotations(line func(string, ...any), s events.OperatorGroupSpec) {
	if !s.ExcludeGlobalCatalogs && !s.StaticProvidedAPIs {
		return
	}
	line("  annotations:")
	if s.ExcludeGlobalCatalogs {
		line(`    olm.operatorframework.io/exclude-global-namespace-resolution: "true"`)
	}
	if s.StaticProvidedAPIs {
		line("    olm.providedAPIs: %q", strings.Join(s.ProvidedAPIs, ","))
	}
}

func fields(s events.OperatorGroupSpec) []string {
	var out []string
	if len(s.TargetNamespaces) > 0 {
		out = append(out, "targetNamespaces:")
		for _, ns := range s.TargetNamespaces {
			out = append(out, "- "+strconv.Quote(ns))
		}
	}
	for _, f := range [][2]string{
		{"serviceAccountName", s.ServiceAccountName},
		{"upgradeStrategy", s.UpgradeStrategy},
		{"colocation", s.Colocation},
	} {
		if f[1] != "" {
			out = append(out, f[0]+": "+f[1])
		}
	}
	if s.StaticProvidedAPIs {
		out = append(out, "staticProvidedAPIs: true")
	}
	return out
}
