package store

import (
	"context"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/klauspost/compress/zstd"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// Decisions writes what was decided, with the rows that its events change: the next decision need not wait for the log.
type Decisions struct {
	pool *pg.Pool
	log  *eventlog.Log
	own  *ownEvents
	now  func() time.Time
	pack *zstd.Encoder // for EncodeAll alone, which may be called at once
}

func newDecisions(pool *pg.Pool, log *eventlog.Log, own *ownEvents, now func() time.Time) *Decisions {
	pack, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		panic("zstd options are constants: " + err.Error())
	}
	return &Decisions{pool: pool, log: log, own: own, now: now, pack: pack}
}

// Cause is why a decision is made: what its events carry on.
type Cause struct {
	Event       string    // id of the event that made the scope dirty
	TraceParent string    // W3C trace context
	Command     uuid.UUID // of this decision, drawn at random
}

// Write records decisions and the read set in one transaction. It is a conflict (errs.Conflict or
// errs.AlreadyExists) if the scope, a subscription, a plan or the catalogs moved on since Load.
func (d *Decisions) Write(ctx context.Context, l Loaded, made decide.Decisions, reads []resolution.Read,
	c Cause,
) error {
	now := storedReads(l.Scope.Cluster, reads)
	if made.Empty() && len(made.Wanted) == 0 && sameReads(l.reads, now) {
		return nil
	}
	w := d.writer(l, c)
	w.guard()
	// Also where a plan is proposed: the cluster must not have been cordoned meanwhile.
	if now[resolution.Read{Kind: decide.ReadCluster}] || len(made.Proposals) > 0 {
		w.guardCluster()
	}
	w.reads(now)
	if err := w.record(made); err != nil {
		return err
	}
	d.own.expect(*w.folded)
	if err := d.pool.Tx(ctx, func(tx pgx.Tx) error { return w.send(ctx, tx) }); err != nil {
		d.own.forget(*w.folded)
		return err
	}
	return nil
}

// Settle records the subscriptions for dependencies of finished plans.
func (d *Decisions) Settle(ctx context.Context, l Loaded, subs []events.SubscriptionGenerated, plans []decide.Plan,
	c Cause,
) error {
	return d.pool.Tx(ctx, func(tx pgx.Tx) error {
		w := d.writer(l, c)
		w.guard()
		for _, g := range subs {
			if err := w.generate(ctx, tx, g); err != nil {
				return err
			}
		}
		for _, p := range plans {
			w.queue(`update resolver.plans set settled = true where tenant = $1 and plan = $2`, l.Tenant, p.ID)
		}
		return w.send(ctx, tx)
	})
}

// writer is one transaction of decisions. What it writes is queued and sent in one go: a fan-out to thousands
// of scopes would otherwise spend most of its time waiting for answers that say nothing.
type writer struct {
	to *Decisions
	b  *pgx.Batch
	l  Loaded
	c  Cause
	// kept are the inputs that this transaction wrote: a plan and the outcome of its subscriptions share theirs.
	kept map[digest.Digest]bool
	// folded are the ids of events whose rows this transaction writes.
	folded *[]string
}

func (d *Decisions) writer(l Loaded, c Cause) writer {
	return writer{to: d, b: &pgx.Batch{}, l: l, c: c, kept: map[digest.Digest]bool{}, folded: &[]string{}}
}

