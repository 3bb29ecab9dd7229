package registry

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/errs"
	api "github.com/chandler-fleet/chandler/libs/registryapi"
	"github.com/chandler-fleet/chandler/libs/source/internal/csvjson"
	"github.com/chandler-fleet/chandler/libs/source/internal/render"
	"github.com/chandler-fleet/chandler/libs/source/internal/spool"
)

// writer makes documents of answers.
type writer struct {
	packages   map[string]*api.Package
	met        map[[2]string]bool // bundles, by package and name
	wanted     []*api.GetBundleRequest
	deprecated map[string]map[string]string // messages, by package and bundle
	keep       func(bytes int) error        // counts what is remembered

	mu    sync.Mutex // of what follows: bundles come several at a time
	spool *spool.Spool
	faces map[string]face
}

// face is what a package shows of the head of its default channel.
type face struct {
	description string
	icon        *spool.Icon
}

func newWriter(s *spool.Spool, packages map[string]*api.Package, keep func(bytes int) error) *writer {
	return &writer{
		packages: packages, keep: keep, met: map[[2]string]bool{},
		deprecated: map[string]map[string]string{}, spool: s, faces: map[string]face{},
	}
}

// entry takes one answer of ListBundles: a bundle is written at once where its manifests came along,
// else it is wanted.
func (w *writer) entry(b *api.Bundle) error {
	key := [2]string{b.GetPackageName(), b.GetCsvName()}
	if w.met[key] {
		return nil
	}
	w.met[key] = true
	if err := w.keep(len(b.GetDeprecation().GetMessage())); err != nil {
		return err
	}
	if d := b.GetDeprecation(); d != nil {
		if w.deprecated[key[0]] == nil {
			w.deprecated[key[0]] = map[string]string{}
		}
		w.deprecated[key[0]][key[1]] = d.GetMessage()
	}
	if b.GetBundlePath() == "" || b.GetCsvJson() != "" || len(b.GetObject()) > 0 {
		return w.bundle(b)
	}
	w.wanted = append(w.wanted, &api.GetBundleRequest{
		PkgName: key[0], ChannelName: b.GetChannelName(),
		CsvName: key[1],
	})
	return nil
}

// bundle writes one bundle.
func (w *writer) bundle(b *api.Bundle) error {
	doc := spool.Bundle{
		Schema: catalog.SchemaBundle, Package: b.GetPackageName(), Name: b.GetCsvName(),
		Image: b.GetBundlePath(),
	}
	var err error
	if doc.Properties, err = properties(b); err != nil {
		return err
	}
	csv, shown := bundle.CSV{}, false
	if raw := b.GetCsvJson(); raw != "" {
		if csv, err = bundle.ParseCSV(json.RawMessage(raw)); err != nil {
			return errs.Wrap(errs.Invalid, err, "csvJson of bundle %q of package %q", b.GetCsvName(),
				b.GetPackageName())
		}
		shown = true
	}
	// A CSV beside an image is for display, unless it came with what else would be installed.
	if shown && b.GetBundlePath() != "" && (len(b.GetObject()) == 0 || !csvjson.Real(csv)) {
		err = display(&doc, csv)
	} else {
		err = embed(&doc, b)
	}
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if shown && w.isFace(b) {
		f := faceOf(csv)
		if err := w.keep(f.size()); err != nil {
			return err
		}
		w.faces[b.GetPackageName()] = f
	}
	return w.spool.Write(b.GetPackageName(), doc)
}

// display adds what a CSV shows, and no manifests.
func display(doc *spool.Bundle, csv bundle.CSV) error {
	m, err := csvjson.Display(csv.Raw)
	if err != nil {
		return err
	}
	doc.Properties = append(doc.Properties, catalog.Property{Type: catalog.TypeCSVMetadata, Value: m})
	doc.RelatedImages = csvjson.Related(csv)
	return nil
}

// embed adds manifests, and the images that they name: the API has no field for those.
func embed(doc *spool.Bundle, b *api.Bundle) error {
	objects := b.GetObject()
	if len(objects) == 0 && b.GetCsvJson() != "" {
		objects = []string{b.GetCsvJson()}
	}
	if len(objects) == 0 {
		return nil
	}
	manifests := make([][]byte, len(objects))
	for i, o := range objects {
		manifests[i] = []byte(o)
	}
	if f, findings := render.Bundle(doc.Package, doc.Image, nil, manifests); findings.Err() == nil {
		doc.RelatedImages = f.Bundle.RelatedImages
	}
	return doc.Embed(manifests...)
}

