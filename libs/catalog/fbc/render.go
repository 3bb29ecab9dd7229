package fbc

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"iter"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// The four documents as they are written. Their order of keys is Write's.
type (
	packageDocument struct {
		Schema         string             `json:"schema"`
		Name           string             `json:"name"`
		DefaultChannel string             `json:"defaultChannel"`
		Description    string             `json:"description,omitempty"`
		Icon           *catalog.Icon      `json:"icon,omitempty"`
		Properties     []catalog.Property `json:"properties,omitempty"`
	}
	channelDocument struct {
		Schema     string             `json:"schema"`
		Package    string             `json:"package"`
		Name       string             `json:"name"`
		Entries    []catalog.Entry    `json:"entries"`
		Properties []catalog.Property `json:"properties,omitempty"`
	}
	bundleDocument struct {
		Schema        string                 `json:"schema"`
		Package       string                 `json:"package"`
		Name          string                 `json:"name"`
		Image         string                 `json:"image,omitempty"`
		Properties    []catalog.Property     `json:"properties"`
		RelatedImages []catalog.RelatedImage `json:"relatedImages,omitempty"`
	}
	deprecationsDocument struct {
		Schema  string        `json:"schema"`
		Package string        `json:"package"`
		Entries []deprecation `json:"entries"`
	}
	deprecation struct {
		Reference reference `json:"reference"`
		Message   string    `json:"message"`
	}
	reference struct {
		Schema string `json:"schema"`
		Name   string `json:"name,omitempty"`
	}
)

// FromBundle is a bundle as olm.bundle, with every manifest inline (R-CAT-58).
func FromBundle(f load.BundleFile) (Blob, error) {
	return fromBundle(f.Package, f.Bundle, f.Content.Canonical, false)
}

