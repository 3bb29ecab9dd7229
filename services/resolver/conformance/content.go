package conformance

import (
	"encoding/json"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/resolver/offer"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// Content is a catalog made ready for resolutions. It is immutable and may be shared.
type Content struct {
	packages  map[string]*offer.Package
	names     []string // sorted
	providers map[catalog.GVK][]string
}

// document is what matters of a catalog document.
type document struct {
	Schema         string             `json:"schema"`
	Package        string             `json:"package"`
	Name           string             `json:"name"`
	DefaultChannel string             `json:"defaultChannel"`
	Entries        []catalog.Entry    `json:"entries"`
	Properties     []catalog.Property `json:"properties"`
}

// NewContent makes a catalog of its documents. It takes what an older registry may serve though opm refuses it
// nowadays, the way OLM's snapshot of a catalog does (RESOLVER-NOTES §11): a bundle with a dependency that
// cannot be read is not there, nor are entries without a bundle, and channels and packages without entries; a
// channel without order stays, and becomes a failure when the order matters.
func NewContent(documents []json.RawMessage) (*Content, error) {
	found := map[string]*catalog.Package{}
	of := func(name string) *catalog.Package {
		if found[name] == nil {
			found[name] = &catalog.Package{Name: name}
		}
		return found[name]
	}
	for i, raw := range documents {
		var d document
		if err := json.Unmarshal(raw, &d); err != nil {
			return nil, errs.Wrap(errs.Invalid, err, "document %d of the catalog", i+1)
		}
		switch d.Schema {
		case catalog.SchemaPackage:
			of(d.Name).DefaultChannel = d.DefaultChannel
		case catalog.SchemaChannel:
			p := of(d.Package)
			p.Channels = append(p.Channels, catalog.Channel{Name: d.Name, Entries: d.Entries})
		case catalog.SchemaBundle:
			if p := of(d.Package); listed(d.Properties) {
				p.Bundles = append(p.Bundles, catalog.Bundle{
					Name: d.Name, Version: version(d.Properties),
					Properties: offered(d.Properties),
				})
			}
		case "":
			return nil, errs.New(errs.Invalid, "document %d of the catalog has no schema", i+1)
		}
	}
	return newContent(found)
}

func newContent(found map[string]*catalog.Package) (*Content, error) {
	c := &Content{packages: map[string]*offer.Package{}, providers: map[catalog.GVK][]string{}}
	for name, p := range found {
		trim(p)
		if len(p.Channels) == 0 {
			continue
		}
		d, err := p.Digest()
		if err != nil {
			return nil, errs.Wrap(errs.Invalid, err, "package %s of the catalog", name)
		}
		c.packages[name] = offer.Index(*p, d)
		c.names = append(c.names, name)
	}
	slices.Sort(c.names)
	for _, name := range c.names {
		for _, api := range c.packages[name].APIs() {
			c.providers[api] = append(c.providers[api], name)
		}
	}
	return c, nil
}

// trim leaves out entries without a bundle, and channels that hold nothing then.
func trim(p *catalog.Package) {
	bundles := make(map[string]bool, len(p.Bundles))
	for _, b := range p.Bundles {
		bundles[b.Name] = true
	}
	for i := range p.Channels {
		p.Channels[i].Entries = slices.DeleteFunc(p.Channels[i].Entries,
			func(e catalog.Entry) bool { return !bundles[e.Name] })
	}
	p.Channels = slices.DeleteFunc(p.Channels, func(c catalog.Channel) bool { return len(c.Entries) == 0 })
}

// listed says whether the dependencies of a bundle can be read. A range that makes no sense can: it is found
// when the bundle is considered.
func listed(properties []catalog.Property) bool {
	for _, p := range properties {
		var err error
		switch p.Type {
		case catalog.TypeGVKRequired:
			err = json.Unmarshal(p.Value, &catalog.GVK{})
		case catalog.TypePackageRequired:
			err = json.Unmarshal(p.Value, &catalog.PackageRequired{})
		}
		if err != nil {
			return false
		}
	}
	return true
}

// offered are the properties that a resolution sees.
func offered(properties []catalog.Property) []catalog.Property {
	return slices.DeleteFunc(slices.Clone(properties), func(p catalog.Property) bool {
		return p.Type == catalog.TypeBundleObject || p.Type == catalog.TypeCSVMetadata
	})
}

// version is that of the first olm.package property, "" where it has none.
func version(properties []catalog.Property) string {
	for _, p := range properties {
		var v catalog.PackageProperty
		if p.Type == catalog.TypePackage && json.Unmarshal(p.Value, &v) == nil {
			return tolerant(v.Version)
		}
	}
	return ""
}

// tolerant reads versions like v1.2, which old catalogs and CSVs have.
func tolerant(text string) string {
	v, err := semver.ParseTolerant(text)
	if err != nil {
		return ""
	}
	return v.String()
}

// view answers from contents in memory. It is a resolution.View.
type view struct {
	catalogs []resolution.Catalog
	contents map[resolution.CatalogKey]*Content // of the ready ones
}

func (v *view) Catalogs() []resolution.Catalog { return v.catalogs }

func (v *view) Package(c resolution.CatalogKey, name string) *offer.Package {
	if content := v.contents[c]; content != nil {
		return content.packages[name]
	}
	return nil
}

func (v *view) Providers(c resolution.CatalogKey, api catalog.GVK) []string {
	if content := v.contents[c]; content != nil {
		return content.providers[api]
	}
	return nil
}

func (v *view) Packages(c resolution.CatalogKey) []string {
	if content := v.contents[c]; content != nil {
		return content.names
	}
	return nil
}

// Image is never asked: bundles of cases have none.
func (v *view) Image(resolution.CatalogKey, resolution.BundleImage) resolution.Fetched {
	return resolution.Fetched{}
}

// Health is minded by no namespace of a case: a catalog that is away must not block what does not need it.
func (v *view) Health(resolution.CatalogKey) resolution.Health { return resolution.HealthIgnored }
