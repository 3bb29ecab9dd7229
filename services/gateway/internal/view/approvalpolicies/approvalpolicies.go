// Package approvalpolicies is the read model of approval policies.
package approvalpolicies

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Name is the name of the projection.
const Name = "gateway.approvalpolicies"

// Projection folds the events of approval policies.
func Projection() projection.Projection {
	return readmodel.Projection(Name, 2, []string{"approval_policies"},
		readmodel.On(set), readmodel.On(metadataChanged), readmodel.On(deleted))
}

func set(ctx context.Context, f readmodel.Fold, p events.ApprovalPolicySet) error {
	return f.Exec(ctx, `insert into `+f.Table("approval_policies")+
		` as p (tenant, name, spec, created, updated, stream, version) values ($1, $2, $3, $4, $4, $5, $6)
		on conflict (tenant, name) do update set spec = excluded.spec, updated = excluded.updated, stream = excluded.stream, version = excluded.version`,
		f.Tenant, p.Name, p.Spec, f.Time, f.Stream, f.Version)
}

func metadataChanged(ctx context.Context, f readmodel.Fold, p events.ApprovalPolicyMetadataChanged) error {
	return f.Exec(ctx, `update `+f.Table("approval_policies")+` set labels = $3, annotations = $4, updated = $5,
		version = $6 where tenant = $1 and name = $2`,
		f.Tenant, nameOf(f), readmodel.Labels(p.Metadata), p.Metadata.Annotations, f.Time, f.Version)
}

func deleted(ctx context.Context, f readmodel.Fold, _ events.ApprovalPolicyDeleted) error {
	return f.Exec(ctx, `delete from `+f.Table("approval_policies")+` where tenant = $1 and name = $2`, f.Tenant,
		nameOf(f))
}

func nameOf(f readmodel.Fold) string { return strings.TrimPrefix(f.Subject, "approval/") }

const columns = `select name, spec, labels, annotations, created, updated, stream, version
	from approval_policies`

type row struct {
	Name        string
	Spec        events.ApprovalPolicySpec
	Labels      map[string]string
	Annotations string // commitment
	Created     time.Time
	Updated     time.Time
	Stream      string
	Version     int64
}

func (r row) answer() model.ApprovalPolicy {
	return model.ApprovalPolicy{
		Name: r.Name, Metadata: model.Metadata{Labels: r.Labels}, Spec: model.PolicySpec(r.Spec), CreatedAt: r.Created,
		UpdatedAt: r.Updated, Stream: r.Stream, Version: r.Version,
	}
}

// Reader answers queries about approval policies.
type Reader struct {
	Pool   *pg.Pool
	Bodies *readmodel.Bodies // for annotations
}

// List returns approval policies by name.
func (r *Reader) List(
	ctx context.Context, who model.Caller, f model.PolicyFilter,
) (items []model.ApprovalPolicy, next []string, err error) {
	w := readmodel.Tenant("tenant", who.Tenant)
	if err := w.Label("labels", f.Label); err != nil {
		return nil, nil, err
	}
	if err := w.After(f.After, "name"); err != nil {
		return nil, nil, err
	}
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		rows, more, err := readmodel.Page[row](ctx, tx, columns, w, "name", f.Limit)
		for _, p := range rows {
			items = append(items, p.answer())
		}
		if more {
			next = []string{rows[len(rows)-1].Name}
		}
		return err
	})
	return items, next, err
}

// Get returns one approval policy.
func (r *Reader) Get(ctx context.Context, who model.Caller, name string) (p model.ApprovalPolicy, err error) {
	w := readmodel.Tenant("tenant", who.Tenant)
	w.Add("name = ?", name)
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		x, err := readmodel.One[row](ctx, tx, columns, w, errs.New(errs.NotFound, "no approval policy %q exists", name))
		if err != nil {
			return err
		}
		p = x.answer()
		return r.Bodies.Annotations(ctx, tx, who.Tenant, x.Annotations, &p.Metadata, &p.Unreadable)
	})
	return p, err
}
