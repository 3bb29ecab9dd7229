package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
)

// Cause is why a decision is made: what its events carry on.
type Cause struct {
	Event       string    // id of the event that made the scope dirty
	TraceParent string    // W3C trace context
	Command     uuid.UUID // of this decision, drawn at random
}

// Write records decisions and the read set in one transaction. It is a conflict (errs.Conflict or
// errs.AlreadyExists) if the scope, a subscription, a plan or the catalogs moved on since Load.
func (s *Store) Write(ctx context.Context, l Loaded, d decide.Decisions, reads []resolve.Read, c Cause) error {
	now := storedReads(l.Scope.Cluster, reads)
	if d.Empty() && len(d.Wanted) == 0 && sameReads(l.reads, now) {
		return nil
	}
	return s.pool.Tx(ctx, func(tx pgx.Tx) error {
		if err := s.guard(ctx, tx, l); err != nil {
			return err
		}
		w := writer{s: s, tx: tx, l: l, c: c, kept: map[digest.Digest]bool{}}
		if err := w.reads(ctx, now); err != nil {
			return err
		}
		return w.record(ctx, d)
	})
}

// Settle records the subscriptions for dependencies of finished plans.
func (s *Store) Settle(ctx context.Context, l Loaded, subs []events.SubscriptionGenerated, plans []decide.Plan, c Cause) error {
	return s.pool.Tx(ctx, func(tx pgx.Tx) error {
		if err := s.guard(ctx, tx, l); err != nil {
			return err
		}
		w := writer{s: s, tx: tx, l: l, c: c, kept: map[digest.Digest]bool{}}
		for _, g := range subs {
			if err := w.generate(ctx, g); err != nil {
				return err
			}
		}
		for _, p := range plans {
			if err := exec(ctx, tx, `update resolver.plans set settled = true where tenant = $1 and plan = $2`, l.Tenant, p.ID); err != nil {
				return err
			}
		}
		return nil
	})
}

// guard makes sure that nobody else decided for the scope since Load, and that the catalogs stay as they
// were until this transaction ends.
func (s *Store) guard(ctx context.Context, tx pgx.Tx, l Loaded) error {
	tag, err := tx.Exec(ctx, `insert into resolver.scopes as s (tenant, cluster, namespace, decisions) values ($1, $2, $3, 1)
		on conflict (tenant, cluster, namespace) do update set decisions = s.decisions + 1 where s.decisions = $4`,
		l.Tenant, l.Scope.Cluster, l.Scope.Namespace, l.Decisions)
	if err != nil {
		return pg.Err(err)
	}
	if tag.RowsAffected() == 0 {
		return errs.New(errs.Conflict, "another worker decided for %s/%s meanwhile", l.Scope.Cluster, l.Scope.Namespace)
	}
	clock, err := s.holdClock(ctx, tx, l.Tenant)
	if err != nil {
		return err
	}
	if clock != l.clock {
		return errs.New(errs.Conflict, "a catalog changed while %s/%s was resolved", l.Scope.Cluster, l.Scope.Namespace)
	}
	return nil
}

// holdClock returns how often the tenant's catalogs have changed, and lets none change until tx ends. A
// tenant without a row, whose first catalog may be on its way, gets one: there must be something to lock.
func (s *Store) holdClock(ctx context.Context, tx pgx.Tx, tenant string) (int64, error) {
	const hold = `select changes from resolver.catalog_clock where tenant = $1 for share`
	var clock int64
	err := tx.QueryRow(ctx, hold, tenant).Scan(&clock)
	if errors.Is(err, pgx.ErrNoRows) {
		if err := exec(ctx, tx, `insert into resolver.catalog_clock (tenant, changes) values ($1, 0) on conflict do nothing`, tenant); err != nil {
			return 0, err
		}
		err = tx.QueryRow(ctx, hold, tenant).Scan(&clock)
	}
	return clock, pg.Err(err)
}

