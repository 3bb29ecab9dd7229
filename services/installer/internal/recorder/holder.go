package recorder

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/record"
)

// stateHeld is the state of a cluster that its holder can reach.
const stateHeld = "Connected"

// classifySender locks the row of the cluster's holder, stores the epoch of a report, and classifies its sender
// (record.Holder): a holder that was paused and replaced may repeat its last report. Epoch 0 is of an executor that
// could not reach the cluster. It is ignored while the holder reports: that executor may be the only one that is cut
// off.
func classifySender(ctx context.Context, tx pgx.Tx, from sender) (
	heard record.Sender, budget record.Budget, err error,
) {
	if _, err := tx.Exec(ctx, `insert into installer.holders (tenant, cluster_id, epoch) values ($1, $2, 0)
		on conflict do nothing`,
		from.tenant, from.id); err != nil {
		return heard, budget, err
	}
	var h record.Holder
	var speaks bool
	if err := tx.QueryRow(ctx, `select epoch, back, budget, heard > now() - $3::interval from installer.holders
		where tenant = $1 and cluster_id = $2 for update`, from.tenant, from.id, record.HolderTimeout).
		Scan(&h.Epoch, &h.Reset, &budget, &speaks); err != nil {
		return heard, budget, err
	}
	if from.epoch == 0 {
		if speaks {
			heard = record.SenderOther
		}
		return heard, budget, nil
	}
	next, heard := h.Classify(from.epoch, from.reported, from.held, speaks)
	believed := heard == record.SenderHolder || heard == record.SenderRestored
	if !believed && next == h {
		return heard, budget, nil
	}
	_, err = tx.Exec(ctx, `update installer.holders set epoch = $3, back = $4, heard = case when $5 then now()
		else heard end
		where tenant = $1 and cluster_id = $2`, from.tenant, from.id, next.Epoch, next.Reset, believed)
	return heard, budget, err
}

// resetAfterRestore forgets how far the reports of a cluster were processed: the cluster was restored from a backup,
// and with it what its executor stores there. Each operator is compared anew: its stream goes on if its history holds
// what the log says, else it is another object (adopt).
func (r *Recorder) resetAfterRestore(ctx context.Context, tx pgx.Tx, from sender) error {
	r.c.Log.WarnContext(
		ctx, "the epochs of a cluster went back, as after a restore from a backup: it is believed from here on",
		"cluster", from.cluster, "epoch", from.epoch)
	if _, err := tx.Exec(ctx, `update installer.reports set epoch = 0, reported = '-infinity', digest = ''
		where tenant = $1 and cluster_id = $2`,
		from.tenant, from.id); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `update installer.csv_lives set state = state || '{"restored": true}'
		where tenant = $1 and cluster_id = $2`, from.tenant, from.id)
	return err
}

// touchHolder stores that the holder repeated a report. It need not survive a crash of Postgres.
func (r *Recorder) touchHolder(ctx context.Context, report protocol.ClusterReport) error {
	if report.HolderEpoch == 0 {
		return nil
	}
	_, err := r.c.Pool.Exec(ctx, `with off as materialized (select set_config('synchronous_commit', 'off', true))
		update installer.holders set heard = now() from off where tenant = $1 and cluster_id = $2 and epoch = $3`,
		report.Tenant, report.ClusterID, report.HolderEpoch)
	return pg.Err(err)
}
