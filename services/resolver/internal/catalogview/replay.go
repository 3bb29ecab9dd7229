package catalogview

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/services/resolver/offer"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
)

// Replay answers from the reads of a recorded input, so that a decision can be made again (DESIGN D5). What
// was not asked then has no answer.
type Replay struct {
	views  *Views
	ctx    context.Context //nolint:containedctx // lives for one call, as View
	tenant string
	record resolve.Record
	err    error
}

var _ resolve.View = (*Replay)(nil)

// Replay returns the view of a recorded input.
func (v *Views) Replay(ctx context.Context, tenant string, r resolve.Record) *Replay {
	return &Replay{views: v, ctx: ctx, tenant: tenant, record: r}
}

// Again makes a recorded decision again. One of other rules than those of today is refused, as a failure of each
// subscription (ADR 0022).
func (v *Views) Again(ctx context.Context, tenant string, r resolve.Record) (resolve.Result, error) {
	replay := v.Replay(ctx, tenant, r)
	out := resolve.Resolve(r.Input(replay))
	return out, replay.Err()
}

// Err is the first failure to read.
func (r *Replay) Err() error { return r.err }

// Catalogs implements resolve.View.
func (r *Replay) Catalogs() []resolve.Catalog { return r.record.Catalogs }

func (r *Replay) answer(kind resolve.ReadKind, c resolve.CatalogKey, name string) string {
	i, ok := slices.BinarySearchFunc(r.record.Reads, resolve.Read{Kind: kind, Catalog: c, Name: name}, func(a, b resolve.Read) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Catalog.Namespace, b.Catalog.Namespace),
			cmp.Compare(a.Catalog.Name, b.Catalog.Name), cmp.Compare(a.Name, b.Name))
	})
	if !ok {
		return ""
	}
	return r.record.Reads[i].Answer
}

// Package implements resolve.View.
func (r *Replay) Package(c resolve.CatalogKey, name string) *offer.Package {
	d := r.answer(resolve.ReadPackage, c, name)
	if d == "" || r.err != nil {
		return nil
	}
	p, err := r.views.Package(r.ctx, r.tenant, d)
	r.err = err
	return p
}

// Providers implements resolve.View.
func (r *Replay) Providers(c resolve.CatalogKey, api catalog.GVK) []string {
	a := r.answer(resolve.ReadAPI, c, resolve.APIName(api))
	if a == "" {
		return nil
	}
	return strings.Split(a, ",")
}

// Image implements resolve.View.
func (r *Replay) Image(c resolve.CatalogKey, b resolve.BundleImage) resolve.Fetched {
	return resolve.ParseFetched(r.answer(resolve.ReadImage, c, b.ReadName()))
}

// Health implements resolve.View.
func (r *Replay) Health(c resolve.CatalogKey) resolve.Health {
	return resolve.Health(r.answer(resolve.ReadHealth, c, ""))
}

// Packages implements resolve.View.
func (r *Replay) Packages(c resolve.CatalogKey) []string {
	a := r.answer(resolve.ReadNames, c, "")
	if a == "" {
		return nil
	}
	return strings.Split(a, ",")
}
