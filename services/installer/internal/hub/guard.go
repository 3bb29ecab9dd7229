package hub

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
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

// guardEvery is how often the guard checks the streams. A deleted stream is noticed at once by the server's advisory;
// this is for when that was lost.
const guardEvery = 3 * time.Second

// advisories are about streams made, changed and deleted.
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
	var following sync.WaitGroup
	defer following.Wait()
	following.Go(func() { h.followStops(ctx) })
	t := time.NewTicker(guardEvery)
	defer t.Stop()
	failing, marked := "", false
	for {
		err := h.guardOnce(ctx)
		if !marked {
			// Once: while replicas are restarted one after the other, two keys are active, and each would undo the
			// other's messages for ever. The last one that starts marks what the ones before it signed otherwise.
			marked = h.markOtherKeys(ctx) == nil
		}
		if text := textOf(err); text != failing && ctx.Err() == nil {
			failing = text
			if text == "" {
				h.c.Log.Info("streams are in order again")
			} else {
				h.c.Log.Warn("cannot check the streams; trying again", "error", text)
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

// guardOnce is one round; each part stands for itself.
func (h *Hub) guardOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	err := errors.Join(h.markExpiringGrants(ctx), h.markStopSwitches(ctx))
	if h.c.Bus.Check(ctx) != nil { // the connection has logged it; its return wakes nobody here, the ticker does
		return err
	}
	streamErr := h.streams(ctx)
	h.lanes.Wake()
	return errors.Join(err, streamErr)
}

// streams keeps the streams there and filled. One that cannot be used keeps nothing else from going on.
func (h *Hub) streams(ctx context.Context) error {
	// Read first: another replica may note more messages while this one checks, never fewer.
	known, err := h.filled(ctx)
	if err != nil {
		return err
	}
	infos, err := h.c.Bus.Ensure(ctx)
	if ctx.Err() != nil {
		return err
	}
	return errors.Join(err, h.refill(ctx, known, infos))
}

// incarnation is what is known of a stream that was filled.
type incarnation struct {
	created  time.Time
	messages uint64 // that it held at least
}

// filled is what is known of the streams that were filled, by kind.
func (h *Hub) filled(ctx context.Context) (map[string]incarnation, error) {
	rows, err := h.c.Pool.Query(ctx, `select name, created, messages from installer.streams where tenant = $1`,
		events.AllTenants)
	if err != nil {
		return nil, pg.Err(err)
	}
	known := map[string]incarnation{}
	var kind string
	var i incarnation
	_, err = pgx.ForEachRow(rows, []any{&kind, &i.created, &i.messages}, func() error {
		known[kind] = i
		return nil
	})
	return known, pg.Err(err)
}

// refill marks everything dirty where PLANS or CONTENT is another stream than the one that was filled, or
// has lost messages. PLANS holds at least what is published; from CONTENT nothing is taken on purpose. A stream that
// is not in infos cannot be filled now.
func (h *Hub) refill(ctx context.Context, known map[string]incarnation, infos map[string]*jetstream.StreamInfo) error {
	var published uint64
	if err := h.c.Pool.QueryRow(ctx, `select count(*) from installer.published where digest <> ''`).Scan(
		&published); err != nil {
		return pg.Err(err)
	}
	least := map[string]uint64{
		protocol.StreamPlans: published, protocol.StreamContent: known[protocol.StreamContent].messages,
	}
	lost := false
	for kind, n := range least {
		info := infos[kind]
		lost = lost || info != nil && (info.State.Msgs < holdable(info, n) || !known[kind].created.Equal(stamp(info)))
	}
	if !lost {
		if content := infos[protocol.StreamContent]; content != nil {
			return h.saveStreamSize(ctx, known[protocol.StreamContent], content)
		}
		return nil
	}
	h.c.Log.InfoContext(ctx, "filling streams again", "scopes", published)
	return h.c.Pool.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `update installer.published set digest = '', sequence = 0`); err != nil {
			return err
		}
		if err := markAll(ctx, tx); err != nil {
			return err
		}
		for _, kind := range slices.Sorted(maps.Keys(least)) {
			if infos[kind] == nil {
				continue
			}
			if _, err := tx.Exec(ctx, `insert into installer.streams as s (tenant, name, created, fills)
				values ($1, $2, $3, 1)
				on conflict (tenant, name) do update set created = excluded.created, messages = 0, fills = s.fills + 1`,
				events.AllTenants, kind, stamp(infos[kind])); err != nil {
				return err
			}
		}
		return nil
	})
}

// holdable is how many of n messages a stream can hold: with a bound that somebody else set, filling it again and again
// would bring back nothing.
func holdable(info *jetstream.StreamInfo, n uint64) uint64 {
	if most := info.Config.MaxMsgs; most > 0 {
		return min(n, uint64(most))
	}
	return n
}