// properties returns those of an answer. Servers that are older than properties say the same in other
// fields.
func properties(b *api.Bundle) ([]catalog.Property, error) {
	out := []catalog.Property{}
	have := map[string]bool{}
	add := func(typ string, value any) error {
		raw, err := json.Marshal(value)
		if key := typ + "\n" + string(raw); err == nil && !have[key] {
			have[key] = true
			out = append(out, catalog.Property{Type: typ, Value: raw})
		}
		return err
	}
	hasPackage := false
	for _, p := range b.GetProperties() {
		if !json.Valid([]byte(p.GetValue())) {
			return nil, errs.New(errs.Invalid, "property %q of bundle %q is no JSON", p.GetType(), b.GetCsvName()).At(
				"", "R-CAT-25")
		}
		hasPackage = hasPackage || p.GetType() == catalog.TypePackage
		out = append(out, catalog.Property{Type: p.GetType(), Value: json.RawMessage(p.GetValue())})
		have[plain(p.GetType(), p.GetValue())] = true
	}
	var err error
	if !hasPackage {
		err = add(catalog.TypePackage, catalog.PackageProperty{
			PackageName: b.GetPackageName(), Version: b.GetVersion(),
		})
	}
	for _, g := range b.GetProvidedApis() {
		err = cmp.Or(err, add(catalog.TypeGVK, catalog.GVK{
			Group: g.GetGroup(), Version: g.GetVersion(),
			Kind: g.GetKind(),
		}))
	}
	for _, g := range b.GetRequiredApis() {
		err = cmp.Or(err, add(catalog.TypeGVKRequired, catalog.GVK{
			Group: g.GetGroup(), Version: g.GetVersion(),
			Kind: g.GetKind(),
		}))
	}
	for _, d := range b.GetDependencies() {
		err = cmp.Or(err, dependency(d, add))
	}
	return out, err
}

// plain is the key of a property of an API or a required package, whatever the order of its fields.
func plain(typ, value string) string {
	var v any
	switch typ {
	case catalog.TypeGVK, catalog.TypeGVKRequired:
		v = &catalog.GVK{}
	case catalog.TypePackageRequired:
		v = &catalog.PackageRequired{}
	default:
		return ""
	}
	if json.Unmarshal([]byte(value), v) != nil {
		return ""
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return typ + "\n" + string(raw)
}

// dependency adds a dependency as the property that means the same.
func dependency(d *api.Dependency, add func(string, any) error) error {
	var err error
	switch d.GetType() {
	case catalog.TypeGVK:
		var v catalog.GVK
		if err = json.Unmarshal([]byte(d.GetValue()), &v); err == nil {
			err = add(catalog.TypeGVKRequired, v)
		}
	case catalog.TypePackage:
		var v catalog.PackageProperty
		if err = json.Unmarshal([]byte(d.GetValue()), &v); err == nil {
			err = add(catalog.TypePackageRequired, catalog.PackageRequired{
				PackageName: v.PackageName, VersionRange: v.Version,
			})
		}
	}
	return errs.Wrap(errs.Invalid, err, "dependency %q", d.GetType())
}

// isFace reports whether a bundle is the head of its package's default channel.
func (w *writer) isFace(b *api.Bundle) bool {
	p := w.packages[b.GetPackageName()]
	return slices.ContainsFunc(p.GetChannels(), func(c *api.Channel) bool {
		return c.GetName() == p.GetDefaultChannelName() && c.GetCsvName() == b.GetCsvName()
	})
}

// size is what it takes in memory.
func (f face) size() int {
	n := len(f.description)
	if f.icon != nil {
		n += len(f.icon.Data) + len(f.icon.MediaType)
	}
	return n
}

func faceOf(csv bundle.CSV) face {
	f := face{description: csv.Spec.Description}
	if len(csv.Spec.Icon) > 0 {
		f.icon = &spool.Icon{Data: csv.Spec.Icon[0].Data, MediaType: csv.Spec.Icon[0].MediaType}
	}
	return f
}

// pkg writes what is not of one bundle: the package, its channels and its deprecations.
func (w *writer) pkg(p *api.Package, entries map[place][]catalog.Entry) error {
	face := w.faces[p.GetName()]
	docs := []any{spool.Package{
		Schema: catalog.SchemaPackage, Name: p.GetName(), DefaultChannel: p.GetDefaultChannelName(),
		Description: face.description, Icon: face.icon,
	}}
	deprecations := spool.Deprecations{Schema: catalog.SchemaDeprecations, Package: p.GetName()}
	deprecate := func(schema, name, message string) {
		deprecations.Entries = append(deprecations.Entries,
			spool.Deprecation{Reference: spool.Reference{Schema: schema, Name: name}, Message: message})
	}
	if d := p.GetDeprecation(); d != nil {
		deprecate(catalog.SchemaPackage, "", d.GetMessage())
	}
	channels := slices.SortedFunc(slices.Values(p.GetChannels()),
		func(a, b *api.Channel) int { return cmp.Compare(a.GetName(), b.GetName()) })
	for _, c := range channels {
		list := entries[place{p.GetName(), c.GetName()}]
		slices.SortFunc(list, func(a, b catalog.Entry) int { return cmp.Compare(a.Name, b.Name) })
		docs = append(docs, spool.Channel{
			Schema: catalog.SchemaChannel, Package: p.GetName(), Name: c.GetName(),
			Entries: list,
		})
		if d := c.GetDeprecation(); d != nil {
			deprecate(catalog.SchemaChannel, c.GetName(), d.GetMessage())
		}
	}
	messages := w.deprecated[p.GetName()]
	for _, name := range slices.Sorted(maps.Keys(messages)) {
		deprecate(catalog.SchemaBundle, name, messages[name])
	}
	if len(deprecations.Entries) > 0 {
		docs = append(docs, deprecations)
	}
	return w.spool.Write(p.GetName(), docs...)
}
