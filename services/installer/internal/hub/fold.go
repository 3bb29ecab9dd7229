package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/services/installer/csv"
)

// folder folds the log into the tables of the installer schema, and marks the scopes that an event touches.
type folder struct {
	lanes *bus.Lanes
	log   *eventlog.Log
	// stops is set when a stop, or the end of one, was folded.
	stops *atomic.Bool
	// clusters is set when an event of a cluster was folded.
	clusters *atomic.Bool
}

// subject is a natural key of the form cluster/namespace/name.
type subject struct{ cluster, namespace, name string }

func parseSubject(s string) (subject, error) {
	p := strings.Split(s, "/")
	if len(p) != 3 || p[0] == "" || p[1] == "" || p[2] == "" {
		return subject{}, errs.New(errs.Invalid, "subject %q: want cluster/namespace/name", s)
	}
	return subject{p[0], p[1], p[2]}, nil
}

func (f folder) mark(ctx context.Context, tx pgx.Tx, lane bus.Lane, e eventlog.Recorded, cluster,
	namespace string,
) error {
	return f.lanes.Mark(ctx, tx, lane, bus.Scope{
		Tenant: e.Tenant, Cluster: cluster, Namespace: namespace, Cause: e.ID, TraceParent: e.TraceParent,
	})
}

func (f folder) clusterRegistered(
	ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.ClusterRegistered,
) error {
	if _, err := tx.Exec(ctx, `insert into installer.clusters (tenant, name, cluster_id, stream, credential,
		waived, labels) values ($1, $2, $3, $4, $5, coalesce($6::text[], '{}'), $7)`,
		e.Tenant, p.Name, e.StreamID.UUID(), e.StreamID.String(), p.Credential, p.Waived,
		labelsOf(p.Labels)); err != nil {
		return err
	}
	return f.markCluster(ctx, tx, e, p.Name)
}

func (f folder) credentialReplaced(
	ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.ClusterCredentialReplaced,
) error {
	id := e.StreamID.UUID()
	if _, err := tx.Exec(ctx, `update installer.clusters set credential = $3, waived = coalesce($4::text[], '{}')
		where tenant = $1 and cluster_id = $2`, e.Tenant, id, p.Credential, p.Waived); err != nil {
		return err
	}
	// What was heard of the holder was heard with the credential before: that the new one does not work shows at once.
	_, err := tx.Exec(ctx, `update installer.holders set heard = '-infinity' where tenant = $1 and cluster_id = $2`,
		e.Tenant, id)
	return err
}

// credentialRotated takes over a token that an executor's host has asked for and stored.
func (f folder) credentialRotated(
	ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.ClusterCredentialRotated,
) error {
	_, err := tx.Exec(ctx, `update installer.clusters set credential = $3 where tenant = $1 and cluster_id = $2`,
		e.Tenant, e.StreamID.UUID(), p.Credential)
	return err
}

func (f folder) clusterConfigured(
	ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.ClusterConfigured,
) error {
	if _, err := tx.Exec(ctx, `update installer.clusters set settings = $3 where tenant = $1 and cluster_id = $2`,
		e.Tenant, e.StreamID.UUID(), p.Settings); err != nil {
		return err
	}
	return f.markCluster(ctx, tx, e, e.Envelope.Subject)
}

func (f folder) clusterRemoved(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, _ events.ClusterRemoved) error {
	if _, err := tx.Exec(ctx, `update installer.clusters set removed = true where tenant = $1 and cluster_id = $2`,
		e.Tenant, e.StreamID.UUID()); err != nil {
		return err
	}
	if err := (agentFolds{f}).forget(ctx, tx, e); err != nil {
		return err
	}
	return f.mark(ctx, tx, bus.FanOut, e, e.Envelope.Subject, "")
}

// markCluster marks all scopes that the tables know of a cluster: one that is registered again has them
// from before.
func (f folder) markCluster(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, cluster string) error {
	rows, err := tx.Query(ctx, `select namespace from installer.plans where tenant = $1 and cluster = $2
		and phase = 'Installing'
		union select namespace from installer.csvs where tenant = $1 and cluster = $2
		union select namespace from installer.operatorgroups where tenant = $1 and cluster = $2
		union select namespace from installer.subscriptions where tenant = $1 and cluster = $2`, e.Tenant, cluster)
	if err != nil {
		return err
	}
	namespaces, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	scopes := make([]bus.Scope, len(namespaces))
	for i, n := range namespaces {
		scopes[i] = bus.Scope{Tenant: e.Tenant, Cluster: cluster, Namespace: n, Cause: e.ID, TraceParent: e.TraceParent}
	}
	return f.lanes.Mark(ctx, tx, bus.FanOut, scopes...)
}

