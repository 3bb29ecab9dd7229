// Package lineage says which operators of a namespace follow which: the chains of replacements that upgrades and
// rollbacks leave (R-CSV §6.6).
package lineage

import (
	"slices"
	"time"
)

// Operator is one ClusterServiceVersion of a namespace.
type Operator struct {
	Name string
	// Replaces is the name of the ClusterServiceVersion that it follows, "" for the first; it need not be there any more.
	Replaces string
	// Back marks one that a rollback brought: what it follows names it, too.
	Back    bool
	Created time.Time
}

// Line is what is installed in one namespace, in the order of names.
type Line []Operator

// Predecessor names what an operator follows, "" where nothing is or where that one came back in its place.
func (l Line) Predecessor(name string) string {
	o := l.find(name)
	if o == nil {
		return ""
	}
	p := l.find(o.Replaces)
	if p == nil || p.wentBackTo(o) {
		return ""
	}
	return p.Name
}

// Successor names what follows an operator, "" where nothing does.
func (l Line) Successor(name string) string {
	o := l.find(name)
	for i := range l {
		if name != "" && l[i].Replaces == name && (o == nil || !o.wentBackTo(&l[i])) {
			return l[i].Name
		}
	}
	return ""
}

// RolledBack reports an operator that a rollback leaves.
func (l Line) RolledBack(name string) bool {
	return slices.ContainsFunc(l, func(o Operator) bool { return o.Replaces == name && o.Back })
}

// Related reports whether one of the two follows the other, directly or through others that are there.
func (l Line) Related(a, b string) bool {
	return a == b || l.follows(a, b) || l.follows(b, a)
}

// Apart reports two operators that are both there and have nothing to do with each other.
func (l Line) Apart(a, b string) bool {
	return l.find(a) != nil && l.find(b) != nil && !l.Related(a, b)
}

// CameFirst reports whether an operator is there that has nothing to do with another and was made before it; of two
// that were made in the same second, the one whose name sorts first.
func (l Line) CameFirst(first, second string) bool {
	a, b := l.find(first), l.find(second)
	if !l.Apart(first, second) {
		return false
	}
	if a.Created.Equal(b.Created) {
		return a.Name < b.Name
	}
	return a.Created.Before(b.Created)
}

// follows walks at most once over the line: names can be written by hand, also in a ring.
func (l Line) follows(a, b string) bool {
	for range l {
		o := l.find(a)
		if o == nil {
			return false
		}
		if o.Replaces == b {
			return true
		}
		a = o.Replaces
	}
	return false
}

func (l Line) find(name string) *Operator {
	i := slices.IndexFunc(l, func(o Operator) bool { return o.Name == name })
	if i < 0 || name == "" {
		return nil
	}
	return &l[i]
}

// wentBackTo reports whether a rollback brought o in the place of other.
func (o *Operator) wentBackTo(other *Operator) bool {
	return o.Replaces == other.Name && o.Back
}
