package hub

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/source"
)

// What clusters that mirror everything get to show, and for nothing else.

// foldOutcome keeps why a subscription does not resolve; reason is "" where it does.
func (f folder) foldOutcome(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, reason string) error {
	s, err := parseSubject(e.Envelope.Subject)
	if err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, `update installer.subscriptions set failed = $5, failed_since = case when $5 = '' then null
		else $6::timestamptz end
		where tenant = $1 and cluster = $2 and namespace = $3 and name = $4 and failed <> $5`, e.Tenant, s.cluster, s.namespace, s.name, reason, e.Time)
	if err != nil || tag.RowsAffected() == 0 {
		return err
	}
	return f.markMirrored(ctx, tx, e, s)
}

// markMirrored marks a scope if its cluster mirrors everything.
func (f folder) markMirrored(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, s subject) error {
	var mirrored bool
	err := tx.QueryRow(ctx, `select exists (select from installer.clusters where tenant = $1 and name = $2
		and not removed and settings ->> 'mirror' = $3)`,
		e.Tenant, s.cluster, events.MirrorAll).Scan(&mirrored)
	if err != nil || !mirrored {
		return err
	}
	return f.mark(ctx, tx, bus.FanOut, e, s.cluster, s.namespace)
}

// markFollowers marks the scopes with a subscription that may name a catalog, in clusters that mirror everything.
func (f folder) markFollowers(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
	rows, err := tx.Query(ctx, `select distinct s.cluster, s.namespace from installer.subscriptions s
		join installer.clusters k on k.tenant = s.tenant and k.name = s.cluster and not k.removed
		and k.settings ->> 'mirror' = $3
		where s.tenant = $1 and s.spec ->> 'catalog' = substring($2 from '[^/]*$')`, e.Tenant, e.Envelope.Subject, events.MirrorAll)
	if err != nil {
		return err
	}
	scopes, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (s bus.Scope, err error) {
		s = bus.Scope{Tenant: e.Tenant, Cause: e.ID, TraceParent: e.TraceParent}
		return s, r.Scan(&s.Cluster, &s.Namespace)
	})
	if err != nil {
		return err
	}
	return f.lanes.Mark(ctx, tx, bus.FanOut, scopes...)
}

// shownCatalog is the catalog of a subscription: that of its namespace in the cluster, else the hub's of that name.
const shownCatalog = `select c.name, c.priority, c.state, c.reason, c.spec from catalog_api.catalogs c
	where c.tenant = s.tenant and not c.disabled and c.visibility_cluster in ('', s.cluster)
	and c.visibility_namespace in ('', s.namespace)
	and c.name in (s.spec ->> 'catalog', s.cluster || '/' || coalesce(s.spec ->> 'catalogNamespace', '') || '/' ||
	(s.spec ->> 'catalog'))
	order by c.name = s.spec ->> 'catalog' limit 1`

// fillSubscriptions adds subscriptions where the cluster mirrors them.
func (c *contents) fillSubscriptions(ctx context.Context, tx pgx.Tx, m *protocol.ScopePlans) error {
	if m.Settings.Mirror != events.MirrorAll {
		return nil
	}
	rows, err := tx.Query(ctx, `select s.name, s.spec, s.failed, s.failed_since, c.name, c.priority, c.state, c.reason,
		c.spec from installer.subscriptions s
		left join lateral (`+shownCatalog+`) c on true
		where s.tenant = $1 and s.cluster = $2 and s.namespace = $3 and s.spec <> '{}' order by s.name`,
		m.Scope.Tenant, m.Scope.Cluster, m.Scope.Namespace)
	if err != nil {
		return err
	}
	type followed struct{ name, settings string } // a catalog, and the commitment of its settings
	var catalogs []followed
	m.Subscriptions, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (s protocol.Subscription, err error) {
		var since *time.Time
		var priority *int
		var name, state, reason, settings *string
		if err := r.Scan(&s.Name, &s.Spec, &s.Failed, &since, &name, &priority, &state, &reason,
			&settings); err != nil {
			return s, err
		}
		s.Spec.Config = ""
		if since != nil {
			s.FailedSince = since.UTC()
		}
		var of followed
		if name != nil {
			s.Catalog = &protocol.CatalogState{Subject: *name, Priority: *priority, State: *state, Reason: *reason}
			of = followed{*name, *settings}
		}
		catalogs = append(catalogs, of)
		return s, nil
	})
	if err != nil {
		return err
	}
	for i := range m.Subscriptions {
		s := &m.Subscriptions[i]
		if s.Catalog == nil {
			continue
		}
		if err := c.display(ctx, tx, m.Scope.Tenant, catalogs[i].settings, s.Catalog); err != nil {
			return err
		}
		if s.Deprecations, err = c.ofSubscription(ctx, tx, m, catalogs[i].name, s.Spec); err != nil {
			return err
		}
	}
	return nil
}

