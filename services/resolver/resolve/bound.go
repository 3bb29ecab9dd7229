package resolve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/services/resolver/offer"
)

// bound is a Bound made ready.
type bound struct {
	Bound

	within  semver.Range    // nil where Range is "" or cannot be read
	ceiling *semver.Version // nil where Ceiling is "" or cannot be read
	pinned  *semver.Version // nil where Pin is no version
}

func compileBounds(list []Bound) []bound {
	out := make([]bound, 0, len(list))
	for _, b := range list {
		c := bound{Bound: b}
		if r, err := catalog.ParseRange(b.Range); err == nil {
			c.within = r
		}
		if v, err := semver.Parse(b.Ceiling); err == nil {
			c.ceiling = &v
		}
		if v, err := semver.Parse(b.Pin); err == nil {
			c.pinned = &v
		}
		out = append(out, c)
	}
	return out
}

// forbidding is the first bound that forbids an operator of a catalog, -1 where none does.
func (w *world) forbidding(op *offer.Operator, c CatalogKey) int32 {
	for i := range w.bounds {
		if b := &w.bounds[i]; b.concerns(op.Package, c) && !b.allows(op) {
			return int32(i)
		}
	}
	return -1
}

// Forbids says whether a bundle that was planned is one that the bound keeps out.
func (b Bound) Forbids(p Planned) bool {
	ready := compileBounds([]Bound{b})[0]
	op := offer.Operator{Name: p.CSV, Package: p.Package}
	if v, err := semver.Parse(p.Version); err == nil {
		op.Version, op.HasVersion = v, true
	}
	return ready.concerns(p.Package, p.Catalog) && !ready.allows(&op)
}

func (b *bound) concerns(pkg string, c CatalogKey) bool {
	return fits(b.Packages, pkg) && fits(b.Catalogs, c.String())
}

// fits says whether a name is one of the patterns: a name, or a prefix followed by "*". No pattern fits all.
func fits(patterns []string, name string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool {
		prefix, open := strings.CutSuffix(p, "*")
		return p == name || open && strings.HasPrefix(name, prefix)
	})
}

// allows says whether an operator is inside the bound. What cannot be read allows nothing: a bound is there to
// keep things out. Likewise, an operator without version is in no range.
func (b *bound) allows(op *offer.Operator) bool {
	if b.Pin != "" && b.Pin != op.Name && (b.pinned == nil || !op.HasVersion || !op.Version.EQ(*b.pinned)) {
		return false
	}
	if b.Range != "" && (b.within == nil || !op.HasVersion || !b.within(op.Version)) {
		return false
	}
	return b.Ceiling == "" || b.ceiling != nil && op.HasVersion && op.Version.LE(*b.ceiling)
}

// text says what the bound allows.
func (b *bound) text() string {
	var parts []string
	if b.Pin != "" {
		parts = append(parts, "pins it to "+b.Pin)
	}
	if b.Range != "" {
		parts = append(parts, "keeps it in range "+b.Range)
	}
	if b.Ceiling != "" {
		parts = append(parts, "lets it not go beyond "+b.Ceiling)
	}
	return strings.Join(parts, " and ")
}

// forbidden is the statement that a policy keeps a bundle out.
func (w *world) forbidden(n nodeID) Statement {
	op := w.op(n)
	b := &w.bounds[w.shapes[w.nodes[n].shape].policy]
	return Statement{
		Kind: PolicyForbids, Policy: b.Policy, Bundle: w.id(n), Package: op.Package, Catalog: w.catalogOf(n).String(), Revision: w.revision(n),
		Text: fmt.Sprintf("bundle %s is forbidden by approval policy %s, which %s", w.id(n), b.Policy, b.text()),
	}
}
