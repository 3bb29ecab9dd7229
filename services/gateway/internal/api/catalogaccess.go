package api

import (
	"context"
	"net/http"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/cataloghealth"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/catalogs"
	"github.com/chandler-fleet/chandler/services/gateway/internal/watch"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// maxSecretBody leaves room for a credential of the largest size, escaped as JSON.
const maxSecretBody = 1 << 20

// SecretPath is a credential in a path.
type SecretPath struct {
	Name string `path:"name" maxLength:"253" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" patternDescription:"a DNS-1123 subdomain"`
}

// catalogAccessHandlers are the operations on credentials of catalogs, on default catalogs, and on what unhealthy ones
// do to others.
type catalogAccessHandlers struct{ Deps }

func (h catalogAccessHandlers) register(a *API) {
	h.catalogSecrets(a)
	h.catalogPolicies(a)
}

func (h catalogAccessHandlers) catalogSecrets(a *API) {
	registerList(a, fleetWide(access.List, access.CatalogSecrets),
		operation(http.MethodGet, "/catalogsecrets", "list-catalog-secrets", tagCatalogs,
			"List credentials of catalog sources, without their values"), watchedSecrets, h.listCatalogSecrets)
	set := operation(http.MethodPut, "/catalogsecrets/{name}", "set-catalog-secret", tagCatalogs,
		"Give or replace a credential; it is encrypted to the indexer at once and never answered")
	set.MaxBodyBytes = maxSecretBody
	register(a, fleetWide(access.Update, access.CatalogSecrets), set, h.setCatalogSecret)
	register(a, fleetWide(access.Delete, access.CatalogSecrets),
		operation(http.MethodDelete, "/catalogsecrets/{name}", "delete-catalog-secret", tagCatalogs,
			"Erase a credential; catalogs that name it stay, and say that it is missing"), h.deleteCatalogSecret)
}

// HealthQuery is the catalogs that are meant.
type HealthQuery struct {
	Cluster   string `query:"cluster" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label" doc:"Catalogs of this cluster, together with namespace; those of the hub without both"`
	Namespace string `query:"namespace" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label"`
}

func (q HealthQuery) scope() cataloghealth.Scope {
	return cataloghealth.Scope{Cluster: q.Cluster, Namespace: q.Namespace}
}

func (h catalogAccessHandlers) catalogPolicies(a *API) {
	register(a, fleetWide(access.Get, access.OperatorHub),
		operation(http.MethodGet, "/operatorhub", "get-operator-hub", tagCatalogs,
			"Get which default catalogs are switched off"), h.getOperatorHub)
	register(a, fleetWide(access.Update, access.OperatorHub),
		operation(http.MethodPut, "/operatorhub", "set-operator-hub", tagCatalogs,
			"Switch default catalogs off and on"), h.setOperatorHub)
	register(a, whereAsked(access.Get, access.CatalogHealth),
		operation(http.MethodGet, "/cataloghealth", "get-catalog-health", tagCatalogs,
			"Get what an unhealthy catalog does to those who see it but do not need it"), h.getCatalogHealth)
	register(a, whereAsked(access.Update, access.CatalogHealth),
		operation(http.MethodPut, "/cataloghealth", "set-catalog-health", tagCatalogs,
			"Choose what an unhealthy catalog does to those who see it but do not need it"), h.setCatalogHealth)
}

// watchedSecrets: they say which catalogs name them.
var watchedSecrets = watchedInFleet(func(s model.CatalogSecret) watch.Name { return watch.Name{Name: s.Name} },
	events.KindCatalogSecret, events.KindCatalog)

func (h catalogAccessHandlers) listCatalogSecrets(
	ctx context.Context, who model.Caller, in *FleetListQuery,
) (*listOutput[model.CatalogSecret], error) {
	page, err := h.waitList(ctx, who, catalogs.Name, in.ListQuery)
	if err != nil {
		return nil, err
	}
	return listed(h.Reads.Catalogs.Secrets(ctx, who, page))
}

type setCatalogSecretInput struct {
	SecretPath
	TryQuery
	Body model.SetCatalogSecret
}

func (h catalogAccessHandlers) setCatalogSecret(
	ctx context.Context, who model.Caller, in *setCatalogSecretInput,
) (*written[model.CatalogSecret], error) {
	s, err := h.Intents.CatalogSecrets.Set(ctx, who, in.Name, in.Body)
	return wrote(s, s.Position, "", err)
}

func (h catalogAccessHandlers) deleteCatalogSecret(
	ctx context.Context, who model.Caller, in *SecretPath,
) (*written[model.Removed], error) {
	r, err := h.Intents.CatalogSecrets.Delete(ctx, who, in.Name)
	return wrote(r, r.Position, "", err)
}

func (h catalogAccessHandlers) getOperatorHub(
	ctx context.Context, who model.Caller, _ *struct{},
) (*output[model.OperatorHub], error) {
	return read(h.Intents.Catalogs.GetHub(ctx, who))
}

type setOperatorHubInput struct {
	TryQuery
	Body model.SetOperatorHub
}

func (h catalogAccessHandlers) setOperatorHub(
	ctx context.Context, who model.Caller, in *setOperatorHubInput,
) (*output[model.OperatorHub], error) {
	return read(h.Intents.Catalogs.SetHub(ctx, who, in.Body))
}

func (h catalogAccessHandlers) getCatalogHealth(
	ctx context.Context, who model.Caller, in *HealthQuery,
) (*output[model.CatalogHealth], error) {
	return read(h.Intents.CatalogHealth.Get(ctx, who, in.scope()))
}

type setCatalogHealthInput struct {
	HealthQuery
	Body model.SetCatalogHealth
}

func (h catalogAccessHandlers) setCatalogHealth(
	ctx context.Context, who model.Caller, in *setCatalogHealthInput,
) (*written[model.CatalogHealth], error) {
	health, err := h.Intents.CatalogHealth.Set(ctx, who, in.scope(), in.Body)
	return wrote(health, health.Position, "", err)
}
