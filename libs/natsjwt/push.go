package natsjwt

import (
	"context"
	"encoding/json"

	"github.com/nats-io/nats.go"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/natsconn"
)

// Pusher gives a server accounts.
type Pusher struct{ conn *nats.Conn }

// Connect connects as the user of the authority. settings say where the server is; who this is there is the
// authority's to say. The connection is made again for ever, until Close.
func (a *Authority) Connect(settings natsconn.Settings) (*Pusher, error) {
	settings.Credentials, settings.NKeySeed, settings.Token, settings.User, settings.Password = a.System, "", "", "", ""
	options, err := settings.Options()
	if err != nil {
		return nil, err
	}
	conn, err := nats.Connect(settings.URL, append(options, nats.Name("chandler accounts"), nats.MaxReconnects(-1),
		nats.RetryOnFailedConnect(true), nats.CustomInboxPrefix(natsauth.Inbox(systemUser)))...)
	if err != nil {
		return nil, errs.Wrap(errs.Unavailable, err, "connect to NATS as who gives it accounts")
	}
	if err := settings.Refuse(conn); err != nil {
		conn.Close()
		return nil, err
	}
	return &Pusher{conn: conn}, nil
}

// Close closes the connection.
func (p *Pusher) Close() { p.conn.Close() }

// Push gives the server accounts; it has them when Push returns. What it has already is given again without effect.
func (p *Pusher) Push(ctx context.Context, accounts []string) error {
	for _, token := range accounts {
		reply, err := p.conn.RequestWithContext(ctx, claimsUpdate, []byte(token))
		if err != nil {
			return errs.Wrap(errs.Unavailable, err, "give NATS an account")
		}
		var said struct {
			Error *struct {
				Code        int    `json:"code"`
				Description string `json:"description"`
			} `json:"error"`
		}
		if err := json.Unmarshal(reply.Data, &said); err != nil {
			return errs.Wrap(errs.Internal, err, "read what NATS says of an account")
		}
		if said.Error != nil {
			return errs.New(errs.Invalid, "NATS refuses an account: %s (%d)", said.Error.Description, said.Error.Code)
		}
	}
	return nil
}
