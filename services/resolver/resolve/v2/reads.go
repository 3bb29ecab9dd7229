package v2

import (
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/catalog"
)

// asker puts questions to the View, notes them, and keeps the visible catalogs.
type asker struct {
	view     View
	catalogs []Catalog // visible, in no order of preference
	byKey    map[CatalogKey]Catalog
	reads    map[Read]bool
}

func newAsker(view View, catalogs []Catalog) *asker {
	a := &asker{view: view, catalogs: catalogs, byKey: map[CatalogKey]Catalog{}, reads: map[Read]bool{}}
	for _, c := range catalogs {
		a.byKey[c.Key] = c
	}
	return a
}

// visible notes that every visible catalog was asked, so that a new one matters.
func (a *asker) visible() []Catalog {
	a.note(Read{Kind: ReadVisible})
	return a.catalogs
}

// find returns the catalog that a subscription names: the one of that namespace, else the hub's of that
// name, since the namespace in OLM's YAML is that of its own installation.
func (a *asker) find(name, namespace string) (Catalog, bool) {
	c, ok := a.byKey[CatalogKey{Name: name, Namespace: namespace}]
	if !ok {
		c, ok = a.byKey[CatalogKey{Name: name}]
	}
	answer := ""
	switch {
	case ok && c.Ready:
		answer = "ready"
	case ok:
		answer = "not ready"
	}
	a.note(Read{Kind: ReadCatalog, Catalog: CatalogKey{Name: name, Namespace: namespace}, Answer: answer})
	return c, ok
}

func (a *asker) pkg(c CatalogKey, name string) *Package {
	p := a.view.Package(c, name)
	r := Read{Kind: ReadPackage, Catalog: c, Name: name}
	if p != nil {
		r.Answer = string(p.Digest)
	}
	a.note(r)
	return p
}

func (a *asker) providers(c CatalogKey, api catalog.GVK) []string {
	names := a.view.Providers(c, api)
	a.note(Read{Kind: ReadAPI, Catalog: c, Name: APIName(api), Answer: strings.Join(names, ",")})
	return names
}

func (a *asker) names(c CatalogKey) []string {
	names := a.view.Packages(c)
	a.note(Read{Kind: ReadNames, Catalog: c, Answer: strings.Join(names, ",")})
	return names
}

func (a *asker) image(c CatalogKey, b BundleImage) Fetched {
	f := a.view.Image(c, b)
	a.note(Read{Kind: ReadImage, Catalog: c, Name: b.ReadName(), Answer: f.answer()})
	return f
}

// health notes nothing of a catalog that nobody minds: it may be sick and well again without a word.
func (a *asker) health(c CatalogKey) Health {
	h := a.view.Health(c)
	if h != NotMinded {
		a.note(Read{Kind: ReadHealth, Catalog: c, Answer: string(h)})
	}
	return h
}

func (a *asker) note(r Read) { a.reads[r] = true }

func (a *asker) sorted() []Read {
	out := make([]Read, 0, len(a.reads))
	for r := range a.reads {
		out = append(out, r)
	}
	slices.SortFunc(out, compareReads)
	return out
}
