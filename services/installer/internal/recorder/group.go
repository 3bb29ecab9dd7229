package recorder

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/record"
)

// kindGroup is the kind of installer.messages about a condition of an operator group: its subject ends in the type.
const kindGroup = "operatorgroup"

// conditionTypes are those that an executor reports; each has at most one message.
var conditionTypes = []string{
	protocol.GroupServiceAccount, protocol.GroupTargetsMissing, protocol.GroupForbidden,
	protocol.GroupUnattended,
}

// recordGroup records what a report says of the operator group. Nothing is recorded of one that is
// deleted by now, nor of an earlier one of the same name.
func (w *writer) recordGroup(ctx context.Context, tx *reportTx, report protocol.ScopeReport) (
	settled bool, err error,
) {
	g, s := report.Group, report.Scope
	if g == nil {
		return true, nil
	}
	subject := csvKey(s, g.Name)
	head, err := w.c.EventLog.Latest(ctx, tx, s.Tenant, events.KindOperatorGroup, subject)
	if err != nil {
		return false, err
	}
	if !head.Exists() || head.ID.UUID().String() != g.ID {
		return true, w.saveGroupMessages(ctx, tx, s, protocol.GroupReport{Name: g.Name})
	}
	var before record.Group
	if err := tx.QueryRow(ctx, `insert into installer.group_observations as o (tenant, cluster_id, namespace, stream,
		state) values ($1, $2, $3, $4, '{}')
		on conflict (tenant, cluster_id, namespace) do update set stream = excluded.stream,
			state = case when o.stream = excluded.stream then o.state else '{}' end
		returning state`, s.Tenant, s.ClusterID, s.Namespace, head.ID.String()).Scan(&before); err != nil {
		return false, err
	}
	payloads, after := record.DecideGroup(before, *g, w.c.Now())
	if err := w.append(ctx, tx, s.Tenant, head.ID, subject, head.Version, origin{}, payloads); err != nil {
		return false, err
	}
	state, err := json.Marshal(after)
	if err != nil {
		return false, err
	}
	if _, err := tx.Exec(ctx, `update installer.group_observations set state = $4 where tenant = $1 and cluster_id = $2
		and namespace = $3`,
		s.Tenant, s.ClusterID, s.Namespace, state); err != nil {
		return false, err
	}
	return after.Settled(), w.saveGroupMessages(ctx, tx, s, *g)
}

// saveGroupMessages stores the message of each condition that holds, and removes the others.
func (w *writer) saveGroupMessages(ctx context.Context, tx pgx.Tx, s protocol.Scope, g protocol.GroupReport) error {
	for _, t := range conditionTypes {
		message := ""
		for _, c := range g.Conditions {
			if c.Type == t {
				message = c.Message
			}
		}
		if err := saveMessage(ctx, tx, s.Tenant, kindGroup, csvKey(s, g.Name)+"/"+t, message); err != nil {
			return err
		}
	}
	return nil
}
