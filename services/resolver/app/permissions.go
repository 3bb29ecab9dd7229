package app

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog/compare"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
)

// permissionGrowth finds out how much more upgrades may do or ask for. What the indexer has not compared yet is
// compared here, so that a decision does not depend on who was faster; what cannot be compared is left out, and a
// person is asked.
func (w *worker) permissionGrowth(ctx context.Context, tenant string, upgrades []decide.Upgrade) (
	decide.PermissionGrowth, error,
) {
	if len(upgrades) == 0 {
		return nil, nil
	}
	out, err := w.store.Scopes.Gains(ctx, tenant, upgrades)
	if err != nil {
		return nil, err
	}
	for _, u := range upgrades {
		if _, known := out[u]; known {
			continue
		}
		gained, known, err := w.compareUpgrade(ctx, tenant, u)
		if err != nil {
			return nil, err
		}
		if known {
			out[u] = gained
		}
	}
	return out, nil
}

// compareUpgrade compares one upgrade; known is false where what is stored of it cannot be read or compared.
func (w *worker) compareUpgrade(ctx context.Context, tenant string, u decide.Upgrade) (
	gained int, known bool, err error,
) {
	var contents [2]bundle.Content
	for i, d := range []string{u.From, u.To} {
		contents[i], err = w.views.Content(ctx, tenant, d)
		switch errs.KindOf(err) {
		case "":
		case errs.Invalid, errs.Unprocessable, errs.TooLarge, errs.NotFound:
			return 0, false, nil
		default:
			return 0, false, err
		}
	}
	d, err := compare.Bundles(contents[0], contents[1])
	return d.Growth(), err == nil, nil // what is wrong with a bundle is an answer: a person is asked
}
