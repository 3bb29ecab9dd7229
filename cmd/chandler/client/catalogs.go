package client

import (
	"context"
	"maps"
	"net/http"
	"net/url"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// catalogPath names a catalog: a hub catalog by its name, a cluster's by its whole key.
func catalogPath(r Ref, rest ...string) string {
	return join(append([]string{"catalogs", r.Name}, rest...)...)
}

func catalogQuery(r Ref) url.Values {
	if r.Cluster == "" {
		return nil
	}
	return url.Values{"cluster": {r.Cluster}, "namespace": {r.Namespace}}
}

// Catalogs lists catalogs.
func (c *Client) Catalogs(ctx context.Context, s Selection) ([]model.Catalog, error) {
	return list[model.Catalog](ctx, c, "/catalogs", url.Values{"cluster": {s.Cluster}, "state": {s.State}, "minPosition": {s.MinPosition}})
}

// Catalog returns one catalog.
func (c *Client) Catalog(ctx context.Context, r Ref) (model.Catalog, error) {
	return ask[model.Catalog](ctx, c, http.MethodGet, catalogPath(r), catalogQuery(r), nil)
}

// AddCatalog offers a catalog.
func (c *Client) AddCatalog(ctx context.Context, in model.AddCatalog) (model.Catalog, error) {
	return ask[model.Catalog](ctx, c, http.MethodPost, "/catalogs", nil, in)
}

// ChangeCatalog replaces the intent of a catalog.
func (c *Client) ChangeCatalog(ctx context.Context, r Ref, in model.ChangeCatalog) (model.Catalog, error) {
	return ask[model.Catalog](ctx, c, http.MethodPut, catalogPath(r), catalogQuery(r), in)
}

// RefreshCatalog asks the indexer to look at the source now.
func (c *Client) RefreshCatalog(ctx context.Context, r Ref) (model.Catalog, error) {
	return ask[model.Catalog](ctx, c, http.MethodPost, catalogPath(r, "refresh"), catalogQuery(r), nil)
}

// RemoveCatalog ends a catalog; what is installed from it stays.
func (c *Client) RemoveCatalog(ctx context.Context, r Ref) (model.Removed, error) {
	return ask[model.Removed](ctx, c, http.MethodDelete, catalogPath(r), catalogQuery(r), nil)
}

// Packages lists the packages of a catalog.
func (c *Client) Packages(ctx context.Context, r Ref) ([]model.PackageSummary, error) {
	return list[model.PackageSummary](ctx, c, catalogPath(r, "packages"), catalogQuery(r))
}

// Package returns one package of a catalog with its channels.
func (c *Client) Package(ctx context.Context, r Ref, name string) (model.PackageDetail, error) {
	return ask[model.PackageDetail](ctx, c, http.MethodGet, catalogPath(r, "packages", name), catalogQuery(r), nil)
}

// Revisions lists the revisions of a catalog, newest first.
func (c *Client) Revisions(ctx context.Context, r Ref) ([]model.Revision, error) {
	return list[model.Revision](ctx, c, catalogPath(r, "revisions"), catalogQuery(r))
}

// Bundles lists the bundles of a catalog, of one package when pkg is given.
func (c *Client) Bundles(ctx context.Context, r Ref, pkg string) ([]model.BundleSummary, error) {
	q := url.Values{"package": {pkg}}
	maps.Copy(q, catalogQuery(r))
	return list[model.BundleSummary](ctx, c, catalogPath(r, "bundles"), q)
}
