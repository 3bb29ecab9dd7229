package intent

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/cataloghealth"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func health(scope cataloghealth.Scope) aggregate[cataloghealth.State, cataloghealth.Set] {
	return aggregate[cataloghealth.State, cataloghealth.Set]{
		events.KindPolicy, func(cataloghealth.State) string { return scope.Subject() }, cataloghealth.Decide, fold(cataloghealth.Evolve),
	}
}

// CatalogHealth says what an unhealthy catalog does to others (R-CAT-99).
func (s *Service) CatalogHealth(ctx context.Context, who model.Caller, scope cataloghealth.Scope) (model.CatalogHealth, error) {
	out := model.CatalogHealth{Cluster: scope.Cluster, Namespace: scope.Namespace}
	if err := scope.Check(); err != nil {
		return out, err
	}
	err := s.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		var state cataloghealth.State
		head, err := s.Log.Latest(ctx, tx, who.Tenant, events.KindPolicy, scope.Subject())
		if err == nil && head.Exists() {
			state, err = replay(ctx, s, tx, who.Tenant, health(scope), head, state)
		}
		out.Mode = state.Chosen()
		return err
	})
	return out, err
}

// SetCatalogHealth chooses what an unhealthy catalog does to others.
func (s *Service) SetCatalogHealth(ctx context.Context, who model.Caller, scope cataloghealth.Scope, in model.SetCatalogHealth) (model.CatalogHealth, error) {
	if err := scope.Check(); err != nil {
		return model.CatalogHealth{}, err
	}
	out, err := run(ctx, s, who, health(scope), scope.Subject(), cataloghealth.State{},
		func(ctx context.Context, tx pgx.Tx, _ cataloghealth.State) (cataloghealth.Set, error) {
			c := cataloghealth.Set{Scope: scope, Mode: in.Mode}
			if scope.Cluster == "" {
				return c, nil
			}
			return c, s.clusterExists(ctx, tx, who.Tenant, scope.Cluster)
		})
	return model.CatalogHealth{Cluster: scope.Cluster, Namespace: scope.Namespace, Mode: out.State.Chosen(), Position: out.Position}, err
}
