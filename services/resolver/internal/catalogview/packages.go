package catalogview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/content"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/resolver/offer"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// offered is what a resolution needs of a package document: some hundredth of it. Its JSON is that of
// catalog.Package with the rest left out.
type offered struct {
	Name           string           `json:"name"`
	DefaultChannel string           `json:"defaultChannel"`
	Channels       []offeredChannel `json:"channels"`
	Bundles        []offeredBundle  `json:"bundles"`
}

type offeredChannel struct {
	Name    string          `json:"name"`
	Entries []catalog.Entry `json:"entries"`
}

type offeredBundle struct {
	Name       string             `json:"name"`
	Version    string             `json:"version"`
	Image      string             `json:"image,omitempty"`
	Properties []catalog.Property `json:"properties"`
	Content    digest.Digest      `json:"content,omitempty"`
}

// Package returns a package document made ready, by its digest.
func (v *Views) Package(ctx context.Context, tenant, d string) (*offer.Package, error) {
	return v.packages.get(ctx, key{tenant, d}, func(ctx context.Context) (*offer.Package, error) {
		p, err := v.Document(ctx, tenant, d)
		if err != nil {
			return nil, err
		}
		return offer.Index(p, digest.Digest(d)), nil
	})
}

// Document returns what a resolution needs of a package document, also where the catalog holds it no longer.
func (v *Views) Document(ctx context.Context, tenant, d string) (p catalog.Package, err error) {
	var raw []byte
	err = v.pool.QueryRow(ctx, `select offer from resolver.package_apis where tenant = $1 and digest = $2
		and offer is not null`, tenant, d).Scan(&raw)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		o, err := v.offers(ctx, v.pool, tenant, d)
		if err != nil {
			return p, err
		}
		raw = o.document
	case err != nil:
		return p, fmt.Errorf("read package document %s: %w", d, pg.Err(err))
	}
	err = json.Unmarshal(raw, &p)
	return p, errs.Wrap(errs.Internal, err, "read what package document %s offers", d)
}

// Of returns the APIs of package documents, sorted, each once. What has to be found out is kept.
func (v *Views) Of(ctx context.Context, tx pgx.Tx, tenant string, digests []string) ([]string, error) {
	rows, err := tx.Query(ctx, `select digest, apis from resolver.package_apis where tenant = $1 and digest = any ($2)`,
		tenant, digests)
	if err != nil {
		return nil, pg.Err(err)
	}
	met, out := map[string]bool{}, []string{}
	var d string
	var apis []string
	if _, err := pgx.ForEachRow(rows, []any{&d, &apis},
		func() error { met[d] = true; out = append(out, apis...); return nil }); err != nil {
		return nil, pg.Err(err)
	}
	for _, d := range digests {
		if met[d] {
			continue
		}
		o, err := v.offers(ctx, tx, tenant, d)
		if err != nil {
			return nil, err
		}
		out = append(out, o.apis...)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// kept is what is kept of a package document.
type kept struct {
	apis     []string // sorted
	document []byte   // JSON of an offered
}

// offers reads a document of the catalog for what it offers, and keeps that.
func (v *Views) offers(ctx context.Context, q pg.Querier, tenant, d string) (o kept, err error) {
	short, err := readOffered(ctx, q, v.reader, tenant, d)
	if err != nil {
		return o, err
	}
	if o.document, err = json.Marshal(short); err != nil {
		return o, errs.Wrap(errs.Internal, err, "keep what package document %s offers", d)
	}
	o.apis = short.apis()
	_, err = q.Exec(ctx, `insert into resolver.package_apis (tenant, digest, apis, offer) values ($1, $2, $3, $4)
		on conflict (tenant, digest) do update set offer = excluded.offer where package_apis.offer is null`, tenant, d, o.apis, o.document)
	if err != nil {
		return o, fmt.Errorf("keep what package document %s offers: %w", d, pg.Err(err))
	}
	return o, nil
}

// apis are all that some bundle provides, as resolution.APIName writes them; a malformed one is passed over
// (RESOLVER-NOTES §11).
func (o offered) apis() []string {
	out := []string{}
	for _, b := range o.Bundles {
		for _, p := range b.Properties {
			var api catalog.GVK
			if p.Type == catalog.TypeGVK && json.Unmarshal(p.Value, &api) == nil {
				out = append(out, storable(resolution.APIName(api)))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func readOffered(ctx context.Context, q pg.Querier, reader *content.Reader, tenant, d string) (offered, error) {
	var o offered
	var s content.Stored
	err := q.QueryRow(ctx, `select document, recipe, packs from catalog_api.packages where tenant = $1 and digest = $2`,
		tenant, d).
		Scan(&s.Whole, &s.Recipe, &s.Packs)
	if errors.Is(err, pgx.ErrNoRows) {
		return o, errs.New(errs.NotFound, "package document %s is not stored", d)
	}
	if err != nil {
		return o, fmt.Errorf("read package document %s: %w", d, pg.Err(err))
	}
	raw, err := reader.Document(catalog.PackageType, digest.Digest(d), s)
	if err != nil {
		return o, fmt.Errorf("unpack package document %s: %w", d, err)
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return o, errs.Wrap(errs.Internal, err, "read package document %s", d)
	}
	return o, nil
}
