// Package holds registers the sessions of executors and who holds each cluster (DESIGN D7). By what is registered here
// the recorder believes reports, and the hub the answers of executors.
//
// It is called by the process that hosts executors, and by Serve for agents, whose credential for NATS says which one
// cluster they speak for. No message makes anybody the holder of a cluster that the hub hosts itself.
package holds

import (
	"context"
	"crypto/ed25519"
	"errors"
	"log/slog"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// maxSessions bounds the sessions that are kept of one cluster, the holder's not counted: those of a few replicas and
// of their last restarts. The oldest go first; one that lives registers again every minute.
const maxSessions = 16

// Registry registers holds.
type Registry struct {
	Pool *pg.Pool
	Log  *slog.Logger
}

// Register registers a hold. Its result is the epoch of the hold that the cluster has then:
//
//	the hold's own    it is registered, now or before
//	a higher one      another session has registered that, or the cluster was restored from a backup: this session
//	                  holds nothing until it has taken a higher epoch in the cluster itself, which only the holder of
//	                  the Lease can
//
// Registering again changes nothing. Killed between the Lease and this, the next executor takes a higher epoch.
func (r Registry) Register(ctx context.Context, h protocol.Hold) (epoch int64, err error) {
	if err := h.Check(); err != nil {
		return 0, err
	}
	err = r.Pool.Tx(ctx, func(tx pgx.Tx) error {
		epoch, err = r.register(ctx, tx, h)
		return err
	})
	return epoch, pg.Err(err)
}

func (r Registry) register(ctx context.Context, tx pgx.Tx, h protocol.Hold) (int64, error) {
	var registered bool
	if err := tx.QueryRow(ctx, `select exists (select from installer.clusters where tenant = $1 and cluster_id = $2
		and not removed)`, h.Tenant, h.ClusterID).Scan(&registered); err != nil {
		return 0, err
	}
	if !registered {
		return 0, errs.New(errs.NotFound, "cluster %s is not registered", h.ClusterID)
	}
	epoch, session, err := lockHolder(ctx, tx, h)
	if err != nil {
		return 0, err
	}
	takes := h.Epoch > epoch
	if h.Epoch > 0 && !takes && (h.Epoch < epoch || session != h.Session) {
		return epoch, nil
	}
	if err := saveSession(ctx, tx, h); err != nil || !takes {
		return max(epoch, h.Epoch), err
	}
	if _, err := tx.Exec(ctx, `update installer.holders set epoch = $3, session = $4, heard = now()
		where tenant = $1 and cluster_id = $2`, h.Tenant, h.ClusterID, h.Epoch, h.Session); err != nil {
		return 0, err
	}
	if h.Restored {
		if err := r.resetAfterRestore(ctx, tx, h); err != nil {
			return 0, err
		}
	}
	return h.Epoch, nil
}

func lockHolder(ctx context.Context, tx pgx.Tx, h protocol.Hold) (epoch int64, session string, err error) {
	if _, err := tx.Exec(ctx, `insert into installer.holders (tenant, cluster_id, epoch) values ($1, $2, 0)
		on conflict do nothing`, h.Tenant, h.ClusterID); err != nil {
		return 0, "", err
	}
	err = tx.QueryRow(ctx, `select epoch, coalesce(session::text, '') from installer.holders
		where tenant = $1 and cluster_id = $2 for update`, h.Tenant, h.ClusterID).Scan(&epoch, &session)
	return epoch, session, err
}

// saveSession stores a session and its epoch, which only grows. Another key for a session that is known is refused.
func saveSession(ctx context.Context, tx pgx.Tx, h protocol.Hold) error {
	var known bool
	err := tx.QueryRow(ctx, `insert into installer.holds as o (tenant, cluster_id, session, epoch, holder, public_key)
		values ($1, $2, $3, $4, $5, $6)
		on conflict (tenant, cluster_id, session) do update
		set epoch = greatest(o.epoch, excluded.epoch), holder = excluded.holder, registered = now()
		where o.public_key = excluded.public_key
		returning true`, h.Tenant, h.ClusterID, h.Session, h.Epoch, h.Holder, []byte(h.PublicKey)).Scan(&known)
	if errors.Is(err, pgx.ErrNoRows) {
		return errs.New(errs.Forbidden, "session %s of cluster %s is registered with another key", h.Session, h.ClusterID)
	}
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `delete from installer.holds where tenant = $1 and cluster_id = $2 and session in (
		select o.session from installer.holds o join installer.holders h using (tenant, cluster_id)
		where tenant = $1 and cluster_id = $2 and o.session is distinct from h.session and o.session <> $3
		order by o.registered desc offset $4)`, h.Tenant, h.ClusterID, h.Session, maxSessions)
	return err
}

// resetAfterRestore forgets how far the reports of a cluster were processed: the cluster was restored from a backup,
// and with it what its executor stores there. Each operator is compared anew: its stream goes on if its history holds
// what the log says, else it is another object.
func (r Registry) resetAfterRestore(ctx context.Context, tx pgx.Tx, h protocol.Hold) error {
	r.Log.WarnContext(ctx, "the epochs of a cluster went back, as after a restore from a backup: its operators are "+
		"compared anew", "cluster", h.ClusterID, "epoch", h.Epoch)
	if _, err := tx.Exec(ctx, `update installer.reports set epoch = 0, session = null, sequence = 0, digest = '',
		entry = null
		where tenant = $1 and cluster_id = $2`, h.Tenant, h.ClusterID); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `update installer.csv_lives set state = state || '{"restored": true}'
		where tenant = $1 and cluster_id = $2`, h.Tenant, h.ClusterID)
	return err
}

// Key is the key of the session that holds a cluster now: who answers for it signs with it. A cluster that nobody holds
// is errs.Unavailable.
func (r Registry) Key(ctx context.Context, tenant, clusterID string) (ed25519.PublicKey, error) {
	if _, err := uuid.Parse(clusterID); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "cluster id %q", clusterID)
	}
	var key []byte
	err := r.Pool.QueryRow(ctx, `select s.public_key from installer.holders h
		join installer.holds s using (tenant, cluster_id, session) where tenant = $1 and cluster_id = $2`,
		tenant, clusterID).Scan(&key)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, errs.New(errs.Unavailable, "no executor holds cluster %s", clusterID)
	}
	return key, pg.Err(err)
}
