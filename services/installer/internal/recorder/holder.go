package recorder

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// holderSpeaks is for how long after a holder was heard nobody else is believed. Executors repeat their
// reports every 15 seconds; one repetition may be lost.
const holderSpeaks = 30 * time.Second

// ofHolder notes a holder's epoch and reports whether none higher was seen: a holder that was paused and
// replaced may repeat its last report. Epoch 0 is of somebody who could not reach the cluster, which says
// nothing while its holder is heard: that one may be cut off alone. final: it stays so.
func ofHolder(ctx context.Context, tx pgx.Tx, tenant, cluster string, epoch int64) (fresh, final bool, err error) {
	if epoch == 0 {
		err = tx.QueryRow(ctx, `select not exists (select from installer.holders
			where tenant = $1 and cluster_id = $2 and heard > now() - $3::interval)`, tenant, cluster, holderSpeaks).Scan(&fresh)
		return fresh, false, err
	}
	var highest int64
	err = tx.QueryRow(ctx, `insert into installer.holders as h (tenant, cluster_id, epoch, heard) values ($1, $2, $3, now())
		on conflict (tenant, cluster_id) do update set epoch = greatest(h.epoch, excluded.epoch),
		  heard = case when excluded.epoch >= h.epoch then excluded.heard else h.heard end
		returning epoch`,
		tenant, cluster, epoch).Scan(&highest)
	return epoch >= highest, true, err
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
