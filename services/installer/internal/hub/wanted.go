package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/configseal"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// wanted is what a scope's message is made of, read in one snapshot.
type wanted struct {
	cluster  uuid.UUID
	message  protocol.ScopePlans
	withheld []withheld
	contents []digest.Digest // that must be in CONTENT first
	renew    time.Time       // when the message must be made again; zero for never
	begun    map[string]bool // the plans of the message that have begun
}

// withheld is a plan that cannot be published as it is.
type withheld struct {
	plan, name, why string
	reason          string // a code where the plan's stream is to say so; "" for what is shown alone
}

// planRow is a live plan as it is in the tables.
type planRow struct {
	id       string
	name     string
	state    installplan.State
	document []byte
	configs  map[string]string
	trace    string
}

// read computes what is wanted of a scope. ok is false where its cluster is not registered.
func (h *Hub) read(ctx context.Context, s bus.Scope) (w wanted, ok bool, err error) {
	err = h.c.Pool.Snapshot(ctx, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `select cluster_id, settings from installer.clusters where tenant = $1 and name = $2
			and not removed`,
			s.Tenant, s.Cluster).Scan(&w.cluster, &w.message.Settings)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		ok = true
		w.message.Scope = protocol.Scope{
			Tenant: s.Tenant, Cluster: s.Cluster, ClusterID: w.cluster.String(),
			Namespace: s.Namespace,
		}
		return h.fill(ctx, tx, &w)
	})
	return w, ok, pg.Err(err)
}

func (h *Hub) fill(ctx context.Context, tx pgx.Tx, w *wanted) error {
	m := &w.message
	var sum []byte // null after the epoch was raised, until an event has come
	err := tx.QueryRow(ctx, `select c.epoch, c.position, (select e.hash from eventlog.events e
			where e.position = c.position and e.epoch = c.epoch)
		from eventlog.checkpoint($1) c`, Consumer).Scan(&m.Position.Epoch, &m.Position.N, &sum)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	var hash digest.Digest
	if sum != nil {
		hash = digest.FromSum(sum)
	}
	if m.Proof, err = protocol.ProvePosition(m.Scope.ClusterID, m.Position, hash, h.c.Key); err != nil {
		return err
	}
	if m.Stopped, err = stopped(ctx, tx, m.Scope); err != nil {
		return err
	}
	if err := h.fillGroup(ctx, tx, m); err != nil {
		return err
	}
	if err := fillInstalled(ctx, tx, h.values(), m); err != nil {
		return err
	}
	if err := fillRemovals(ctx, tx, w, h.c.Now(), h.c.Key); err != nil {
		return err
	}
	if err := h.content.fillSubscriptions(ctx, tx, m); err != nil {
		return err
	}
	if err := h.fillMetadata(ctx, tx, m); err != nil {
		return err
	}
	if err := fillWaiting(ctx, tx, m, h.c.Now()); err != nil {
		return err
	}
	return h.fillPlans(ctx, tx, w)
}

// stopped: by a loss of commits for everybody, or by a person for the fleet or the cluster.
func stopped(ctx context.Context, tx pgx.Tx, s protocol.Scope) (is bool, err error) {
	err = tx.QueryRow(ctx, `select exists (select from eventlog.stops where resumed is null and tenant in ('*', $1))
		or exists (select from installer.stops where tenant = $1 and subject in ($2, 'cluster/' || $3))`,
		s.Tenant, fleet, s.Cluster).Scan(&is)
	return is, err
}

func (h *Hub) fillGroup(ctx context.Context, tx pgx.Tx, m *protocol.ScopePlans) error {
	rows, err := tx.Query(ctx, `select name, spec from installer.operatorgroups where tenant = $1 and cluster = $2
		and namespace = $3 order by name`,
		m.Scope.Tenant, m.Scope.Cluster, m.Scope.Namespace)
	if err != nil {
		return err
	}
	groups, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (g protocol.OperatorGroup, err error) {
		return g, r.Scan(&g.Name, &g.Spec)
	})
	m.OperatorGroups = len(groups)
	if err != nil || len(groups) != 1 {
		return err
	}
	m.OperatorGroup = groups[0]
	head, err := h.c.EventLog.Latest(ctx, tx, m.Scope.Tenant, events.KindOperatorGroup,
		m.Scope.Cluster+"/"+m.Scope.Namespace+"/"+groups[0].Name)
	m.OperatorGroup.ID = head.ID.UUID().String()
	return err
}

