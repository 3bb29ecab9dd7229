package store

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// Cause is why a decision is made: what its events carry on.
type Cause struct {
	Event       string    // id of the event that made the scope dirty
	TraceParent string    // W3C trace context
	Command     uuid.UUID // of this decision, drawn at random
}

// writer is one transaction of decisions. What it writes is queued and sent in one go: a fan-out to thousands
// of scopes would otherwise spend most of its time waiting for answers that say nothing.
type writer struct {
	s *Store
	b *pgx.Batch
	l Loaded
	c Cause
	// kept are the inputs that this transaction wrote: a plan and the outcome of its subscriptions share theirs.
	kept map[digest.Digest]bool
	// folded are the ids of events whose rows this transaction writes.
	folded *[]string
}

// Write records decisions and the read set in one transaction. It is a conflict (errs.Conflict or
// errs.AlreadyExists) if the scope, a subscription, a plan or the catalogs moved on since Load.
func (s *Store) Write(ctx context.Context, l Loaded, d decide.Decisions, reads []resolution.Read, c Cause) error {
	now := storedReads(l.Scope.Cluster, reads)
	if d.Empty() && len(d.Wanted) == 0 && sameReads(l.reads, now) {
		return nil
	}
	w := s.writer(l, c)
	w.guard()
	if now[resolution.Read{Kind: decide.ReadCluster}] {
		w.guardCluster()
	}
	w.reads(now)
	if err := w.record(d); err != nil {
		return err
	}
	s.own.expect(*w.folded)
	if err := s.pool.Tx(ctx, func(tx pgx.Tx) error { return w.send(ctx, tx) }); err != nil {
		s.own.forget(*w.folded)
		return err
	}
	return nil
}

