package view

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func catalogsProjection() projection.Projection {
	return projection.Projection{
		Name: Catalogs, Version: 4, Schema: schema, Tables: []string{"catalogs"},
		Types: typesOf(events.CatalogAdded{}, events.CatalogChanged{}, events.CatalogMetadataChanged{}, events.CatalogRemoved{},
			events.CatalogRevisionPublished{}, events.CatalogLoadFailed{}),
		Apply: applyCatalog,
	}
}

func applyCatalog(ctx context.Context, tx pgx.Tx, t projection.Tables, e eventlog.Recorded) error {
	table := t.Name("catalogs")
	update := func(set string, args ...any) error {
		return exec(ctx, tx, `update `+table+` set updated = $3, version = $4, `+set+` where tenant = $1 and subject = $2`,
			append([]any{e.Tenant, e.Subject, e.Time, e.Version}, args...)...)
	}
	switch p := e.Payload.(type) {
	case events.CatalogAdded:
		n := catalog.ParseSubject(e.Subject)
		return exec(ctx, tx, `insert into `+table+` (tenant, subject, name, cluster, namespace, source_type, spec, priority, visibility_cluster,
				visibility_namespace, state, reason, rule, findings, document, revision, packages, bundles, event_id, added, updated, stream, version, disabled, configured)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, '', '', 0, '', '', 0, 0, $12, $13, $13, $14, $15, $16, $17)`,
			e.Tenant, e.Subject, n.Name, n.Cluster, n.Namespace, p.SourceType, p.Spec, p.Priority, p.Visibility.Cluster,
			p.Visibility.Namespace, model.CatalogLoading, e.ID, e.Time, e.Stream, e.Version, p.Disabled, e.Actor == model.ActorConfiguration)
	case events.CatalogChanged:
		return update(`source_type = $5, spec = $6, priority = $7, visibility_cluster = $8, visibility_namespace = $9, disabled = $10`,
			p.SourceType, p.Spec, p.Priority, p.Visibility.Cluster, p.Visibility.Namespace, p.Disabled)
	case events.CatalogMetadataChanged:
		return update(`labels = $5, annotations = $6`, labelsOf(p.Metadata), p.Metadata.Annotations)
	case events.CatalogRevisionPublished:
		return update(`state = $5, reason = '', rule = '', findings = 0, document = '', revision = $6, packages = $7, bundles = $8, event_id = $9`,
			model.CatalogReady, p.Revision, p.Packages, p.Bundles, e.ID)
	case events.CatalogLoadFailed:
		return update(`state = $5, reason = $6, rule = $7, findings = $8, document = $9, event_id = $10`,
			model.CatalogFailed, p.Reason, p.Rule, p.Findings, p.Document, e.ID)
	case events.CatalogRemoved:
		return exec(ctx, tx, `delete from `+table+` where tenant = $1 and subject = $2`, e.Tenant, e.Subject)
	default:
		return unknown(e)
	}
}

const catalogColumns = `select c.subject, c.name, c.cluster, c.namespace, c.source_type, c.spec, c.priority, c.visibility_cluster, c.visibility_namespace,
	c.state, c.reason, c.rule, c.findings, c.document, c.revision, c.packages, c.bundles, c.event_id, c.added, c.updated, c.stream, c.version, c.disabled, c.configured,
	c.labels, c.annotations
	from gateway.catalogs c`

// catalogRow is a catalog with what its answer does not show.
type catalogRow struct {
	model.Catalog
	subject, spec, document string
	annotations             string // commitment
	configured              bool   // by the installation, not by a person
}

func scanCatalog(row pgx.Row) (catalogRow, error) {
	var c catalogRow
	err := row.Scan(&c.subject, &c.Name, &c.Cluster, &c.Namespace, &c.Source.Type, &c.spec, &c.Priority, &c.Visibility.Cluster, &c.Visibility.Namespace,
		&c.State, &c.Reason, &c.Rule, &c.Findings, &c.document, &c.Revision, &c.Packages, &c.Bundles, &c.Event, &c.AddedAt, &c.UpdatedAt, &c.Stream, &c.Version, &c.Disabled, &c.configured,
		&c.Labels, &c.annotations)
	return c, err
}

