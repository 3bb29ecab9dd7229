package group

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/operatorgroup"
)

// Namespace is one namespace of the cluster as it is now.
type Namespace struct {
	Name   string
	Labels map[string]string
}

// Targets are the namespaces that a group serves (R-OG §7.1), sorted, each once; [""] is all of them. Those of a
// selector are the namespaces that match it now, and may be none; those that are listed need not exist. Chandler's own
// namespace is none of either: no operator is to have rights in it.
func Targets(spec events.OperatorGroupSpec, namespaces []Namespace) ([]string, error) {
	if named, ok := operatorgroup.Named(spec); ok {
		return named, nil
	}
	chosen, err := Selector(spec.Selector)
	if err != nil {
		return nil, err
	}
	out := []string{}
	for _, n := range namespaces {
		if n.Name != events.SystemNamespace && chosen.Matches(labels.Set(n.Labels)) {
			out = append(out, n.Name)
		}
	}
	slices.Sort(out)
	return out, nil
}

// Selector compiles a selector. An empty one matches nothing here: a group without one is global.
func Selector(s events.LabelSelector) (labels.Selector, error) {
	in := metav1.LabelSelector{MatchLabels: s.MatchLabels}
	for _, r := range s.MatchExpressions {
		in.MatchExpressions = append(in.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: r.Key, Operator: metav1.LabelSelectorOperator(r.Operator), Values: r.Values,
		})
	}
	if len(in.MatchLabels) == 0 && len(in.MatchExpressions) == 0 {
		return labels.Nothing(), nil
	}
	out, err := metav1.LabelSelectorAsSelector(&in)
	if err != nil {
		return nil, errs.New(errs.Invalid, "selector: %v", err).At("/spec/selector", "R-OG-3")
	}
	return out, nil
}

// Served are the targets beside the group's own namespace that exist, sorted; none for a global group. Missing are
// those that do not.
func Served(g operatorgroup.Group, targets []string, namespaces []Namespace) (served, missing []string) {
	if operatorgroup.Global(targets) {
		return nil, nil
	}
	for _, t := range targets {
		live := slices.ContainsFunc(namespaces, func(n Namespace) bool { return n.Name == t })
		switch {
		case !live:
			missing = append(missing, t)
		case t != g.Namespace:
			served = append(served, t)
		}
	}
	return served, missing
}

// Follows reports whether what the group serves changes with namespaces: it has a selector, or targets of which
// the named one is one.
func Follows(spec events.OperatorGroupSpec, namespace string) bool {
	if spec.Global() {
		return false
	}
	return len(spec.TargetNamespaces) == 0 || slices.Contains(spec.TargetNamespaces, namespace)
}
