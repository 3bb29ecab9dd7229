package app

import (
	"context"
	"encoding/json"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/keys/seal"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/fetch"
	"github.com/chandler-fleet/chandler/services/catalog-indexer/internal/store"
)

// sources is what catalogs are read from, for one tenant; *fetch.Fetcher is one.
type sources interface {
	Probe(ctx context.Context, t source.Type, s source.Settings) (fetch.Probe, error)
	Open(ctx context.Context, t source.Type, s source.Settings) (*fetch.Tree, error)
	Bundle(ctx context.Context, image string, s source.Settings) (*fetch.Tree, error)
}

// openSources makes what opens the sources of a tenant.
func (a *App) openSources(identities seal.Identities) (func(tenant string) sources, error) {
	var mirrors []source.Mirror
	if a.cfg.Mirrors != "" {
		if err := json.Unmarshal([]byte(a.cfg.Mirrors), &mirrors); err != nil {
			return nil, errs.Wrap(errs.Invalid, err, "CHANDLER_CATALOG_MIRRORS is not a list of mirrors as JSON")
		}
	}
	var err error
	if a.cache, err = openCache(a.cfg.Cache); err != nil {
		return nil, err
	}
	secrets := &credentials{catalogs: a.store.Catalogs, identities: identities}
	return func(tenant string) sources {
		return &fetch.Fetcher{
			Root: a.cfg.CatalogRoot, Cache: a.cache.dir, Mirrors: mirrors,
			Secrets: func(ctx context.Context, name string) (source.Secret, error) {
				return secrets.secret(ctx, tenant, name)
			},
		}
	}, nil
}

// credentials are what sources of catalogs refer to by name (R-DIS-4).
type credentials struct {
	catalogs   *store.Catalogs
	identities seal.Identities // none where none can be opened
}

// secret finds and decrypts a credential (R-DIS-4). Errors never quote it.
func (c *credentials) secret(ctx context.Context, tenant, name string) (source.Secret, error) {
	kind, ciphertext, err := c.catalogs.Secret(ctx, tenant, name)
	if err != nil {
		return source.Secret{}, err
	}
	if len(c.identities) == 0 {
		return source.Secret{}, errs.New(errs.Forbidden,
			"catalog credential %q cannot be opened: the indexer has no CHANDLER_CATALOG_CREDENTIALS_IDENTITY", name)
	}
	value, err := c.identities.Open(ciphertext, maxSecretBytes)
	if errs.Is(err, errs.Unauthenticated) {
		return source.Secret{}, errs.New(errs.Forbidden,
			"catalog credential %q cannot be opened with the indexer's identities; give it again: %v", name, err)
	}
	if err != nil {
		return source.Secret{}, errs.Wrap(errs.KindOf(err), err, "catalog credential %q", name)
	}
	return source.Secret{Name: name, Kind: kind, Value: value}, nil
}
