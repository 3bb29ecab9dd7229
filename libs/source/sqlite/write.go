package sqlite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/validate"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source/internal/csvjson"
	"github.com/chandler-fleet/chandler/libs/source/internal/render"
	"github.com/chandler-fleet/chandler/libs/source/internal/spool"
)

// row is a row of operatorbundle.
type row struct{ name, csv, manifests, image, version, skipRange string }

// seen is what channels and packages need of a bundle.
type seen struct {
	skipRange   string
	description string
	icon        *spool.Icon
}

// write writes the catalog: every bundle as it is read, then the packages.
func (x *index) write(ctx context.Context, d *database, s *spool.Spool) error {
	known := map[string]seen{}
	faces := map[string]bool{}
	for pkg, channel := range x.defaults {
		faces[x.heads[place{pkg, channel}]] = true
	}
	err := d.each(ctx, "operatorbundle", func(v []string) error {
		r := row{v[0], v[1], v[2], v[3], v[4], v[5]}
		if r.name == "" || len(x.packages[r.name]) == 0 {
			return nil // migrations of old left rows without a name; bundles in no channel were never served
		}
		was, err := x.bundle(r, s)
		if err != nil {
			return err
		}
		if !faces[r.name] {
			was.description, was.icon = "", nil
		}
		known[r.name] = was
		return d.remember(r.name, was.skipRange, was.description)
	}, "name", "csv", "bundle", "bundlepath", "version", "skiprange")
	if err != nil {
		return err
	}
	names := make(map[string]bool, len(known))
	for n := range known {
		names[n] = true
	}
	channels := map[string][]string{}
	for at := range x.heads {
		channels[at.pkg] = append(channels[at.pkg], at.channel)
	}
	for _, pkg := range slices.Sorted(maps.Keys(x.defaults)) {
		docs, err := x.pkg(ctx, pkg, channels[pkg], known, names)
		if err == nil {
			err = s.Write(pkg, docs...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pkg makes the documents of a package and its channels. names are those of all known bundles.
func (x *index) pkg(ctx context.Context, name string, channels []string, known map[string]seen, names map[string]bool) (
	[]any, error,
) {
	face := known[x.heads[place{name, x.defaults[name]}]]
	docs := []any{spool.Package{
		Schema: catalog.SchemaPackage, Name: name, DefaultChannel: x.defaults[name],
		Description: face.description, Icon: face.icon,
	}}
	slices.Sort(channels)
	for _, c := range channels {
		at := place{name, c}
		entries, err := graph(ctx, x.entries[at], x.heads[at], names)
		if err != nil {
			return nil, err
		}
		for i := range entries {
			entries[i].SkipRange = known[entries[i].Name].skipRange
		}
		docs = append(docs, spool.Channel{Schema: catalog.SchemaChannel, Package: name, Name: c, Entries: entries})
	}
	return docs, nil
}

// bundle writes one bundle, for every package that holds it.
func (x *index) bundle(r row, s *spool.Spool) (seen, error) {
	manifests, err := split(r)
	if err != nil {
		return seen{}, err
	}
	was := seen{skipRange: r.skipRange}
	var csv *bundle.CSV
	if raw := csvOf(r, manifests); raw != nil {
		c, err := bundle.ParseCSV(raw)
		if err != nil {
			return was, errs.Wrap(errs.Invalid, err, "the CSV of bundle %q", r.name)
		}
		csv = &c
		was = was.with(c)
		if r.version == "" {
			r.version = c.Spec.Version
		}
	}
	for _, pkg := range x.packages[r.name] {
		doc, err := x.document(pkg, r, csv, manifests)
		if err == nil {
			err = s.Write(pkg, doc)
		}
		if err != nil {
			return was, err
		}
	}
	return was, nil
}

// with adds what a CSV says.
func (w seen) with(c bundle.CSV) seen {
	w.description = c.Spec.Description
	if len(c.Spec.Icon) > 0 {
		w.icon = &spool.Icon{Data: c.Spec.Icon[0].Data, MediaType: c.Spec.Icon[0].MediaType}
	}
	if w.skipRange == "" {
		w.skipRange = c.Annotations["olm.skipRange"]
	}
	return w
}

// split cuts the manifests of a bundle, which follow one another.
func split(r row) ([][]byte, error) {
	var out [][]byte
	for dec := json.NewDecoder(strings.NewReader(r.manifests)); ; {
		var m json.RawMessage
		err := dec.Decode(&m)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, errs.Wrap(errs.Invalid, err, "manifest %d of bundle %q", len(out)+1, r.name)
		}
		if len(out) == bundle.MaxManifests {
			return nil, errs.New(errs.TooLarge, "bundle %q has more than %d manifests", r.name, bundle.MaxManifests).At(
				"", "bundle.MaxManifests")
		}
		out = append(out, m)
	}
}

// csvOf returns the CSV of a row, nil where it has none any more.
func csvOf(r row, manifests [][]byte) json.RawMessage {
	if r.csv != "" {
		return json.RawMessage(r.csv)
	}
	for _, m := range manifests {
		var kind struct {
			Kind string `json:"kind"`
		}
		if json.Unmarshal(m, &kind) == nil && kind.Kind == bundle.KindCSV {
			return m
		}
	}
	return nil
}

// document makes the olm.bundle.
func (x *index) document(pkg string, r row, csv *bundle.CSV, manifests [][]byte) (spool.Bundle, error) {
	doc := spool.Bundle{Schema: catalog.SchemaBundle, Package: pkg, Name: r.name, Image: r.image}
	p := &properties{have: map[string]bool{}}
	err := p.stored(x, pkg, r)
	if err == nil && len(x.properties[r.name]) == 0 && len(manifests) > 0 {
		// From before the table of properties: they are in the manifests.
		if f, findings := render.Bundle(pkg, r.image, nil, manifests); findings.Err() == nil {
			for _, q := range f.Bundle.Properties {
				err = errors.Join(err, p.add(q.Type, q.Value))
			}
		}
	}
	if err != nil {
		return doc, err
	}
	doc.Properties = p.list
	doc.RelatedImages = related(x.images[r.name], csv)
	if r.image == "" {
		err = doc.Embed(manifests...)
		return doc, err
	}
	if csv == nil {
		return doc, nil
	}
	m, err := csvjson.Display(csv.Raw)
	doc.Properties = append(doc.Properties, catalog.Property{Type: catalog.TypeCSVMetadata, Value: m})
	return doc, err
}

// related are the images that the table lists, with the names that the CSV gives them.
func related(images []string, csv *bundle.CSV) []catalog.RelatedImage {
	names := map[string]string{}
	if csv != nil {
		for _, i := range csvjson.Related(*csv) {
			names[i.Image] = i.Name
		}
	}
	var out []catalog.RelatedImage
	for _, i := range slices.Sorted(slices.Values(images)) {
		if i != "" && validate.CheckImage(i) == "" && !slices.ContainsFunc(
			out, func(r catalog.RelatedImage) bool { return r.Image == i }) {
			out = append(out, catalog.RelatedImage{Name: names[i], Image: i})
		}
	}
	return out
}

// properties gathers those of a bundle, each once.
type properties struct {
	list []catalog.Property
	have map[string]bool
}

// add adds a property that is not there yet, in whatever order its fields stand.
func (p *properties) add(typ string, value []byte) error {
	var v any
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil || typ == "" {
		return errs.New(errs.Invalid, "a property %q of the index database is no JSON, or has no type", typ).At(
			"", "R-CAT-25")
	}
	plain, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if key := typ + "\n" + string(plain); !p.have[key] {
		p.have[key] = true
		p.list = append(p.list, catalog.Property{Type: typ, Value: plain})
	}
	return nil
}

// put adds a property of a known form.
func (p *properties) put(typ string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return p.add(typ, raw)
}

// stored adds what the tables say of a bundle as one of a package.
func (p *properties) stored(x *index, pkg string, r row) error {
	identity := false
	for _, q := range x.properties[r.name] {
		var of catalog.PackageProperty
		if q.Type == catalog.TypePackage && json.Unmarshal(q.Value, &of) == nil {
			if of.PackageName != pkg {
				continue // what it is in another package
			}
			identity = true
		}
		if err := p.add(q.Type, q.Value); err != nil {
			return err
		}
	}
	var err error
	if !identity {
		err = p.put(catalog.TypePackage, catalog.PackageProperty{PackageName: pkg, Version: r.version})
	}
	for _, g := range x.provided[r.name] {
		err = errors.Join(err, p.put(catalog.TypeGVK, g))
	}
	for _, g := range x.required[r.name] {
		err = errors.Join(err, p.put(catalog.TypeGVKRequired, g))
	}
	for _, dep := range x.dependencies[r.name] {
		err = errors.Join(err, p.dependency(dep))
	}
	if x.deprecated[r.name] {
		err = errors.Join(err, p.put(catalog.TypeDeprecated, struct{}{}))
	}
	return err
}

// dependency adds a dependency as the property that means the same (R-CAT-56). Databases of an age
// repeat the type inside the value.
func (p *properties) dependency(d catalog.Property) error {
	switch d.Type {
	case catalog.TypeGVK:
		var v catalog.GVK
		if err := json.Unmarshal(d.Value, &v); err != nil {
			return errs.Wrap(errs.Invalid, err, "a dependency %s of the index database", d.Type)
		}
		return p.put(catalog.TypeGVKRequired, v)
	case catalog.TypePackage:
		var v catalog.PackageProperty
		if err := json.Unmarshal(d.Value, &v); err != nil {
			return errs.Wrap(errs.Invalid, err, "a dependency %s of the index database", d.Type)
		}
		return p.put(catalog.TypePackageRequired, catalog.PackageRequired{
			PackageName: v.PackageName, VersionRange: v.Version,
		})
	}
	return p.add(d.Type, d.Value)
}
