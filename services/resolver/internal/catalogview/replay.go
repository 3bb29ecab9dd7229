package catalogview

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/services/resolver/offer"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
)

// Replay answers from the reads of a recorded input, so that a decision can be made again (DESIGN D5). What
// was not asked then has no answer.
type Replay struct {
	views  *Views
	ctx    context.Context //nolint:containedctx // lives for one call, as View
	tenant string
	record resolution.Record
	err    error
}

var _ resolution.View = (*Replay)(nil)

// Replay returns the view of a recorded input.
func (v *Views) Replay(ctx context.Context, tenant string, r resolution.Record) *Replay {
	return &Replay{views: v, ctx: ctx, tenant: tenant, record: r}
}

// Recompute makes a recorded decision again. One of other rules than those of today is refused, as a failure of each
// subscription (ADR 0022).
func (v *Views) Recompute(ctx context.Context, tenant string, r resolution.Record) (resolution.Result, error) {
	replay := v.Replay(ctx, tenant, r)
	out := resolve.Resolve(r.Input(replay))
	return out, replay.Err()
}

// Err is the first failure to read.
func (r *Replay) Err() error { return r.err }

// Catalogs implements resolution.View.
func (r *Replay) Catalogs() []resolution.Catalog { return r.record.Catalogs }

func (r *Replay) answer(kind resolution.ReadKind, c resolution.CatalogKey, name string) string {
	i, ok := slices.BinarySearchFunc(r.record.Reads, resolution.Read{Kind: kind, Catalog: c, Name: name},
		func(a, b resolution.Read) int {
			return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Catalog.Namespace, b.Catalog.Namespace),
				cmp.Compare(a.Catalog.Name, b.Catalog.Name), cmp.Compare(a.Name, b.Name))
		})
	if !ok {
		return ""
	}
	return r.record.Reads[i].Answer
}

// Package implements resolution.View.
func (r *Replay) Package(c resolution.CatalogKey, name string) *offer.Package {
	d := r.answer(resolution.ReadPackage, c, name)
	if d == "" || r.err != nil {
		return nil
	}
	p, err := r.views.Package(r.ctx, r.tenant, d)
	r.err = err
	return p
}

// Providers implements resolution.View.
func (r *Replay) Providers(c resolution.CatalogKey, api catalog.GVK) []string {
	a := r.answer(resolution.ReadAPI, c, resolution.APIName(api))
	if a == "" {
		return nil
	}
	return strings.Split(a, ",")
}

// Image implements resolution.View.
func (r *Replay) Image(c resolution.CatalogKey, b resolution.BundleImage) resolution.Fetched {
	return resolution.ParseFetched(r.answer(resolution.ReadImage, c, b.ReadName()))
}

// Health implements resolution.View.
func (r *Replay) Health(c resolution.CatalogKey) resolution.Health {
	return resolution.Health(r.answer(resolution.ReadHealth, c, ""))
}

// Packages implements resolution.View.
func (r *Replay) Packages(c resolution.CatalogKey) []string {
	a := r.answer(resolution.ReadNames, c, "")
	if a == "" {
		return nil
	}
	return strings.Split(a, ",")
}
