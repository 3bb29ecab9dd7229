package store

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/source"
)

// Catalogs reads how catalogs are set up: settings, credentials, and what is due.
type Catalogs struct {
	pool   *pg.Pool
	bodies bodies.Keys
}

// Key names a catalog's life and its variant: the Kubernetes minor version of a templated reference
// (R-CAT-92), "" for a catalog that is the same everywhere and for what a templated one falls back to.
type Key struct{ Tenant, Stream, Variant string }

// table holds the state of a variant. The row of a catalog is its variant "", too.
func (k Key) table() string {
	if k.Variant == "" {
		return "catalog.catalogs"
	}
	return "catalog.variants"
}

// Catalog is one variant of one life of a catalog.
type Catalog struct {
	Key
	Subject          string
	SourceType       source.Type
	Spec             string // commitment of the settings
	Cluster          string // that alone sees it, "" where all do
	Templated        bool
	Disabled         bool
	Removed          bool
	Wanted, Polled   int64 // polls asked for, and the last one that was answered
	Fingerprint      string
	Revision         digest.Digest
	State            string
	FailedInput      string
	Quarantined      []string
	Reference, Error string
}

// read selects a variant of a catalog; with lock its rows are held until the transaction ends.
func (k Key) read(ctx context.Context, q pg.Querier, lock string) (Catalog, error) {
	c := Catalog{Key: k}
	err := q.QueryRow(ctx, `select c.subject, c.source_type, c.spec, c.visibility_cluster, c.templated, c.disabled,
		c.removed,
		  s.wanted, s.looked, s.fingerprint, s.revision, s.state, s.failed_input, s.quarantined, s.reference, s.error
		from catalog.catalogs c join `+k.table()+` s on s.tenant = c.tenant and s.stream = c.stream
		where c.tenant = $1 and c.stream = $2 and s.variant = $3 `+lock, k.Tenant, k.Stream, k.Variant).
		Scan(&c.Subject, &c.SourceType, &c.Spec, &c.Cluster, &c.Templated, &c.Disabled, &c.Removed,
			&c.Wanted, &c.Polled, &c.Fingerprint, &c.Revision, &c.State, &c.FailedInput, &c.Quarantined, &c.Reference,
			&c.Error)
	if errors.Is(err, pgx.ErrNoRows) {
		return c, errs.New(errs.NotFound, "no catalog has the stream %s and the variant %q", k.Stream, k.Variant)
	}
	return c, pg.Err(err)
}

// Get returns one catalog; errs.NotFound where there is none.
func (s *Catalogs) Get(ctx context.Context, k Key) (Catalog, error) { return k.read(ctx, s.pool, "") }

// Due returns what is to be polled by now and not marked already: another mark would forget how often
// that was tried in vain.
func (s *Catalogs) Due(ctx context.Context) ([]Key, error) {
	rows, err := s.pool.Query(ctx, `select s.tenant, s.stream, s.variant from catalog.catalogs c join (
		  select tenant, stream, variant, next_look from catalog.catalogs
		  union all select tenant, stream, variant, next_look from catalog.variants) s on s.tenant = c.tenant
		  and s.stream = c.stream
		where not c.removed and not c.disabled and s.next_look <= now()
		  and not exists (select from `+DirtyTable+` d where d.tenant = s.tenant and d.cluster = s.stream and d.namespace = s.variant)
		order by 1, 2, 3`)
	if err != nil {
		return nil, pg.Err(err)
	}
	due, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Key])
	return due, pg.Err(err)
}

// Settings returns the body of the catalog's source; errs.NotFound where it was erased.
func (s *Catalogs) Settings(ctx context.Context, c Catalog) (source.Settings, error) {
	var settings source.Settings
	body, err := s.bodies.Read(ctx, s.pool, bodies.View, c.Tenant, c.Spec)
	if err != nil {
		return settings, err
	}
	if body == nil {
		return settings, errs.New(errs.NotFound,
			"the settings of the source of catalog %s are not there any more; add the catalog again", c.Subject)
	}
	err = json.Unmarshal(body, &settings)
	return settings, errs.Wrap(errs.Invalid, err, "settings of the source of catalog %s", c.Subject)
}

// Secret returns an encrypted credential for catalog sources; errs.NotFound where there is none of the name.
func (s *Catalogs) Secret(ctx context.Context, tenant, name string) (
	kind source.SecretKind, ciphertext []byte, err error,
) {
	err = s.pool.QueryRow(ctx, `select kind, ciphertext from gateway_api.catalog_secrets
		where tenant = $1 and name = $2`, tenant, name).Scan(&kind, &ciphertext)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil, errs.New(errs.NotFound,
			"there is no catalog credential %q; give it, and the catalog is polled again", name)
	}
	return kind, ciphertext, pg.Err(err)
}
