package catalogview

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/content"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// contentBytes bounds unpacked bundles: one new channel head is rendered for many namespaces in a row. The
// largest of 5,312 published bundles has 6.8 MB.
const contentBytes = 16 << 20

func contentWeight(_ key, c bundle.Content) int {
	n := 0
	for _, m := range c.Manifests {
		n += len(m)
	}
	return n
}

// Content returns the manifests of a bundle; errs.NotFound where they are not stored. It is shared and must
// not be changed.
func (v *Views) Content(ctx context.Context, tenant, d string) (bundle.Content, error) {
	return v.contents.get(ctx, key{tenant, d}, func(ctx context.Context) (bundle.Content, error) {
		return readContent(ctx, v.pool, v.reader, tenant, d)
	})
}

func readContent(ctx context.Context, q pg.Querier, reader *content.Reader, tenant, d string) (bundle.Content, error) {
	var s content.Stored
	err := q.QueryRow(ctx, `select pack, recipe, packs from catalog_api.contents where tenant = $1 and digest = $2`,
		tenant, d).Scan(&s.Whole, &s.Recipe, &s.Packs)
	if errors.Is(err, pgx.ErrNoRows) {
		return bundle.Content{}, errs.New(errs.NotFound, "the manifests of bundle %s are not stored", d)
	}
	if err != nil {
		return bundle.Content{}, fmt.Errorf("read bundle %s: %w", d, pg.Err(err))
	}
	canonical, err := reader.Bundle(digest.Digest(d), s)
	if err != nil {
		return bundle.Content{}, err
	}
	c, _, err := bundle.FromCanonical(canonical)
	return c, err
}