// FromPackage is a package as its documents: the package, its channels, bundles and deprecations. Content
// gives the canonical bytes of a bundle whose manifests are at hand, so that they stand inline. Documents
// of unknown schemas are in catalog.Catalog.Blobs; FromBlob writes them.
func FromPackage(p catalog.Package, content func(digest.Digest) ([]byte, error)) ([]Blob, error) {
	var out []Blob
	for b, err := range Documents(p, content) {
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}

// Documents is FromPackage one document at a time: manifests of one bundle are in memory, not of all.
func Documents(p catalog.Package, content func(digest.Digest) ([]byte, error)) iter.Seq2[Blob, error] {
	return func(yield func(Blob, error) bool) {
		for _, d := range outline(p) {
			if !yield(NewBlob(d)) {
				return
			}
		}
		for _, b := range p.Bundles {
			if !yield(stored(p.Name, b, content)) {
				return
			}
		}
		if len(p.Deprecations) == 0 {
			return
		}
		d := deprecationsDocument{Schema: catalog.SchemaDeprecations, Package: p.Name}
		for _, e := range p.Deprecations {
			d.Entries = append(d.Entries, deprecation{reference{e.Schema, e.Name}, e.Message})
		}
		yield(NewBlob(d))
	}
}

// outline is the package and its channels.
func outline(p catalog.Package) []any {
	docs := []any{packageDocument{catalog.SchemaPackage, p.Name, p.DefaultChannel, p.Description, p.Icon, p.Properties}}
	for _, c := range p.Channels {
		docs = append(docs, channelDocument{catalog.SchemaChannel, p.Name, c.Name, c.Entries, c.Properties})
	}
	return docs
}

// stored is a bundle of a package as olm.bundle, with its manifests where they are at hand.
func stored(pkg string, b catalog.Bundle, content func(digest.Digest) ([]byte, error)) (Blob, error) {
	if b.Content == "" {
		return fromBundle(pkg, b, nil, true)
	}
	manifests, err := content(b.Content)
	if err != nil {
		return Blob{}, err
	}
	return fromBundle(pkg, b, manifests, true)
}

// FromBlob is a document of an unknown schema, as it is (R-CAT-8).
func FromBlob(b load.Blob) Blob {
	return Blob{Schema: b.Schema, Package: b.Package, Name: b.Name, Raw: b.Raw}
}

// fromBundle writes olm.bundle: properties in their order, then the display metadata where it is not what
// the CSV says anyway, then the manifests.
func fromBundle(pkg string, b catalog.Bundle, canonical []byte, metadata bool) (Blob, error) {
	d := bundleDocument{
		Schema: catalog.SchemaBundle, Package: pkg, Name: b.Name, Image: b.Image,
		Properties: append([]catalog.Property{}, b.Properties...), RelatedImages: b.RelatedImages,
	}
	content, err := unpack(canonical)
	if err != nil {
		return Blob{}, errs.Wrap(errs.Internal, err, "the content of bundle %s", b.Name)
	}
	if metadata && len(b.Metadata) > 0 && !derived(b.Metadata, content) {
		d.Properties = append(d.Properties, catalog.Property{Type: catalog.TypeCSVMetadata, Value: b.Metadata})
	}
	for _, m := range content.Manifests {
		raw, err := json.Marshal(map[string][]byte{"data": m})
		if err != nil {
			return Blob{}, err
		}
		d.Properties = append(d.Properties, catalog.Property{Type: catalog.TypeBundleObject, Value: raw})
	}
	return NewBlob(d)
}

// unpack reads canonical content; nil is a bundle without manifests at hand.
func unpack(canonical []byte) (bundle.Content, error) {
	var c bundle.Content
	if canonical == nil {
		return c, nil
	}
	err := json.Unmarshal(canonical, &c)
	return c, err
}

// derived reports whether metadata is what the CSV of the content says.
func derived(metadata json.RawMessage, c bundle.Content) bool {
	if len(c.Manifests) == 0 {
		return false
	}
	csv, err := c.CSV()
	if err != nil {
		return false
	}
	want, err1 := digest.Canonical(load.Metadata(csv))
	have, err2 := digest.Canonical(metadata)
	return err1 == nil && err2 == nil && bytes.Equal(want, have)
}

// bundleProperties is what Migrate reads of olm.bundle; the other fields stay as they are.
type bundleProperties struct {
	Image      string             `json:"image"`
	Properties []catalog.Property `json:"properties"`
}

// MigrateObjects replaces the manifests of olm.bundle by olm.csv.metadata, where the bundle has an image,
// a CSV that can be read, and no such metadata yet (R-CAT-18). Any other document stays as it is.
func MigrateObjects(b Blob) (Blob, error) {
	if b.Schema != catalog.SchemaBundle {
		return b, nil
	}
	var body bundleProperties
	if json.Unmarshal(b.Raw, &body) != nil || body.Image == "" {
		return b, nil //nolint:nilerr // what has not the form of a bundle is for validate to tell
	}
	var kept []catalog.Property
	var manifests [][]byte
	for _, p := range body.Properties {
		switch p.Type {
		case catalog.TypeCSVMetadata:
			return b, nil
		case catalog.TypeBundleObject:
			m, ok := manifest(p.Value)
			if !ok {
				return b, nil
			}
			manifests = append(manifests, m)
		default:
			kept = append(kept, p)
		}
	}
	csv, ok := readCSV(manifests)
	if !ok {
		return b, nil
	}
	kept = append(kept, catalog.Property{Type: catalog.TypeCSVMetadata, Value: load.Metadata(csv)})
	return b.With("properties", kept)
}

// manifest decodes the value of one olm.bundle.object.
func manifest(value json.RawMessage) ([]byte, bool) {
	var v struct {
		Data string `json:"data"`
	}
	if json.Unmarshal(value, &v) != nil {
		return nil, false
	}
	m, err := base64.StdEncoding.DecodeString(v.Data)
	return m, err == nil
}

func readCSV(manifests [][]byte) (bundle.CSV, bool) {
	c, err := bundle.FromManifests(manifests)
	if err != nil {
		return bundle.CSV{}, false
	}
	csv, err := c.CSV()
	return csv, err == nil
}
