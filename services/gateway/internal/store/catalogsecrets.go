package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/keys/seal"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/source"
)

// CatalogSecrets keeps credentials of catalog sources, encrypted to a public age key whose identity only
// the catalog-indexer has.
type CatalogSecrets struct{ recipient *seal.Recipient }

// NewCatalogSecrets reads the recipient, such as age1…. Without one no credential can be taken; all else works.
func NewCatalogSecrets(recipient string) (*CatalogSecrets, error) {
	if strings.TrimSpace(recipient) == "" {
		return &CatalogSecrets{}, nil
	}
	r, err := seal.ParseRecipient(recipient)
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "CHANDLER_CATALOG_CREDENTIALS_RECIPIENT")
	}
	return &CatalogSecrets{recipient: &r}, nil
}

// Put encrypts and stores a credential in place of the one before, and returns the commitment of what was stored.
func (c *CatalogSecrets) Put(
	ctx context.Context, tx pgx.Tx, tenant, name string, kind source.SecretKind, value []byte, now time.Time,
) (string, error) {
	if c.recipient == nil {
		return "", errs.New(errs.Unprocessable,
			"this installation has no key for catalog secrets: give the gateway the setting "+
				"catalog-credentials-recipient, which `chandler keys` makes").
			At("/", "catalog-credentials-recipient")
	}
	sealed, err := c.recipient.Seal(value)
	if err != nil {
		return "", err
	}
	salt, commitment, err := commit(sealed)
	if err != nil {
		return "", err
	}
	_, err = tx.Exec(ctx, `
		insert into gateway.catalog_secrets (tenant, name, kind, commitment, salt, ciphertext, updated, key_id)
		values ($1, $2, $3, $4, $5, $6, $7, $8)
		on conflict (tenant, name) do update set kind = excluded.kind, commitment = excluded.commitment,
		salt = excluded.salt,
			ciphertext = excluded.ciphertext, key_id = excluded.key_id, updated = excluded.updated`,
		tenant, name, string(kind), commitment, salt, sealed, now, c.recipient.ID.String())
	if err != nil {
		return "", fmt.Errorf("store catalog secret %s: %w", name, err)
	}
	return commitment, nil
}

// Erase forgets a credential.
func (c *CatalogSecrets) Erase(ctx context.Context, tx pgx.Tx, tenant, name string) error {
	if _, err := tx.Exec(ctx, `delete from gateway.catalog_secrets where tenant = $1 and name = $2`, tenant,
		name); err != nil {
		return fmt.Errorf("erase catalog secret %s: %w", name, err)
	}
	return nil
}

// Kinds returns the kind of every credential by its name.
func (c *CatalogSecrets) Kinds(ctx context.Context, q pg.Querier, tenant string) (map[string]source.SecretKind, error) {
	rows, err := q.Query(ctx, `select name, kind from gateway.catalog_secrets where tenant = $1`, tenant)
	if err != nil {
		return nil, fmt.Errorf("list catalog secrets: %w", err)
	}
	out := map[string]source.SecretKind{}
	var name, kind string
	_, err = pgx.ForEachRow(rows, []any{&name, &kind}, func() error {
		out[name] = source.SecretKind(kind)
		return nil
	})
	return out, err
}