func (f folder) groupCreated(
	ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.OperatorGroupCreated,
) error {
	return f.putGroup(ctx, tx, e, p.Spec)
}

func (f folder) groupChanged(
	ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.OperatorGroupChanged,
) error {
	return f.putGroup(ctx, tx, e, p.Spec)
}

func (f folder) putGroup(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, spec events.OperatorGroupSpec) error {
	s, err := parseSubject(e.Envelope.Subject)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `insert into installer.operatorgroups values ($1, $2, $3, $4, $5)
		on conflict (tenant, cluster, namespace, name) do update set spec = excluded.spec`,
		e.Tenant, s.cluster, s.namespace, s.name, spec); err != nil {
		return err
	}
	return f.mark(ctx, tx, bus.Interactive, e, s.cluster, s.namespace)
}

func (f folder) groupDeleted(
	ctx context.Context, tx pgx.Tx, e eventlog.Recorded, _ events.OperatorGroupDeleted,
) error {
	s, err := parseSubject(e.Envelope.Subject)
	if err != nil {
		return err
	}
	if err := putMetadata(ctx, tx, e, events.Metadata{}); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `delete from installer.operatorgroups where tenant = $1 and cluster = $2
		and namespace = $3 and name = $4`, e.Tenant, s.cluster, s.namespace, s.name); err != nil {
		return err
	}
	return f.mark(ctx, tx, bus.Interactive, e, s.cluster, s.namespace)
}

func (f folder) subscriptionCreated(
	ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.SubscriptionCreated,
) error {
	return f.putSubscription(ctx, tx, e, p.Spec, "")
}

func (f folder) subscriptionGenerated(
	ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.SubscriptionGenerated,
) error {
	return f.putSubscription(ctx, tx, e, p.Spec, "")
}

func (f folder) subscriptionChanged(
	ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.SubscriptionChanged,
) error {
	return f.putSubscription(ctx, tx, e, p.Spec, "")
}

// putSubscription keeps the spec of a subscription. It touches a scope only where that is shown or configures something
// there: a plan carries the configuration that it was proposed with. goesBackTo is the CSV that a rollout has it go
// back to; "" for none.
func (f folder) putSubscription(
	ctx context.Context, tx pgx.Tx, e eventlog.Recorded, spec events.SubscriptionSpec, goesBackTo string,
) error {
	s, err := parseSubject(e.Envelope.Subject)
	if err != nil {
		return err
	}
	if _, err = tx.Exec(ctx, `insert into installer.subscriptions (tenant, cluster, namespace, name, config, spec,
		  goes_back_to) values ($1, $2, $3, $4, $5, $6, $7)
		on conflict (tenant, cluster, namespace, name) do update set config = excluded.config, spec = excluded.spec,
		goes_back_to = excluded.goes_back_to`,
		e.Tenant, s.cluster, s.namespace, s.name, spec.Config, spec, goesBackTo); err != nil {
		return err
	}
	if err := f.markPlanned(ctx, tx, e, s.cluster, s.namespace); err != nil {
		return err
	}
	return f.markDisplayed(ctx, tx, e, s, spec.Package)
}

func (f folder) subscriptionDeleted(
	ctx context.Context, tx pgx.Tx, e eventlog.Recorded, _ events.SubscriptionDeleted,
) error {
	s, err := parseSubject(e.Envelope.Subject)
	if err != nil {
		return err
	}
	if err := putMetadata(ctx, tx, e, events.Metadata{}); err != nil {
		return err
	}
	// The operator stays as it was configured last (R-SUB-32): its plan takes that over.
	if _, err := tx.Exec(ctx, `update installer.plans p set configs = p.configs || jsonb_build_object(c.name,
		s.config)
		from installer.subscriptions s, installer.csvs c
		where s.tenant = $1 and s.cluster = $2 and s.namespace = $3 and s.name = $4 and s.config <> ''
		and c.tenant = s.tenant and c.cluster = s.cluster and c.namespace = s.namespace
		and c.package = s.spec ->> 'package'
		and p.tenant = c.tenant and p.plan = case when c.plan ~ '^[0-9a-f-]{36}$' then c.plan::uuid end`,
		e.Tenant, s.cluster, s.namespace, s.name); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `delete from installer.subscriptions where tenant = $1 and cluster = $2
		and namespace = $3 and name = $4`,
		e.Tenant, s.cluster, s.namespace, s.name); err != nil {
		return err
	}
	return f.markDisplayed(ctx, tx, e, s, "")
}

func (f folder) resolutionFailed(
	ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.ResolutionFailed,
) error {
	return f.foldOutcome(ctx, tx, e, p.Reason)
}

