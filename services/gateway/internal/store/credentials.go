package store

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"filippo.io/age"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// Credentials keeps kubeconfigs, encrypted to a public age key whose identity only the installer has.
type Credentials struct{ recipients []age.Recipient }

// NewCredentials reads the recipient, such as age1….
func NewCredentials(recipient string) (*Credentials, error) {
	if strings.TrimSpace(recipient) == "" {
		return nil, errs.New(errs.Invalid, "no recipient for credentials is set: give the installer's public age key").
			At("credentials-recipient", "age-recipient")
	}
	r, err := age.ParseRecipients(strings.NewReader(recipient))
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "the recipient for credentials is not a public age key")
	}
	return &Credentials{recipients: r}, nil
}

// Put encrypts and stores the kubeconfig of a cluster in place of the one before, and returns the
// commitment of what was stored.
func (c *Credentials) Put(
	ctx context.Context, tx pgx.Tx, tenant string, cluster uuid.UUID, name string, kubeconfig []byte,
) (string, error) {
	sealed, err := seal(c.recipients, kubeconfig)
	if err != nil {
		return "", err
	}
	salt, commitment, err := commit(sealed)
	if err != nil {
		return "", err
	}
	_, err = tx.Exec(ctx, `
		insert into gateway.credentials (tenant, cluster_key, name, commitment, salt, ciphertext)
		values ($1, $2, $3, $4, $5, $6)
		on conflict (tenant, cluster_key) do update set
			name = excluded.name, commitment = excluded.commitment, salt = excluded.salt,
			ciphertext = excluded.ciphertext, updated = now()`,
		tenant, cluster, name, commitment, salt, sealed)
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

func seal(recipients []age.Recipient, plain []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := age.Encrypt(&out, recipients...)
	if err != nil {
		return nil, fmt.Errorf("encrypt credentials: %w", err)
	}
	if _, err := w.Write(plain); err != nil {
		return nil, fmt.Errorf("encrypt credentials: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("encrypt credentials: %w", err)
	}
	return out.Bytes(), nil
}
