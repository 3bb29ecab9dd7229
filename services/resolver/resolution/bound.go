package resolution

import (
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/services/resolver/offer"
)

// CompiledBound is a Bound whose versions and ranges are parsed.
type CompiledBound struct {
	Bound

	within  semver.Range    // nil where Range is "" or cannot be read
	ceiling *semver.Version // nil where Ceiling is "" or cannot be read
	pinned  *semver.Version // nil where Pin is no version
}

// CompileBounds parses bounds, in their order.
func CompileBounds(list []Bound) []CompiledBound {
	out := make([]CompiledBound, 0, len(list))
	for _, b := range list {
		c := CompiledBound{Bound: b}
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

// Forbids says whether a bundle that was planned is one that the bound keeps out.
func (b Bound) Forbids(p Planned) bool {
	ready := CompileBounds([]Bound{b})[0]
	op := offer.Operator{Name: p.CSV, Package: p.Package}
	if v, err := semver.Parse(p.Version); err == nil {
		op.Version, op.HasVersion = v, true
	}
	return ready.Concerns(p.Package, p.Catalog) && !ready.Allows(&op)
}

// Concerns says whether the bound is about a package of a catalog.
func (b *CompiledBound) Concerns(pkg string, c CatalogKey) bool {
	return matches(b.Packages, pkg) && matches(b.Catalogs, c.String())
}

// matches says whether a name is one of the patterns: a name, or a prefix followed by "*". No pattern is every name.
func matches(patterns []string, name string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool {
		prefix, open := strings.CutSuffix(p, "*")
		return p == name || open && strings.HasPrefix(name, prefix)
	})
}

// Allows says whether an operator is inside the bound. What cannot be parsed allows nothing: a bound is there to
// forbid. Likewise, an operator without version is in no range.
func (b *CompiledBound) Allows(op *offer.Operator) bool {
	if b.Pin != "" && b.Pin != op.Name && (b.pinned == nil || !op.HasVersion || !op.Version.EQ(*b.pinned)) {
		return false
	}
	if b.Range != "" && (b.within == nil || !op.HasVersion || !b.within(op.Version)) {
		return false
	}
	return b.Ceiling == "" || b.ceiling != nil && op.HasVersion && op.Version.LE(*b.ceiling)
}

// Source names whose bound it is, in words.
func (b *CompiledBound) Source() string {
	if b.Rollout != "" {
		return "rollout " + b.Rollout
	}
	return "approval policy " + b.Policy
}

// Text says what the bound allows.
func (b *CompiledBound) Text() string {
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
