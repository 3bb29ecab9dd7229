package client

import (
	"context"
	"maps"
	"net/url"

	"github.com/chandler-fleet/chandler/libs/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// catalogQuery names the catalog of a cluster; one of the hub has its name alone.
func catalogQuery(r Ref) url.Values {
	if r.Cluster == "" {
		return nil
	}
	return url.Values{"cluster": {r.Cluster}, "namespace": {r.Namespace}}
}

// Catalogs lists catalogs.
func (c *Client) Catalogs(ctx context.Context, s Selection) ([]model.Catalog, error) {
	req := client.NewListCatalogsRequest(&client.ListCatalogsParams{
		Cluster: s.Cluster, State: client.ListCatalogsParamsState(s.State), Label: s.Label,
		FieldSelector: s.FieldSelector, ClusterSelector: s.ClusterSelector, Sort: client.ListCatalogsParamsSort(s.Sort),
		MinPosition: s.MinPosition,
	})
	return all[model.Catalog](ctx, c, req)
}

// Catalog returns one catalog.
func (c *Client) Catalog(ctx context.Context, r Ref) (model.Catalog, error) {
	return get[model.Catalog](ctx, c, where(client.NewGetCatalogRequest(r.Name, nil), catalogQuery(r)))
}

// AddCatalog offers a catalog. validate is "", strict or lenient.
func (c *Client) AddCatalog(ctx context.Context, in model.AddCatalog, validate model.Validate) (model.Catalog, error) {
	req := client.NewAddCatalogRequest(nil, client.AddCatalog{})
	return get[model.Catalog](ctx, c, with(where(req, validating(nil, validate)), in))
}

// ChangeCatalog replaces the intent of a catalog whose tag is match.
func (c *Client) ChangeCatalog(
	ctx context.Context, r Ref, match string, in model.ChangeCatalog, validate model.Validate,
) (model.Catalog, error) {
	req := client.NewChangeCatalogRequest(r.Name, nil, client.ChangeCatalog{})
	return replace[model.Catalog](ctx, c, with(where(req, validating(catalogQuery(r), validate)), in), match)
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
	req := client.NewPatchCatalogRequest(r.Name, nil, nil)
	return get[model.Catalog](ctx, c, with(where(req, catalogQuery(r)), patch))
}

// Findings lists what was wrong with a catalog at the last look.
func (c *Client) Findings(ctx context.Context, r Ref, variant, severity, pkg string) ([]model.Finding, error) {
	q := url.Values{"variant": {variant}, "severity": {severity}, "package": {pkg}}
	maps.Copy(q, catalogQuery(r))
	return all[model.Finding](ctx, c, where(client.NewListFindingsRequest(r.Name, nil), q))
}

// MakeHook gives a catalog a hook, or its hook another secret.
func (c *Client) MakeHook(ctx context.Context, r Ref) (model.CatalogHook, error) {
	return get[model.CatalogHook](ctx, c, where(client.NewMakeCatalogHookRequest(r.Name, nil), catalogQuery(r)))
}

// EndHook ends the hook of a catalog.
func (c *Client) EndHook(ctx context.Context, r Ref) error {
	_, err := get[struct{}](ctx, c, where(client.NewEndCatalogHookRequest(r.Name, nil), catalogQuery(r)))
	return err
}

// CatalogSecrets lists credentials of catalog sources, without their values.
func (c *Client) CatalogSecrets(ctx context.Context) ([]model.CatalogSecret, error) {
	return all[model.CatalogSecret](ctx, c, client.NewListCatalogSecretsRequest(nil))
}

// SetCatalogSecret gives or replaces a credential of catalog sources.
func (c *Client) SetCatalogSecret(ctx context.Context, name string, in model.SetCatalogSecret) (
	model.CatalogSecret, error,
) {
	req := client.NewSetCatalogSecretRequest(name, nil, client.SetCatalogSecret{})
	return get[model.CatalogSecret](ctx, c, with(req, in))
}

// DeleteCatalogSecret erases a credential of catalog sources.
func (c *Client) DeleteCatalogSecret(ctx context.Context, name string) (model.Removed, error) {
	return get[model.Removed](ctx, c, client.NewDeleteCatalogSecretRequest(name))
}

// OperatorHub says which default catalogs are switched off.
func (c *Client) OperatorHub(ctx context.Context) (model.OperatorHub, error) {
	return get[model.OperatorHub](ctx, c, client.NewGetOperatorHubRequest())
}

// SetOperatorHub switches default catalogs off and on.
func (c *Client) SetOperatorHub(ctx context.Context, in model.SetOperatorHub) (model.OperatorHub, error) {
	return get[model.OperatorHub](ctx, c, with(client.NewSetOperatorHubRequest(nil, client.SetOperatorHub{}), in))
}

// CatalogHealth says what an unhealthy catalog does to others: those of the hub, or of a namespace of a cluster.
func (c *Client) CatalogHealth(ctx context.Context, cluster, namespace string) (model.CatalogHealth, error) {
	req := client.NewGetCatalogHealthRequest(nil)
	return get[model.CatalogHealth](ctx, c, where(req, healthQuery(cluster, namespace)))
}

// SetCatalogHealth chooses what an unhealthy catalog does to others.
func (c *Client) SetCatalogHealth(ctx context.Context, cluster, namespace, mode string) (model.CatalogHealth, error) {
	req := client.NewSetCatalogHealthRequest(nil, client.SetCatalogHealth{})
	in := model.SetCatalogHealth{Mode: mode}
	return get[model.CatalogHealth](ctx, c, with(where(req, healthQuery(cluster, namespace)), in))
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
	return all[model.FoundPackage](ctx, c, where(client.NewSearchPackagesRequest(nil), q))
}

// RefreshCatalog asks the indexer to look at the source now.
func (c *Client) RefreshCatalog(ctx context.Context, r Ref) (model.Catalog, error) {
	return get[model.Catalog](ctx, c, where(client.NewRefreshCatalogRequest(r.Name, nil), catalogQuery(r)))
}

// RemoveCatalog ends a catalog; what is installed from it stays.
func (c *Client) RemoveCatalog(ctx context.Context, r Ref) (model.Removed, error) {
	return get[model.Removed](ctx, c, where(client.NewRemoveCatalogRequest(r.Name, nil), catalogQuery(r)))
}

// Packages lists the packages of a catalog.
func (c *Client) Packages(ctx context.Context, r Ref) ([]model.PackageSummary, error) {
	return all[model.PackageSummary](ctx, c, where(client.NewListPackagesRequest(r.Name, nil), catalogQuery(r)))
}

// Package returns one package of a catalog with its channels.
func (c *Client) Package(ctx context.Context, r Ref, name string) (model.PackageDetail, error) {
	return get[model.PackageDetail](ctx, c, where(client.NewGetPackageRequest(r.Name, name, nil), catalogQuery(r)))
}

// Revisions lists the revisions of a catalog, newest first.
func (c *Client) Revisions(ctx context.Context, r Ref) ([]model.Revision, error) {
	return all[model.Revision](ctx, c, where(client.NewListRevisionsRequest(r.Name, nil), catalogQuery(r)))
}

// LastRevision is the newest revision of a catalog; false where it never served one.
func (c *Client) LastRevision(ctx context.Context, r Ref) (model.Revision, bool, error) {
	q := catalogQuery(r)
	if q == nil {
		q = url.Values{}
	}
	q.Set("limit", "1")
	page, err := get[struct{ Items []model.Revision }](ctx, c, where(client.NewListRevisionsRequest(r.Name, nil), q))
	if err != nil || len(page.Items) == 0 {
		return model.Revision{}, false, err
	}
	return page.Items[0], true, nil
}

// Blobs lists the documents of a catalog whose schemas Chandler does not know. Empty arguments choose all.
func (c *Client) Blobs(ctx context.Context, r Ref, schema, pkg, name string) ([]model.Blob, error) {
	q := url.Values{"schema": {schema}, "package": {pkg}, "name": {name}}
	maps.Copy(q, catalogQuery(r))
	return all[model.Blob](ctx, c, where(client.NewListBlobsRequest(r.Name, nil), q))
}
