package hub

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// guardEvery is how often the guard looks. A deleted stream is noticed at once by the server's advisory;
// this is for when that was lost.
const guardEvery = 3 * time.Second

// advisories tell of streams made, changed and deleted.
const advisories = "$JS.EVENT.ADVISORY.STREAM.*.>"

// Guard keeps the streams there and filled, grants fresh, and the stop switch in force, until ctx ends.
func (h *Hub) Guard(ctx context.Context) error {
	wake := make(chan *nats.Msg, 1)
	sub, err := h.c.Bus.Conn().ChanSubscribe(advisories, wake)
	if err != nil {
		return errs.Wrap(errs.Unavailable, err, "listen for advisories")
	}
	defer func() {
		// The connection may be closed already; then so is the subscription.
		if err := sub.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
			h.c.Log.Debug("unsubscribe", "error", err)
		}
	}()
	t := time.NewTicker(guardEvery)
	defer t.Stop()
	failing := ""
	for {
		err := h.look(ctx)
		if text := textOf(err); text != failing && ctx.Err() == nil {
			failing = text
			if text == "" {
				h.c.Log.Info("streams are in order again")
			} else {
				h.c.Log.Warn("cannot look after the streams; trying again", "error", text)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		case <-wake:
		}
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// look is one round; each part stands for itself.
func (h *Hub) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	err := errors.Join(h.renew(ctx), h.switches(ctx))
	if h.c.Bus.Check(ctx) != nil { // the connection has told so; its return wakes nobody here, the ticker does
		return err
	}
	infos, streamErr := h.c.Bus.Ensure(ctx)
	if streamErr == nil {
		streamErr = h.refill(ctx, infos)
	}
	h.lanes.Wake()
	return errors.Join(err, streamErr)
}

// refill marks everything dirty where PLANS or CONTENT is another stream than the one that was filled, or
// has lost messages.
func (h *Hub) refill(ctx context.Context, infos map[string]*jetstream.StreamInfo) error {
	plans, content := infos[protocol.StreamPlans], infos[protocol.StreamContent]
	var published uint64
	if err := h.c.Pool.QueryRow(ctx, `select count(*) from installer.published where digest <> ''`).Scan(&published); err != nil {
		return pg.Err(err)
	}
	lost := plans.State.Msgs < published
	for _, info := range []*jetstream.StreamInfo{plans, content} {
		same, err := h.filled(ctx, info)
		if err != nil {
			return err
		}
		lost = lost || !same
	}
	if !lost {
		return nil
	}
	h.c.Log.InfoContext(ctx, "filling streams again", "scopes", published)
	h.content.forget()
	return h.c.Pool.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `update installer.published set digest = ''`); err != nil {
			return err
		}
		if err := h.markPublished(ctx, tx, bus.FanOut, `true`); err != nil {
			return err
		}
		for _, info := range []*jetstream.StreamInfo{plans, content} {
			if _, err := tx.Exec(ctx, `insert into installer.streams (tenant, name, created) values ($1, $2, $3)
				on conflict (tenant, name) do update set created = excluded.created`, events.AllTenants, info.Config.Name, stamp(info)); err != nil {
				return err
			}
		}
		return nil
	})
}

// filled reports whether a stream is the one that was filled last.
func (h *Hub) filled(ctx context.Context, info *jetstream.StreamInfo) (bool, error) {
	var created time.Time
	err := h.c.Pool.QueryRow(ctx, `select created from installer.streams where tenant = $1 and name = $2`, events.AllTenants, info.Config.Name).Scan(&created)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return created.Equal(stamp(info)), pg.Err(err)
}

// stamp is when a stream was made, as precisely as Postgres keeps it.
func stamp(info *jetstream.StreamInfo) time.Time {
	return info.Created.UTC().Truncate(time.Microsecond)
}

// renew marks scopes whose grants or approvals need another look.
func (h *Hub) renew(ctx context.Context) error {
	return h.c.Pool.Tx(ctx, func(tx pgx.Tx) error { return h.markPublished(ctx, tx, bus.FanOut, `renew <= now()`) })
}

// switches marks scopes whose message does not say what a loss of commits, or its end, now demands.
func (h *Hub) switches(ctx context.Context) error {
	return h.c.Pool.Tx(ctx, func(tx pgx.Tx) error {
		return h.markPublished(ctx, tx, bus.Interactive, `stopped <> (
			exists (select from eventlog.stops x where x.resumed is null and x.tenant in ('*', p.tenant))
			or exists (select from installer.stops x where x.tenant = p.tenant and x.subject in ('fleet', 'cluster/' || p.cluster)))`)
	})
}

// markPublished marks published scopes that fulfil a condition and are not dirty already: those have their
// turn, or their pause after a failure.
func (h *Hub) markPublished(ctx context.Context, tx pgx.Tx, lane bus.Lane, condition string) error {
	_, err := tx.Exec(ctx, `insert into installer.dirty (tenant, cluster, namespace, lane)
		select p.tenant, p.cluster, p.namespace, $1 from installer.published p
		  join installer.clusters c on c.tenant = p.tenant and c.cluster_id = p.cluster_id and not c.removed
		where `+condition+` order by p.tenant, p.cluster, p.namespace
		on conflict (tenant, cluster, namespace) do nothing`, int16(lane))
	return pg.Err(err)
}
