package compare

import (
	"bytes"
	"slices"

	"github.com/chandler-fleet/chandler/libs/bundle"
)

// Semantics names the rules by which differences are computed. A stored difference of other rules is
// computed again: raise it with any change of what Bundles returns.
const Semantics = "chandler.compare.v1"

// Bounds on what one difference lists. What is left out is counted, never silent.
const (
	// MaxSchemaChanges is for one version of a CRD; the largest real upgrade has some 150.
	MaxSchemaChanges = 500
	// MaxRights is how many single rights of one bundle are compared; the largest real operator has 2,000.
	MaxRights = 50_000
)

// Difference is what changes from one bundle to another. The zero value is no difference.
type Difference struct {
	CRDs []CRD `json:"crds,omitempty"` // sorted by name
	// Gained is what the new bundle's operator may do and the old one's could not; Lost the other way round.
	Gained []Right `json:"gained,omitempty"`
	Lost   []Right `json:"lost,omitempty"`
	// Problem says why the two could not be compared; then nothing else is known.
	Problem string `json:"problem,omitempty"`
}

// Breaking reports whether the upgrade can hurt what exists: resources that become invalid or unreachable.
func (d Difference) Breaking() bool {
	return slices.ContainsFunc(d.CRDs, func(c CRD) bool { return c.Breaking() })
}

// Empty reports whether it is known that there is no difference.
func (d Difference) Empty() bool {
	return d.Problem == "" && len(d.CRDs) == 0 && len(d.Gained) == 0 && len(d.Lost) == 0
}

// Bundles compares two bundles of one package. Its error names the manifest that cannot be read.
func Bundles(from, to bundle.Content) (Difference, error) {
	old, err := Read(from)
	if err != nil {
		return Difference{}, err
	}
	now, err := Read(to)
	if err != nil {
		return Difference{}, err
	}
	return Parts(old, now)
}

// Part is a bundle read for comparison, so that one that has many neighbours in the graph is read once.
type Part struct {
	crds  map[string]bundle.Object
	rules []scopedRule
}

// Read reads a bundle for Parts. Its error names the manifest that cannot be read.
func Read(c bundle.Content) (Part, error) {
	objects, err := c.Objects()
	if err != nil {
		return Part{}, err
	}
	p := Part{crds: map[string]bundle.Object{}}
	for _, o := range objects {
		if o.Kind == bundle.KindCRD {
			p.crds[o.Name] = o
		}
	}
	p.rules, err = rulesOf(c, objects)
	return p, err
}

// Parts compares two bundles that were read before.
func Parts(from, to Part) (Difference, error) {
	var d Difference
	for _, name := range union(from.crds, to.crds) {
		old, had := from.crds[name]
		now, has := to.crds[name]
		if had && has && bytes.Equal(old.Raw, now.Raw) {
			continue
		}
		c, err := compareCRD(name, old.Raw, now.Raw)
		if err != nil {
			return Difference{}, err
		}
		if c != nil {
			d.CRDs = append(d.CRDs, *c)
		}
	}
	d.Gained = gained(from.rules, to.rules)
	d.Lost = gained(to.rules, from.rules)
	return d, nil
}

// union returns the keys of both maps, sorted.
func union[V any](a, b map[string]V) []string {
	names := make([]string, 0, len(a)+len(b))
	for n := range a {
		names = append(names, n)
	}
	for n := range b {
		names = append(names, n)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
