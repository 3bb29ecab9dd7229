package view

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	libcatalog "github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/compare"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Upgrades lists what the upgrades of a package change, along the edges of its update graph in order of
// name. The cursor is the pair of names.
func (b *Browser) Upgrades(ctx context.Context, who model.Caller, name catalog.Name, pkg string, f model.UpgradeFilter) ([]model.Upgrade, []string, error) {
	p, _, _, err := b.onPackage(ctx, who, name, f.View, pkg)
	if err != nil {
		return nil, nil, err
	}
	after, err := afterEdge(f.After)
	if err != nil {
		return nil, nil, err
	}
	items := []model.Upgrade{}
	var next []string
	for _, e := range compare.Edges(*p) {
		if f.From != "" && e.From != f.From || f.To != "" && e.To != f.To || e.From < after.From || e.From == after.From && e.To <= after.To {
			continue
		}
		if len(items) == f.Limit {
			last := items[len(items)-1]
			next = []string{last.From, last.To}
			break
		}
		items = append(items, model.Upgrade{From: e.From, To: e.To, FromContent: contentOf(p, e.From), ToContent: contentOf(p, e.To)})
	}
	err = b.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		if err := fetchedContents(ctx, tx, who.Tenant, name, p, items); err != nil {
			return err
		}
		for i := range items {
			if err := b.Content.compared(ctx, tx, who.Tenant, &items[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return items, next, err
}

func afterEdge(after []string) (compare.Edge, error) {
	switch len(after) {
	case 0:
		return compare.Edge{}, nil
	case 2:
		return compare.Edge{From: after[0], To: after[1]}, nil
	default:
		return compare.Edge{}, errs.New(errs.Invalid, "the cursor does not belong to this list").At("query.cursor", "cursor")
	}
}

func contentOf(p *libcatalog.Package, bundle string) string {
	b, _ := p.Bundle(bundle)
	return string(b.Content)
}

// fetchedContents fills in the contents of bundles that the catalog names by image alone, as far as they were
// fetched.
func fetchedContents(ctx context.Context, q pg.Querier, tenant string, name catalog.Name, p *libcatalog.Package, items []model.Upgrade) error {
	type bundle struct{ name, image string }
	wanted := map[bundle][]*string{}
	var images []string
	want := func(of string, content *string) {
		if b, ok := p.Bundle(of); ok && b.Content == "" && b.Image != "" {
			key := bundle{b.Name, b.Image}
			if wanted[key] == nil {
				images = append(images, b.Image)
			}
			wanted[key] = append(wanted[key], content)
		}
	}
	for i := range items {
		want(items[i].From, &items[i].FromContent)
		want(items[i].To, &items[i].ToContent)
	}
	if len(images) == 0 {
		return nil
	}
	rows, err := q.Query(ctx, `select bundle, image, content from catalog_api.bundle_images where tenant = $1 and package = $3 and image = any ($4)
		and content <> '' and catalog = (select stream from catalog_api.catalogs where tenant = $1 and name = $2)`, tenant, name.Subject(), p.Name, images)
	if err != nil {
		return err
	}
	var found bundle
	var content string
	_, err = pgx.ForEachRow(rows, []any{&found.name, &found.image, &content}, func() error {
		for _, place := range wanted[found] {
			*place = content
		}
		return nil
	})
	return err
}

// planned says what a plan's replacements change, for the eyes of an approver. What is replaced is
// what is installed, or was when the plan is over.
func (c *Content) planned(ctx context.Context, q pg.Querier, tenant string, p *model.InstallPlan) error {
	for _, b := range p.Bundles {
		if b.Replaces == "" {
			continue
		}
		u := model.Upgrade{From: b.Replaces, To: b.CSV, ToContent: b.Content}
		err := pg.Err(q.QueryRow(ctx, `select content from (
			select 0 as rank, content, 0::bigint as epoch, 0::bigint as position from gateway.operators
				where tenant = $1 and cluster = $2 and namespace = $3 and name = $4
			union all
			select 1, x->>'content', p.epoch, p.position from gateway.installplans p, jsonb_array_elements(p.bundles) x
				where p.tenant = $1 and p.cluster = $2 and p.namespace = $3 and p.phase = 'Complete' and x->>'csv' = $4) known
			where content <> '' order by rank, epoch desc, position desc limit 1`, tenant, p.Cluster, p.Namespace, b.Replaces).Scan(&u.FromContent))
		if err != nil && !errs.Is(err, errs.NotFound) {
			return err
		}
		if err := c.compared(ctx, q, tenant, &u); err != nil {
			return err
		}
		p.Changes = append(p.Changes, u)
	}
	return nil
}

// compared fills in what the indexer knows of an upgrade.
func (c *Content) compared(ctx context.Context, q pg.Querier, tenant string, u *model.Upgrade) error {
	switch {
	case u.FromContent == "" || u.ToContent == "":
		u.State = model.UpgradeUnknown
		return nil
	case u.FromContent == u.ToContent:
		u.State = model.UpgradeCompared
		return nil
	}
	u.State = model.UpgradePending
	var packed []byte
	err := q.QueryRow(ctx, `select difference from catalog_api.upgrades where tenant = $1 and from_content = $2 and to_content = $3`,
		tenant, u.FromContent, u.ToContent).Scan(&packed)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return pg.Err(err)
	}
	raw, err := c.decoder.DecodeAll(packed, nil)
	if err == nil {
		err = json.Unmarshal(raw, &u.Difference)
	}
	if err != nil {
		return errs.Wrap(errs.Internal, err, "read the difference of %s and %s", u.From, u.To)
	}
	u.State, u.Breaking = model.UpgradeCompared, u.Difference.Breaking()
	return nil
}
