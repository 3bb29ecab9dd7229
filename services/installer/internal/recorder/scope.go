package recorder

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/attribute"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/installer/record"
)

// namespaceCommand is the UUIDv5 namespace of the recorder's command ids. It is arbitrary and must never change.
var namespaceCommand = uuid.MustParse("c3b3f2b2-3b1b-5a44-8c62-2f6a4be9d0c7")

// recordScope records one report of a scope in one transaction.
func (r *Recorder) recordScope(ctx context.Context, report protocol.ScopeReport, sum digest.Digest) (
	settled bool, err error,
) {
	if err := r.checkEpoch(ctx, senderOf(report)); err != nil {
		return false, err
	}
	err = r.c.Pool.Tx(ctx, func(tx pgx.Tx) error {
		l, err := r.admit(ctx, tx, report)
		if err != nil || l == nil {
			return err
		}
		if settled, err = r.recordParts(ctx, l, report); err != nil {
			return err
		}
		if l.withheld {
			settled = false
			r.logWithheld(report.Scope)
		}
		if err := l.saveBudget(ctx, report.Scope); err != nil {
			return err
		}
		return saveScope(ctx, tx, report, sum)
	})
	return settled, pg.Err(err)
}

// recordParts records the parts of a report, first those that people wait for.
func (r *Recorder) recordParts(ctx context.Context, tx *reportTx, report protocol.ScopeReport) (
	settled bool, err error,
) {
	for _, p := range report.Plans {
		if err := r.recordPlan(ctx, tx, report, p); err != nil {
			return false, err
		}
	}
	if err := r.recordRemovals(ctx, tx, report); err != nil {
		return false, err
	}
	csvs, err := r.recordCSVs(ctx, tx, report)
	if err != nil {
		return false, err
	}
	group, err := r.recordGroup(ctx, tx, report)
	return csvs && group, err
}

func senderOf(report protocol.ScopeReport) sender {
	s := report.Scope
	return sender{
		tenant: s.Tenant, cluster: s.Cluster, id: s.ClusterID, seen: report.Seen, proof: report.Proof,
		claim: record.Claim{Epoch: report.Epoch, Session: report.Session, Sequence: report.Sequence},
	}
}

// maxStrangers bounds the namespaces of one cluster of which reports are taken although the hub has published nothing
// for them: those that it has forgotten meanwhile, or that a cluster makes up. Namespaces that it has published to are
// as many as people asked for.
const maxStrangers = 1_000

// admit locks the scope's row and reports whether a report is newer than what was taken: of the present
// holder, and not an older one of its reports; else the ledger is nil.
func (r *Recorder) admit(ctx context.Context, tx pgx.Tx, report protocol.ScopeReport) (
	l *reportTx, err error,
) {
	s := report.Scope
	if err := checkRegistered(ctx, tx, s.Tenant, s.ClusterID, s.Cluster); err != nil {
		return nil, err
	}
	heard, cluster, err := r.classifySender(ctx, tx, senderOf(report))
	if err != nil || heard != record.SenderHolder {
		return nil, err
	}
	if _, err := tx.Exec(ctx, `insert into installer.reports (tenant, cluster_id, namespace, epoch, reported, digest)
		select $1, $2, $3, 0, '-infinity', ''
		where not exists (select from installer.reports where tenant = $1 and cluster_id = $2 and namespace = $3)
		  and (exists (select from installer.published where tenant = $1 and cluster_id = $2 and namespace = $3)
		    or (select count(*) from installer.reports where tenant = $1 and cluster_id = $2) <
		      (select count(*) from installer.published where tenant = $1 and cluster_id = $2) + $4::int)
		on conflict do nothing`, s.Tenant, s.ClusterID, s.Namespace, maxStrangers); err != nil {
		return nil, err
	}
	var older bool
	var scope record.Budget
	err = tx.QueryRow(ctx, `select session is not distinct from $4::uuid and sequence > $5, budget from installer.reports
		where tenant = $1 and cluster_id = $2 and namespace = $3 for update`,
		s.Tenant, s.ClusterID, s.Namespace, report.Session, report.Sequence).Scan(&older, &scope)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, errs.New(errs.TooLarge,
			"cluster %s reports of more than %d namespaces that the hub wants nothing of; of %q nothing is recorded",
			s.Cluster, maxStrangers,
			s.Namespace)
	}
	if err != nil || older {
		return nil, err // the same may come again with a higher number, and counts then
	}
	now := r.c.Now()
	l = &reportTx{Tx: tx, scope: scope.Refill(r.c.Scope, now), cluster: cluster.Refill(r.c.Cluster, now)}
	l.left = min(l.scope.Remaining(r.c.Scope), l.cluster.Remaining(r.c.Cluster))
	return l, nil
}

