package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Good returns those of the sessions that let somebody in still, with the version of roles and bindings of their
// tenants: of a token, while nobody has revoked it and it has not expired; of
// a break-glass token, while its session lasts; of an identity, while it is not disabled, is
// the same actor's and what its provider said has not ended. One that has several needs all of them.
func (t *Tokens) Good(ctx context.Context, list []model.Session) (map[model.Session]events.Position, error) {
	hashes, tenants := make([][]byte, len(list)), make([]string, len(list))
	ids, actors, machines := make([]string, len(list)), make([]string, len(list)), make([]string, len(list))
	for i, s := range list {
		if s.Token != (model.TokenHash{}) {
			hashes[i] = s.Token[:]
		}
		tenants[i], ids[i], actors[i], machines[i] = s.Tenant, s.Identity, s.Actor, s.Machine
	}
	rows, err := t.pool.Query(ctx, `select s.n, coalesce(v.epoch, 0), coalesce(v.position, 0), now()
		from unnest($1::bytea[], $2::text[], $3::text[], $4::text[], $5::text[])
			with ordinality s (hash, tenant, identity, actor, machine, n)
		left join gateway.tokens t on (t.hash = s.hash or t.previous = s.hash and t.previous_ends > now())
			and (t.expires is null or t.expires > now())
		left join gateway.break_glass b on b.hash = s.hash and b.ends > now()
		left join gateway.identities i on i.tenant = s.tenant and i.id = s.identity and i.actor = s.actor
			and not i.disabled
		left join gateway.identities m on m.tenant = s.tenant and m.id = s.machine and not m.disabled
		left join access_versions v on v.tenant = coalesce(t.tenant, b.tenant, i.tenant)
		where (s.hash is null or t.id is not null or b.id is not null) and (s.identity = '' or i.id is not null)
			and (s.machine = '' or m.id is not null)
			and (t.id is not null or b.id is not null or i.id is not null)`, hashes, tenants, ids, actors, machines)
	if err != nil {
		return nil, errs.Wrap(errs.Unavailable, pg.Err(err), "read who is let in")
	}
	good := map[model.Session]events.Position{}
	var n int
	var now time.Time
	var version events.Position
	_, err = pgx.ForEachRow(rows, []any{&n, &version.Epoch, &version.N, &now}, func() error {
		if s := list[n-1]; s.Until.IsZero() || now.Before(s.Until) {
			good[s] = version
		}
		return nil
	})
	return good, errs.Wrap(errs.Unavailable, pg.Err(err), "read who is let in")
}
