package intent

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/catalogsecret"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

var catalogSecrets = aggregate[catalogsecret.State, catalogsecret.Command]{
	events.KindCatalogSecret, func(s catalogsecret.State) string { return s.Name }, catalogsecret.Decide, fold(catalogsecret.Evolve),
}

// SetCatalogSecret gives or replaces a credential (R-DIS-4). It is encrypted before it is stored.
func (s *Service) SetCatalogSecret(ctx context.Context, who model.Caller, name string, in model.SetCatalogSecret) (model.CatalogSecret, error) {
	var v rule.Violations
	v.DNSSubdomainName("path.name", name)
	if err := v.Err(); err != nil {
		return model.CatalogSecret{}, err
	}
	if err := catalogsecret.Check("/value", in.Kind, in.Value); err != nil {
		return model.CatalogSecret{}, err
	}
	out, err := run(ctx, s, who, catalogSecrets, name, catalogsecret.State{Name: name},
		func(ctx context.Context, tx pgx.Tx, _ catalogsecret.State) (catalogsecret.Command, error) {
			commitment, err := s.Secrets.Put(ctx, tx, who.Tenant, name, in.Kind, in.Value, s.Now().UTC())
			return catalogsecret.Set{Kind: in.Kind, Credential: commitment}, err
		})
	return model.CatalogSecret{Name: name, Kind: out.State.Kind, Commitment: out.State.Credential, UpdatedAt: out.Time, Position: out.Position}, err
}

// DeleteCatalogSecret erases a credential. Catalogs that name it stay, and say that it is missing.
func (s *Service) DeleteCatalogSecret(ctx context.Context, who model.Caller, name string) (model.Removed, error) {
	out, err := run(ctx, s, who, catalogSecrets, name, catalogsecret.State{Name: name},
		func(ctx context.Context, tx pgx.Tx, _ catalogsecret.State) (catalogsecret.Command, error) {
			return catalogsecret.Delete{}, s.Secrets.Erase(ctx, tx, who.Tenant, name)
		})
	return model.Removed{Position: out.Position}, err
}
