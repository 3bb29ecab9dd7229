package server

import (
	"context"
	"encoding/json"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/errs"
	api "github.com/chandler-fleet/chandler/libs/registryapi"
	"github.com/chandler-fleet/chandler/libs/source/internal/csvjson"
)

// bundle answers for one entry of a channel, with manifests.
func (x *index) bundle(ctx context.Context, p *pkg, c *channel, e catalog.Entry) (*api.Bundle, error) {
	doc, err := x.catalog.Package(ctx, p.name)
	if err != nil {
		return nil, answer(err)
	}
	out, b, err := entry(doc, c, e)
	if err == nil {
		err = x.manifests(ctx, doc, b, out)
	}
	if err != nil {
		return nil, answer(err)
	}
	return out, nil
}

// listed answers for one entry, with manifests only where no image holds them.
func (x *index) listed(ctx context.Context, doc catalog.Package, c *channel, e catalog.Entry) (*api.Bundle, error) {
	out, b, err := entry(doc, c, e)
	if err == nil && b.Image == "" {
		err = x.manifests(ctx, doc, b, out)
	}
	return out, err
}

// entry answers without manifests (R-CAT-71).
func entry(doc catalog.Package, c *channel, e catalog.Entry) (*api.Bundle, catalog.Bundle, error) {
	b, ok := doc.Bundle(e.Name)
	if !ok {
		return nil, b, errs.New(errs.NotFound, "package %q has no bundle %q", doc.Name, e.Name)
	}
	out := &api.Bundle{
		CsvName: b.Name, PackageName: doc.Name, ChannelName: c.name, BundlePath: b.Image, Version: b.Version,
		SkipRange: e.SkipRange, Replaces: e.Replaces, Skips: e.Skips,
		Deprecation: deprecation(doc, catalog.SchemaBundle, b.Name),
	}
	for _, p := range b.Properties {
		out.Properties = append(out.Properties, &api.Property{Type: p.Type, Value: string(p.Value)})
		if p.Type == catalog.TypeGVKRequired {
			out.Dependencies = append(out.Dependencies, &api.Dependency{Type: catalog.TypeGVK, Value: string(p.Value)})
		}
	}
	provided, err := b.Provides()
	if err != nil {
		return nil, b, err
	}
	required, err := b.RequiredGVKs()
	if err != nil {
		return nil, b, err
	}
	out.ProvidedApis, out.RequiredApis = apis(provided), apis(required)
	packages, err := b.RequiredPackages()
	if err != nil {
		return nil, b, err
	}
	for _, r := range packages {
		value, err := json.Marshal(catalog.PackageProperty{PackageName: r.PackageName, Version: r.VersionRange})
		if err != nil {
			return nil, b, err
		}
		out.Dependencies = append(out.Dependencies, &api.Dependency{Type: catalog.TypePackage, Value: string(value)})
	}
	return out, b, nil
}

func apis(list []catalog.GVK) []*api.GroupVersionKind {
	var out []*api.GroupVersionKind
	for _, g := range list {
		out = append(out, &api.GroupVersionKind{Group: g.Group, Version: g.Version, Kind: g.Kind})
	}
	return out
}

// manifests adds csvJson and object[]: of the content if it is available, else of the display part.
func (x *index) manifests(ctx context.Context, doc catalog.Package, b catalog.Bundle, out *api.Bundle) error {
	if b.Content != "" {
		found, err := x.catalog.Content(ctx, b.Content)
		if err == nil {
			return whole(b, found, out)
		}
		if !errs.Is(err, errs.NotFound) {
			return err
		}
	}
	csv, err := csvjson.Make(doc, b)
	if err != nil || csv == nil {
		return err
	}
	out.CsvJson, out.Object = string(csv), []string{string(csv)}
	return nil
}

func whole(b catalog.Bundle, manifests []json.RawMessage, out *api.Bundle) error {
	objects, err := (bundle.Content{Manifests: manifests}).Objects()
	if err != nil {
		return errs.Wrap(errs.Internal, err, "manifests of bundle %q", b.Name)
	}
	for _, o := range objects {
		if o.Kind == bundle.KindCSV {
			out.CsvJson = string(o.Raw)
		}
		out.Object = append(out.Object, string(o.Raw))
	}
	return nil
}