// guard makes sure that nobody else decided for the scope since Load, and that the catalogs stay as they
// were until the transaction ends: it goes before all else.
func (w writer) guard() {
	l := w.l
	w.b.Queue(`select eventlog.hold_work($1)`, Consumer).QueryRow(func(row pgx.Row) error {
		var atWork bool
		if err := row.Scan(&atWork); err != nil {
			return err
		}
		if !atWork {
			return errs.New(errs.Conflict, "the log is being read again: what %s/%s was decided by is behind it",
				l.Scope.Cluster, l.Scope.Namespace)
		}
		return nil
	})
	w.b.Queue(`insert into resolver.scopes as s (tenant, cluster, namespace, decisions) values ($1, $2, $3, 1)
		on conflict (tenant, cluster, namespace) do update set decisions = s.decisions + 1 where s.decisions = $4`,
		l.Tenant, l.Scope.Cluster, l.Scope.Namespace, l.Decisions).Exec(func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() == 0 {
			return errs.New(errs.Conflict, "another worker decided for %s/%s meanwhile", l.Scope.Cluster,
				l.Scope.Namespace)
		}
		return nil
	})
	// Holding the clock's row lets no catalog change until the transaction ends. A tenant without one, whose first
	// catalog may be on its way, gets one: there must be something to lock.
	if l.clock == noClock {
		w.queue(`insert into resolver.catalog_clock (tenant, changes) values ($1, 0) on conflict do nothing`, l.Tenant)
	}
	w.b.Queue(`select changes from resolver.catalog_clock where tenant = $1 for share`, l.Tenant).QueryRow(
		func(row pgx.Row) error {
			var clock int64
			if err := row.Scan(&clock); err != nil {
				return err
			}
			if clock != max(l.clock, 0) {
				return errs.New(errs.Conflict, "a catalog changed while %s/%s was resolved", l.Scope.Cluster,
					l.Scope.Namespace)
			}
			return nil
		})
}

// guardCluster makes sure that what is known of the cluster stays as it was until the transaction ends.
func (w writer) guardCluster() {
	l := w.l
	w.b.Queue(`select coalesce((select changes from resolver.clusters where tenant = $1 and name = $2 for share), 0)`,
		l.Tenant, l.Scope.Cluster).
		QueryRow(func(row pgx.Row) error {
			var changes int64
			if err := row.Scan(&changes); err != nil {
				return err
			}
			if changes != l.changes {
				return errs.New(errs.Conflict, "what is known of cluster %s changed while %s was resolved",
					l.Scope.Cluster, l.Scope.Namespace)
			}
			return nil
		})
}

// noClock is the clock of a tenant whose catalogs have none yet.
const noClock = -1

// append queues events whose rows are written here, too, and returns the version that their stream will have.
func (w writer) append(correlation string, stream events.StreamID, name string, expected int64,
	payloads ...events.Payload,
) (int64, error) {
	for i := range payloads {
		*w.folded = append(*w.folded, events.EventID(w.c.Command, stream, i).String())
	}
	return w.to.log.Queue(w.b, w.meta(correlation), stream, w.subject(name), expected, payloads...)
}

// queue adds a statement whose answer does not matter.
func (w writer) queue(sql string, args ...any) { w.b.Queue(sql, args...) }

// send sends what was queued. The first error is that of the whole.
func (w writer) send(ctx context.Context, tx pgx.Tx) error {
	return pg.Err(tx.SendBatch(ctx, w.b).Close())
}

func (w writer) meta(correlation string) events.Meta {
	if correlation == "" {
		correlation = w.c.Command.String()
	}
	return events.Meta{
		Tenant: w.l.Tenant, Source: events.Resolver, Command: w.c.Command, Correlation: correlation,
		Causation: w.c.Event, TraceParent: w.c.TraceParent, Time: w.to.now().UTC(),
	}
}

func (w writer) subject(name string) string {
	return w.l.Scope.Cluster + "/" + w.l.Scope.Namespace + "/" + name
}

func (w writer) planStream(id string) events.StreamID {
	return events.StreamID{
		Kind: events.KindInstallPlan, Key: events.Key(w.l.Tenant, events.KindInstallPlan, id),
		Incarnation: 1,
	}
}

// record writes decisions. The order of streams is that of superseding, proposing, reporting: a reader of the log meets
// causes first.
func (w writer) record(d decide.Decisions) error {
	w.requestImages(d.Wanted)
	for _, x := range d.Superseded {
		if err := w.supersede(x); err != nil {
			return err
		}
	}
	for _, p := range d.Proposals {
		if err := w.propose(p); err != nil {
			return err
		}
	}
	for _, t := range d.SubscriptionEvents {
		if err := w.recordOutcome(t); err != nil {
			return err
		}
	}
	return nil
}

func (w writer) supersede(x decide.Supersession) error {
	if len(x.Events) == 0 {
		return nil
	}
	version, err := w.append("", w.planStream(x.Plan.ID), x.Plan.State.Proposed.Name, x.Plan.Version, x.Events...)
	if err != nil {
		return err
	}
	state := x.Plan.State
	for _, e := range x.Events {
		if state, err = installplan.Evolve(state, e); err != nil {
			return errs.Wrap(errs.Internal, err, "fold plan %s", x.Plan.ID)
		}
	}
	return w.plan(planRow{id: x.Plan.ID, version: version, state: state})
}

