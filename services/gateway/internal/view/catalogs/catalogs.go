package catalogs

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const columns = `select c.subject, c.name, c.cluster, c.namespace, c.source_type, c.spec, c.priority,
	c.visibility_cluster, c.visibility_namespace,
	c.state, c.reason, c.rule, c.findings, c.document, c.revision, c.packages, c.bundles, c.event_id, c.added,
	c.updated, c.stream, c.version,
	c.disabled, c.configured, c.labels, c.annotations, ` + shownState + ` as shown
	from catalogs c`

type row struct {
	Subject             string
	Name                string
	Cluster             string
	Namespace           string
	SourceType          source.Type
	Spec                string // commitment of the source's settings
	Priority            int32
	VisibilityCluster   string
	VisibilityNamespace string
	Event               string `db:"event_id"`
	Added               time.Time
	Updated             time.Time
	Stream              string
	Version             int64
	Disabled            bool
	Configured          bool // by the installation, not by a person
	Labels              map[string]string
	Annotations         string // commitment
	Shown               string // state
	content
}

// content is what the log says about the content of a catalog.
type content struct {
	State    string
	Reason   string
	Rule     string
	Findings int
	Document string // digest of the findings
	Revision string
	Packages int
	Bundles  int
}

// Catalog is a catalog with what its answer does not show.
type Catalog struct {
	model.Catalog

	Subject string
	Spec    string // commitment of the source's settings

	document    string // digest of the findings
	annotations string // commitment
	configured  bool   // by the installation, not by a person
}

func (r row) catalog() Catalog {
	return Catalog{
		Catalog: model.Catalog{
			Name: r.Name, Cluster: r.Cluster, Namespace: r.Namespace, Metadata: model.Metadata{Labels: r.Labels},
			Source: model.CatalogSource{Type: r.SourceType}, Priority: r.Priority,
			Visibility: model.CatalogVisibility{Cluster: r.VisibilityCluster, Namespace: r.VisibilityNamespace},
			Disabled:   r.Disabled, State: r.State, Reason: r.Reason, Rule: r.Rule, Findings: r.Findings,
			Revision: r.Revision, Packages: r.Packages, Bundles: r.Bundles, Event: r.Event, AddedAt: r.Added,
			UpdatedAt: r.Updated, Stream: r.Stream, Version: r.Version,
		},
		Subject: r.Subject, Spec: r.Spec, document: r.Document, annotations: r.Annotations, configured: r.Configured,
	}
}

// Page reads a page of catalogs in the order of their subjects; w is about the table c.
func Page(ctx context.Context, q pg.Querier, w readmodel.Where, limit int) (items []Catalog, more bool, err error) {
	rows, more, err := readmodel.Page[row](ctx, q, columns, w, "c.cluster, c.namespace, c.name", limit)
	for _, r := range rows {
		items = append(items, r.catalog())
	}
	return items, more, err
}

// One reads one catalog.
func One(ctx context.Context, q pg.Querier, tenant string, name catalog.Name) (Catalog, error) {
	w := readmodel.Tenant("c.tenant", tenant)
	w.Add("c.subject = ?", name.Subject())
	r, err := readmodel.One[row](ctx, q, columns, w, NotKnown(name))
	return r.catalog(), err
}

// NotKnown is the refusal of a catalog that was never added, or was removed.
func NotKnown(name catalog.Name) error {
	return errs.New(errs.NotFound, "no catalog %q is known", name.Subject())
}

// AddSources adds the settings of the sources, which stand outside the log.
func AddSources(ctx context.Context, q pg.Querier, opening *readmodel.Bodies, tenant string, items []Catalog) error {
	commitments := make([]string, len(items))
	for i, c := range items {
		commitments[i] = c.Spec
	}
	sources, err := opening.Read(ctx, q, tenant, commitments...)
	if err != nil {
		return err
	}
	for i := range items {
		if b := sources.Text(items[i].Spec, model.PartSource, &items[i].Unreadable); b != nil {
			settings, err := source.Decode(b)
			if err != nil {
				return errs.Wrap(errs.Internal, err, "read the source of catalog %s", items[i].Subject)
			}
			items[i].Source, items[i].Display = model.SourceOf(items[i].Source.Type, settings)
		}
	}
	return nil
}

// shownState is the state of a catalog as answers have it: of a templated one that of its newest variant
// (addVariants).
const shownState = `coalesce((select v.state from catalog_api.catalog_status v where v.tenant = c.tenant
	and v.catalog = c.stream and v.variant <> ''
	order by string_to_array(v.variant, '.')::int[] desc limit 1), c.state)`

// Reader answers queries about catalogs.
type Reader struct {
	Pool *pg.Pool
	Log  *eventlog.Log
	// Bodies opens sources and annotations.
	Bodies *readmodel.Bodies
	// Defaults are the names of the catalogs that come with the installation.
	Defaults map[string]bool
}

// places are the columns by which a catalog lies in a scope: where it can be seen.
var places = readmodel.Places{
	Cluster: "coalesce(nullif(c.visibility_cluster, ''), c.cluster)", Namespace: "c.visibility_namespace",
	Catalog: "case when c.namespace = '' then c.name else c.namespace || '/' || c.name end", OpenToAll: true,
}

// Within keeps of the catalogs c those that can be seen where the caller is allowed a verb on them.
func Within(w *readmodel.Where, who model.Caller, v access.Verb, on access.Resource) {
	w.Within(who, v, on, places)
}