// fillInstalled adds what is installed. That a plan brought it says a report; what it brought says the plan.
func fillInstalled(ctx context.Context, tx pgx.Tx, v values, m *protocol.ScopePlans) error {
	rows, err := tx.Query(ctx, `select c.name, c.plan, coalesce(p.state, '{}'), coalesce(s.config, p.configs ->> c.name),
			c.overrides
		from installer.csvs c
		left join installer.plans p on p.tenant = c.tenant and p.cluster = c.cluster and p.namespace = c.namespace
			and p.plan = case when c.plan ~ '^[0-9a-f-]{36}$' then c.plan::uuid end
		left join lateral (select s.config from installer.subscriptions s where s.tenant = c.tenant
		and s.cluster = c.cluster
			and s.namespace = c.namespace and s.spec ->> 'package' = c.package order by s.name limit 1) s on true
		where c.tenant = $1 and c.cluster = $2 and c.namespace = $3 order by c.name`,
		m.Scope.Tenant, m.Scope.Cluster, m.Scope.Namespace)
	if err != nil {
		return err
	}
	var commitments []*string
	m.Installed, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (i protocol.Installed, err error) {
		var config *string
		var by installplan.State
		err = r.Scan(&i.CSV, &i.Plan, &by, &config, &i.Overrides)
		for _, b := range by.Proposed.Bundles {
			if b.CSV == i.CSV {
				i.Content = b.Content
			}
		}
		commitments = append(commitments, config)
		return i, err
	})
	if err != nil {
		return err
	}
	for i, c := range commitments {
		switch {
		case c == nil:
		case *c == "":
			m.Installed[i].Config = json.RawMessage("null")
		default:
			if m.Installed[i].Config, err = v.readConfig(ctx, tx, m.Scope, *c); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h *Hub) fillPlans(ctx context.Context, tx pgx.Tx, w *wanted) error {
	now := h.c.Now()
	plans, err := livePlans(ctx, tx, w.message.Scope)
	if err != nil {
		return err
	}
	w.message.Plans = []protocol.Plan{}
	for _, p := range plans {
		if !p.state.Executable(now) {
			w.wakeAtWindow(p, now)
			continue
		}
		out, why, err := h.plan(ctx, tx, w, p, now)
		if err != nil {
			return err
		}
		if why != (refusal{}) {
			w.withheld = append(w.withheld, withheld{plan: p.id, name: p.name, why: why.why, reason: why.reason})
			w.wakeAt(now.Add(refusedAgain))
			continue
		}
		w.message.Plans = append(w.message.Plans, out)
		if p.state.Begun {
			if w.begun == nil {
				w.begun = map[string]bool{}
			}
			w.begun[p.id] = true
		}
	}
	for _, i := range w.message.Installed {
		if i.Content != "" {
			w.contents = append(w.contents, digest.Digest(i.Content))
		}
	}
	return nil
}

// wakeAtWindow has the message made again when the windows of a plan that may not begin yet open, and says where that
// cannot be known. One that waits for people is made again when they have decided.
func (w *wanted) wakeAtWindow(p planRow, now time.Time) {
	if _, err := p.state.Windows(); err != nil {
		w.withheld = append(w.withheld, withheld{plan: p.id, name: p.name, why: err.Error()})
		return
	}
	if p.state.PhaseAt(now) != installplan.Installing {
		return
	}
	if opens, ok := p.state.NextOpening(now); ok {
		w.wakeAt(opens)
	}
}

// wakeAt has the message made again at a time, if not before.
func (w *wanted) wakeAt(t time.Time) {
	if w.renew.IsZero() || t.Before(w.renew) {
		w.renew = t
	}
}

func livePlans(ctx context.Context, tx pgx.Tx, s protocol.Scope) ([]planRow, error) {
	rows, err := tx.Query(ctx, selectPlan+` where p.tenant = $1 and p.cluster = $2 and p.namespace = $3
		and p.phase = 'Installing'
		order by p.epoch, p.position`, s.Tenant, s.Cluster, s.Namespace)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanPlan)
}

const selectPlan = `select p.plan::text, p.name, p.state, coalesce(d.document, ''::bytea), p.configs, p.traceparent
	from installer.plans p left join resolver_api.plan_documents d on d.tenant = p.tenant and d.plan = p.plan::text`

func scanPlan(r pgx.CollectableRow) (p planRow, err error) {
	return p, r.Scan(&p.id, &p.name, &p.state, &p.document, &p.configs, &p.trace)
}

// plan makes the message of one plan with its grant; why says what keeps it back.
func (h *Hub) plan(ctx context.Context, tx pgx.Tx, w *wanted, p planRow, now time.Time) (
	out protocol.Plan, why refusal, err error,
) {
	out, text, err := w.plan(ctx, tx, h.values(), p)
	if text != "" || err != nil {
		return out, refusal{why: text}, err
	}
	if !p.state.Begun {
		if why, err = judge(ctx, h.content, tx, w.message.Scope, p); err != nil || why != (refusal{}) {
			return out, why, err
		}
	}
	out.Grant, err = h.grant(w, p, out.Configs, now)
	return out, refusal{}, err
}