func (w writer) plan(row planRow) error {
	args, err := row.args(w.l.Tenant)
	if err != nil {
		return err
	}
	w.queue(putPlan, args...)
	return nil
}

func (w writer) propose(p decide.Proposal) error {
	id := p.Event.Plan
	properties, err := encode(p.Properties)
	if err != nil {
		return err
	}
	// What is known of bundles by the plan that this one takes over from stays known.
	w.queue(`insert into resolver.plan_documents (tenant, plan, digest, document, effect, properties, created)
		values ($1, $2, $3, $4, $5, coalesce((select properties from resolver.plan_documents
		where tenant = $1 and plan = $8), $6), $7)`,
		w.l.Tenant, id, p.Event.Digest, p.Document, p.Effect, properties, w.to.now(), p.Event.TakesOver)
	if err := w.input(p.Input); err != nil {
		return err
	}
	w.refer(refContent, id, contentsOf(p.Event.Bundles))
	version, err := w.append(p.Correlation, w.planStream(id), p.Event.Name, 0, p.Event)
	if err != nil {
		return err
	}
	state, err := installplan.Fold(p.Event)
	if err != nil {
		return errs.Wrap(errs.Internal, err, "fold plan %s", id)
	}
	return w.plan(planRow{id: id, version: version, state: state})
}

func (w writer) recordOutcome(t decide.SubscriptionEvent) error {
	if err := w.input(t.Input); err != nil {
		return err
	}
	if t.Explanation != nil {
		if err := w.explanation(t); err != nil {
			return err
		}
	}
	sub := t.Subscription
	stream := events.StreamID{
		Kind: events.KindSubscription,
		Key:  events.Key(w.l.Tenant, events.KindSubscription, w.subject(sub.Name)), Incarnation: sub.Incarnation,
	}
	version, err := w.append(sub.Correlation, stream, sub.Name, sub.Version, t.Event)
	if err != nil {
		return err
	}
	after := decide.EvolveSubscription(&sub, decide.Event{
		Incarnation: sub.Incarnation, Version: version, Correlation: sub.Correlation,
		Payload: t.Event,
	})
	outcome, err := encode(after.Outcome)
	if err != nil {
		return err
	}
	w.queue(`update resolver.subscriptions set outcome = $5, version = $6
		where tenant = $1 and cluster = $2 and namespace = $3 and name = $4`,
		w.l.Tenant, w.l.Scope.Cluster, w.l.Scope.Namespace, sub.Name, outcome, version)
	return nil
}

// generate makes a subscription. A name that is taken, by a subscription to another package, stays with it; one that
// was generated for the plan and deleted since is not generated again.
func (w writer) generate(ctx context.Context, tx pgx.Tx, g events.SubscriptionGenerated) error {
	head, err := w.to.log.Latest(ctx, tx, w.l.Tenant, events.KindSubscription, w.subject(g.Name))
	if err != nil || head.Exists() {
		return err
	}
	if head.Version > 0 {
		life, err := w.to.log.ReadStream(ctx, tx, w.l.Tenant, head.ID, 0)
		if err != nil {
			return err
		}
		if made, ok := life[0].Payload.(events.SubscriptionGenerated); ok && made.Plan == g.Plan {
			return nil
		}
	}
	stream := head.Create()
	m := w.meta("")
	if _, err := w.to.log.Queue(w.b, m, stream, w.subject(g.Name), 0, g); err != nil {
		return err
	}
	// The log gives it a position later; until then it is the youngest.
	row := decide.EvolveSubscription(nil, decide.Event{
		Subject: w.subject(g.Name), Incarnation: stream.Incarnation, Version: 1, Created: math.MaxInt64,
		Correlation: m.Correlation, Payload: g,
	})
	args, err := subscriptionArgs(row)
	if err != nil {
		return err
	}
	w.queue(putSubscriptionRow, append([]any{w.l.Tenant, w.l.Scope.Cluster, w.l.Scope.Namespace, true}, args...)...)
	return nil
}
