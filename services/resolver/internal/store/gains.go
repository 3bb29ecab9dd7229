package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/catalog/compare"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
)

// Gains reads how much more upgrades may do or ask for, of those that the indexer has compared by the rules of today.
// What it could not compare is not in the answer, as what it has not compared yet.
func (s *Scopes) Gains(ctx context.Context, tenant string, upgrades []decide.Upgrade) (decide.PermissionGrowth, error) {
	froms, tos := make([]string, len(upgrades)), make([]string, len(upgrades))
	for i, u := range upgrades {
		froms[i], tos[i] = u.From, u.To
	}
	out := decide.PermissionGrowth{}
	rows, err := s.pool.Query(ctx, `select u.from_content, u.to_content, u.gained, u.difference
		from catalog_api.upgrades u
		join unnest($2::text[], $3::text[]) as w(f, t) on w.f = u.from_content and w.t = u.to_content
		where u.tenant = $1 and u.semantics = $4`, tenant, froms, tos, compare.Semantics)
	if err != nil {
		return nil, fmt.Errorf("read what upgrades gain: %w", pg.Err(err))
	}
	var u decide.Upgrade
	var gained int
	var packed []byte
	_, err = pgx.ForEachRow(rows, []any{&u.From, &u.To, &gained, &packed}, func() error {
		known, err := comparedFully(packed, gained)
		if known {
			out[u] = gained
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read what upgrades gain: %w", pg.Err(err))
	}
	return out, nil
}

// comparedFully says whether a difference is known: where a bundle cannot be read it says why instead.
func comparedFully(packed []byte, gained int) (bool, error) {
	if gained > 0 {
		return true, nil
	}
	raw, err := unpack(packed)
	if err != nil {
		return false, err
	}
	var d compare.Difference
	err = json.Unmarshal(raw, &d)
	return d.Problem == "", errs.Wrap(errs.Internal, err, "read a difference")
}
