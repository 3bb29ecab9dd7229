package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/previewapi"
)

// Previews keeps questions about what has not happened, with the pages that were answered.
type Previews struct {
	pool *pg.Pool
	now  func() time.Time
}

// sweepBatch bounds how many expired previews one statement deletes, with all their scopes.
const sweepBatch = 50

// Preview is a question about what has not happened, with how far it was answered.
type Preview struct {
	previewapi.Question
	AskedAt  time.Time
	Expires  time.Time
	Totals   previewapi.Totals
	Complete bool
	Reached  previewapi.Scope // the last scope that was evaluated
}

// PreviewScope is what a preview came to in one scope.
type PreviewScope struct {
	previewapi.Scope
	Fingerprint string
	Facts       map[string]string
	Announced   string
	Preview     *previewapi.ScopePreview // nil where there is no news
}

// Put keeps a preview with its first page.
func (ps *Previews) Put(ctx context.Context, p Preview, page []PreviewScope) error {
	question, err := encode(p.Question)
	if err != nil {
		return err
	}
	totals, err := encode(p.Totals)
	if err != nil {
		return err
	}
	return ps.pool.TenantTx(ctx, p.Tenant, func(tx pgx.Tx) error {
		err := exec(ctx, tx, `insert into resolver.previews (tenant, id, asked, expires, question, totals, complete,
			reached_cluster, reached_namespace)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
			p.Tenant, p.ID, p.AskedAt, p.Expires, question, totals, p.Complete, p.Reached.Cluster, p.Reached.Namespace)
		if err != nil {
			return fmt.Errorf("keep preview %s: %w", p.ID, err)
		}
		return putPreviewScopes(ctx, tx, p, page)
	})
}

// Extend keeps a further page. It is errs.Conflict where another request read on meanwhile.
func (ps *Previews) Extend(ctx context.Context, p Preview, from previewapi.Scope, page []PreviewScope) error {
	totals, err := encode(p.Totals)
	if err != nil {
		return err
	}
	return ps.pool.TenantTx(ctx, p.Tenant, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `update resolver.previews set totals = $3, complete = $4, reached_cluster = $5,
			reached_namespace = $6
			where tenant = $1 and id = $2 and not complete and (reached_cluster, reached_namespace) = ($7, $8)`,
			p.Tenant, p.ID, totals, p.Complete, p.Reached.Cluster, p.Reached.Namespace, from.Cluster, from.Namespace)
		if err != nil {
			return fmt.Errorf("keep a page of preview %s: %w", p.ID, pg.Err(err))
		}
		if tag.RowsAffected() == 0 {
			return errs.New(errs.Conflict, "another request reads the next page of preview %s; try again", p.ID)
		}
		return putPreviewScopes(ctx, tx, p, page)
	})
}

func putPreviewScopes(ctx context.Context, tx pgx.Tx, p Preview, page []PreviewScope) error {
	for _, x := range page {
		facts, err := encode(x.Facts)
		if err != nil {
			return err
		}
		var outlook json.RawMessage
		if x.Preview != nil {
			if outlook, err = encode(x.Preview); err != nil {
				return err
			}
		}
		err = exec(ctx, tx, `insert into resolver.preview_scopes (tenant, id, cluster, namespace, fingerprint, facts,
			announced, outlook)
			values ($1, $2, $3, $4, $5, $6, $7, $8)`, p.Tenant, p.ID, x.Cluster, x.Namespace, x.Fingerprint, facts, x.Announced, outlook)
		if err != nil {
			return fmt.Errorf("keep preview %s: %w", p.ID, err)
		}
	}
	return nil
}

// Read reads a preview that has not expired; errs.NotFound without one.
func (ps *Previews) Read(ctx context.Context, tenant string, id uuid.UUID) (Preview, error) {
	var p Preview
	var question, totals json.RawMessage
	err := ps.pool.QueryRow(ctx, `select asked, expires, question, totals, complete, reached_cluster, reached_namespace
		from resolver.previews
		where tenant = $1 and id = $2 and expires > $3`, tenant, id, ps.now()).
		Scan(&p.AskedAt, &p.Expires, &question, &totals, &p.Complete, &p.Reached.Cluster, &p.Reached.Namespace)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, errs.New(errs.NotFound, "there is no preview %s; previews are kept for %s", id, previewapi.Lifetime)
	}
	if err != nil {
		return p, fmt.Errorf("read preview %s: %w", id, pg.Err(err))
	}
	err = errors.Join(json.Unmarshal(question, &p.Question), json.Unmarshal(totals, &p.Totals))
	return p, errs.Wrap(errs.Internal, err, "read preview %s", id)
}

// ReadScopes reads at most limit scopes of a preview behind after, in order.
func (ps *Previews) ReadScopes(ctx context.Context, tenant string, id uuid.UUID, after previewapi.Scope, limit int) (
	[]PreviewScope, error,
) {
	rows, err := ps.pool.Query(ctx, `select cluster, namespace, fingerprint, facts, announced, outlook
		from resolver.preview_scopes
		where tenant = $1 and id = $2 and (cluster collate "C", namespace collate "C") > ($3, $4)
		order by cluster collate "C", namespace collate "C" limit $5`,
		tenant, id, after.Cluster, after.Namespace, limit)
	if err != nil {
		return nil, fmt.Errorf("read preview %s: %w", id, pg.Err(err))
	}
	list, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (x PreviewScope, err error) {
		var facts, outlook json.RawMessage
		if err := r.Scan(&x.Cluster, &x.Namespace, &x.Fingerprint, &facts, &x.Announced, &outlook); err != nil {
			return x, err
		}
		if outlook != nil {
			x.Preview = new(previewapi.ScopePreview)
			err = json.Unmarshal(outlook, x.Preview)
		}
		return x, errors.Join(err, json.Unmarshal(facts, &x.Facts))
	})
	if err != nil {
		return nil, fmt.Errorf("read preview %s: %w", id, pg.Err(err))
	}
	return list, nil
}

// Sweep deletes expired previews of all tenants, a bounded number at a time.
func (ps *Previews) Sweep(ctx context.Context) (deleted int64, err error) {
	for {
		tag, err := ps.pool.Exec(ctx, `delete from resolver.previews where (tenant, id) in (
			select tenant, id from resolver.previews where expires <= $1
			order by expires limit $2 for update skip locked)`, ps.now(), sweepBatch)
		if err != nil {
			return deleted, fmt.Errorf("delete expired previews: %w", pg.Err(err))
		}
		deleted += tag.RowsAffected()
		if tag.RowsAffected() < sweepBatch {
			return deleted, nil
		}
	}
}
