package store

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// Planned is an install plan with its document; nil where that was collected.
type Planned struct {
	State    installplan.State
	Document *installplan.Document
}

// Plan reads an install plan by its id; one that was collected, from the record.
func (s *Store) Plan(ctx context.Context, tenant, id string) (Planned, error) {
	var p Planned
	var state, document []byte
	err := s.pool.QueryRow(ctx, `select p.state, d.document from resolver.plans p
		left join resolver.plan_documents d on d.tenant = p.tenant and d.plan = p.plan
		where p.tenant = $1 and p.plan = $2`, tenant, id).Scan(&state, &document)
	if errors.Is(err, pgx.ErrNoRows) {
		p.State, err = s.recordedPlan(ctx, tenant, id)
		return p, err
	}
	if err != nil {
		return p, pg.Err(err)
	}
	if document != nil {
		p.Document = new(installplan.Document)
		err = json.Unmarshal(document, p.Document)
	}
	return p, errs.Wrap(errs.Internal, errors.Join(err, json.Unmarshal(state, &p.State)), "read install plan %s", id)
}

// Explanation reads an explanation by its digest; nil where it was collected.
func (s *Store) Explanation(ctx context.Context, tenant, d string) (*resolution.Explanation, error) {
	var raw []byte
	err := s.pool.QueryRow(ctx, `select document from resolver.explanations where tenant = $1 and digest = $2`, tenant,
		d).Scan(&raw)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // not kept any more is no error
	}
	if err != nil {
		return nil, pg.Err(err)
	}
	e := new(resolution.Explanation)
	return e, errs.Wrap(errs.Internal, json.Unmarshal(raw, e), "read explanation %s", d)
}
