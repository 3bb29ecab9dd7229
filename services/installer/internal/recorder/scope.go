package recorder

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/attribute"

	"github.com/chandler-fleet/chandler/libs/bus"
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

// recordScope records one report of a scope in one transaction. One that says what the last one said, which is wholly
// recorded, is only noted.
func (w *writer) recordScope(ctx context.Context, report protocol.ScopeReport, said statement) (
	got outcome, err error,
) {
	if err := w.checkEpoch(ctx, senderOf(report)); err != nil {
		return recorded, err
	}
	err = w.c.Pool.Tx(ctx, func(tx pgx.Tx) error {
		l, not, err := w.admit(ctx, tx, report)
		if err != nil || l == nil {
			got = not
			return err
		}
		settled := l.last.digest == string(said.sum)
		if !settled {
			if settled, err = w.recordParts(ctx, l, report); err != nil {
				return err
			}
			if l.withheld {
				settled = false
				w.logWithheld(report.Scope)
			}
			if err := l.saveBudget(ctx, report.Scope); err != nil {
				return err
			}
		}
		got = settledAs(settled)
		return l.saveScope(ctx, report, said, settled)
	})
	return got, pg.Err(err)
}

// recordParts records the parts of a report, first those that people wait for.
func (w *writer) recordParts(ctx context.Context, tx *reportTx, report protocol.ScopeReport) (
	settled bool, err error,
) {
	for _, p := range report.Plans {
		if err := w.recordPlan(ctx, tx, report, p); err != nil {
			return false, err
		}
	}
	if err := w.recordRemovals(ctx, tx, report); err != nil {
		return false, err
	}
	csvs, err := w.recordCSVs(ctx, tx, report)
	if err != nil {
		return false, err
	}
	group, err := w.recordGroup(ctx, tx, report)
	return csvs && group, err
}

func senderOf(report protocol.ScopeReport) sender {
	s := report.Scope
	return sender{
		tenant: s.Tenant, cluster: s.Cluster, id: s.ClusterID, told: []told{{report.Seen, report.Proof}},
		claim: record.Claim{Epoch: report.Epoch, Session: report.Session, Sequence: report.Sequence},
	}
}

// maxStrangers bounds the namespaces of one cluster of which reports are taken although the hub has published nothing
// for them: those that it has forgotten meanwhile, or that a cluster makes up. Namespaces that it has published to are
// as many as people asked for.
const maxStrangers = 1_000

// admit locks the scope's row and reports whether a report is newer than what was taken: of the present
// holder, and neither an older one of its reports nor one that is wholly recorded; else the ledger is nil, and not says
// what becomes of the report.
func (w *writer) admit(ctx context.Context, tx pgx.Tx, report protocol.ScopeReport) (
	l *reportTx, not outcome, err error,
) {
	s := report.Scope
	if err := checkRegistered(ctx, tx, s.Tenant, s.ClusterID, s.Cluster); err != nil {
		return nil, recorded, err
	}
	of, err := w.classifySender(ctx, tx, senderOf(report))
	if err != nil || of.sender != record.SenderHolder {
		return nil, of.unheard(), err
	}
	if _, err := tx.Exec(ctx, `insert into installer.reports (tenant, cluster_id, namespace, epoch, reported, digest)
		select $1, $2, $3, 0, '-infinity', ''
		where not exists (select from installer.reports where tenant = $1 and cluster_id = $2 and namespace = $3)
		  and (exists (select from installer.published where tenant = $1 and cluster_id = $2 and namespace = $3)
		    or (select count(*) from installer.reports where tenant = $1 and cluster_id = $2) <
		      (select count(*) from installer.published where tenant = $1 and cluster_id = $2) + $4::int)
		on conflict do nothing`, s.Tenant, s.ClusterID, s.Namespace, maxStrangers); err != nil {
		return nil, recorded, err
	}
	var last taken
	var scope record.Budget
	err = tx.QueryRow(ctx, `select epoch, coalesce(session::text, ''), sequence, digest, entry, budget
		from installer.reports where tenant = $1 and cluster_id = $2 and namespace = $3 for update`,
		s.Tenant, s.ClusterID, s.Namespace).
		Scan(&last.epoch, &last.session, &last.sequence, &last.digest, &last.entry, &scope)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, recorded, errs.New(errs.TooLarge,
			"cluster %s reports of more than %d namespaces that the hub wants nothing of; of %q nothing is recorded",
			s.Cluster, maxStrangers,
			s.Namespace)
	}
	if err != nil || last.covers(report) {
		return nil, recorded, err
	}
	now := w.c.Now()
	l = &reportTx{
		Tx: tx, scope: scope.Refill(w.c.Scope, now), cluster: of.budget.Refill(w.c.Cluster, now), known: of,
		last: last,
	}
	l.left = min(l.scope.Remaining(w.c.Scope), l.cluster.Remaining(w.c.Cluster))
	return l, recorded, nil
}