// saveScope stores which report was recorded last. One of epoch 0 does not replace a holder's.
func saveScope(ctx context.Context, tx pgx.Tx, r protocol.ScopeReport, sum digest.Digest) error {
	_, err := tx.Exec(ctx, `update installer.reports set epoch = $4, reported = $5, digest = $6, session = $7,
		sequence = $8 where tenant = $1 and cluster_id = $2 and namespace = $3 and epoch <= $4`,
		r.Scope.Tenant, r.Scope.ClusterID, r.Scope.Namespace, r.Epoch, r.Reported, string(sum), r.Session, r.Sequence)
	return err
}

// checkRegistered checks that the cluster is registered under this id.
func checkRegistered(ctx context.Context, tx pgx.Tx, tenant, id, name string) error {
	if _, err := uuid.Parse(id); err != nil {
		return errs.Wrap(errs.Invalid, err, "cluster id %q", id)
	}
	var is string
	err := tx.QueryRow(ctx, `select name from installer.clusters where tenant = $1 and cluster_id = $2 and not removed`,
		tenant, id).Scan(&is)
	if errors.Is(err, pgx.ErrNoRows) {
		return errs.New(errs.NotFound, "cluster %s (%s) is not registered", name, id)
	}
	if err == nil && is != name {
		return errs.New(errs.Invalid, "cluster %s is called %q, the report calls it %q", id, is, name)
	}
	return err
}

// origin is where an append comes from.
type origin struct {
	correlation, causation, trace string
}

// causedBy is the origin of events that an event causes.
func causedBy(e eventlog.Recorded) origin {
	o := origin{correlation: e.Correlation, causation: e.ID, trace: e.TraceParent}
	if o.correlation == "" {
		o.correlation = e.ID
	}
	return o
}

// append appends facts, as a span of the trace that they belong to. Their ids derive from the stream, the version
// behind which they stand and what they say.
func (r *Recorder) append(ctx context.Context, tx *reportTx, tenant string, s events.StreamID, subject string,
	version int64, o origin, payloads []events.Payload,
) error {
	if len(payloads) == 0 {
		return nil
	}
	command, err := events.FactCommand(namespaceCommand, fmt.Sprintf("%s\x00%s\x00%d", tenant, s, version), payloads...)
	if err != nil {
		return err
	}
	ctx, end := telemetry.Span(telemetry.WithTraceParent(ctx, o.trace), "record "+string(s.Kind),
		attribute.String("subject", subject))
	tx.spent += len(payloads)
	_, err = r.c.EventLog.Append(ctx, tx, events.Meta{
		Tenant: tenant, Source: events.Installer, Time: r.c.Now().UTC(),
		Command:     command,
		Correlation: o.correlation, Causation: o.causation, TraceParent: telemetry.TraceParent(ctx),
	}, s, subject, version, payloads...)
	end(err)
	return err
}

// saveMessage stores the latest message for people; an empty one removes it.
func saveMessage(ctx context.Context, tx pgx.Tx, tenant, kind, subject, message string) error {
	var err error
	text := bus.Storable(message, messageBytes)
	if text == "" {
		_, err = tx.Exec(ctx, `delete from installer.messages where tenant = $1 and kind = $2 and subject = $3`, tenant,
			kind, subject)
	} else {
		_, err = tx.Exec(ctx, `insert into installer.messages as m (tenant, kind, subject, message)
			values ($1, $2, $3, $4)
			on conflict (tenant, kind, subject) do update set message = excluded.message, updated = now()
			where m.message <> excluded.message`,
			tenant, kind, subject, text)
	}
	return err
}

// messageBytes bounds a message: it is for a terminal, and comes from a cluster that may be hostile.
const messageBytes = 4 << 10
