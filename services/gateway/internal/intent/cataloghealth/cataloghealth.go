// Package cataloghealth carries out intents about what an unhealthy catalog does to others (R-CAT-99).
package cataloghealth

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/cataloghealth"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/clusters"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Service carries out intents about what an unhealthy catalog does to others.
type Service struct{ Units *unit.Runner }

type decision = unit.Decision[cataloghealth.State]

func aggregate(scope cataloghealth.Scope) unit.Aggregate[cataloghealth.State, cataloghealth.Set] {
	return unit.Aggregate[cataloghealth.State, cataloghealth.Set]{
		Kind: events.KindPolicy, Subject: func(cataloghealth.State) string { return scope.Subject() },
		Decide: cataloghealth.Decide, Evolve: unit.ByPayload(cataloghealth.Evolve),
	}
}

// Get returns what was chosen, or the default.
func (s *Service) Get(ctx context.Context, who model.Caller, scope cataloghealth.Scope) (model.CatalogHealth, error) {
	out := model.CatalogHealth{Cluster: scope.Cluster, Namespace: scope.Namespace}
	if err := scope.Check(); err != nil {
		return out, err
	}
	err := s.Units.Once(ctx, who, func(u *unit.Work) error {
		state, _, err := unit.Load(ctx, u, aggregate(scope), scope.Subject(), cataloghealth.State{})
		out.Mode = state.Chosen()
		return err
	})
	return out, err
}

// Set chooses what an unhealthy catalog does to others.
func (s *Service) Set(
	ctx context.Context, who model.Caller, scope cataloghealth.Scope, in model.SetCatalogHealth,
) (model.CatalogHealth, error) {
	if err := scope.Check(); err != nil {
		return model.CatalogHealth{}, err
	}
	out, position, err := unit.Write(ctx, s.Units, who, "intent policy",
		func(ctx context.Context, u *unit.Work) (decision, error) {
			if scope.Cluster != "" {
				if err := clusters.MustExist(ctx, u, scope.Cluster); err != nil {
					return decision{}, err
				}
			}
			return unit.Decide(ctx, u, aggregate(scope), scope.Subject(), cataloghealth.State{},
				func(cataloghealth.State) (cataloghealth.Set, error) {
					return cataloghealth.Set{Scope: scope, Mode: in.Mode}, nil
				})
		})
	return model.CatalogHealth{
		Cluster: scope.Cluster, Namespace: scope.Namespace, Mode: out.State.Chosen(),
		Position: position,
	}, err
}
