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

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Kinds of bodies.
const (
	KindSubscriptionConfig = "subscription-config" // JSON of spec.config
	KindCatalogSource      = "catalog-source"      // JSON such as {"path": "/catalogs/fleet"}
	KindAnnotations        = "annotations"         // JSON of the annotations of an intent
	KindPlanReason         = "plan-reason"         // why an approver settled an obstacle of a plan, as text
)

// Bodies is the store of erasable bodies. Its zero value is ready for use.
type Bodies struct{}

// Commit stores a body and returns its commitment. Where previous is a commitment to the same body it
// is returned instead, so that repeating a request is no change.
func (b Bodies) Commit(
	ctx context.Context, tx pgx.Tx, tenant, kind string, body []byte, previous string,
) (string, error) {
	if previous != "" {
		old, err := b.Body(ctx, tx, tenant, previous)
		if err != nil {
			return "", err
		}
		if old != nil && bytes.Equal(old, body) {
			return previous, nil
		}
	}
	salt, commitment, err := commit(body)
	if err != nil {
		return "", err
	}
	_, err = tx.Exec(ctx, `insert into gateway.bodies (tenant, commitment, kind, salt, body)
		values ($1, $2, $3, $4, $5)`,
		tenant, commitment, kind, salt, body)
	if err != nil {
		return "", fmt.Errorf("store a body of kind %s: %w", kind, err)
	}
	return commitment, nil
}

// Body returns the body of a commitment, nil where it was erased or never was.
func (Bodies) Body(ctx context.Context, q pg.Querier, tenant, commitment string) ([]byte, error) {
	var body []byte
	err := q.QueryRow(ctx, `select body from gateway.bodies where tenant = $1 and commitment = $2`, tenant,
		commitment).Scan(&body)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the body of %s: %w", commitment, err)
	}
	return body, nil
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
