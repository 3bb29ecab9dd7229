package api

import (
	"context"
	"net/http"

	"github.com/chandler-fleet/chandler/services/gateway/cataloghealth"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// maxSecretBody leaves room for a credential of the largest size, escaped as JSON.
const maxSecretBody = 1 << 20

// SecretPath is a credential in a path.
type SecretPath struct {
	Name string `path:"name" maxLength:"253" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" patternDescription:"a DNS-1123 subdomain"`
}

func (a *API) catalogSecrets() {
	register(a, needRead, operation(http.MethodGet, "/catalogsecrets", "list-catalog-secrets", tagCatalogs, "List credentials of catalog sources, without their values"),
		func(ctx context.Context, who model.Caller, in *ListQuery) (*listOutput[model.CatalogSecret], error) {
			page, err := a.waitList(ctx, who, a.d.Views.Catalogs, *in)
			if err != nil {
				return nil, err
			}
			return listed(a.d.Reads.CatalogSecrets(ctx, who, page))
		})
	set := operation(http.MethodPut, "/catalogsecrets/{name}", "set-catalog-secret", tagCatalogs,
		"Give or replace a credential; it is encrypted to the indexer at once and never answered")
	set.MaxBodyBytes = maxSecretBody
	register(a, needWrite, set, func(ctx context.Context, who model.Caller, in *struct {
		SecretPath
		Body model.SetCatalogSecret
	},
	) (*written[model.CatalogSecret], error) {
		s, err := a.d.Intents.CatalogSecrets.Set(ctx, who, in.Name, in.Body)
		return wrote(s, s.Position, "", err)
	})
	register(a, needWrite, operation(http.MethodDelete, "/catalogsecrets/{name}", "delete-catalog-secret", tagCatalogs,
		"Erase a credential; catalogs that name it stay, and say that it is missing"),
		func(ctx context.Context, who model.Caller, in *SecretPath) (*written[model.Removed], error) {
			r, err := a.d.Intents.CatalogSecrets.Delete(ctx, who, in.Name)
			return wrote(r, r.Position, "", err)
		})
}

// HealthQuery is the catalogs that are meant.
type HealthQuery struct {
	Cluster   string `query:"cluster" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label" doc:"Catalogs of this cluster, together with namespace; those of the hub without both"`
	Namespace string `query:"namespace" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label"`
}

func (q HealthQuery) scope() cataloghealth.Scope {
	return cataloghealth.Scope{Cluster: q.Cluster, Namespace: q.Namespace}
}

func (a *API) catalogPolicies() {
	register(a, needRead, operation(http.MethodGet, "/operatorhub", "get-operator-hub", tagCatalogs, "Get which default catalogs are switched off"),
		func(ctx context.Context, who model.Caller, _ *struct{}) (*output[model.OperatorHub], error) {
			return read(a.d.Intents.Catalogs.GetHub(ctx, who))
		})
	register(a, needWrite, operation(http.MethodPut, "/operatorhub", "set-operator-hub", tagCatalogs, "Switch default catalogs off and on"),
		func(ctx context.Context, who model.Caller, in *struct{ Body model.SetOperatorHub }) (*output[model.OperatorHub], error) {
			return read(a.d.Intents.Catalogs.SetHub(ctx, who, in.Body))
		})
	register(a, needRead, operation(http.MethodGet, "/cataloghealth", "get-catalog-health", tagCatalogs,
		"Get what an unhealthy catalog does to those who see it but do not need it"),
		func(ctx context.Context, who model.Caller, in *HealthQuery) (*output[model.CatalogHealth], error) {
			return read(a.d.Intents.CatalogHealth.Get(ctx, who, in.scope()))
		})
	register(a, needWrite, operation(http.MethodPut, "/cataloghealth", "set-catalog-health", tagCatalogs,
		"Choose what an unhealthy catalog does to those who see it but do not need it"),
		func(ctx context.Context, who model.Caller, in *struct {
			HealthQuery
			Body model.SetCatalogHealth
		},
		) (*written[model.CatalogHealth], error) {
			h, err := a.d.Intents.CatalogHealth.Set(ctx, who, in.scope(), in.Body)
			return wrote(h, h.Position, "", err)
		})
}
