package scope

import (
	"slices"
	"time"
)

// Link is one ClusterServiceVersion of a namespace.
type Link struct {
	Name string
	// Replaces is the name of the ClusterServiceVersion that it follows, "" for the first; it need not be there any
	// more.
	Replaces string
	// Back marks one that a rollback brought: what it follows names it, too.
	Back    bool
	Created time.Time
}

// Chain says which operators of a namespace replace which: the chains that upgrades and rollbacks leave (R-CSV §6.6),
// in the order of names.
type Chain []Link

// Predecessor names what an operator follows, "" where nothing is or where that one came back in its place.
func (c Chain) Predecessor(name string) string {
	o := c.find(name)
	if o == nil {
		return ""
	}
	p := c.find(o.Replaces)
	if p == nil || p.wentBackTo(o) {
		return ""
	}
	return p.Name
}

// Successor names what follows an operator, "" where nothing does.
func (c Chain) Successor(name string) string {
	o := c.find(name)
	for i := range c {
		if name != "" && c[i].Replaces == name && (o == nil || !o.wentBackTo(&c[i])) {
			return c[i].Name
		}
	}
	return ""
}

// RolledBack reports an operator that a rollback leaves.
func (c Chain) RolledBack(name string) bool {
	return slices.ContainsFunc(c, func(o Link) bool { return o.Replaces == name && o.Back })
}

// Related reports whether one of the two follows the other, directly or through others that are there.
func (c Chain) Related(a, b string) bool {
	return a == b || c.follows(a, b) || c.follows(b, a)
}

// Apart reports two operators that are both there and have nothing to do with each other.
func (c Chain) Apart(a, b string) bool {
	return c.find(a) != nil && c.find(b) != nil && !c.Related(a, b)
}

// CameFirst reports whether an operator is there that has nothing to do with another and was made before it; of two
// that were made in the same second, the one whose name sorts first.
func (c Chain) CameFirst(first, second string) bool {
	a, b := c.find(first), c.find(second)
	if !c.Apart(first, second) {
		return false
	}
	if a.Created.Equal(b.Created) {
		return a.Name < b.Name
	}
	return a.Created.Before(b.Created)
}

// follows walks at most once over the chain: names can be written by hand, also in a ring.
func (c Chain) follows(a, b string) bool {
	for range c {
		o := c.find(a)
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

func (c Chain) find(name string) *Link {
	i := slices.IndexFunc(c, func(o Link) bool { return o.Name == name })
	if i < 0 || name == "" {
		return nil
	}
	return &c[i]
}

// wentBackTo reports whether a rollback brought o in the place of other.
func (o *Link) wentBackTo(other *Link) bool {
	return o.Replaces == other.Name && o.Back
}
