package bodies

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/pg"
)

const (
	// Table is where the gateway reads bodies.
	Table = "gateway.bodies"
	// View is where the other services read those of their kinds.
	View = "gateway_api.bodies"
)

// Read returns the body of a commitment, nil where it was erased, never was, or is of a kind that the caller's role
// does not read.
func (k Keys) Read(ctx context.Context, q pg.Querier, from, tenant, commitment string) ([]byte, error) {
	if commitment == "" {
		return nil, nil
	}
	all, err := k.ReadAll(ctx, q, from, tenant, []string{commitment})
	return all[commitment], err
}

// ReadAll returns the bodies of commitments; what Read finds nothing for is left out.
func (k Keys) ReadAll(
	ctx context.Context, q pg.Querier, from, tenant string, commitments []string,
) (map[string][]byte, error) {
	rows, err := ReadRows(ctx, q, from, tenant, commitments)
	if err != nil {
		return nil, err
	}
	out := make(map[string][]byte, len(rows))
	for _, r := range rows {
		body, err := k.Open(tenant, r)
		if err != nil {
			return nil, err
		}
		out[r.Commitment] = append([]byte{}, body...) // an empty body is not nil
	}
	return out, nil
}

// ReadRows returns the rows of commitments as they are stored.
func ReadRows(ctx context.Context, q pg.Querier, from, tenant string, commitments []string) ([]Row, error) {
	rows, err := q.Query(ctx, `select commitment, kind, key_id, salt, body from `+from+`
		where tenant = $1 and commitment = any ($2)`, tenant, commitments)
	if err != nil {
		return nil, pg.Err(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Row])
	return list, pg.Err(err)
}
