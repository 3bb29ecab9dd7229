// Package catalogs is the read model of catalogs: what the gateway was asked for, what the indexer made of it, and the
// credentials of their sources.
package catalogs

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Name is the name of the projection.
const Name = "gateway.catalogs"

// Projection folds the events of catalogs.
func Projection() projection.Projection {
	return readmodel.Projection(Name, 4, []string{"catalogs"},
		readmodel.On(added), readmodel.On(changed), readmodel.On(metadataChanged), readmodel.On(removed),
		readmodel.On(revisionPublished), readmodel.On(loadFailed))
}

func added(ctx context.Context, f readmodel.Fold, p events.CatalogAdded) error {
	n := catalog.ParseSubject(f.Subject)
	return f.Exec(ctx, `insert into `+f.Table("catalogs")+
		` (tenant, subject, name, cluster, namespace, source_type, spec, priority, visibility_cluster,
			visibility_namespace, state, reason, rule, findings, document, revision, packages, bundles, event_id, added, updated, stream, version, disabled, configured)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, '', '', 0, '', '', 0, 0, $12, $13, $13, $14, $15, $16, $17)`,
		f.Tenant, f.Subject, n.Name, n.Cluster, n.Namespace, p.SourceType, p.Spec, p.Priority, p.Visibility.Cluster,
		p.Visibility.Namespace, model.CatalogLoading, f.ID, f.Time, f.Stream, f.Version, p.Disabled,
		f.Actor == model.ActorConfiguration)
}

func changed(ctx context.Context, f readmodel.Fold, p events.CatalogChanged) error {
	return update(ctx, f,
		`source_type = $5, spec = $6, priority = $7, visibility_cluster = $8, visibility_namespace = $9, disabled = $10`,
		p.SourceType, p.Spec, p.Priority, p.Visibility.Cluster, p.Visibility.Namespace, p.Disabled)
}

func metadataChanged(ctx context.Context, f readmodel.Fold, p events.CatalogMetadataChanged) error {
	return update(ctx, f, `labels = $5, annotations = $6`, readmodel.Labels(p.Metadata), p.Metadata.Annotations)
}

func revisionPublished(ctx context.Context, f readmodel.Fold, p events.CatalogRevisionPublished) error {
	return update(ctx, f,
		`state = $5, reason = '', rule = '', findings = 0, document = '', revision = $6, packages = $7, bundles = $8, event_id = $9`,
		model.CatalogReady, p.Revision, p.Packages, p.Bundles, f.ID)
}

func loadFailed(ctx context.Context, f readmodel.Fold, p events.CatalogLoadFailed) error {
	return update(ctx, f, `state = $5, reason = $6, rule = $7, findings = $8, document = $9, event_id = $10`,
		model.CatalogFailed, p.Reason, p.Rule, p.Findings, p.Document, f.ID)
}

func removed(ctx context.Context, f readmodel.Fold, _ events.CatalogRemoved) error {
	return f.Exec(ctx, `delete from `+f.Table("catalogs")+` where tenant = $1 and subject = $2`, f.Tenant, f.Subject)
}

// update changes the catalog of the event's subject; arguments count from $5.
func update(ctx context.Context, f readmodel.Fold, set string, args ...any) error {
	return f.Exec(ctx, `update `+f.Table("catalogs")+` set updated = $3, version = $4, `+set+
		` where tenant = $1 and subject = $2`,
		append([]any{f.Tenant, f.Subject, f.Time, f.Version}, args...)...)
}
