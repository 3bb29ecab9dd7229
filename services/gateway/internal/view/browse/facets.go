package browse

import (
	"cmp"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/catalog/display"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// facet is one field by which packages are chosen and counted.
type facet struct {
	wanted []string
	values func(o offered) []string
	counts map[string]int
}

func single(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

// facetsOf are the fields of a filter, in the order of model.Facets.
func facetsOf(f model.PackageFilter) []facet {
	of := func(wanted []string, values func(c *display.Card) []string) facet {
		return facet{wanted, func(o offered) []string { return values(o.card) }, map[string]int{}}
	}
	return []facet{
		of(f.Categories, func(c *display.Card) []string { return c.Categories }),
		of(f.Providers, func(c *display.Card) []string { return single(c.Provider) }),
		of(f.Capabilities, func(c *display.Card) []string { return single(c.Capability) }),
		of(f.Features, func(c *display.Card) []string { return c.Features }),
		of(f.InstallModes, func(c *display.Card) []string { return c.InstallModes }),
		{f.Catalogs, func(o offered) []string { return single(o.catalog.Subject) }, map[string]int{}},
	}
}

// holds reports whether one of the wanted values is there; letters' case does not matter to people.
func (x facet) holds(o offered) bool {
	if len(x.wanted) == 0 {
		return true
	}
	return slices.ContainsFunc(x.values(o), func(v string) bool {
		return slices.ContainsFunc(x.wanted, func(w string) bool { return strings.EqualFold(v, w) })
	})
}

// choose keeps the packages that every field's filter lets through, and counts the values of each field over
// those that the filters of the others let through.
func choose(all []offered, f model.PackageFilter) ([]offered, model.Facets) {
	fields := facetsOf(f)
	var found []offered
	for _, o := range all {
		if !labelled(o.card, f.Labels) || !provided(o.card, f.ProviderURLs) {
			continue
		}
		refused, by := 0, 0
		for i := range fields {
			if !fields[i].holds(o) {
				refused, by = refused+1, i
			}
		}
		if refused == 0 {
			found = append(found, o)
		}
		for i := range fields {
			if refused == 0 || refused == 1 && by == i {
				for _, v := range fields[i].values(o) {
					fields[i].counts[v]++
				}
			}
		}
	}
	return found, model.Facets{
		Categories: counted(fields[0]), Providers: counted(fields[1]), Capabilities: counted(fields[2]),
		Features: counted(fields[3]), InstallModes: counted(fields[4]), Catalogs: counted(fields[5]),
	}
}

// provided reports whether the provider's page is one of those that are wanted. A slash at the end, which some
// write and others do not, makes no other page.
func provided(c *display.Card, wanted []string) bool {
	return len(wanted) == 0 || slices.ContainsFunc(wanted, func(w string) bool {
		return strings.EqualFold(strings.TrimSuffix(w, "/"), strings.TrimSuffix(c.ProviderURL, "/"))
	})
}

// labelled reports whether a tile has all labels, given as key=value or as key alone.
func labelled(c *display.Card, wanted []string) bool {
	for _, w := range wanted {
		key, value, exact := strings.Cut(w, "=")
		have, ok := c.Labels[key]
		if !ok || exact && have != value {
			return false
		}
	}
	return true
}

// counted lists values, those of most packages first.
func counted(x facet) []model.FacetValue {
	out := make([]model.FacetValue, 0, len(x.counts))
	for v, n := range x.counts {
		out = append(out, model.FacetValue{Value: v, Count: n})
	}
	slices.SortFunc(out, func(a, b model.FacetValue) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Value, b.Value))
	})
	return out
}
