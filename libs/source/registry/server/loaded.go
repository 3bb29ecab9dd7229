package server

import (
	"context"
	"encoding/json"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// Loaded serves what load.Load returned. Content returns the canonical bytes that Options.Keep was
// given under a digest, or an error of kind NotFound.
func Loaded(c *load.Catalog, content func(digest.Digest) ([]byte, error)) Catalog {
	l := &loaded{catalog: c, content: content, packages: map[string]catalog.Package{}}
	for _, p := range c.Packages {
		l.packages[p.Name] = p
	}
	return l
}

type loaded struct {
	catalog  *load.Catalog
	packages map[string]catalog.Package
	content  func(digest.Digest) ([]byte, error)
}

func (l *loaded) Packages(context.Context) ([]string, error) {
	names := make([]string, 0, len(l.packages))
	for name := range l.packages {
		names = append(names, name)
	}
	return names, nil
}

func (l *loaded) Package(_ context.Context, name string) (catalog.Package, error) {
	p, ok := l.packages[name]
	if !ok {
		return p, errs.New(errs.NotFound, "package %q is not in the catalog", name)
	}
	return p, nil
}

func (l *loaded) Content(_ context.Context, d digest.Digest) ([]json.RawMessage, error) {
	raw, err := l.content(d)
	if err != nil {
		return nil, err
	}
	var body struct {
		Manifests []json.RawMessage `json:"manifests"`
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		return nil, errs.Wrap(errs.Internal, err, "content %s", d)
	}
	return body.Manifests, nil
}

func (l *loaded) Blobs(_ context.Context, schema, pkg string, send func(json.RawMessage) error) error {
	for _, b := range l.catalog.Blobs {
		if b.Schema != schema || b.Package != pkg {
			continue
		}
		if err := send(b.Raw); err != nil {
			return err
		}
	}
	return nil
}
