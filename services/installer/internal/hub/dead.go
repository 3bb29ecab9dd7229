package hub

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// deadAfter is how long a message stays that wants nothing: its executor has to hear it, to take away what is left of
// the namespace. A cluster that is away for longer finds that nothing is wanted of the namespace as well, and leaves
// what is there.
const deadAfter = 24 * time.Hour

// retire forgets a namespace of which nothing is wanted, once its executor has had time to hear so. Else it notes when
// that is due. done says that there is nothing to be published.
func (h *Hub) retire(ctx context.Context, w *wanted, was lastMessage, sum string) (done bool, err error) {
	s := w.message.Scope
	if was.noted == nil && was.sequence == 0 {
		return true, nil // nothing was ever wanted, and nothing is
	}
	if was.digest() != sum {
		w.wakeAt(h.c.Now().Add(deadAfter))
		return false, nil
	}
	var lives bool
	if err := h.c.Pool.QueryRow(ctx, `select `+alive, s.Tenant, w.cluster, s.Namespace).Scan(&lives); err != nil {
		return false, pg.Err(err)
	}
	due := was.noted.published.Add(deadAfter)
	if lives {
		due = h.c.Now().Add(deadAfter)
	} else if !h.c.Now().Before(due) {
		return true, h.forgetScope(ctx, w, was)
	}
	return true, renewAt(ctx, h.c.Pool, *w, was, due)
}

// alive is whether an operator lives in a namespace.
const alive = `exists (select from installer.csv_lives where tenant = $1 and cluster_id = $2 and namespace = $3
	and not removed)`

// forgetScope drops the last values of a namespace and the rows about it; its events stay in the log. Each step may be
// done again. A message without a digest does not count among those that PLANS holds, so that a purge is not taken for
// a loss; after a crash behind it the message is published once more, and goes as late again. Only what was there when
// the tables were read is dropped: what another worker published since, while this one was paused, stays.
func (h *Hub) forgetScope(ctx context.Context, w *wanted, was lastMessage) error {
	s := w.message.Scope
	reports, err := lastSequence(ctx, h.c.Bus, protocol.StreamReports, protocol.ScopeReportSubject(s))
	if err != nil {
		return err
	}
	args := []any{s.Tenant, w.cluster, s.Namespace}
	tag, err := h.c.Pool.Exec(ctx, `update installer.published set digest = '', renew = '-infinity'
		where tenant = $1 and cluster_id = $2 and namespace = $3 and sequence = $4`, append(args, was.noted.sequence)...)
	if err != nil {
		return pg.Err(err)
	}
	if tag.RowsAffected() == 0 {
		return overtaken(s)
	}
	if err := h.purge(ctx, protocol.StreamPlans, protocol.PlansSubject(s), was.sequence); err != nil {
		return err
	}
	if reports > 0 {
		if err := h.purge(ctx, protocol.StreamReports, protocol.ScopeReportSubject(s), reports); err != nil {
			return err
		}
	}
	err = h.c.Pool.Tx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `delete from installer.published where tenant = $1 and cluster_id = $2
			and namespace = $3 and sequence = $4 and digest = '' and not `+alive, append(args, was.noted.sequence)...)
		if err == nil && tag.RowsAffected() == 0 {
			return overtaken(s)
		}
		if err != nil {
			return err
		}
		for _, table := range []string{"reports", "csv_lives", "group_observations", "operator_details"} {
			if _, err := tx.Exec(ctx, `delete from installer.`+table+` where tenant = $1 and cluster_id = $2
				and namespace = $3`, args...); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		h.c.Log.InfoContext(ctx, "nothing is wanted of a namespace any more; it is forgotten", "cluster", s.Cluster,
			"namespace", s.Namespace)
	}
	return pg.Err(err)
}
