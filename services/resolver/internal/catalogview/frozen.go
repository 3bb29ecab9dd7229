package catalogview

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
	v2 "github.com/chandler-fleet/chandler/services/resolver/resolve/v2"
)

// semanticsV1 is known to package v2, too.
const semanticsV1 = "chandler.resolve.v1"

// Again makes a recorded decision again, by the rules that made it: those of versions 1 and 2 are kept beside
// those of today (DESIGN D5).
func (v *Views) Again(ctx context.Context, tenant string, r resolve.Record) (out resolve.Result, err error) {
	replay := v.Replay(ctx, tenant, r)
	switch r.Semantics {
	case v2.Semantics, semanticsV1:
		var record v2.Record
		if err := reread(r, &record); err != nil {
			return out, err
		}
		if err := reread(v2.Resolve(record.Input(frozen{replay})), &out); err != nil {
			return out, err
		}
	default:
		out = resolve.Resolve(r.Input(replay))
	}
	return out, replay.Err()
}

// reread turns a value into another type with the same JSON. What a later version added is absent.
func reread(from, into any) error {
	raw, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	return errs.Wrap(errs.Internal, err, "read a recorded decision as %s", fmt.Sprintf("%T", into))
}

// frozen is a replay as the rules of version 2 ask it.
type frozen struct{ *Replay }

var _ v2.View = frozen{}

// Catalogs implements v2.View.
func (f frozen) Catalogs() []v2.Catalog {
	out := make([]v2.Catalog, 0, len(f.record.Catalogs))
	for _, c := range f.record.Catalogs {
		out = append(out, v2.Catalog{Key: v2.CatalogKey(c.Key), Priority: c.Priority, Ready: c.Ready, Revision: c.Revision})
	}
	return out
}

// Package implements v2.View.
func (f frozen) Package(c v2.CatalogKey, name string) *v2.Package {
	d := f.answer(resolve.ReadPackage, resolve.CatalogKey(c), name)
	if d == "" || f.err != nil {
		return nil
	}
	p, err := f.views.Document(f.ctx, f.tenant, d)
	if f.err = err; err != nil {
		return nil
	}
	return v2.Index(p, digest.Digest(d))
}

// Providers implements v2.View.
func (f frozen) Providers(c v2.CatalogKey, api catalog.GVK) []string {
	return f.Replay.Providers(resolve.CatalogKey(c), api)
}

// Packages implements v2.View.
func (f frozen) Packages(c v2.CatalogKey) []string {
	return f.Replay.Packages(resolve.CatalogKey(c))
}

// Image implements v2.View.
func (f frozen) Image(c v2.CatalogKey, b v2.BundleImage) v2.Fetched {
	return v2.Fetched(f.Replay.Image(resolve.CatalogKey(c), resolve.BundleImage(b)))
}

// Health implements v2.View.
func (f frozen) Health(c v2.CatalogKey) v2.Health {
	return v2.Health(f.Replay.Health(resolve.CatalogKey(c)))
}
