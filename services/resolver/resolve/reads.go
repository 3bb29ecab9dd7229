package resolve

import (
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/services/resolver/offer"
)

// asker puts questions to the View and notes them, each once, under a number.
type asker struct {
	view     View
	catalogs []Catalog // visible, in no order of preference
	byKey    map[CatalogKey]Catalog
	reads    []Read
	numbers  map[Read]int32 // by question, without answer: a View gives the same answer each time
	into     *[]int32       // where the numbers of what is asked now go
}

func newAsker(view View, catalogs []Catalog) *asker {
	a := &asker{view: view, catalogs: catalogs, byKey: make(map[CatalogKey]Catalog, len(catalogs)), numbers: map[Read]int32{}}
	for _, c := range catalogs {
		a.byKey[c.Key] = c
	}
	return a
}

// noting names the list that the numbers of the next questions go to.
func (a *asker) noting(into *[]int32) { a.into = into }

// visible notes that every visible catalog is asked, so that a new one matters.
func (a *asker) visible() []Catalog {
	a.note(Read{Kind: ReadVisible}, func() string { return "" })
	return a.catalogs
}

// find returns the catalog that a subscription names: the one of that namespace, else the hub's of that name, since the
// namespace in OLM's YAML is that of its own installation. Where that namespace has one which is not seen here, there is
// none.
func (a *asker) find(s *Subscription) (Catalog, bool) {
	k := CatalogKey{Name: s.Catalog, Namespace: s.CatalogNamespace}
	c, ok := a.named(k)
	ok = ok && !s.CatalogHidden
	a.note(Read{Kind: ReadCatalog, Catalog: k}, func() string {
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

func (a *asker) named(k CatalogKey) (Catalog, bool) {
	c, ok := a.byKey[k]
	if !ok {
		c, ok = a.byKey[CatalogKey{Name: k.Name}]
	}
	return c, ok
}

func (a *asker) pkg(c CatalogKey, name string) *offer.Package {
	p := a.view.Package(c, name)
	a.note(Read{Kind: ReadPackage, Catalog: c, Name: name}, func() string {
		if p == nil {
			return ""
		}
		return string(p.Digest)
	})
	return p
}

func (a *asker) providers(c CatalogKey, api catalog.GVK) []string {
	names := a.view.Providers(c, api)
	a.note(Read{Kind: ReadAPI, Catalog: c, Name: APIName(api)}, func() string { return strings.Join(names, ",") })
	return names
}

func (a *asker) names(c CatalogKey) []string {
	names := a.view.Packages(c)
	a.note(Read{Kind: ReadNames, Catalog: c}, func() string { return strings.Join(names, ",") })
	return names
}

func (a *asker) image(c CatalogKey, b BundleImage) Fetched {
	f := a.view.Image(c, b)
	a.note(Read{Kind: ReadImage, Catalog: c, Name: b.ReadName()}, f.answer)
	return f
}

// health notes nothing of a catalog that nobody minds: it may be sick and well again without a word.
func (a *asker) health(c CatalogKey) Health {
	h := a.view.Health(c)
	if h != NotMinded {
		a.note(Read{Kind: ReadHealth, Catalog: c}, func() string { return string(h) })
	}
	return h
}

func (a *asker) note(question Read, answer func() string) {
	n, asked := a.numbers[question]
	if !asked {
		n = int32(len(a.reads))
		a.numbers[question] = n
		question.Answer = answer()
		a.reads = append(a.reads, question)
	}
	*a.into = append(*a.into, n)
}

// sorted are the reads of these numbers, each once, in the order of read sets.
func (a *asker) sorted(numbers []int32) []Read {
	numbers = slices.Clone(numbers)
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	out := make([]Read, 0, len(numbers))
	for _, n := range numbers {
		out = append(out, a.reads[n])
	}
	slices.SortFunc(out, compareReads)
	return out
}