// openSources adds the settings of the sources, which stand outside the log.
func openSources(ctx context.Context, q pg.Querier, tenant string, items []catalogRow) error {
	commitments := make([]string, len(items))
	for i, c := range items {
		commitments[i] = c.spec
	}
	rows, err := q.Query(ctx, `select commitment, body from gateway.bodies where tenant = $1 and commitment = any ($2)`, tenant, commitments)
	if err != nil {
		return err
	}
	var commitment string
	var body []byte
	bodies := map[string][]byte{}
	_, err = pgx.ForEachRow(rows, []any{&commitment, &body}, func() error {
		bodies[commitment] = append([]byte(nil), body...)
		return nil
	})
	if err != nil {
		return err
	}
	for i := range items {
		if b, ok := bodies[items[i].spec]; ok {
			settings, err := source.Decode(b)
			if err != nil {
				return errs.Wrap(errs.Internal, err, "read the source of catalog %s", items[i].subject)
			}
			items[i].Source, items[i].Display = model.SourceOf(items[i].Source.Type, settings)
		}
	}
	return nil
}

// shownCatalogState is the state of a catalog as answers have it: of a templated one that of its newest variant
// (addVariants).
const shownCatalogState = `coalesce((select v.state from catalog_api.catalog_status v where v.tenant = c.tenant and v.catalog = c.stream and v.variant <> ''
	order by string_to_array(v.variant, '.')::int[] desc limit 1), c.state)`

// Catalogs lists catalogs: hub catalogs first, each by its subject.
func (r *Reader) Catalogs(ctx context.Context, who model.Caller, f model.CatalogFilter) (items []model.Catalog, next []string, err error) {
	var w where
	w.add("c.tenant = ?", who.Tenant)
	switch f.State {
	case "":
	case model.CatalogDisabled:
		w.add("c.disabled")
	default:
		w.equal(shownCatalogState, f.State)
		w.add("not c.disabled")
	}
	if err := w.label("c.labels", f.Label); err != nil {
		return nil, nil, err
	}
	if f.Cluster != "" {
		w.add("c.visibility_cluster in ('', ?)", f.Cluster)
	}
	if err := w.after(f.After, "c.cluster", "c.namespace", "c.name"); err != nil {
		return nil, nil, err
	}
	var rows []catalogRow
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		var more bool
		rows, more, err = page(ctx, tx, catalogColumns+w.String()+" order by c.cluster, c.namespace, c.name", w.args, f.Limit, scanCatalog)
		if more {
			last := rows[len(rows)-1]
			next = []string{last.Cluster, last.Namespace, last.Name}
		}
		if err != nil {
			return err
		}
		return r.complete(ctx, tx, who.Tenant, rows)
	})
	items = make([]model.Catalog, len(rows))
	for i, c := range rows {
		items[i] = c.Catalog
	}
	return items, next, err
}

// complete adds to catalogs what stands outside the log.
func (r *Reader) complete(ctx context.Context, q pg.Querier, tenant string, items []catalogRow) error {
	if err := openSources(ctx, q, tenant, items); err != nil {
		return err
	}
	for i := range items {
		c := &items[i]
		c.Default = c.configured && c.Cluster == "" && r.Defaults[c.Name]
	}
	return addVariants(ctx, q, tenant, items)
}

func noCatalog(name catalog.Name) error {
	return errs.New(errs.NotFound, "no catalog %q is known", name.Subject())
}

// Catalog returns one catalog with the findings of its last failure.
func (r *Reader) Catalog(ctx context.Context, who model.Caller, name catalog.Name) (model.Catalog, error) {
	var items [1]catalogRow
	c := &items[0]
	err := r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) (err error) {
		*c, err = one(ctx, tx, catalogColumns+` where c.tenant = $1 and c.subject = $2`, []any{who.Tenant, name.Subject()}, noCatalog(name), scanCatalog)
		if err != nil {
			return err
		}
		if err := r.complete(ctx, tx, who.Tenant, items[:]); err != nil {
			return err
		}
		if err := annotations(ctx, tx, who.Tenant, c.annotations, &c.Metadata); err != nil {
			return err
		}
		if c.Conditions, err = catalogConditions(ctx, tx, who.Tenant, c.Catalog); err != nil {
			return err
		}
		if c.document != "" {
			c.Details, err = document(ctx, tx, `select findings::text from catalog_api.findings where tenant = $1 and document = $2 and catalog = $3`,
				who.Tenant, c.document, c.Stream)
		}
		return err
	})
	return c.Catalog, err
}

