package hub

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/content"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// deprecations are those of a package document. Documents never change, and are large beside what is wanted of them
// here: that is kept, up to knownLimit documents.
func (c *contents) deprecations(ctx context.Context, tx pgx.Tx, tenant string, d digest.Digest) (
	[]catalog.Deprecation, error,
) {
	key := tenant + " " + string(d)
	c.mu.Lock()
	list, known := c.deprecated[key]
	c.mu.Unlock()
	if known {
		return list, nil
	}
	var s content.Stored
	err := tx.QueryRow(
		ctx, `select document, recipe, packs from catalog_api.packages where tenant = $1 and digest = $2`, tenant,
		string(d)).
		Scan(&s.Whole, &s.Recipe, &s.Packs)
	if err != nil {
		return nil, errs.Wrap(errs.KindOf(pg.Err(err)), err, "read package document %s", d)
	}
	raw, err := c.reader.Document(catalog.PackageType, d, s)
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "unpack package document %s", d)
	}
	var p struct {
		Deprecations []catalog.Deprecation `json:"deprecations"`
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, errs.Wrap(errs.Internal, err, "read package document %s", d)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.deprecated) >= knownLimit {
		clear(c.deprecated)
	}
	c.deprecated[key] = p.Deprecations
	return p.Deprecations, nil
}
