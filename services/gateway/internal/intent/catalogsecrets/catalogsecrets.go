// Package catalogsecrets carries out intents about credentials of catalog sources.
package catalogsecrets

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/catalogsecret"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

var aggregate = unit.Aggregate[catalogsecret.State, catalogsecret.Command]{
	Kind: events.KindCatalogSecret, Subject: func(s catalogsecret.State) string { return s.Name },
	Decide: catalogsecret.Decide, Evolve: unit.ByPayload(catalogsecret.Evolve),
}

type decision = unit.Decision[catalogsecret.State]

// Service carries out intents about credentials of catalog sources.
type Service struct {
	Units   *unit.Runner
	Secrets *store.CatalogSecrets
}

// Set gives or replaces a credential (R-DIS-4). It is encrypted before it is stored.
func (s *Service) Set(
	ctx context.Context, who model.Caller, name string, in model.SetCatalogSecret,
) (model.CatalogSecret, error) {
	var v rule.Violations
	v.DNSSubdomainName("path.name", name)
	if err := v.Err(); err != nil {
		return model.CatalogSecret{}, err
	}
	if err := catalogsecret.Check("/value", in.Kind, in.Value); err != nil {
		return model.CatalogSecret{}, err
	}
	out, position, err := s.write(ctx, who, name, func(ctx context.Context, u *unit.Work) (catalogsecret.Command,
		error,
	) {
		commitment, err := s.Secrets.Put(ctx, u.Tx, who.Tenant, name, in.Kind, in.Value, u.Now())
		return catalogsecret.Set{Kind: in.Kind, Credential: commitment}, err
	})
	return model.CatalogSecret{
		Name: name, Kind: out.State.Kind, Commitment: out.State.Credential, UpdatedAt: out.Time,
		Position: position,
	}, err
}

// Delete erases a credential. Catalogs that name it stay; their conditions say that it is missing.
func (s *Service) Delete(ctx context.Context, who model.Caller, name string) (model.Removed, error) {
	_, position, err := s.write(ctx, who, name, func(ctx context.Context, u *unit.Work) (catalogsecret.Command, error) {
		return catalogsecret.Delete{}, s.Secrets.Erase(ctx, u.Tx, who.Tenant, name)
	})
	return model.Removed{Position: position}, err
}

func (s *Service) write(ctx context.Context, who model.Caller, name string,
	command func(ctx context.Context, u *unit.Work) (catalogsecret.Command, error),
) (decision, string, error) {
	return unit.Write(ctx, s.Units, who, "intent "+string(aggregate.Kind),
		func(ctx context.Context, u *unit.Work) (decision, error) {
			return unit.Decide(ctx, u, aggregate, name, catalogsecret.State{Name: name},
				func(catalogsecret.State) (catalogsecret.Command, error) { return command(ctx, u) })
		})
}
