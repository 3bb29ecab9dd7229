package view

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// maxUsers bounds the catalogs that are gone through for who uses a secret; installations have dozens.
const maxUsers = 10_000

// CatalogSecrets lists credentials by name, never their values. The table that holds them is the list: a
// read model beside it would say nothing more.
func (r *Reader) CatalogSecrets(ctx context.Context, who model.Caller, p model.Page) (items []model.CatalogSecret, next []string, err error) {
	var w where
	w.add("tenant = ?", who.Tenant)
	if err := w.after(p.After, "name"); err != nil {
		return nil, nil, err
	}
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		var more bool
		items, more, err = page(ctx, tx, `select name, kind, commitment, updated from gateway.catalog_secrets`+w.String()+` order by name`, w.args, p.Limit, scanSecret)
		if err != nil {
			return err
		}
		if more {
			next = []string{items[len(items)-1].Name}
		}
		users, err := secretUsers(ctx, tx, who.Tenant)
		for i := range items {
			items[i].UsedBy = users[items[i].Name]
		}
		return err
	})
	return items, next, err
}

func scanSecret(row pgx.Row) (s model.CatalogSecret, err error) {
	var kind string
	err = row.Scan(&s.Name, &kind, &s.Commitment, &s.UpdatedAt)
	s.Kind = source.SecretKind(kind)
	return s, err
}

// secretUsers tells which catalogs name a secret.
func secretUsers(ctx context.Context, tx pgx.Tx, tenant string) (map[string][]string, error) {
	rows, _, err := page(ctx, tx, catalogColumns+` where c.tenant = $1 order by c.subject`, []any{tenant}, maxUsers, scanCatalog)
	if err != nil {
		return nil, err
	}
	if err := openSources(ctx, tx, tenant, rows); err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for _, c := range rows {
		for _, name := range c.Source.Secrets {
			if !slices.Contains(out[name], c.subject) {
				out[name] = append(out[name], c.subject)
			}
		}
	}
	return out, nil
}
