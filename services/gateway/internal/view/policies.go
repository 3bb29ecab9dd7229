package view

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func policiesProjection() projection.Projection {
	return projection.Projection{
		Name: Policies, Version: 2, Schema: schema, Tables: []string{"approval_policies"},
		Types: typesOf(events.ApprovalPolicySet{}, events.ApprovalPolicyMetadataChanged{}, events.ApprovalPolicyDeleted{}),
		Apply: applyPolicy,
	}
}

func applyPolicy(ctx context.Context, tx pgx.Tx, t projection.Tables, e eventlog.Recorded) error {
	table := t.Name("approval_policies")
	switch p := e.Payload.(type) {
	case events.ApprovalPolicySet:
		return exec(ctx, tx, `insert into `+table+` as p (tenant, name, spec, created, updated, stream, version) values ($1, $2, $3, $4, $4, $5, $6)
			on conflict (tenant, name) do update set spec = excluded.spec, updated = excluded.updated, stream = excluded.stream, version = excluded.version`,
			e.Tenant, p.Name, p.Spec, e.Time, e.Stream, e.Version)
	case events.ApprovalPolicyMetadataChanged:
		return exec(ctx, tx, `update `+table+` set labels = $3, annotations = $4, updated = $5, version = $6 where tenant = $1 and name = $2`,
			e.Tenant, policyName(e), labelsOf(p.Metadata), p.Metadata.Annotations, e.Time, e.Version)
	case events.ApprovalPolicyDeleted:
		return exec(ctx, tx, `delete from `+table+` where tenant = $1 and name = $2`, e.Tenant, policyName(e))
	default:
		return unknown(e)
	}
}

func policyName(e eventlog.Recorded) string { return strings.TrimPrefix(e.Subject, "approval/") }

const policyColumns = `select p.name, p.spec, p.labels, p.annotations, p.created, p.updated, p.stream, p.version
	from gateway.approval_policies p`

// policyRow is an approval policy with what its answer does not show.
type policyRow struct {
	model.ApprovalPolicy
	annotations string // commitment
}

func scanPolicy(row pgx.Row) (p policyRow, err error) {
	var spec events.ApprovalPolicySpec
	err = row.Scan(&p.Name, &spec, &p.Labels, &p.annotations, &p.CreatedAt, &p.UpdatedAt, &p.Stream, &p.Version)
	p.Spec = model.PolicySpec(spec)
	return p, err
}

// ApprovalPolicies lists approval policies by name.
func (r *Reader) ApprovalPolicies(ctx context.Context, who model.Caller, f model.PolicyFilter) (items []model.ApprovalPolicy, next []string, err error) {
	var w where
	w.add("p.tenant = ?", who.Tenant)
	if err := w.label("p.labels", f.Label); err != nil {
		return nil, nil, err
	}
	if err := w.after(f.After, "p.name"); err != nil {
		return nil, nil, err
	}
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		rows, more, err := page(ctx, tx, policyColumns+w.String()+" order by p.name", w.args, f.Limit, scanPolicy)
		for _, p := range rows {
			items = append(items, p.ApprovalPolicy)
		}
		if more {
			next = []string{rows[len(rows)-1].Name}
		}
		return err
	})
	return items, next, err
}

// ApprovalPolicy returns one approval policy.
func (r *Reader) ApprovalPolicy(ctx context.Context, who model.Caller, name string) (p model.ApprovalPolicy, err error) {
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		row, err := one(ctx, tx, policyColumns+` where p.tenant = $1 and p.name = $2`, []any{who.Tenant, name},
			errs.New(errs.NotFound, "no approval policy %q exists", name), scanPolicy)
		if err != nil {
			return err
		}
		p = row.ApprovalPolicy
		return annotations(ctx, tx, who.Tenant, row.annotations, &p.Metadata)
	})
	return p, err
}
