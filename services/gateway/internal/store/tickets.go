package store

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const (
	// TicketLife is how long a ticket waits for its stream: a page opens it at once.
	TicketLife = 30 * time.Second
	// MaxTickets bounds the tickets of one actor that wait: each is for a stream, of which few may be open.
	MaxTickets = 100
)

// Tickets are what open a stream, once. The database has their hashes.
type Tickets struct {
	Pool   *pg.Pool // sees one tenant at a time
	Work   *pg.Pool // for all tenants
	Tokens *Tokens
}

// Make makes a ticket of a caller for one address. ok is false where too many of theirs wait.
func (t *Tickets) Make(ctx context.Context, who model.Caller, url string) (
	ticket string, expires time.Time, ok bool, err error,
) {
	ticket = rand.Text()
	hash := model.HashToken(ticket)
	who.Rights = nil
	err = t.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `delete from gateway.stream_tickets where tenant = $1 and expires < now()`,
			who.Tenant); err != nil {
			return err
		}
		err := tx.QueryRow(ctx, `insert into gateway.stream_tickets (tenant, hash, actor, url, caller, expires)
			select $1, $2, $3, $4, $5, now() + $6
			where (select count(*) from gateway.stream_tickets where tenant = $1 and actor = $3) < $7
			returning expires`, who.Tenant, hash[:], who.Person(), url, who, TicketLife, MaxTickets).Scan(&expires)
		ok = err == nil
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	return ticket, expires.UTC(), ok, pg.Err(err)
}

var errTicket = errs.New(errs.Unauthenticated, "the ticket is not known, was used, has expired, or is for another "+
	"address: ask for a new one")

// Caller returns who made a ticket, which is worth nothing from then on, wherever it was shown; and the version of
// roles and bindings at that moment. What let them in when they made it must be good still.
func (t *Tickets) Caller(ctx context.Context, ticket, url string) (model.Caller, events.Position, error) {
	hash := model.HashToken(ticket)
	var who model.Caller
	var good bool
	err := t.Work.QueryRow(ctx, `delete from gateway.stream_tickets where hash = $1
		returning caller, url = $2 and expires > now()`, hash[:], url).Scan(&who, &good)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && !good {
		return model.Caller{}, events.Position{}, errTicket
	}
	if err != nil {
		return model.Caller{}, events.Position{}, errs.Wrap(errs.Unavailable, pg.Err(err), "read a ticket")
	}
	versions, err := t.Tokens.Good(ctx, []model.Session{who.Session})
	if err != nil {
		return model.Caller{}, events.Position{}, err
	}
	version, known := versions[who.Session]
	if !known {
		return model.Caller{}, version, errTicket
	}
	return who, version, nil
}