// Settle records the subscriptions for dependencies of finished plans.
func (s *Store) Settle(ctx context.Context, l Loaded, subs []events.SubscriptionGenerated, plans []decide.Plan,
	c Cause,
) error {
	return s.pool.Tx(ctx, func(tx pgx.Tx) error {
		w := s.writer(l, c)
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

// guard makes sure that nobody else decided for the scope since Load, and that the catalogs stay as they
// were until the transaction ends: it goes before all else.
func (w writer) guard() {
	l := w.l
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

func sameReads(a, b map[resolution.Read]bool) bool {
	if len(a) != len(b) {
		return false
	}
	for r := range a {
		if !b[r] {
			return false
		}
	}
	return true
}

func (s *Store) writer(l Loaded, c Cause) writer {
	return writer{s: s, b: &pgx.Batch{}, l: l, c: c, kept: map[digest.Digest]bool{}, folded: &[]string{}}
}

// append queues events whose rows are written here, too, and returns the version that their stream will have.
func (w writer) append(correlation string, stream events.StreamID, name string, expected int64,
	payloads ...events.Payload,
) (int64, error) {
	for i := range payloads {
		*w.folded = append(*w.folded, events.EventID(w.c.Command, stream, i).String())
	}
	return w.s.log.Queue(w.b, w.meta(correlation), stream, w.subject(name), expected, payloads...)
}

// queue adds a statement whose answer does not matter.
func (w writer) queue(sql string, args ...any) { w.b.Queue(sql, args...) }

// send sends what was queued. The first error is that of the whole.
func (w writer) send(ctx context.Context, tx pgx.Tx) error {
	return pg.Err(tx.SendBatch(ctx, w.b).Close())
}

// record writes decisions. The order of streams is that of superseding, proposing, telling: a reader of the log meets
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

func (w writer) meta(correlation string) events.Meta {
	if correlation == "" {
		correlation = w.c.Command.String()
	}
	return events.Meta{
		Tenant: w.l.Tenant, Source: events.Resolver, Command: w.c.Command, Correlation: correlation,
		Causation: w.c.Event, TraceParent: w.c.TraceParent, Time: w.s.now().UTC(),
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

// requestImages asks the indexer for bundle images. The rows stay until the log has their content, or nobody
// asks for them any more.
func (w writer) requestImages(list []decide.Wanted) {
	slices.SortFunc(list, func(a, b decide.Wanted) int {
		// one order for all, so that two decisions never wait for each other in a ring
		return cmp.Or(cmp.Compare(a.Catalog.String(), b.Catalog.String()), cmp.Compare(a.Image, b.Image),
			cmp.Compare(a.Package, b.Package), cmp.Compare(a.Bundle, b.Bundle))
	})
	for _, x := range list {
		subject := catalogSubject(w.l.Scope.Cluster, x.Catalog)
		image := resolution.BundleImage{
			Image: storable(x.Image), Package: storable(x.Package),
			Bundle: storable(x.Bundle),
		}
		// A scope that begins to ask locks a row that is there, so that nobody deletes it meanwhile (withdrawRequests).
		action := `do update set since = w.since`
		if w.l.reads[resolution.Read{
			Kind: resolution.ReadImage, Catalog: resolution.CatalogKey{Name: subject},
			Name: image.ReadName(),
		}] {
			action = `do nothing`
		}
		w.queue(`insert into resolver.wanted_images as w (tenant, subject, image, package, bundle)
			values ($1, $2, $3, $4, $5)
			on conflict (tenant, subject, image, package, bundle) `+action, w.l.Tenant, subject, image.Image, image.Package, image.Bundle)
	}
}

func (w writer) reads(now map[resolution.Read]bool) {
	if sameReads(w.l.reads, now) {
		return
	}
	w.withdrawRequests(now)
	gone, come := difference(w.l.reads, now), difference(now, w.l.reads)
	if len(gone.kinds) > 0 {
		w.queue(`delete from resolver.reads r using unnest($4::text[], $5::text[], $6::text[]) as u(k, c, n)
			where r.tenant = $1 and r.cluster = $2 and r.namespace = $3 and (r.kind, r.catalog, r.name) = (u.k, u.c,
			u.n)`,
			w.l.Tenant, w.l.Scope.Cluster, w.l.Scope.Namespace, gone.kinds, gone.subjects, gone.names)
	}
	if len(come.kinds) > 0 {
		w.queue(`insert into resolver.reads (tenant, cluster, namespace, kind, catalog, name)
			select $1, $2, $3, k, c, n from unnest($4::text[], $5::text[], $6::text[]) as u(k, c, n)`,
			w.l.Tenant, w.l.Scope.Cluster, w.l.Scope.Namespace, come.kinds, come.subjects, come.names)
	}
}

// columns are reads as the table's columns.
type columns struct{ kinds, subjects, names []string }

// difference are the reads of a that b has not.
func difference(a, b map[resolution.Read]bool) (c columns) {
	for r := range a {
		if !b[r] {
			c.kinds, c.subjects, c.names = append(c.kinds, string(r.Kind)), append(c.subjects, r.Catalog.Name),
				append(c.names, r.Name)
		}
	}
	return c
}

// withdrawRequests deletes the requests for bundle images that only this scope asked for, and does no longer. They are
// locked first: who began to ask meanwhile is seen by the statement that follows.
func (w writer) withdrawRequests(now map[resolution.Read]bool) {
	var subjects, names []string
	for r := range w.l.reads {
		if r.Kind == resolution.ReadImage && !now[r] {
			subjects, names = append(subjects, r.Catalog.Name), append(names, r.Name)
		}
	}
	if len(names) == 0 {
		return
	}
	const wish = `w.tenant = $1 and (w.subject, w.image || ' ' || w.package || ' ' || w.bundle) in (select s, n from unnest($2::text[], $3::text[]) as u(s, n))`
	w.queue(`select from resolver.wanted_images w where `+wish+
		` order by w.subject, w.image, w.package, w.bundle for update`, w.l.Tenant, subjects, names)
	w.queue(`delete from resolver.wanted_images w where `+wish+` and not exists (
		select from resolver.reads r where r.tenant = $1 and r.kind = 'image' and r.catalog = w.subject
		  and r.name = w.image || ' ' || w.package || ' ' || w.bundle and (r.cluster, r.namespace) <> ($4, $5))`,
		w.l.Tenant, subjects, names, w.l.Scope.Cluster, w.l.Scope.Namespace)
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
	w.queue(`insert into resolver.plan_documents (tenant, plan, digest, document, effect, properties, created)
		values ($1, $2, $3, $4, $5, $6, $7)`, w.l.Tenant, id, p.Event.Digest, p.Document, p.Effect, properties, w.s.now())
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
		Incarnation: sub.Incarnation, Version: version,
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
	head, err := w.s.log.Latest(ctx, tx, w.l.Tenant, events.KindSubscription, w.subject(g.Name))
	if err != nil || head.Exists() {
		return err
	}
	if head.Version > 0 {
		life, err := w.s.log.ReadStream(ctx, tx, w.l.Tenant, head.ID, 0)
		if err != nil {
			return err
		}
		if made, ok := life[0].Payload.(events.SubscriptionGenerated); ok && made.Plan == g.Plan {
			return nil
		}
	}
	stream := head.Create()
	if _, err := w.s.log.Queue(w.b, w.meta(""), stream, w.subject(g.Name), 0, g); err != nil {
		return err
	}
	// The log gives it a position later; until then it is the youngest.
	row := decide.EvolveSubscription(nil, decide.Event{
		Subject: w.subject(g.Name), Incarnation: stream.Incarnation, Version: 1, Created: math.MaxInt64, Payload: g,
	})
	args, err := subscriptionArgs(row)
	if err != nil {
		return err
	}
	w.queue(putSubscriptionRow, append([]any{w.l.Tenant, w.l.Scope.Cluster, w.l.Scope.Namespace, true}, args...)...)
	return nil
}

func (w writer) explanation(t decide.SubscriptionEvent) error {
	body, err := encode(t.Explanation)
	if err != nil {
		return err
	}
	w.queue(`insert into resolver.explanations as i (tenant, digest, document, created) values ($1, $2, $3, $4) `+
		keepAnew,
		w.l.Tenant, t.Outcome.Explanation, body, w.s.now(), w.s.now().Add(-keptAnew))
	return nil
}

func (w writer) input(r resolution.Record) error {
	d, err := r.Digest()
	if err != nil {
		return err
	}
	if w.kept[d] {
		return nil
	}
	w.kept[d] = true
	body, err := w.s.packRecord(r)
	if err != nil {
		return fmt.Errorf("keep input %s: %w", d.Short(), err)
	}
	// The input goes first: it waits for a sweep that removes an old one, whose references go along.
	w.queue(`insert into resolver.inputs as i (tenant, digest, document, created, referred)
		values ($1, $2, $3, $4, true) `+keepAnew,
		w.l.Tenant, string(d), body, w.s.now(), w.s.now().Add(-keptAnew))
	w.refer(refPackage, string(d), packagesOf(r))
	return nil
}
