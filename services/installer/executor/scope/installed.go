package scope

import (
	"slices"
	"strings"
)

// Installed are the operators of the namespace.
type Installed struct {
	Operators []*Operator // by name
	Chain     Chain       // how they replace each other
	// Uninstalling are those that are being uninstalled, which nobody follows any more.
	Uninstalling []*Operator
	// Unreadable are the InstalledOperators that cannot be read, with their plans.
	Unreadable map[string]string
	// Loaded is set while Operators are as the cluster has them.
	Loaded bool
}

// Operator is the operator of a name, nil where there is none.
func (i Installed) Operator(name string) *Operator {
	n := slices.IndexFunc(i.Operators, func(m *Operator) bool { return m.Name() == name })
	if n < 0 {
		return nil
	}
	return i.Operators[n]
}

// Lives reports a ClusterServiceVersion that is there, whether it can be read or not.
func (i Installed) Lives(name string) bool {
	if _, ok := i.Unreadable[name]; ok {
		return true
	}
	return slices.ContainsFunc(i.Operators, func(m *Operator) bool { return m.Name() == name })
}

// Everybody are the operators, and those that are being uninstalled: they are shown until they are gone.
func (i Installed) Everybody() []*Operator { return slices.Concat(i.Operators, i.Uninstalling) }

// InstalledOf are operators that were read. Those that are leaving, as the step logs say, nobody follows any more.
func InstalledOf(operators []*Operator, logs Executions) Installed {
	slices.SortFunc(operators, func(a, b *Operator) int { return strings.Compare(a.Name(), b.Name()) })
	all := Installed{Operators: operators}
	i := all.Without(logs)
	i.Chain = chainOf(i.Operators)
	return i
}

// Without are the operators with those that the step logs have leave by now among the ones that are being uninstalled.
func (i Installed) Without(logs Executions) Installed {
	next := i
	next.Operators, next.Uninstalling = nil, slices.Clone(i.Uninstalling)
	for _, m := range i.Operators {
		if logs.Leaving(m.Name()) {
			next.Uninstalling = append(next.Uninstalling, m)
		} else {
			next.Operators = append(next.Operators, m)
		}
	}
	return next
}

// chainOf is how the operators of a namespace follow each other.
func chainOf(members []*Operator) Chain {
	chain := make(Chain, len(members))
	for i, m := range members {
		chain[i] = Link{
			Name: m.Name(), Replaces: m.CSV.Spec.Replaces,
			Back:    m.Object.GetAnnotations()[AnnotationReason] == ReasonRollback,
			Created: m.Object.GetCreationTimestamp().Time,
		}
	}
	return chain
}
