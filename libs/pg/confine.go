package pg

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// everybody is the setting of roles that work for all tenants (events.AllTenants).
const everybody = "*"

type confinedKey struct{}

// Confine has what is done with ctx, on any pool, see and accept rows of one tenant only, whatever the role may see:
// for answers to questions, where a statement that forgets its tenant would otherwise find everybody's rows. TenantTx
// goes its own way. With events.AllTenants it is undone.
func Confine(ctx context.Context, tenant string) context.Context {
	return context.WithValue(ctx, confinedKey{}, tenant)
}

// confinedTo is where a connection notes the tenant that its session was confined to.
const confinedTo = "chandler.tenant"

// confine has a connection that was taken from the pool see what ctx may see. It takes a round trip where the one
// before had another tenant.
func confine(ctx context.Context, conn *pgx.Conn) (usable bool, err error) {
	want, _ := ctx.Value(confinedKey{}).(string)
	if want == everybody {
		want = ""
	}
	notes := conn.PgConn().CustomData()
	if now, _ := notes[confinedTo].(string); now == want {
		return true, nil
	}
	sql := "reset chandler.tenant"
	if want != "" {
		sql = "set chandler.tenant = " + literal(want)
	}
	if _, err := conn.Exec(ctx, sql); err != nil {
		if conn.IsClosed() && ctx.Err() == nil {
			return false, nil // another one is tried
		}
		return false, errs.Wrap(errs.KindOf(Err(err)), err, "confine a connection to a tenant")
	}
	notes[confinedTo] = want
	return true, nil
}
