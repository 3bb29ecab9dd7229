package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/keys/seal"
)

// Credentials keeps kubeconfigs, encrypted to a public age key whose identity only the installer has.
type Credentials struct{ recipient seal.Recipient }

// NewCredentials reads the recipient, such as age1….
func NewCredentials(recipient string) (*Credentials, error) {
	if strings.TrimSpace(recipient) == "" {
		return nil, errs.New(errs.Invalid, "CHANDLER_CREDENTIALS_RECIPIENT is not set: give the installer's public age key").
			At("credentials-recipient", "age-recipient")
	}
	r, err := seal.ParseRecipient(recipient)
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "CHANDLER_CREDENTIALS_RECIPIENT")
	}
	return &Credentials{recipient: r}, nil
}

// Put encrypts and stores the kubeconfig of a cluster in place of the one before, and returns the
// commitment of what was stored.
func (c *Credentials) Put(
	ctx context.Context, tx pgx.Tx, tenant string, cluster uuid.UUID, name string, kubeconfig []byte,
) (string, error) {
	sealed, err := c.recipient.Seal(kubeconfig)
	if err != nil {
		return "", err
	}
	salt, commitment, err := commit(sealed)
	if err != nil {
		return "", err
	}
	_, err = tx.Exec(ctx, `
		insert into gateway.credentials (tenant, cluster_key, name, commitment, salt, ciphertext, key_id)
		values ($1, $2, $3, $4, $5, $6, $7)
		on conflict (tenant, cluster_key) do update set
			name = excluded.name, commitment = excluded.commitment, salt = excluded.salt,
			ciphertext = excluded.ciphertext, key_id = excluded.key_id, updated = now()`,
		tenant, cluster, name, commitment, salt, sealed, c.recipient.ID.String())
	if err != nil {
		return "", fmt.Errorf("store the credentials of cluster %s: %w", name, err)
	}
	return commitment, nil
}

// Erase forgets the kubeconfig of a cluster.
func (c *Credentials) Erase(ctx context.Context, tx pgx.Tx, tenant string, cluster uuid.UUID) error {
	_, err := tx.Exec(ctx, `delete from gateway.credentials where tenant = $1 and cluster_key = $2`, tenant, cluster)
	if err != nil {
		return fmt.Errorf("erase credentials: %w", err)
	}
	return nil
}
