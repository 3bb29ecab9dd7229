package conformance

import (
	"cmp"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
)

// Run is a case with what came of it.
type Run struct {
	Case   Case
	Input  resolution.Input
	Result resolution.Result
}

// Resolve resolves a case. Its error is one of loading a catalog: what the case comes to is in the result.
func Resolve(c Case, load Load) (Run, error) {
	in, err := c.Input(load)
	if err != nil {
		return Run{}, err
	}
	return Run{Case: c, Input: in, Result: resolve.Resolve(in)}, nil
}

// Plan are the bundles to be installed, in order of their names.
func (r Run) Plan() []Install {
	out := []Install{}
	for _, c := range r.Result.Components {
		for _, b := range c.Bundles {
			out = append(out, Install{
				Name: b.CSV, Package: b.Package, Version: b.Version, Channel: b.Channel, Catalog: b.Catalog.Name,
				CatalogNamespace: b.Catalog.Namespace, Upgrades: b.Replaces, Subscriptions: b.Subscriptions,
			})
		}
	}
	slices.SortFunc(out, func(a, b Install) int { return cmp.Compare(a.key(), b.key()) })
	return out
}

// Updated are the subscriptions that move to another CSV, in order of their names.
func (r Run) Updated() []Updated {
	out := []Updated{}
	for _, c := range r.Result.Components {
		for _, o := range c.Outcomes {
			if o.Planned {
				out = append(out, Updated{Name: o.Subscription, CurrentCSV: o.CSV})
			}
		}
	}
	slices.SortFunc(out, func(a, b Updated) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Failures are the explanations of what cannot be, in order of the components.
func (r Run) Failures() []resolution.Explanation {
	var out []resolution.Explanation
	for _, c := range r.Result.Components {
		if c.Failure != nil {
			out = append(out, *c.Failure)
		}
	}
	return out
}

// key is what makes two installs the same (FORMAT: suggested comparison).
func (i Install) key() string {
	return strings.Join([]string{i.Name, i.Package, i.Channel, i.Catalog, i.CatalogNamespace, i.Upgrades}, " ")
}

// String is "a.v2 from stable of olm/cat in place of a.v1".
func (i Install) String() string {
	text := i.Name + " from " + i.Channel + " of " + i.CatalogNamespace + "/" + i.Catalog
	if i.Upgrades != "" {
		text += " in place of " + i.Upgrades
	}
	return text
}