// Offered says whether a catalog can be seen where the caller is allowed a verb on it, or on what it holds.
func (r *Reader) Offered(
	ctx context.Context, who model.Caller, v access.Verb, on access.Resource, name catalog.Name,
) (seen bool, err error) {
	if _, unlimited := who.Rights.Scopes(v, on); unlimited {
		return true, nil // what is not there is told by who looks for it
	}
	w := readmodel.Tenant("c.tenant", who.Tenant)
	w.Add("c.subject = ?", name.Subject())
	Within(&w, who, v, on)
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		found, _, err := Page(ctx, tx, w, 1)
		seen = len(found) > 0
		return err
	})
	return seen, err
}

// List returns catalogs: hub catalogs first, each by its subject.
func (r *Reader) List(
	ctx context.Context, who model.Caller, f model.CatalogFilter,
) (items []model.Catalog, next []string, err error) {
	w := readmodel.Tenant("c.tenant", who.Tenant)
	Within(&w, who, access.List, access.Catalogs)
	switch f.State {
	case "":
	case model.CatalogDisabled:
		w.Add("c.disabled")
	default:
		w.Equal(shownState, f.State)
		w.Add("not c.disabled")
	}
	if err := w.Label("c.labels", f.Label); err != nil {
		return nil, nil, err
	}
	if f.Cluster != "" {
		w.Add("c.visibility_cluster in ('', ?)", f.Cluster)
	}
	if err := listing.Narrow(&w, who, f.Choice, f.After); err != nil {
		return nil, nil, err
	}
	var found []Catalog
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		rows, more, err := readmodel.Page[row](ctx, tx, columns, w, listing.OrderBy(f.Sort), f.Limit)
		if err != nil {
			return err
		}
		if more {
			next = listing.Next(f.Sort, rows[len(rows)-1])
		}
		for _, x := range rows {
			found = append(found, x.catalog())
		}
		return r.complete(ctx, tx, who.Tenant, found)
	})
	items = make([]model.Catalog, len(found))
	for i, c := range found {
		items[i] = c.Catalog
	}
	return items, next, err
}

// complete adds to catalogs what stands outside the log.
func (r *Reader) complete(ctx context.Context, q pg.Querier, tenant string, items []Catalog) error {
	if err := AddSources(ctx, q, r.Bodies, tenant, items); err != nil {
		return err
	}
	for i := range items {
		c := &items[i]
		c.Default = c.configured && c.Cluster == "" && r.Defaults[c.Name]
	}
	return addVariants(ctx, q, tenant, items)
}

// Get returns one catalog with the findings of its last failure.
func (r *Reader) Get(ctx context.Context, who model.Caller, name catalog.Name) (model.Catalog, error) {
	var items [1]Catalog
	c := &items[0]
	err := r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) (err error) {
		if *c, err = One(ctx, tx, who.Tenant, name); err != nil {
			return err
		}
		if err := r.complete(ctx, tx, who.Tenant, items[:]); err != nil {
			return err
		}
		if err := r.Bodies.Annotations(ctx, tx, who.Tenant, c.annotations, &c.Metadata, &c.Unreadable); err != nil {
			return err
		}
		if c.Conditions, err = conditions(ctx, tx, who.Tenant, c.Catalog); err != nil {
			return err
		}
		if c.document != "" {
			c.Details, err = readmodel.Document(ctx, tx, `select findings::text from catalog_api.findings
				where tenant = $1 and document = $2 and catalog = $3`,
				who.Tenant, c.document, c.Stream)
		}
		return err
	})
	return c.Catalog, err
}

// maxUsers bounds the catalogs that are gone through for who uses a secret; installations have dozens.
const maxUsers = 10_000

// Secrets lists credentials by name, never their values. The table that holds them is the list: a read model beside it
// would hold nothing more.
func (r *Reader) Secrets(
	ctx context.Context, who model.Caller, p model.Page,
) (items []model.CatalogSecret, next []string, err error) {
	w := readmodel.Tenant("tenant", who.Tenant)
	if err := w.After(p.After, "name"); err != nil {
		return nil, nil, err
	}
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		rows, more, err := readmodel.Page[secretRow](ctx, tx,
			`select name, kind, commitment, updated from gateway.catalog_secrets`, w, "name", p.Limit)
		if err != nil {
			return err
		}
		for _, s := range rows {
			items = append(items, model.CatalogSecret{
				Name: s.Name, Kind: s.Kind, Commitment: s.Commitment, UpdatedAt: s.Updated,
			})
		}
		if more {
			next = []string{items[len(items)-1].Name}
		}
		users, err := r.secretUsers(ctx, tx, who.Tenant)
		for i := range items {
			items[i].UsedBy = users[items[i].Name]
		}
		return err
	})
	return items, next, err
}

type secretRow struct {
	Name       string
	Kind       source.SecretKind
	Commitment string
	Updated    time.Time
}

// secretUsers says which catalogs name a secret.
func (r *Reader) secretUsers(ctx context.Context, tx pgx.Tx, tenant string) (map[string][]string, error) {
	rows, _, err := Page(ctx, tx, readmodel.Tenant("c.tenant", tenant), maxUsers)
	if err != nil {
		return nil, err
	}
	if err := AddSources(ctx, tx, r.Bodies, tenant, rows); err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for _, c := range rows {
		for _, name := range c.Source.Secrets {
			if !slices.Contains(out[name], c.Subject) {
				out[name] = append(out[name], c.Subject)
			}
		}
	}
	return out, nil
}
