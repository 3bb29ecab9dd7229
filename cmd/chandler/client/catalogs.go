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
	return list[model.Catalog](ctx, c, "/catalogs", url.Values{
		"cluster": {s.Cluster}, "state": {s.State},
		"label": {s.Label}, "minPosition": {s.MinPosition},
	})
}

// Catalog returns one catalog.
func (c *Client) Catalog(ctx context.Context, r Ref) (model.Catalog, error) {
	return ask[model.Catalog](ctx, c, http.MethodGet, catalogPath(r), catalogQuery(r), nil)
}

// AddCatalog offers a catalog. validate is "", strict or lenient.
func (c *Client) AddCatalog(ctx context.Context, in model.AddCatalog, validate model.Validate) (model.Catalog, error) {
	return ask[model.Catalog](ctx, c, http.MethodPost, "/catalogs", validating(nil, validate), in)
}

// ChangeCatalog replaces the intent of a catalog.
func (c *Client) ChangeCatalog(ctx context.Context, r Ref, in model.ChangeCatalog, validate model.Validate) (
	model.Catalog, error,
) {
	return ask[model.Catalog](ctx, c, http.MethodPut, catalogPath(r), validating(catalogQuery(r), validate), in)
}

func validating(q url.Values, validate model.Validate) url.Values {
	if validate == model.ValidateDefault {
		return q
	}
	out := url.Values{"validate": {string(validate)}}
	maps.Copy(out, q)
	return out
}

// PatchCatalog changes parts of the intent of a catalog by a JSON merge patch.
func (c *Client) PatchCatalog(ctx context.Context, r Ref, patch map[string]any) (model.Catalog, error) {
	return ask[model.Catalog](ctx, c, http.MethodPatch, catalogPath(r), catalogQuery(r), patch)
}

// Findings lists what was wrong with a catalog at the last look.
func (c *Client) Findings(ctx context.Context, r Ref, variant, severity, pkg string) ([]model.Finding, error) {
	q := url.Values{"variant": {variant}, "severity": {severity}, "package": {pkg}}
	maps.Copy(q, catalogQuery(r))
	return list[model.Finding](ctx, c, catalogPath(r, "findings"), q)
}

// MakeHook gives a catalog a hook, or its hook another secret.
func (c *Client) MakeHook(ctx context.Context, r Ref) (model.CatalogHook, error) {
	return ask[model.CatalogHook](ctx, c, http.MethodPost, catalogPath(r, "hook"), catalogQuery(r), nil)
}

// EndHook ends the hook of a catalog.
func (c *Client) EndHook(ctx context.Context, r Ref) error {
	_, err := ask[struct{}](ctx, c, http.MethodDelete, catalogPath(r, "hook"), catalogQuery(r), nil)
	return err
}

// CatalogSecrets lists credentials of catalog sources, without their values.
func (c *Client) CatalogSecrets(ctx context.Context) ([]model.CatalogSecret, error) {
	return list[model.CatalogSecret](ctx, c, "/catalogsecrets", nil)
}

// SetCatalogSecret gives or replaces a credential of catalog sources.
func (c *Client) SetCatalogSecret(ctx context.Context, name string, in model.SetCatalogSecret) (
	model.CatalogSecret, error,
) {
	return ask[model.CatalogSecret](ctx, c, http.MethodPut, join("catalogsecrets", name), nil, in)
}

// DeleteCatalogSecret erases a credential of catalog sources.
func (c *Client) DeleteCatalogSecret(ctx context.Context, name string) (model.Removed, error) {
	return ask[model.Removed](ctx, c, http.MethodDelete, join("catalogsecrets", name), nil, nil)
}

// OperatorHub says which default catalogs are switched off.
func (c *Client) OperatorHub(ctx context.Context) (model.OperatorHub, error) {
	return ask[model.OperatorHub](ctx, c, http.MethodGet, "/operatorhub", nil, nil)
}

// SetOperatorHub switches default catalogs off and on.
func (c *Client) SetOperatorHub(ctx context.Context, in model.SetOperatorHub) (model.OperatorHub, error) {
	return ask[model.OperatorHub](ctx, c, http.MethodPut, "/operatorhub", nil, in)
}

// CatalogHealth says what an unhealthy catalog does to others: those of the hub, or of a namespace of a cluster.
func (c *Client) CatalogHealth(ctx context.Context, cluster, namespace string) (model.CatalogHealth, error) {
	return ask[model.CatalogHealth](ctx, c, http.MethodGet, "/cataloghealth", healthQuery(cluster, namespace), nil)
}

// SetCatalogHealth chooses what an unhealthy catalog does to others.
func (c *Client) SetCatalogHealth(ctx context.Context, cluster, namespace, mode string) (model.CatalogHealth, error) {
	return ask[model.CatalogHealth](ctx, c, http.MethodPut, "/cataloghealth", healthQuery(cluster, namespace),
		model.SetCatalogHealth{Mode: mode})
}

func healthQuery(cluster, namespace string) url.Values {
	q := url.Values{}
	for k, v := range map[string]string{"cluster": cluster, "namespace": namespace} {
		if v != "" {
			q.Set(k, v)
		}
	}
	return q
}

// SearchPackages finds packages in all catalogs, best first. Empty fields choose all.
func (c *Client) SearchPackages(ctx context.Context, f model.PackageFilter) ([]model.FoundPackage, error) {
	q := url.Values{
		"category": f.Categories, "provider": f.Providers, "providerURL": f.ProviderURLs, "capability": f.Capabilities,
		"infrastructureFeature": f.Features, "installMode": f.InstallModes, "catalog": f.Catalogs, "label": f.Labels,
		"search": {f.Search}, "catalogNamespace": {f.CatalogNamespace}, "cluster": {f.Cluster},
		"namespace": {f.Namespace},
	}
	return list[model.FoundPackage](ctx, c, "/packages", q)
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

// LastRevision is the newest revision of a catalog; false where it never served one.
func (c *Client) LastRevision(ctx context.Context, r Ref) (model.Revision, bool, error) {
	q := catalogQuery(r)
	if q == nil {
		q = url.Values{}
	}
	q.Set("limit", "1")
	page, err := ask[struct{ Items []model.Revision }](ctx, c, http.MethodGet, catalogPath(r, "revisions"), q, nil)
	if err != nil || len(page.Items) == 0 {
		return model.Revision{}, false, err
	}
	return page.Items[0], true, nil
}

// Blobs lists the documents of a catalog whose schemas Chandler does not know. Empty arguments choose all.
func (c *Client) Blobs(ctx context.Context, r Ref, schema, pkg, name string) ([]model.Blob, error) {
	q := url.Values{"schema": {schema}, "package": {pkg}, "name": {name}}
	maps.Copy(q, catalogQuery(r))
	return list[model.Blob](ctx, c, catalogPath(r, "blobs"), q)
}
