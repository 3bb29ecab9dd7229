// Package reseal encrypts stored credentials to the active key. The service that alone can decrypt them does it, at its
// start and then now and again, so that nobody has to give a credential anew after a new key has become active.
//
// Every row stands for itself and is replaced by compare-and-set on what was read: killed between two rows the next run
// goes on with the rest; done twice, or by two replicas at once, one of them replaces nothing.
package reseal

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/keys/seal"
	"github.com/chandler-fleet/chandler/libs/pg"
)

const (
	// Every is how often rows that are encrypted to another key are looked for: a credential that was stored by a
	// gateway with the settings of before is encrypted anew within this time.
	Every = time.Minute
	// batch bounds what is held in memory at once.
	batch = 32
)

// Table is what a service may encrypt anew.
type Table struct {
	What     string // for the log
	View     string // tenant, name, commitment, ciphertext, key_id
	Function string // compare-and-set of one row
	Limit    int    // of a decrypted row, in bytes
}

// ClusterCredentials are the installer's.
func ClusterCredentials(limit int) Table {
	return Table{"kubeconfigs", "gateway_api.cluster_credentials", "gateway_api.reseal_cluster_credential", limit}
}

// CatalogSecrets are the catalog-indexer's.
func CatalogSecrets(limit int) Table {
	return Table{
		"credentials of catalogs", "gateway_api.catalog_secrets", "gateway_api.reseal_catalog_secret",
		limit,
	}
}

// Runner encrypts the rows of a table anew.
type Runner struct {
	Pool       *pg.Pool
	Table      Table
	Identities seal.Identities
	Log        *slog.Logger

	failed int // rows that could not be opened in the last round, so that it is logged once
}

// Run works until ctx ends. It returns nil.
func (r *Runner) Run(ctx context.Context) error {
	t := time.NewTicker(Every)
	defer t.Stop()
	for {
		if _, err := r.Once(ctx); err != nil && ctx.Err() == nil && !errs.Is(err, errs.Unavailable) {
			r.Log.WarnContext(ctx, "cannot encrypt to the active key; trying again", "what", r.Table.What, "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// row is one stored credential.
type row struct {
	tenant, name, commitment, keyID string
	ciphertext                      []byte
}

// Once goes through the table and returns how many rows were encrypted anew.
func (r *Runner) Once(ctx context.Context) (done int, err error) {
	var last row
	failed := 0
	for {
		rows, err := r.next(ctx, last)
		if err != nil {
			return done, err
		}
		for _, one := range rows {
			changed, err := r.reseal(ctx, one)
			switch {
			case errs.Is(err, errs.Unavailable):
				return done, err
			case err != nil:
				failed++
			case changed:
				done++
			}
			last = one
		}
		if len(rows) < batch {
			break
		}
	}
	if done > 0 {
		r.Log.InfoContext(ctx, "encrypted to the active key", "what", r.Table.What, "rows", done, "key",
			r.Identities.Active().ID.String())
	}
	if failed != r.failed {
		r.failed = failed
		r.Log.WarnContext(ctx, "some rows are encrypted to a key that is not set here", "what", r.Table.What, "rows",
			failed)
	}
	return done, nil
}

func (r *Runner) next(ctx context.Context, last row) ([]row, error) {
	rows, err := r.Pool.Query(ctx, `select tenant, name, commitment, key_id, ciphertext from `+r.Table.View+`
		where key_id <> $1 and (tenant, name) > ($2, $3) order by tenant, name limit $4`,
		r.Identities.Active().ID.String(), last.tenant, last.name, batch)
	if err != nil {
		return nil, pg.Err(err)
	}
	list, err := pgx.CollectRows(rows, func(c pgx.CollectableRow) (x row, err error) {
		return x, c.Scan(&x.tenant, &x.name, &x.commitment, &x.keyID, &x.ciphertext)
	})
	return list, pg.Err(err)
}

func (r *Runner) reseal(ctx context.Context, x row) (changed bool, err error) {
	sealed, err := r.Identities.Reseal(x.ciphertext, r.Table.Limit)
	if err != nil {
		return false, err
	}
	err = r.Pool.QueryRow(ctx, `select `+r.Table.Function+`($1, $2, $3, $4, $5, $6)`, x.tenant, x.name, x.commitment,
		x.keyID, sealed, r.Identities.Active().ID.String()).Scan(&changed)
	return changed, pg.Err(err)
}