// Revisions lists what a catalog has served, newest first.
func (r *Reader) Revisions(ctx context.Context, who model.Caller, name catalog.Name, p model.Page) (items []model.Revision, next []string, err error) {
	var w where
	w.add("v.tenant = ?", who.Tenant)
	if len(p.After) > 0 {
		before, err := time.Parse(time.RFC3339Nano, p.After[0])
		if err != nil || len(p.After) != 2 {
			return nil, nil, errs.New(errs.Invalid, "the cursor does not belong to this list").At("query.cursor", "cursor")
		}
		w.add("(v.created, v.revision) < (?, ?)", before, p.After[1])
	}
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		c, err := one(ctx, tx, catalogColumns+` where c.tenant = $1 and c.subject = $2`, []any{who.Tenant, name.Subject()}, noCatalog(name), scanCatalog)
		if err != nil {
			return err
		}
		w.add("v.catalog = ?", c.Stream)
		var more bool
		items, more, err = page(ctx, tx, `select v.revision, v.previous, v.packages, v.bundles, v.version, v.created, v.variant from catalog_api.revisions v`+w.String()+
			` order by v.created desc, v.revision desc`, w.args, p.Limit, scanRevision)
		if more {
			last := items[len(items)-1]
			next = []string{last.Created.Format(time.RFC3339Nano), last.Revision}
		}
		if err != nil {
			return err
		}
		return revisionChanges(ctx, tx, r.Log, who.Tenant, c.Stream, items)
	})
	return items, next, err
}

// revisionChanges adds to revisions what their events say. An event that is not at hand any more leaves none.
func revisionChanges(ctx context.Context, q pg.Querier, log *eventlog.Log, tenant, stream string, items []model.Revision) error {
	at := map[int64]*model.Revision{}
	first := int64(math.MaxInt64)
	for i := range items {
		items[i].Changes = []model.RevisionChange{}
		at[items[i].Version] = &items[i]
		first = min(first, items[i].Version)
	}
	if len(items) == 0 {
		return nil
	}
	id, err := events.ParseStreamID(stream)
	if err != nil {
		return errs.Wrap(errs.Internal, err, "read the stream of a catalog")
	}
	recorded, err := log.ReadStream(ctx, q, tenant, id, first-1)
	if err != nil {
		return err
	}
	for _, r := range recorded {
		p, published := r.Payload.(events.CatalogRevisionPublished)
		if v := at[r.Version]; published && v != nil {
			for _, c := range p.Changes {
				v.Changes = append(v.Changes, changeOf(c))
			}
		}
	}
	return nil
}

func changeOf(c events.PackageChange) model.RevisionChange {
	out := model.RevisionChange{
		Package: c.Package, Change: c.Change, Digest: c.Digest, BundlesAdded: c.BundlesAdded, BundlesRemoved: c.BundlesRemoved, BundlesMutated: c.BundlesMutated,
		DefaultChannelFrom: c.DefaultChannelFrom, DefaultChannelTo: c.DefaultChannelTo, Deprecated: c.Deprecated, Undeprecated: c.Undeprecated,
	}
	for _, h := range c.Heads {
		out.Heads = append(out.Heads, model.ChannelMove(h))
	}
	return out
}

func scanRevision(row pgx.Row) (model.Revision, error) {
	var v model.Revision
	err := row.Scan(&v.Revision, &v.Previous, &v.Packages, &v.Bundles, &v.Version, &v.Created, &v.Variant)
	return v, err
}

// maxUsers bounds the catalogs that are gone through for who uses a secret; installations have dozens.
const maxUsers = 10_000

// CatalogSecrets lists credentials by name, never their values. The table that holds them is the list: a
// read model beside it would say nothing more.
func (r *Reader) CatalogSecrets(ctx context.Context, who model.Caller, p model.Page) (items []model.CatalogSecret, next []string, err error) {
	var w where
	w.add("tenant = ?", who.Tenant)
	if err := w.after(p.After, "name"); err != nil {
		return nil, nil, err
	}
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		var more bool
		items, more, err = page(ctx, tx, `select name, kind, commitment, updated from gateway.catalog_secrets`+w.String()+` order by name`, w.args, p.Limit, scanSecret)
		if err != nil {
			return err
		}
		if more {
			next = []string{items[len(items)-1].Name}
		}
		users, err := secretUsers(ctx, tx, who.Tenant)
		for i := range items {
			items[i].UsedBy = users[items[i].Name]
		}
		return err
	})
	return items, next, err
}

func scanSecret(row pgx.Row) (s model.CatalogSecret, err error) {
	var kind string
	err = row.Scan(&s.Name, &kind, &s.Commitment, &s.UpdatedAt)
	s.Kind = source.SecretKind(kind)
	return s, err
}

// secretUsers tells which catalogs name a secret.
func secretUsers(ctx context.Context, tx pgx.Tx, tenant string) (map[string][]string, error) {
	rows, _, err := page(ctx, tx, catalogColumns+` where c.tenant = $1 order by c.subject`, []any{tenant}, maxUsers, scanCatalog)
	if err != nil {
		return nil, err
	}
	if err := openSources(ctx, tx, tenant, rows); err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for _, c := range rows {
		for _, name := range c.Source.Secrets {
			if !slices.Contains(out[name], c.subject) {
				out[name] = append(out[name], c.subject)
			}
		}
	}
	return out, nil
}
