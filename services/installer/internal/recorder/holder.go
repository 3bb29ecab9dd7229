package recorder

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/record"
)

// classifySender locks the row of the cluster's holder and classifies the sender of a report (record.Holder): a holder
// that was paused and replaced may repeat its last report. Epoch 0 is of an executor that could not reach the cluster.
// It is ignored while the holder reports: that executor may be the only one that is cut off.
//
// An epoch that the session never registered is errs.Forbidden, and changes nothing: the holder stays who it is.
func (r *Recorder) classifySender(ctx context.Context, tx pgx.Tx, from sender) (
	heard record.Sender, budget record.Budget, err error,
) {
	var h record.Holder
	var known record.Known
	var last *time.Time
	var now time.Time
	err = tx.QueryRow(ctx, `select h.epoch, coalesce(h.session::text, ''), h.budget, nullif(h.heard, '-infinity'), now(),
		s.epoch, case when $4 then s.sequence else 0 end
		from installer.holders h join installer.holds s using (tenant, cluster_id)
		where tenant = $1 and cluster_id = $2 and s.session = $3 for update of h`,
		from.tenant, from.id, from.claim.Session, from.whole).
		Scan(&h.Epoch, &h.Session, &budget, &last, &now, &known.Epoch, &known.Sequence)
	if errors.Is(err, pgx.ErrNoRows) {
		return heard, budget, errUnregistered(from)
	}
	if err != nil {
		return heard, budget, err
	}
	speaks, ahead := last != nil, false
	if speaks {
		speaks, ahead = record.Speaks(*last, now)
	}
	if ahead {
		r.c.Log.WarnContext(ctx, "the clock of the database was set back: when a holder was heard last is not known",
			"cluster", from.cluster, "heard", last, "now", now)
	}
	heard = h.Classify(from.claim, known, speaks)
	if heard == record.SenderUnregistered {
		return heard, budget, errUnregistered(from)
	}
	if heard != record.SenderHolder || !from.whole || from.claim.Sequence <= known.Sequence {
		return heard, budget, nil
	}
	return heard, budget, hear(ctx, tx, from)
}

// hear stores that a session said something new about its cluster, and that the cluster's holder is there if it is he.
func hear(ctx context.Context, tx pgx.Tx, from sender) error {
	_, err := tx.Exec(ctx, `with s as (update installer.holds set sequence = $4
			where tenant = $1 and cluster_id = $2 and session = $3)
		update installer.holders set heard = now() where tenant = $1 and cluster_id = $2 and $5 > 0`,
		from.tenant, from.id, from.claim.Session, from.claim.Sequence, from.claim.Epoch)
	return err
}

func errUnregistered(from sender) error {
	return errs.New(errs.Forbidden,
		"cluster %s: a report under epoch %d, which its session never registered, is refused", from.cluster,
		from.claim.Epoch)
}

// touchHolder stores that the holder repeated a report: one that was not taken before, else the last value of a holder
// that has gone would keep it alive. It need not survive a crash of Postgres.
func touchHolder(ctx context.Context, pool *pg.Pool, report protocol.ClusterReport) error {
	if report.HolderEpoch == 0 {
		return nil
	}
	_, err := pool.Exec(ctx, `with off as materialized (select set_config('synchronous_commit', 'off', true)),
		s as (update installer.holds set sequence = $5 from off where tenant = $1 and cluster_id = $2 and session = $4
			and epoch = $3 and sequence < $5 returning tenant, cluster_id, session, epoch)
		update installer.holders h set heard = now() from s where h.tenant = s.tenant and h.cluster_id = s.cluster_id
		and h.session = s.session and h.epoch = s.epoch`,
		report.Tenant, report.ClusterID, report.HolderEpoch, report.Session, report.Sequence)
	return pg.Err(err)
}