// display adds what people see of a catalog. Settings that were erased, or that this version cannot read, show nothing.
func (c *contents) display(
	ctx context.Context, tx pgx.Tx, tenant, commitment string, out *protocol.CatalogState,
) error {
	body, err := readBody(ctx, tx, c.bodies, tenant, commitment)
	if err != nil || body == nil {
		return err
	}
	if settings, err := source.Decode(body); err == nil && settings.Display != nil {
		out.DisplayName, out.Publisher = settings.Display.Name, settings.Display.Publisher
	}
	return nil
}

// ofSubscription is what a catalog, as its cluster is served it, deprecates of a package: the package, the channel that
// is followed, and what is installed (R-SUB-41).
func (c *contents) ofSubscription(ctx context.Context, tx pgx.Tx, m *protocol.ScopePlans, catalog string,
	spec events.SubscriptionSpec,
) ([]protocol.Deprecation, error) {
	var pkg string
	err := tx.QueryRow(ctx, `select p.digest from catalog_api.served v
		join catalog_api.revision_packages p on p.tenant = v.tenant and p.revision = v.revision
		where v.tenant = $1 and v.name = $2 and v.cluster = $3 and p.package = $4`, m.Scope.Tenant, catalog, m.Scope.Cluster, spec.Package).Scan(&pkg)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := c.deprecations(ctx, tx, m.Scope.Tenant, digest.Digest(pkg))
	if err != nil || len(all) == 0 {
		return nil, err
	}
	rows, err := tx.Query(ctx, `select name from installer.csvs where tenant = $1 and cluster = $2 and namespace = $3
		and package = $4`,
		m.Scope.Tenant, m.Scope.Cluster, m.Scope.Namespace, spec.Package)
	if err != nil {
		return nil, err
	}
	installed, err := pgx.CollectRows(rows, pgx.RowTo[string])
	var out []protocol.Deprecation
	for _, d := range all {
		switch {
		case d.Schema == "olm.package":
			d.Name = spec.Package
		case d.Schema == "olm.channel" && d.Name == spec.Channel:
		case d.Schema == "olm.bundle" && slices.Contains(installed, d.Name):
		default:
			continue
		}
		d.Message = strings.ToValidUTF8(d.Message[:min(len(d.Message), maxDeprecation)], "")
		out = append(out, protocol.Deprecation(d))
	}
	slices.SortStableFunc(out, func(a, b protocol.Deprecation) int { // package, channel, bundle
		return cmp.Compare(slices.Index(deprecated, a.Schema), slices.Index(deprecated, b.Schema))
	})
	return out, err
}

// deprecated are the elements that may be, in the order of the message.
var deprecated = []string{"olm.package", "olm.channel", "olm.bundle"}

// maxDeprecation bounds the text of one: a message of NATS holds all subscriptions of a namespace.
const maxDeprecation = 4 << 10

// fillWaiting adds plans that may not be carried out yet, where the cluster mirrors subscriptions, oldest first.
func fillWaiting(ctx context.Context, tx pgx.Tx, m *protocol.ScopePlans, now time.Time) error {
	if m.Settings.Mirror != events.MirrorAll {
		return nil
	}
	rows, err := tx.Query(ctx, selectPlan+` where p.tenant = $1 and p.cluster = $2 and p.namespace = $3
		and p.phase = any ($4)
		order by p.epoch, p.position`, m.Scope.Tenant, m.Scope.Cluster, m.Scope.Namespace,
		[]string{string(installplan.RequiresApproval), string(installplan.Installing)})
	if err != nil {
		return err
	}
	plans, err := pgx.CollectRows(rows, scanPlan)
	if err != nil {
		return err
	}
	for _, p := range plans {
		if !p.state.Executable(now) {
			m.Waiting = append(m.Waiting, waiting(p, now))
		}
	}
	return nil
}

// waiting says what a plan waits for. One whose approval expired before its first step waits for approval again.
func waiting(p planRow, now time.Time) protocol.WaitingPlan {
	w := protocol.WaitingPlan{ID: p.id, Name: p.name, Bundles: p.state.Proposed.Bundles}
	if p.state.PhaseAt(now) == installplan.RequiresApproval {
		return w
	}
	w.Approved, w.Message = true, "it waits for its maintenance window"
	if opens, ok := p.state.NextOpening(now); ok {
		w.Message += ", which opens at " + opens.UTC().Format(time.RFC3339)
	}
	return w
}