// plan makes the message of one plan without a grant, and notes the contents that it needs.
func (w *wanted) plan(ctx context.Context, tx pgx.Tx, v values, p planRow) (
	out protocol.Plan, why string, err error,
) {
	if len(p.document) == 0 {
		return out, "its document is not stored", nil
	}
	out = protocol.Plan{
		ID: p.id, Name: p.name, Digest: p.state.Proposed.Digest, Component: p.state.Proposed.Component,
		Document: json.RawMessage(p.document), TraceParent: p.trace,
	}
	for csv, commitment := range p.configs {
		body, err := v.readConfig(ctx, tx, w.message.Scope, commitment)
		if bodies.Unopened(err) { // the other plans of the namespace go on
			return out, fmt.Sprintf("the configuration of %s does not open: %v", csv, err), nil
		}
		if err != nil {
			return out, "", err
		}
		if body == nil {
			return out, fmt.Sprintf("the configuration of %s was erased", csv), nil
		}
		if out.Configs == nil {
			out.Configs = map[string]json.RawMessage{}
		}
		out.Configs[csv] = body
	}
	for _, b := range p.state.Proposed.Bundles {
		w.contents = append(w.contents, digest.Digest(b.Content))
	}
	return out, "", nil
}

// values are what configurations are opened by in the database, and sealed by on their way.
type values struct {
	bodies bodies.Keys
	way    configseal.Root
}

func (h *Hub) values() values { return values{h.c.Bodies, h.c.Configs} }

// readConfig returns a configuration sealed to the executors of a cluster, nil where it was erased.
func (v values) readConfig(
	ctx context.Context, tx pgx.Tx, s protocol.Scope, commitment string,
) (json.RawMessage, error) {
	body, err := readBody(ctx, tx, v.bodies, s.Tenant, commitment)
	if err != nil || body == nil {
		return nil, err
	}
	key, err := v.way.For(s.Tenant, s.ClusterID)
	if err != nil {
		return nil, err
	}
	return key.Seal(commitment, body)
}

// readBody returns an erasable body, nil where it was erased.
func readBody(ctx context.Context, tx pgx.Tx, keys bodies.Keys, tenant, commitment string) (json.RawMessage, error) {
	return keys.Read(ctx, tx, bodies.View, tenant, commitment)
}

// grant signs the permission to execute a plan. It ends with the approval and the window that it rests on,
// unless the plan has begun: such a plan is brought to its end.
func (h *Hub) grant(w *wanted, p planRow, configs map[string]json.RawMessage, now time.Time) (protocol.Grant, error) {
	full := now.Add(GrantTTL)
	expires := p.state.Until(now, full)
	if expires.Before(full) {
		w.wakeAt(expires)
	} else {
		w.wakeAt(now.Add(GrantTTL / 2))
	}
	operators, err := protocol.Granted(p.state.Proposed.Bundles, configs, p.state.Proposed.Rendering)
	if err != nil {
		return protocol.Grant{}, errs.Wrap(errs.Internal, err, "digest of a configuration of plan %s", p.name)
	}
	g, err := protocol.Grant{
		Plan: p.id, Digest: p.state.Proposed.Digest, Cluster: w.cluster.String(), Operators: operators,
		Namespace: w.message.Scope.Namespace, Account: w.message.OperatorGroup.Spec.ServiceAccountName,
		Expires: expires.UTC().Truncate(time.Second), Choices: choices(p.state),
	}.Sign(h.c.Key)
	return g, errs.Wrap(errs.Internal, err, "sign the grant of plan %s", p.name)
}

// choices are what approvers settled of the obstacles of a plan.
func choices(s installplan.State) []protocol.Choice {
	var out []protocol.Choice
	for _, c := range s.Settled() {
		out = append(out, protocol.Choice(c))
	}
	return out
}

// sameType is the type prefix of the digest by which a changed message is recognized.
const sameType = "chandler.scope-plans.v1"

// fingerprint is the digest of a message without its position and grants, of which only what approvers chose says
// anything new.
func fingerprint(m protocol.ScopePlans) (digest.Digest, error) {
	m.Position, m.Proof = events.Position{}, nil
	plans := make([]protocol.Plan, len(m.Plans))
	for i, p := range m.Plans {
		p.Grant = protocol.Grant{Choices: p.Grant.Choices}
		p.TraceParent = ""
		plans[i] = p
	}
	m.Plans = plans
	m.Removals = slices.Clone(m.Removals)
	for i := range m.Removals {
		m.Removals[i].Grant = protocol.Grant{}
	}
	return digest.JSON(sameType, m)
}