func (f folder) resolutionSucceeded(
	ctx context.Context, tx pgx.Tx, e eventlog.Recorded, _ events.ResolutionSucceeded,
) error {
	return f.foldOutcome(ctx, tx, e, "")
}

// markDisplayed marks the scope of a subscription where subscriptions are shown in the cluster, or where an operator of
// its package is installed.
func (f folder) markDisplayed(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, s subject, pkg string) error {
	var shown bool
	if err := tx.QueryRow(ctx, `select exists (select from installer.clusters where tenant = $1 and name = $2
		and not removed and settings ->> 'mirror' = $3)
		or exists (select from installer.csvs where tenant = $1 and cluster = $2 and namespace = $4 and package = $5)`,
		e.Tenant, s.cluster, events.MirrorAll, s.namespace, pkg).Scan(&shown); err != nil || !shown {
		return err
	}
	return f.mark(ctx, tx, bus.FanOut, e, s.cluster, s.namespace)
}

func (f folder) foldPlan(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
	var (
		plan, cluster, namespace string
		raw                      []byte
		before                   installplan.State
	)
	err := tx.QueryRow(ctx, `select plan, cluster, namespace, state from installer.plans
		where tenant = $1 and stream = $2`,
		e.Tenant, e.StreamID.String()).Scan(&plan, &cluster, &namespace, &raw)
	if errors.Is(err, pgx.ErrNoRows) {
		return errs.New(errs.Internal, "%s of plan stream %s that was never proposed", e.Type, e.StreamID)
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &before); err != nil {
		return fmt.Errorf("state of plan %s: %w", plan, err)
	}
	after, err := installplan.Evolve(before, e.Payload)
	if err != nil {
		return err
	}
	if err := savePlan(ctx, tx, e, plan, after); err != nil {
		return err
	}
	// A plan that began just before its window closed was taken back meanwhile: it is handed out again.
	same := before.Phase == after.Phase && before.Approval == after.Approval && before.Begun == after.Begun
	if same && slices.Equal(before.Choices, after.Choices) {
		return nil
	}
	return f.mark(ctx, tx, bus.Interactive, e, cluster, namespace)
}

func savePlan(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, plan string, s installplan.State) error {
	state, err := json.Marshal(s)
	if err != nil {
		return err
	}
	// Of a plan that has begun, or will not, nobody asks any more until when it might have begun.
	_, err = tx.Exec(ctx, `with g as (delete from installer.grants where tenant = $1 and plan = $2::uuid and $6)
		update installer.plans set phase = $3, state = $4,
		traceparent = case when $5 = '' then traceparent else $5 end where tenant = $1 and plan = $2::uuid`,
		e.Tenant, plan, string(s.Phase), state, e.TraceParent, s.Begun || !s.Live())
	return err
}

func (f folder) planFinished(
	ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.InstallPlanFinished,
) error {
	if p.Warnings > 0 {
		if err := addTotals(ctx, tx, e.Tenant, 0, p.Warnings); err != nil {
			return err
		}
	}
	if err := f.foldPlan(ctx, tx, e); err != nil {
		return err
	}
	return f.expect(ctx, tx, e)
}

// expect notes the operators of a finished plan before anything was heard of them: the executor is asked for them, so
// that it says so if somebody has deleted one by then. One that has come and gone already is not expected.
func (f folder) expect(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
	var plan string
	var s installplan.State
	if err := tx.QueryRow(ctx, `select plan, state from installer.plans where tenant = $1 and stream = $2`,
		e.Tenant, e.StreamID.String()).Scan(&plan, &s); err != nil {
		return err
	}
	p := s.Proposed
	for _, b := range p.Bundles {
		heard, err := eventlog.HeardOfOperator(ctx, f.log, tx, e.Tenant, p.Cluster+"/"+p.Namespace+"/"+b.CSV, plan)
		if err != nil {
			return err
		}
		if heard {
			continue
		}
		if _, err := tx.Exec(ctx, `insert into installer.csvs (tenant, cluster, namespace, name, stream, phase, reason,
			package, version, content, plan) values ($1, $2, $3, $4, '', '', '', $5, $6, $7, $8) on conflict do nothing`,
			e.Tenant, p.Cluster, p.Namespace, b.CSV, b.Package, b.Version, b.Content, plan); err != nil {
			return err
		}
	}
	return nil
}

