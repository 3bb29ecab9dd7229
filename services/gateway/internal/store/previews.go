package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/preview"
)

const (
	// sweepBatch bounds how many expired previews one statement deletes.
	sweepBatch = 100
	// auditLife is how long the record of questions is kept: a year and a month, so that an audit of a year finds all
	// of it.
	auditLife = 396 * 24 * time.Hour
)

// Previews keeps previews and the record of questions.
type Previews struct{ Bodies Bodies }

// Put keeps a preview that was asked for.
func (s Previews) Put(ctx context.Context, tx pgx.Tx, p preview.Kept) error {
	request, err := json.Marshal(p.Request)
	if err != nil {
		return errs.Wrap(errs.Internal, err, "encode preview %s", p.ID)
	}
	question, err := s.Bodies.seal(p.Tenant, questionOf(p.ID, "", request, false))
	if err != nil {
		return err
	}
	writes, err := json.Marshal(p.Writes)
	if err != nil {
		return errs.Wrap(errs.Internal, err, "encode preview %s", p.ID)
	}
	_, err = tx.Exec(ctx, `insert into gateway.previews (tenant, id, actor, asked, expires, request, validate, writes,
		not_applicable, bodies, key_id)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
		p.Tenant, p.ID, p.Actor, p.Asked, p.Expires, question.Body, string(p.Validate), writes, p.NotApplicable,
		append([]string{}, p.Bodies...), question.KeyID)
	if err != nil {
		return fmt.Errorf("keep preview %s: %w", p.ID, err)
	}
	return nil
}

// Get reads a preview; errs.NotFound without one, or where it expired.
func (s Previews) Get(
	ctx context.Context, q pg.Querier, tenant string, id uuid.UUID, now time.Time,
) (preview.Kept, error) {
	return s.read(ctx, q, tenant, id, now, "")
}

// NoPreview is the refusal of a preview that there is not, or that the caller may not see.
func NoPreview(id uuid.UUID) error {
	return errs.New(errs.NotFound, "there is no preview %s; previews are kept for %s", id, previewapi.Lifetime).At(
		"path.id", "preview-known")
}

// Lock is Get for who will carry it out.
func (s Previews) Lock(
	ctx context.Context, tx pgx.Tx, tenant string, id uuid.UUID, now time.Time,
) (preview.Kept, error) {
	return s.read(ctx, tx, tenant, id, now, " for update")
}

// questionOf is what a preview was asked about, as it is stored.
func questionOf(id uuid.UUID, keyID string, request []byte, onlySealed bool) bodies.Row {
	return bodies.Row{
		Commitment: id.String(), Kind: bodies.Question, KeyID: keyID, Body: request, OnlySealed: onlySealed,
	}
}

func (s Previews) read(
	ctx context.Context, q pg.Querier, tenant string, id uuid.UUID, now time.Time, lock string,
) (preview.Kept, error) {
	p := preview.Kept{Tenant: tenant, ID: id}
	var request, writes, done []byte
	var validate, keyID string
	var onlySealed bool
	var applied *time.Time
	err := q.QueryRow(ctx, `select actor, asked, expires, request, key_id, validate, writes, not_applicable, bodies,
		applied, applied_by, done, '`+string(bodies.Question)+`' = `+bodies.OnlySealed+`
		from gateway.previews where tenant = $1 and id = $2 and expires > $3`+lock, tenant, id, now).
		Scan(&p.Actor, &p.Asked, &p.Expires, &request, &keyID, &validate, &writes, &p.NotApplicable, &p.Bodies,
			&applied, &p.AppliedBy, &done, &onlySealed)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, NoPreview(id)
	}
	if err != nil {
		return p, fmt.Errorf("read preview %s: %w", id, pg.Err(err))
	}
	if request, err = s.Bodies.Keys.Open(tenant, questionOf(id, keyID, request, onlySealed)); err != nil {
		return p, err
	}
	p.Validate = model.Validate(validate)
	if applied != nil {
		p.AppliedAt = *applied
	}
	err = errors.Join(json.Unmarshal(request, &p.Request), json.Unmarshal(writes, &p.Writes),
		json.Unmarshal(done, &p.Done))
	return p, errs.Wrap(errs.Internal, err, "read preview %s", id)
}

// Alive counts the previews of a tenant that have not expired.
func (Previews) Alive(ctx context.Context, q pg.Querier, tenant string, now time.Time) (n int, err error) {
	err = q.QueryRow(ctx, `select count(*) from gateway.previews where tenant = $1 and expires > $2`, tenant, now).Scan(
		&n)
	if err != nil {
		return 0, fmt.Errorf("count previews: %w", pg.Err(err))
	}
	return n, nil
}

// Applied notes that a preview was carried out: its bodies belong to the events now.
func (Previews) Applied(ctx context.Context, tx pgx.Tx, p preview.Kept) error {
	done, err := json.Marshal(p.Done)
	if err != nil {
		return errs.Wrap(errs.Internal, err, "encode what carried out preview %s", p.ID)
	}
	_, err = tx.Exec(ctx, `update gateway.previews set applied = $3, applied_by = $4, done = $5, bodies = '{}'
		where tenant = $1 and id = $2`,
		p.Tenant, p.ID, p.AppliedAt, p.AppliedBy, done)
	if err != nil {
		return fmt.Errorf("note that preview %s was carried out: %w", p.ID, err)
	}
	return nil
}

// Audit records a question.
func (Previews) Audit(ctx context.Context, q pg.Querier, a preview.Asked) error {
	about := &a.Preview
	if a.Preview == uuid.Nil {
		about = nil
	}
	_, err := q.Exec(ctx, `insert into gateway.read_audit (tenant, id, at, actor, action, about, preview, via)
		values ($1, $2, $3, $4, $5, $6, $7, $8)`,
		a.Tenant, a.ID, a.At, a.Actor, a.Action, a.About, about, a.Via)
	if err != nil {
		return fmt.Errorf("record who asked: %w", pg.Err(err))
	}
	return nil
}

// Asked reads at most limit questions of a tenant before one, newest first; the zero time and id are the newest.
func (Previews) Asked(
	ctx context.Context, q pg.Querier, tenant string, before time.Time, id uuid.UUID, limit int,
) ([]preview.Asked, error) {
	rows, err := q.Query(ctx, `select tenant, id, at, actor, action, about, coalesce(preview,
		'00000000-0000-0000-0000-000000000000'), via from gateway.read_audit
		where tenant = $1 and ($2 or (at, id) < ($3, $4)) order by at desc, id desc limit $5`, tenant, before.IsZero(), before, id, limit)
	if err != nil {
		return nil, fmt.Errorf("read who asked: %w", pg.Err(err))
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[preview.Asked])
	if err != nil {
		return nil, fmt.Errorf("read who asked: %w", pg.Err(err))
	}
	return list, nil
}

// Sweep deletes expired previews of all tenants with the bodies that only they had, and what of the record of questions
// is older than auditLife, a bounded number at a time.
func (Previews) Sweep(ctx context.Context, q pg.Querier, now time.Time) error {
	for {
		tag, err := q.Exec(ctx, `with gone as (delete from gateway.previews where (tenant, id) in (
			  select tenant, id from gateway.previews where expires <= $1
			  order by expires limit $2 for update skip locked) returning tenant, bodies),
			erased as (delete from gateway.bodies b using gone where b.tenant = gone.tenant
			and b.commitment = any (gone.bodies))
			select from gone`, now, sweepBatch)
		if err != nil {
			return fmt.Errorf("delete expired previews: %w", pg.Err(err))
		}
		if tag.RowsAffected() < sweepBatch {
			break
		}
	}
	_, err := q.Exec(ctx, `delete from gateway.read_audit where (tenant, id) in (select tenant, id
		from gateway.read_audit where at < $1 order by at limit $2)`,
		now.Add(-auditLife), sweepBatch)
	if err != nil {
		return fmt.Errorf("delete old records of questions: %w", pg.Err(err))
	}
	return nil
}

// Saved are the bodies of commitments as they are stored.
func (Previews) Saved(ctx context.Context, q pg.Querier, tenant string, commitments []string) ([]bodies.Row, error) {
	return bodies.ReadRows(ctx, q, bodies.Table, tenant, commitments)
}

// Keep stores bodies as they were stored before.
func (Previews) Keep(ctx context.Context, q pg.Querier, tenant string, list []bodies.Row) error {
	for _, r := range list {
		if err := insertBody(ctx, q, tenant, r); err != nil {
			return err
		}
	}
	return nil
}