func sameReads(a, b map[resolve.Read]bool) bool {
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

// writer is one transaction of decisions.
type writer struct {
	s  *Store
	tx pgx.Tx
	l  Loaded
	c  Cause
	// kept are the inputs that this transaction wrote: a plan and what is told of it share theirs.
	kept map[digest.Digest]bool
}

// record writes decisions. The order of streams is that of superseding, proposing, telling: a reader of the log meets
// causes first.
func (w writer) record(ctx context.Context, d decide.Decisions) error {
	if err := w.want(ctx, d.Wanted); err != nil {
		return err
	}
	for _, x := range d.Superseded {
		if err := w.supersede(ctx, x); err != nil {
			return err
		}
	}
	for _, p := range d.Proposals {
		if err := w.propose(ctx, p); err != nil {
			return err
		}
	}
	for _, t := range d.Told {
		if err := w.tell(ctx, t); err != nil {
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
		Tenant: w.l.Tenant, Source: events.Resolver, Command: w.c.Command, Correlation: correlation, Causation: w.c.Event,
		TraceParent: w.c.TraceParent, Time: w.s.now().UTC(),
	}
}

func (w writer) subject(name string) string {
	return w.l.Scope.Cluster + "/" + w.l.Scope.Namespace + "/" + name
}

func (w writer) planStream(id string) events.StreamID {
	return events.StreamID{Kind: events.KindInstallPlan, Key: events.Key(w.l.Tenant, events.KindInstallPlan, id), Incarnation: 1}
}

// want asks the indexer for bundle images. The rows stay until the log tells of their content, or nobody
// asks for them any more.
func (w writer) want(ctx context.Context, list []decide.Wanted) error {
	slices.SortFunc(list, func(a, b decide.Wanted) int { // one order for all, so that two decisions never wait for each other in a ring
		return cmp.Or(cmp.Compare(a.Catalog.String(), b.Catalog.String()), cmp.Compare(a.Image, b.Image), cmp.Compare(a.Package, b.Package), cmp.Compare(a.Bundle, b.Bundle))
	})
	for _, x := range list {
		subject := catalogSubject(w.l.Scope.Cluster, x.Catalog)
		image := resolve.BundleImage{Image: storable(x.Image), Package: storable(x.Package), Bundle: storable(x.Bundle)}
		// Who begins to ask locks a wish that is there, so that nobody takes it back meanwhile (takeBack).
		action := `do update set since = w.since`
		if w.l.reads[resolve.Read{Kind: resolve.ReadImage, Catalog: resolve.CatalogKey{Name: subject}, Name: image.ReadName()}] {
			action = `do nothing`
		}
		err := exec(ctx, w.tx, `insert into resolver.wanted_images as w (tenant, subject, image, package, bundle) values ($1, $2, $3, $4, $5)
			on conflict (tenant, subject, image, package, bundle) `+action, w.l.Tenant, subject, image.Image, image.Package, image.Bundle)
		if err != nil {
			return err
		}
	}
	return nil
}

func (w writer) reads(ctx context.Context, now map[resolve.Read]bool) error {
	if sameReads(w.l.reads, now) {
		return nil
	}
	if err := w.takeBack(ctx, now); err != nil {
		return err
	}
	if err := exec(ctx, w.tx, `delete from resolver.reads where tenant = $1 and cluster = $2 and namespace = $3`,
		w.l.Tenant, w.l.Scope.Cluster, w.l.Scope.Namespace); err != nil {
		return err
	}
	var kinds, subjects, names []string
	for r := range now {
		kinds, subjects, names = append(kinds, string(r.Kind)), append(subjects, r.Catalog.Name), append(names, r.Name)
	}
	return exec(ctx, w.tx, `insert into resolver.reads (tenant, cluster, namespace, kind, catalog, name)
		select $1, $2, $3, k, c, n from unnest($4::text[], $5::text[], $6::text[]) as u(k, c, n)`,
		w.l.Tenant, w.l.Scope.Cluster, w.l.Scope.Namespace, kinds, subjects, names)
}

// takeBack withdraws the wishes for bundle images that nobody but this scope asked for, and it does no longer. They are
// locked first: who began to ask meanwhile is seen by the statement that follows.
func (w writer) takeBack(ctx context.Context, now map[resolve.Read]bool) error {
	var subjects, names []string
	for r := range w.l.reads {
		if r.Kind == resolve.ReadImage && !now[r] {
			subjects, names = append(subjects, r.Catalog.Name), append(names, r.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	const wish = `w.tenant = $1 and (w.subject, w.image || ' ' || w.package || ' ' || w.bundle) in (select s, n from unnest($2::text[], $3::text[]) as u(s, n))`
	err := exec(ctx, w.tx, `select from resolver.wanted_images w where `+wish+` order by w.subject, w.image, w.package, w.bundle for update`, w.l.Tenant, subjects, names)
	if err != nil {
		return err
	}
	return exec(ctx, w.tx, `delete from resolver.wanted_images w where `+wish+` and not exists (
		select from resolver.reads r where r.tenant = $1 and r.kind = 'image' and r.catalog = w.subject
		  and r.name = w.image || ' ' || w.package || ' ' || w.bundle and (r.cluster, r.namespace) <> ($4, $5))`,
		w.l.Tenant, subjects, names, w.l.Scope.Cluster, w.l.Scope.Namespace)
}

func (w writer) supersede(ctx context.Context, x decide.Supersession) error {
	if len(x.Events) == 0 {
		return nil
	}
	a, err := w.s.log.Append(ctx, w.tx, w.meta(""), w.planStream(x.Plan.ID), w.subject(x.Plan.State.Proposed.Name), x.Plan.Version, x.Events...)
	if err != nil {
		return err
	}
	state := x.Plan.State
	for _, e := range x.Events {
		if state, err = installplan.Evolve(state, e); err != nil {
			return errs.Wrap(errs.Internal, err, "fold plan %s", x.Plan.ID)
		}
	}
	return w.s.putPlan(ctx, w.tx, w.l.Tenant, planRow{id: x.Plan.ID, version: a.Version, state: state})
}

func (w writer) propose(ctx context.Context, p decide.Proposal) error {
	id := p.Event.Plan
	properties, err := encode(p.Properties)
	if err != nil {
		return err
	}
	err = exec(ctx, w.tx, `insert into resolver.plan_documents (tenant, plan, digest, document, effect, properties)
		values ($1, $2, $3, $4, $5, $6)`, w.l.Tenant, id, p.Event.Digest, p.Document, p.Effect, properties)
	if err != nil {
		return err
	}
	if err := w.input(ctx, p.Input); err != nil {
		return err
	}
	if err := w.refer(ctx, refContent, contentsOf(p.Event.Bundles)); err != nil {
		return err
	}
	a, err := w.s.log.Append(ctx, w.tx, w.meta(p.Correlation), w.planStream(id), w.subject(p.Event.Name), 0, p.Event)
	if err != nil {
		return err
	}
	state, err := installplan.Fold(p.Event)
	if err != nil {
		return errs.Wrap(errs.Internal, err, "fold plan %s", id)
	}
	return w.s.putPlan(ctx, w.tx, w.l.Tenant, planRow{id: id, version: a.Version, state: state})
}

func (w writer) tell(ctx context.Context, t decide.Told) error {
	if err := w.input(ctx, t.Input); err != nil {
		return err
	}
	if t.Explanation != nil {
		if err := w.explanation(ctx, t); err != nil {
			return err
		}
	}
	sub := t.Subscription
	stream := events.StreamID{Kind: events.KindSubscription, Key: events.Key(w.l.Tenant, events.KindSubscription, w.subject(sub.Name)), Incarnation: sub.Incarnation}
	a, err := w.s.log.Append(ctx, w.tx, w.meta(sub.Correlation), stream, w.subject(sub.Name), sub.Version, t.Event)
	if err != nil {
		return err
	}
	outcome, err := encode(t.Outcome)
	if err != nil {
		return err
	}
	return exec(ctx, w.tx, `update resolver.subscriptions set outcome = $5, version = $6
		where tenant = $1 and cluster = $2 and namespace = $3 and name = $4`,
		w.l.Tenant, w.l.Scope.Cluster, w.l.Scope.Namespace, sub.Name, outcome, a.Version)
}

// generate makes a subscription. A name that is taken, by a subscription to another package, stays with it.
func (w writer) generate(ctx context.Context, g events.SubscriptionGenerated) error {
	head, err := w.s.log.Latest(ctx, w.tx, w.l.Tenant, events.KindSubscription, w.subject(g.Name))
	if err != nil || head.Exists() {
		return err
	}
	stream := head.Create()
	if _, err := w.s.log.Append(ctx, w.tx, w.meta(""), stream, w.subject(g.Name), 0, g); err != nil {
		return err
	}
	spec, err := encode(g.Spec)
	if err != nil {
		return err
	}
	return exec(ctx, w.tx, `insert into resolver.subscriptions
		(tenant, cluster, namespace, name, incarnation, version, spec, generated, created, installed_csv)
		values ($1, $2, $3, $4, $5, 1, $6, true, $7, $8)`,
		w.l.Tenant, w.l.Scope.Cluster, w.l.Scope.Namespace, g.Name, stream.Incarnation, spec, int64(math.MaxInt64), g.Spec.StartingCSV)
}

func (w writer) explanation(ctx context.Context, t decide.Told) error {
	body, err := encode(t.Explanation)
	if err != nil {
		return err
	}
	return exec(ctx, w.tx, `insert into resolver.explanations (tenant, digest, document) values ($1, $2, $3) on conflict do nothing`,
		w.l.Tenant, t.Outcome.Explanation, body)
}

func (w writer) input(ctx context.Context, r resolve.Record) error {
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
	if err := w.refer(ctx, refPackage, packagesOf(r)); err != nil {
		return err
	}
	return exec(ctx, w.tx, `insert into resolver.inputs (tenant, digest, document) values ($1, $2, $3) on conflict do nothing`, w.l.Tenant, string(d), body)
}
