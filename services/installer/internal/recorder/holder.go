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

// ofHolder locks what is known of the holder of a cluster, notes the epoch of a report, and says what becomes of it
// (record.Holder): a holder that was paused and replaced may repeat its last report. Epoch 0 is of somebody who could not
// reach the cluster, which says nothing while its holder is heard: that one may be cut off alone.
func ofHolder(ctx context.Context, tx pgx.Tx, from sender) (heard record.Heard, budget record.Budget, err error) {
	if _, err := tx.Exec(ctx, `insert into installer.holders (tenant, cluster_id, epoch) values ($1, $2, 0) on conflict do nothing`,
		from.tenant, from.id); err != nil {
		return heard, budget, err
	}
	var h record.Holder
	var speaks bool
	if err := tx.QueryRow(ctx, `select epoch, back, budget, heard > now() - $3::interval from installer.holders
		where tenant = $1 and cluster_id = $2 for update`, from.tenant, from.id, record.HolderSpeaks).
		Scan(&h.Epoch, &h.Back, &budget, &speaks); err != nil {
		return heard, budget, err
	}
	if from.epoch == 0 {
		if speaks {
			heard = record.HeardOther
		}
		return heard, budget, nil
	}
	next, heard := h.Hear(from.epoch, from.reported, from.held, speaks)
	believed := heard == record.HeardHolder || heard == record.HeardRestored
	if !believed && next == h {
		return heard, budget, nil
	}
	_, err = tx.Exec(ctx, `update installer.holders set epoch = $3, back = $4, heard = case when $5 then now() else heard end
		where tenant = $1 and cluster_id = $2`, from.tenant, from.id, next.Epoch, next.Back, believed)
	return heard, budget, err
}

// restored forgets how far the reports of a cluster were taken: its epochs went back, and with them, from a backup, what
// its executor remembers. Each operator is looked at anew: it goes on where its history holds what the log says, and is
// another life where it does not (adopt).
func (r *Recorder) restored(ctx context.Context, tx pgx.Tx, from sender) error {
	r.c.Log.WarnContext(ctx, "the epochs of a cluster went back, as after a restore from a backup: it is believed from here on",
		"cluster", from.cluster, "epoch", from.epoch)
	if _, err := tx.Exec(ctx, `update installer.reports set epoch = 0, reported = '-infinity', digest = '' where tenant = $1 and cluster_id = $2`,
		from.tenant, from.id); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `update installer.csv_lives set state = state || '{"restored": true}' where tenant = $1 and cluster_id = $2`, from.tenant, from.id)
	return err
}

// heard notes that a holder repeated what is recorded already. It need not survive a crash of Postgres.
func (r *Recorder) heard(ctx context.Context, report protocol.ClusterReport) error {
	if report.HolderEpoch == 0 {
		return nil
	}
	_, err := r.c.Pool.Exec(ctx, `with off as materialized (select set_config('synchronous_commit', 'off', true))
		update installer.holders set heard = now() from off where tenant = $1 and cluster_id = $2 and epoch = $3`,
		report.Tenant, report.ClusterID, report.HolderEpoch)
	return pg.Err(err)
}
