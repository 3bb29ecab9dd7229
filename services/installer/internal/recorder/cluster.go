package recorder

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/record"
)

func clusterSender(report protocol.ClusterReport) sender {
	return sender{
		tenant: report.Tenant, cluster: report.Cluster, id: report.ClusterID, whole: true,
		claim:     record.Claim{Epoch: report.HolderEpoch, Session: report.Session, Sequence: report.Sequence},
		told:      []told{{report.Seen, report.Proof}, {report.Acted, report.ActedProof}},
		heartbeat: record.Heartbeat(report.HeartbeatSeconds),
	}
}

// recordCluster records what a report says of a cluster as a whole. hash is that of what is stored of it then.
func (w *writer) recordCluster(ctx context.Context, report protocol.ClusterReport) (
	got outcome, hash string, err error,
) {
	from := clusterSender(report)
	if err := w.checkEpoch(ctx, from); err != nil {
		return recorded, "", err
	}
	err = w.c.Pool.Tx(ctx, func(tx pgx.Tx) error {
		if err := checkRegistered(ctx, tx, report.Tenant, report.ClusterID, report.Cluster); err != nil {
			return err
		}
		known, err := w.classifySender(ctx, tx, from)
		if err != nil || known.sender != record.SenderHolder {
			got = known.unheard()
			return err
		}
		var before record.Cluster
		if _, err := tx.Exec(ctx, `insert into installer.observations (tenant, cluster_id, state) values ($1, $2, '{}')
			on conflict do nothing`,
			report.Tenant, report.ClusterID); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `select state from installer.observations
			where tenant = $1 and cluster_id = $2 for update`,
			report.Tenant, report.ClusterID).Scan(&before); err != nil {
			return err
		}
		payloads, after := record.DecideCluster(before, report, w.c.Now())
		got = settledAs(after.Settled())
		if err := w.appendCluster(ctx, tx, report, payloads); err != nil {
			return err
		}
		state, err := json.Marshal(after)
		if err != nil {
			return err
		}
		return tx.QueryRow(ctx, `update installer.observations set state = $3 where tenant = $1 and cluster_id = $2
			returning md5(state::text)`, report.Tenant, report.ClusterID, state).Scan(&hash)
	})
	return got, hash, pg.Err(err)
}

func (w *writer) appendCluster(ctx context.Context, tx pgx.Tx, report protocol.ClusterReport,
	payloads []events.Payload,
) error {
	if err := saveMessage(ctx, tx, report.Tenant, kindCluster, report.Cluster, report.Message); err != nil ||
		len(payloads) == 0 {
		return err
	}
	head, err := w.c.EventLog.Latest(ctx, tx, report.Tenant, events.KindCluster, report.Cluster)
	if err != nil {
		return err
	}
	if !head.Exists() || head.ID.UUID().String() != report.ClusterID {
		return nil // it was removed meanwhile
	}
	return w.append(ctx, &reportTx{Tx: tx}, report.Tenant, head.ID, report.Cluster, head.Version, origin{}, payloads)
}