// saveStreamSize notes how much CONTENT holds, so that a loss is seen.
func (h *Hub) saveStreamSize(ctx context.Context, known incarnation, info *jetstream.StreamInfo) error {
	if info.State.Msgs <= known.messages {
		return nil
	}
	_, err := h.c.Pool.Exec(ctx, `update installer.streams set messages = greatest(messages, $4)
		where tenant = $1 and name = $2 and created = $3`,
		events.AllTenants, protocol.StreamContent, stamp(info), info.State.Msgs)
	return pg.Err(err)
}

// stamp is when a stream was made, as precisely as Postgres keeps it.
func stamp(info *jetstream.StreamInfo) time.Time {
	return info.Created.UTC().Truncate(time.Microsecond)
}

// markExpiringGrants marks scopes whose grants, approvals or windows have to be published again.
func (h *Hub) markExpiringGrants(ctx context.Context) error {
	return h.c.Pool.Tx(ctx, func(tx pgx.Tx) error {
		return markPublished(ctx, tx, bus.FanOut, `renew <= $2`,
			h.c.Now())
	})
}

// stopDiffers is which messages do not say what the switches now demand. Where nothing is stopped, which is nearly
// always, no switch is looked up for a message: there may be tens of thousands.
const stopDiffers = `case when exists (select from eventlog.stops where resumed is null)
	or exists (select from installer.stops) then stopped <> (
	exists (select from eventlog.stops x where x.resumed is null and x.tenant in ('*', p.tenant))
	or exists (select from installer.stops x where x.tenant = p.tenant and x.subject in ('fleet', 'cluster/' || p.cluster)))
	else stopped end`

// markStopSwitches marks scopes whose message does not say what a loss of commits, a stop, or its end, now demands.
func (h *Hub) markStopSwitches(ctx context.Context) error {
	return h.c.Pool.Tx(ctx, func(tx pgx.Tx) error {
		return markPublished(ctx, tx, bus.Interactive, stopDiffers)
	})
}

// followStops marks scopes as soon as a stop, or its end, was folded, until ctx ends. What it cannot mark the guard
// does.
func (h *Hub) followStops(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.stopped:
		}
		if err := markStops(ctx, h.c.Pool); err != nil && ctx.Err() == nil {
			h.c.Log.WarnContext(ctx, "cannot mark the namespaces of a stop; trying again", "error", err)
		}
		h.lanes.Wake()
	}
}

// markStops is markStopSwitches at once, also for scopes that wait after a failure, and those that are being worked on.
func markStops(ctx context.Context, pool *pg.Pool) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	return pool.Tx(ctx, func(tx pgx.Tx) error {
		return markWhere(ctx, tx, bus.Interactive, `update set generation = d.generation + 1, lane = excluded.lane,
			not_before = now(), attempts = 0`, `(`+stopDiffers+`) or exists (select from installer.dirty d
			where d.tenant = p.tenant and d.cluster = p.cluster and d.namespace = p.namespace
			and d.owner is not null)`)
	})
}

// markOtherKeys marks scopes whose message was signed with a key that is not the active one.
func (h *Hub) markOtherKeys(ctx context.Context) error {
	return h.c.Pool.Tx(ctx, func(tx pgx.Tx) error {
		return markPublished(ctx, tx, bus.FanOut, `not p.digest like $2`, h.keyID+"/%")
	})
}

// markAll marks all published scopes, also those that are being worked on: what they have sent may be lost.
func markAll(ctx context.Context, tx pgx.Tx) error {
	return markWhere(ctx, tx, bus.FanOut, `update set generation = d.generation + 1`, `true`)
}

// markPublished marks published scopes that fulfil a condition and are not dirty already: those have their
// turn, or their pause after a failure. Arguments of the condition count from $2.
func markPublished(ctx context.Context, tx pgx.Tx, lane bus.Lane, condition string, args ...any) error {
	return markWhere(ctx, tx, lane, `nothing`, condition, args...)
}

// markWhere marks published scopes that fulfil a condition; dirty is what is done with those that are marked already
// (d). The rows are locked in the order of bytes, as bus.Lanes does: that of a language has them in another one, and
// two who lock in two orders wait for each other.
func markWhere(ctx context.Context, tx pgx.Tx, lane bus.Lane, dirty, condition string, args ...any) error {
	_, err := tx.Exec(ctx, `insert into installer.dirty as d (tenant, cluster, namespace, lane)
		select p.tenant, p.cluster, p.namespace, $1 from installer.published p
		  join installer.clusters c on c.tenant = p.tenant and c.cluster_id = p.cluster_id and not c.removed
		where (`+condition+`) order by p.tenant collate "C", p.cluster collate "C", p.namespace collate "C"
		on conflict (tenant, cluster, namespace) do `+dirty, append([]any{int16(lane)}, args...)...)
	return pg.Err(err)
}
