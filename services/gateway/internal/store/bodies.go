// Package store keeps what stays outside the event log: bodies that may be erased, credentials
// encrypted to the installer, and tokens. It is an adapter to the gateway's own tables; every
// function works inside the caller's transaction, so that a body and the event that carries its
// commitment stand or fall together.
package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Kinds of bodies.
const (
	KindSubscriptionConfig = bodies.Configuration
	KindCatalogSource      = bodies.Source
	KindAnnotations        = bodies.Annotations
	KindPlanReason         = bodies.Reason
)

// Bodies is the store of erasable bodies.
type Bodies struct {
	Keys bodies.Keys
	// Clear, where it is set, keeps new bodies in the clear while it says so: a process of an older release could not
	// open them. They are sealed later (see Sealer).
	Clear *atomic.Bool
}

// Commit stores a body and returns its commitment. Where previous is a commitment to the same body it
// is returned instead, so that repeating a request is no change. A previous one that cannot be opened, since its key
// was lost or it is damaged, is another body: writing it again is the way out.
func (b Bodies) Commit(
	ctx context.Context, tx pgx.Tx, tenant string, kind bodies.Kind, body []byte, previous string,
) (string, error) {
	if previous != "" {
		rows, err := bodies.ReadRows(ctx, tx, bodies.Table, tenant, []string{previous})
		if err != nil {
			return "", err
		}
		for _, r := range rows {
			if old, err := b.Keys.Open(tenant, r); err == nil && bytes.Equal(old, body) {
				return previous, nil
			}
		}
	}
	salt, commitment, err := commit(body)
	if err != nil {
		return "", err
	}
	return commitment, b.put(ctx, tx, tenant, bodies.Row{Commitment: commitment, Kind: kind, Salt: salt, Body: body})
}

// put stores a row that is in the clear, sealed where that may be.
func (b Bodies) put(ctx context.Context, q pg.Querier, tenant string, r bodies.Row) error {
	r, err := b.seal(tenant, r)
	if err != nil {
		return err
	}
	return insertBody(ctx, q, tenant, r)
}

// insertBody stores a row as it is.
func insertBody(ctx context.Context, q pg.Querier, tenant string, r bodies.Row) error {
	_, err := q.Exec(ctx, `insert into gateway.bodies (tenant, commitment, kind, key_id, salt, body)
		values ($1, $2, $3, $4, $5, $6)`, tenant, r.Commitment, r.Kind, r.KeyID, r.Salt, r.Body)
	if err != nil {
		return fmt.Errorf("store a body of kind %s: %w", r.Kind, pg.Err(err))
	}
	return nil
}

func (b Bodies) seal(tenant string, r bodies.Row) (bodies.Row, error) {
	if b.Clear != nil && b.Clear.Load() {
		return r, nil
	}
	return b.Keys.Seal(tenant, r)
}

// Body returns the body of a commitment, nil where it was erased or never was.
func (b Bodies) Body(ctx context.Context, q pg.Querier, tenant, commitment string) ([]byte, error) {
	return b.Keys.Read(ctx, q, bodies.Table, tenant, commitment)
}

// Erase deletes a body with its salt and notes that. A body that was erased before is told as it was then, and done is
// false; one that nobody committed to is errs.NotFound. What a subscription or catalog rests on now is errs.Conflict.
func (Bodies) Erase(
	ctx context.Context, tx pgx.Tx, tenant string, e model.ErasedBody,
) (erased model.ErasedBody, done bool, err error) {
	err = tx.QueryRow(ctx, `delete from gateway.bodies where tenant = $1 and commitment = $2 returning kind`, tenant,
		e.ID).Scan(&e.Kind)
	if errors.Is(err, pgx.ErrNoRows) {
		err = tx.QueryRow(ctx, `select commitment, kind, at, actor from gateway.erased_bodies
			where tenant = $1 and commitment = $2`, tenant, e.ID).Scan(&e.ID, &e.Kind, &e.ErasedAt, &e.ErasedBy)
		if errors.Is(err, pgx.ErrNoRows) {
			return e, false, errs.New(errs.NotFound, "nothing is stored under %s", e.ID).At("path.id", "body-known")
		}
		e.ErasedAt = e.ErasedAt.UTC()
		return e, false, pg.Err(err)
	}
	if err != nil {
		return e, false, pg.Err(err)
	}
	var user string
	err = tx.QueryRow(ctx, `select coalesce(
		(select 'subscription ' || cluster || '/' || namespace || '/' || name from subscriptions
		 where tenant = $1 and config = $2 limit 1),
		(select 'fleet subscription ' || name from fleet_subscriptions
		 where tenant = $1 and (spec ->> 'config' = $2 or exists (select from jsonb_array_elements(spec -> 'overrides') o
		   where $2 in (o ->> 'config', o ->> 'mergedConfig'))) limit 1),
		(select 'catalog ' || subject from catalogs where tenant = $1 and spec = $2 limit 1), '')`,
		tenant, e.ID).Scan(&user)
	if err != nil {
		return e, false, pg.Err(err)
	}
	if user != "" {
		return e, false, errs.New(errs.Conflict, "%s works with %s: change or remove it first", user, e.ID).At("path.id",
			"body-in-use")
	}
	_, err = tx.Exec(ctx, `insert into gateway.erased_bodies (tenant, commitment, kind, at, actor)
		values ($1, $2, $3, $4, $5)`, tenant, e.ID, e.Kind, e.ErasedAt, e.ErasedBy)
	return e, err == nil, pg.Err(err)
}

func commit(body []byte) (salt []byte, commitment string, err error) {
	salt = make([]byte, digest.SaltBytes)
	if _, err := rand.Read(salt); err != nil {
		return nil, "", fmt.Errorf("draw a salt: %w", err)
	}
	return salt, digest.Commitment(salt, body), nil
}
