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
	// OnlySealed are, in SQL, the kinds of which no body in the clear is believed any more. It is asked once a query.
	OnlySealed = "any ((select gateway_api.sealed_kinds())::text[])"
)

// Read returns the body of a commitment, nil where it was erased, never was, or is of a kind that the caller's role
// does not read.
func (k Keys) Read(ctx context.Context, q pg.Querier, from, tenant, commitment string) ([]byte, error) {
	if commitment == "" {
		return nil, nil
	}
	all, err := k.ReadAll(ctx, q, from, tenant, []string{commitment})
	if err != nil {
		return nil, err
	}
	return all[commitment].Text, all[commitment].Err
}

// Body is one that was read. Where it does not open, Err says why, as errs.Error with a rule.
type Body struct {
	Text  []byte
	Kind  Kind
	KeyID string // of the key that it is sealed by
	Err   error
}

// ReadAll returns the bodies of commitments; what Read finds nothing for is left out. One that does not open says so
// itself: the others are there for who can do without it.
func (k Keys) ReadAll(
	ctx context.Context, q pg.Querier, from, tenant string, commitments []string,
) (map[string]Body, error) {
	rows, err := ReadRows(ctx, q, from, tenant, commitments)
	if err != nil {
		return nil, err
	}
	out := make(map[string]Body, len(rows))
	for _, r := range rows {
		b := Body{Kind: r.Kind, KeyID: r.KeyID}
		var text []byte
		if text, b.Err = k.Open(tenant, r); b.Err == nil {
			b.Text = append([]byte{}, text...) // an empty body is not nil
		}
		out[r.Commitment] = b
	}
	return out, nil
}

// ReadRows returns the rows of commitments as they are stored.
func ReadRows(ctx context.Context, q pg.Querier, from, tenant string, commitments []string) ([]Row, error) {
	rows, err := q.Query(ctx, `select commitment, kind, key_id, salt, body, kind = `+OnlySealed+` from `+from+`
		where tenant = $1 and commitment = any ($2)`, tenant, commitments)
	if err != nil {
		return nil, pg.Err(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Row])
	return list, pg.Err(err)
}
