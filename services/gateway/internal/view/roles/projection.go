// Package roles is the read model of who may do what: roles, their bindings, and the labels of clusters that scopes
// choose by. It gives gateways the rights of whoever asks without a query for each request.
package roles

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
)

// Name is the name of the projection.
const Name = "gateway.roles"

// Projection folds the events of roles and bindings, and those of labels of clusters. Each moves the version of its
// tenant in the same transaction, so that who sees the old version has seen the old rights.
func Projection() projection.Projection {
	return readmodel.Projection(Name, 2, []string{"roles", "role_bindings", "access_clusters", "access_versions"},
		readmodel.On(defined), readmodel.On(deleted), readmodel.On(bound), readmodel.On(unbound),
		readmodel.On(clusterRegistered), readmodel.On(clusterLabelled), readmodel.On(clusterRemoved))
}

func defined(ctx context.Context, f readmodel.Fold, p events.RoleDefined) error {
	return exec(ctx, f, `insert into `+f.Table("roles")+` as r (tenant, name, rules, created, updated, stream, version)
		values ($1, $2, $3, $4, $4, $5, $6)
		on conflict (tenant, name) do update set rules = excluded.rules, updated = excluded.updated,
			stream = excluded.stream, version = excluded.version`,
		f.Tenant, p.Name, p.Rules, f.Time, f.Stream, f.Version)
}

func deleted(ctx context.Context, f readmodel.Fold, p events.RoleDeleted) error {
	return exec(ctx, f, `delete from `+f.Table("roles")+` where tenant = $1 and name = $2`, f.Tenant, p.Name)
}

func bound(ctx context.Context, f readmodel.Fold, p events.RoleBindingDefined) error {
	return exec(ctx, f, `insert into `+f.Table("role_bindings")+
		` as b (tenant, name, role, subjects, scope, created, updated, stream, version)
		values ($1, $2, $3, $4, $5, $6, $6, $7, $8)
		on conflict (tenant, name) do update set role = excluded.role, subjects = excluded.subjects,
			scope = excluded.scope, updated = excluded.updated, stream = excluded.stream, version = excluded.version`,
		f.Tenant, p.Name, p.Role, p.Subjects, p.Scope, f.Time, f.Stream, f.Version)
}

func unbound(ctx context.Context, f readmodel.Fold, p events.RoleBindingDeleted) error {
	return exec(ctx, f, `delete from `+f.Table("role_bindings")+` where tenant = $1 and name = $2`, f.Tenant, p.Name)
}

func clusterRegistered(ctx context.Context, f readmodel.Fold, p events.ClusterRegistered) error {
	return labelled(ctx, f, p.Labels)
}

func clusterLabelled(ctx context.Context, f readmodel.Fold, p events.ClusterLabelsChanged) error {
	return labelled(ctx, f, p.Labels)
}

func labelled(ctx context.Context, f readmodel.Fold, labels map[string]string) error {
	if labels == nil {
		labels = map[string]string{}
	}
	return exec(ctx, f, `insert into `+f.Table("access_clusters")+` (tenant, name, labels) values ($1, $2, $3)
		on conflict (tenant, name) do update set labels = excluded.labels`, f.Tenant, f.Subject, labels)
}

func clusterRemoved(ctx context.Context, f readmodel.Fold, _ events.ClusterRemoved) error {
	return exec(ctx, f, `delete from `+f.Table("access_clusters")+` where tenant = $1 and name = $2`, f.Tenant,
		f.Subject)
}

// exec changes a table and moves the version.
func exec(ctx context.Context, f readmodel.Fold, sql string, args ...any) error {
	if err := f.Exec(ctx, sql, args...); err != nil {
		return err
	}
	return f.Exec(ctx, `insert into `+f.Table("access_versions")+` (tenant, epoch, position) values ($1, $2, $3)
		on conflict (tenant) do update set epoch = excluded.epoch, position = excluded.position`,
		f.Tenant, f.Position.Epoch, f.Position.N)
}
