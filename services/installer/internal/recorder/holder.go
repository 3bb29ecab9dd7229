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

// known is what is known of a cluster, with its row locked, and of the sender of a report about it.
type known struct {
	sender record.Sender
	budget record.Budget
	// scopes is the digest over what is recorded of the session of.
	scopes protocol.ReportSet
	of     string
}

// unheard is the outcome of a report of such a sender, who is not the holder: it counts later, or never.
func (k known) unheard() outcome {
	if k.sender == record.SenderOther {
		return unheard
	}
	return recorded
}

// classifySender locks the row of the cluster's holder and classifies the sender of a report (record.Holder): a holder
// that was paused and replaced may repeat its last report. Epoch 0 is of an executor that could not reach the cluster.
// It is ignored while the holder reports: that executor may be the only one that is cut off.
//
// An epoch that the session never registered is errs.Forbidden, and changes nothing: the holder stays who it is. Where
// another recorder has claimed the cluster the error is errOvertaken.
func (w *writer) classifySender(ctx context.Context, tx pgx.Tx, from sender) (k known, err error) {
	var h record.Holder
	var session record.Known
	var last *time.Time
	var now time.Time
	var recorder int64
	var sum []byte
	var heartbeat int
	err = tx.QueryRow(ctx, `select h.epoch, coalesce(h.session::text, ''), h.budget, nullif(h.heard, '-infinity'), now(),
		s.epoch, case when $4 then s.sequence else 0 end, h.recorder_epoch, coalesce(h.scopes_session::text, ''), h.scopes,
		h.scopes_sum, h.heartbeat
		from installer.holders h join installer.holds s using (tenant, cluster_id)
		where tenant = $1 and cluster_id = $2 and s.session = $3 for update of h`,
		from.tenant, from.id, from.claim.Session, from.whole).
		Scan(&h.Epoch, &h.Session, &k.budget, &last, &now, &session.Epoch, &session.Sequence, &recorder, &k.of,
			&k.scopes.Count, &sum, &heartbeat)
	if errors.Is(err, pgx.ErrNoRows) {
		return k, errUnregistered(from)
	}
	if err != nil {
		return k, err
	}
	if mine := w.claimOf(clusterKey{from.tenant, from.id}); mine == 0 || mine != recorder {
		return k, errOvertaken
	}
	copy(k.scopes.Sum[:], sum)
	speaks, ahead := last != nil, false
	if speaks {
		speaks, ahead = record.Speaks(*last, now, record.Heartbeat(heartbeat))
	}
	if ahead {
		w.c.Log.WarnContext(ctx, "the clock of the database was set back: when a holder was heard last is not known",
			"cluster", from.cluster, "heard", last, "now", now)
	}
	k.sender = h.Classify(from.claim, session, speaks)
	if k.sender == record.SenderUnregistered {
		return k, errUnregistered(from)
	}
	if k.sender != record.SenderHolder || !from.whole || from.claim.Sequence <= session.Sequence {
		return k, nil
	}
	return k, hear(ctx, tx, from)
}

// hear stores that a session said something new about its cluster, and that the cluster's holder is there if it is he.
func hear(ctx context.Context, tx pgx.Tx, from sender) error {
	_, err := tx.Exec(ctx, `with s as (update installer.holds set sequence = $4
			where tenant = $1 and cluster_id = $2 and session = $3)
		update installer.holders set heard = now(), heartbeat = $6 where tenant = $1 and cluster_id = $2 and $5 > 0`,
		from.tenant, from.id, from.claim.Session, from.claim.Sequence, from.claim.Epoch,
		int(from.heartbeat/time.Second))
	return err
}

func errUnregistered(from sender) error {
	return errs.New(errs.Forbidden,
		"cluster %s: a report under epoch %d, which its session never registered, is refused", from.cluster,
		from.claim.Epoch)
}

// touchHolder stores that the holder repeated a report: one that was not taken before, else the last value of a holder
// that has gone would keep it alive. It need not survive a crash of Postgres. same is unset, and nothing is stored,
// where what is recorded of the cluster has not the hash that it had when the report was recorded.
func (w *writer) touchHolder(ctx context.Context, report protocol.ClusterReport, hash string) (same bool, err error) {
	err = w.c.Pool.QueryRow(ctx, `with off as materialized (select set_config('synchronous_commit', 'off', true)),
		o as materialized (select from installer.observations where tenant = $1 and cluster_id = $2 and md5(state::text) = $7),
		s as (update installer.holds set sequence = $5 from off, o where tenant = $1 and cluster_id = $2 and session = $4
			and epoch = $3 and epoch <> 0 and sequence < $5 returning tenant, cluster_id, session, epoch),
		touched as (update installer.holders h set heard = now() from s where h.tenant = s.tenant
			and h.cluster_id = s.cluster_id and h.session = s.session and h.epoch = s.epoch and h.recorder_epoch = $6)
		select exists (select from o)`,
		report.Tenant, report.ClusterID, report.HolderEpoch, report.Session, report.Sequence,
		w.claimOf(clusterKey{report.Tenant, report.ClusterID}), hash).Scan(&same)
	return same, pg.Err(err)
}