// covers reports whether a report is an older one of the same session, or this one, wholly recorded.
func (t taken) covers(r protocol.ScopeReport) bool {
	return t.session == r.Session && (t.sequence > r.Sequence || t.sequence == r.Sequence && t.entry != nil)
}

// saveScope stores which report was recorded last, and brings the digest over the reports of its session up to date:
// only what is wholly recorded is in it, so that the rest is noticed after a crash. A report of epoch 0 does not
// replace a holder's.
func (l *reportTx) saveScope(ctx context.Context, r protocol.ScopeReport, said statement, settled bool) error {
	if r.Epoch < l.last.epoch {
		return nil
	}
	set := l.known.scopes
	if l.known.of != r.Session { // another session begins with none
		set = protocol.ReportSet{}
	} else if l.last.session == r.Session && l.last.entry != nil {
		set.Remove(protocol.Entry(l.last.entry))
	}
	sum, entry := "", []byte(nil)
	if settled {
		sum, entry = string(said.sum), said.entry[:]
		set.Add(said.entry)
	}
	_, err := l.Exec(ctx, `with c as (update installer.holders set scopes_session = $7, scopes = $10, scopes_sum = $11
			where tenant = $1 and cluster_id = $2 and $4 > 0)
		update installer.reports set epoch = $4, reported = $5, digest = $6, session = $7, sequence = $8, entry = $9
		where tenant = $1 and cluster_id = $2 and namespace = $3`,
		r.Scope.Tenant, r.Scope.ClusterID, r.Scope.Namespace, r.Epoch, r.Reported, sum, r.Session, r.Sequence, entry,
		set.Count, set.Sum[:])
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

// causedByPlan is the origin of what comes of a plan: its last event, in the story that its proposal belongs to. An
// approval is a story of its own, and the plan's goes on after it.
func causedByPlan(life []eventlog.Recorded) origin {
	o := causedBy(life[len(life)-1])
	if first := life[0].Correlation; first != "" {
		o.correlation = first
	}
	return o
}

// append appends facts, as a span of the trace that they belong to. Their ids derive from the epoch of the
// record, the stream, the version behind which they stand and what they say.
func (w *writer) append(ctx context.Context, tx *reportTx, tenant string, s events.StreamID, subject string,
	version int64, o origin, payloads []events.Payload,
) error {
	if len(payloads) == 0 {
		return nil
	}
	command, err := w.c.EventLog.FactCommand(ctx, tx, namespaceCommand,
		fmt.Sprintf("%s\x00%s\x00%d", tenant, s, version), payloads...)
	if err != nil {
		return err
	}
	ctx, end := telemetry.Span(telemetry.WithTraceParent(ctx, o.trace), "record "+string(s.Kind),
		attribute.String("subject", subject))
	tx.spent += len(payloads)
	_, err = w.c.EventLog.Append(ctx, tx, events.Meta{
		Tenant: tenant, Source: events.Installer, Time: w.c.Now().UTC(),
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
