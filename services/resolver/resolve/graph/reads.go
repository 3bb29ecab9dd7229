package graph

import (
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/services/resolver/offer"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// Reader puts questions to the View and notes them, each once, under a number.
type Reader struct {
	view     resolution.View
	catalogs []resolution.Catalog // visible, in no order of preference
	byKey    map[resolution.CatalogKey]resolution.Catalog
	reads    []resolution.Read
	numbers  map[resolution.Read]int32 // by question, without answer: a View gives the same answer each time
	into     *[]int32                  // where the numbers of what is asked now go
}

// NewReader reads from a view; catalogs are those of it that count.
func NewReader(view resolution.View, catalogs []resolution.Catalog) *Reader {
	r := &Reader{
		view: view, catalogs: catalogs, byKey: make(map[resolution.CatalogKey]resolution.Catalog, len(catalogs)),
		numbers: map[resolution.Read]int32{},
	}
	for _, c := range catalogs {
		r.byKey[c.Key] = c
	}
	return r
}

// Into names the list that the numbers of the next questions go to.
func (r *Reader) Into(into *[]int32) { r.into = into }

// Visible notes that every visible catalog is asked, so that a new one matters.
func (r *Reader) Visible() []resolution.Catalog {
	r.note(resolution.Read{Kind: resolution.ReadVisible}, func() string { return "" })
	return r.catalogs
}

// Find returns the catalog that a subscription names: the one of that namespace, else the hub's of that name, since
// the namespace in OLM's YAML is that of its own installation. Where that namespace has one which is not seen here,
// there is none.
func (r *Reader) Find(s *resolution.Subscription) (resolution.Catalog, bool) {
	k := resolution.CatalogKey{Name: s.Catalog, Namespace: s.CatalogNamespace}
	c, ok := r.Named(k)
	ok = ok && !s.CatalogHidden
	r.note(resolution.Read{Kind: resolution.ReadCatalog, Catalog: k}, func() string {
		switch {
		case ok && c.Ready:
			return "ready"
		case ok:
			return "not ready"
		}
		return ""
	})
	return c, ok
}

// Named is the visible catalog of a key, else the hub's of that name.
func (r *Reader) Named(k resolution.CatalogKey) (resolution.Catalog, bool) {
	c, ok := r.byKey[k]
	if !ok {
		c, ok = r.byKey[resolution.CatalogKey{Name: k.Name}]
	}
	return c, ok
}

// Package asks for one package of a catalog, nil where the catalog has none of that name.
func (r *Reader) Package(c resolution.CatalogKey, name string) *offer.Package {
	p := r.view.Package(c, name)
	r.note(resolution.Read{Kind: resolution.ReadPackage, Catalog: c, Name: name}, func() string {
		if p == nil {
			return ""
		}
		return string(p.Digest)
	})
	return p
}

// Providers asks which packages of a catalog provide an API.
func (r *Reader) Providers(c resolution.CatalogKey, api catalog.GVK) []string {
	names := r.view.Providers(c, api)
	question := resolution.Read{Kind: resolution.ReadAPI, Catalog: c, Name: resolution.APIName(api)}
	r.note(question, func() string { return strings.Join(names, ",") })
	return names
}

// Names asks for the names of all packages of a catalog.
func (r *Reader) Names(c resolution.CatalogKey) []string {
	names := r.view.Packages(c)
	r.note(resolution.Read{Kind: resolution.ReadNames, Catalog: c}, func() string { return strings.Join(names, ",") })
	return names
}

// Image asks what became of fetching a bundle image.
func (r *Reader) Image(c resolution.CatalogKey, b resolution.BundleImage) resolution.Fetched {
	f := r.view.Image(c, b)
	r.note(resolution.Read{Kind: resolution.ReadImage, Catalog: c, Name: b.ReadName()}, f.Answer)
	return f
}

// Health notes nothing where the catalog's namespace is not strict: such a catalog may become unhealthy without effect.
func (r *Reader) Health(c resolution.CatalogKey) resolution.Health {
	h := r.view.Health(c)
	if h != resolution.HealthIgnored {
		r.note(resolution.Read{Kind: resolution.ReadHealth, Catalog: c}, func() string { return string(h) })
	}
	return h
}

func (r *Reader) note(question resolution.Read, answer func() string) {
	n, asked := r.numbers[question]
	if !asked {
		n = int32(len(r.reads))
		r.numbers[question] = n
		question.Answer = answer()
		r.reads = append(r.reads, question)
	}
	*r.into = append(*r.into, n)
}

// Sorted are the reads of these numbers, each once, in the order of read sets.
func (r *Reader) Sorted(numbers []int32) []resolution.Read {
	numbers = slices.Clone(numbers)
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	out := make([]resolution.Read, 0, len(numbers))
	for _, n := range numbers {
		out = append(out, r.reads[n])
	}
	slices.SortFunc(out, resolution.Read.Compare)
	return out
}
