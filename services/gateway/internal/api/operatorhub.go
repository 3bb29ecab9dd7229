package api

import (
	"context"
	"net/http"

	"github.com/chandler-fleet/chandler/services/gateway/cataloghealth"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Hub switches default catalogs (R-CFG-10).
type Hub interface {
	OperatorHub(ctx context.Context, who model.Caller) (model.OperatorHub, error)
	SetOperatorHub(ctx context.Context, who model.Caller, in model.SetOperatorHub) (model.OperatorHub, error)
}

// Health says what unhealthy catalogs do to others (R-CAT-99).
type Health interface {
	CatalogHealth(ctx context.Context, who model.Caller, scope cataloghealth.Scope) (model.CatalogHealth, error)
	SetCatalogHealth(ctx context.Context, who model.Caller, scope cataloghealth.Scope, in model.SetCatalogHealth) (model.CatalogHealth, error)
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
			return read(a.d.Hub.OperatorHub(ctx, who))
		})
	register(a, needWrite, operation(http.MethodPut, "/operatorhub", "set-operator-hub", tagCatalogs, "Switch default catalogs off and on"),
		func(ctx context.Context, who model.Caller, in *struct{ Body model.SetOperatorHub }) (*output[model.OperatorHub], error) {
			return read(a.d.Hub.SetOperatorHub(ctx, who, in.Body))
		})
	register(a, needRead, operation(http.MethodGet, "/cataloghealth", "get-catalog-health", tagCatalogs,
		"Get what an unhealthy catalog does to those who see it but do not need it"),
		func(ctx context.Context, who model.Caller, in *HealthQuery) (*output[model.CatalogHealth], error) {
			return read(a.d.Health.CatalogHealth(ctx, who, in.scope()))
		})
	register(a, needWrite, operation(http.MethodPut, "/cataloghealth", "set-catalog-health", tagCatalogs,
		"Choose what an unhealthy catalog does to those who see it but do not need it"),
		func(ctx context.Context, who model.Caller, in *struct {
			HealthQuery
			Body model.SetCatalogHealth
		},
		) (*written[model.CatalogHealth], error) {
			h, err := a.d.Health.SetCatalogHealth(ctx, who, in.scope(), in.Body)
			return wrote(h, h.Position, "", err)
		})
}