func (f folder) planProposed(
	ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.InstallPlanProposed,
) error {
	id, err := uuid.Parse(p.Plan)
	if err != nil {
		return errs.Wrap(errs.Invalid, err, "plan id of %s", p.Name)
	}
	s, err := installplan.Evolve(installplan.State{}, p)
	if err != nil {
		return err
	}
	configs, err := configsOf(ctx, tx, e.Tenant, p)
	if err != nil {
		return err
	}
	state, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `insert into installer.plans (tenant, plan, stream, cluster, namespace, name, phase,
		state, configs, epoch, position, traceparent)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
		e.Tenant, id, e.StreamID.String(), p.Cluster, p.Namespace, p.Name, string(s.Phase), state, configs,
		e.Position.Epoch, e.Position.N, e.TraceParent); err != nil {
		return err
	}
	if s.Phase != installplan.Installing {
		return f.markMirrored(ctx, tx, e, subject{cluster: p.Cluster, namespace: p.Namespace})
	}
	return f.mark(ctx, tx, laneOf(p), e, p.Cluster, p.Namespace)
}

// laneOf puts what somebody asked for before what a new catalog revision touched in many places.
func laneOf(p events.InstallPlanProposed) bus.Lane {
	for _, b := range p.Bundles {
		if b.Reason == "Subscribed" || b.Reason == "StartingCSV" {
			return bus.Interactive
		}
	}
	return bus.FanOut
}

// configsOf is the configuration's commitment for each CSV of a plan: that of the first of its subscriptions
// that there is, with which the resolver rendered it.
func configsOf(ctx context.Context, tx pgx.Tx, tenant string, p events.InstallPlanProposed) (map[string]string, error) {
	configs := map[string]string{}
	for _, b := range p.Bundles {
		for _, name := range b.Subscriptions {
			var config string
			err := tx.QueryRow(ctx, `select config from installer.subscriptions where tenant = $1 and cluster = $2
				and namespace = $3 and name = $4`,
				tenant, p.Cluster, p.Namespace, name).Scan(&config)
			if errors.Is(err, pgx.ErrNoRows) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if config != "" {
				configs[b.CSV] = config
			}
			break
		}
	}
	return configs, nil
}

func (f folder) csvPhaseChanged(
	ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.CSVPhaseChanged,
) error {
	s, err := parseSubject(e.Envelope.Subject)
	if err != nil {
		return err
	}
	var followed bool
	err = tx.QueryRow(ctx, `select exists (select from installer.csvs where tenant = $1 and cluster = $2
		and namespace = $3 and name = $4
		and content = $5 and plan = $6)`, e.Tenant, s.cluster, s.namespace, s.name, p.Content, p.Plan).Scan(&followed)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `insert into installer.csvs values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
		on conflict (tenant, cluster, namespace, name) do update set stream = excluded.stream,
		phase = excluded.phase, reason = excluded.reason,
		  package = excluded.package, version = excluded.version, content = excluded.content, plan = excluded.plan`,
		e.Tenant, s.cluster, s.namespace, s.name, e.StreamID.String(), p.Phase, p.Reason, p.Package, p.Version,
		p.Content, p.Plan); err != nil {
		return err
	}
	if followed { // only what is to be followed travels to the executor, not how it is
		return nil
	}
	return f.mark(ctx, tx, bus.FanOut, e, s.cluster, s.namespace)
}

func (f folder) csvRemoved(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.CSVRemoved) error {
	s, err := parseSubject(e.Envelope.Subject)
	if err != nil {
		return err
	}
	if p.Reason == string(csv.ReasonReplaced) {
		if err := addTotals(ctx, tx, e.Tenant, 1, 0); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, `delete from installer.csvs where tenant = $1 and cluster = $2 and namespace = $3
		and name = $4`,
		e.Tenant, s.cluster, s.namespace, s.name); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `delete from installer.removals where tenant = $1 and cluster = $2 and namespace = $3
		and csv = $4`,
		e.Tenant, s.cluster, s.namespace, s.name); err != nil {
		return err
	}
	return f.mark(ctx, tx, bus.FanOut, e, s.cluster, s.namespace)
}

// fleet is the subject of a stop that holds for all clusters of a tenant.
const fleet = "fleet"

// effectsStopped writes one row and nothing else, so that nothing can keep a stop out of the answers to executors. The
// messages that have to say so are marked behind it (markStops), and by the guard where that fails.
func (f folder) effectsStopped(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.EffectsStopped) error {
	f.stops.Store(true)
	_, err := tx.Exec(ctx, `insert into installer.stops values ($1, $2, $3)
		on conflict (tenant, subject) do update set reason = excluded.reason`, e.Tenant, e.Envelope.Subject, p.Reason)
	return err
}

func (f folder) effectsResumed(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, _ events.EffectsResumed) error {
	f.stops.Store(true)
	_, err := tx.Exec(ctx, `delete from installer.stops where tenant = $1 and subject = $2`, e.Tenant,
		e.Envelope.Subject)
	return err
}
