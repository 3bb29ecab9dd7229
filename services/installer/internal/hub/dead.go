package hub

import (
	"context"
	"errors"
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
func (h *Hub) retire(ctx context.Context, w *wanted, sum string) (done bool, err error) {
	s := w.message.Scope
	var published time.Time
	var last string
	var lives bool
	err = h.c.Pool.QueryRow(ctx, `select p.published, p.digest, exists (select from installer.csv_lives l
		where l.tenant = p.tenant and l.cluster_id = p.cluster_id and l.namespace = p.namespace and not l.removed)
		from installer.published p where p.tenant = $1 and p.cluster_id = $2 and p.namespace = $3`,
		s.Tenant, w.cluster, s.Namespace).Scan(&published, &last, &lives)
	if errors.Is(err, pgx.ErrNoRows) {
		return true, nil // nothing was ever wanted, and nothing is
	}
	if err != nil {
		return false, pg.Err(err)
	}
	due := published.Add(deadAfter)
	switch {
	case last != sum:
		w.wakeAt(h.c.Now().Add(deadAfter))
		return false, nil
	case lives:
		due = h.c.Now().Add(deadAfter)
	case !h.c.Now().Before(due):
		return true, h.forgetScope(ctx, w)
	}
	_, err = h.c.Pool.Exec(ctx, `update installer.published set renew = $4 where tenant = $1 and cluster_id = $2
		and namespace = $3`, s.Tenant, w.cluster, s.Namespace, due)
	return true, pg.Err(err)
}

// forgetScope drops the last values of a namespace and the rows about it; its events stay in the log. Each step may be
// done again. A message without a digest does not count among those that PLANS holds, so that a purge is not taken for
// a loss; after a crash behind it the message is published once more, and goes as late again.
func (h *Hub) forgetScope(ctx context.Context, w *wanted) error {
	s := w.message.Scope
	args := []any{s.Tenant, w.cluster, s.Namespace}
	if _, err := h.c.Pool.Exec(ctx, `update installer.published set digest = '', renew = '-infinity'
		where tenant = $1 and cluster_id = $2 and namespace = $3`, args...); err != nil {
		return pg.Err(err)
	}
	if err := h.purge(ctx, protocol.StreamPlans, protocol.PlansSubject(s)); err != nil {
		return err
	}
	if err := h.purge(ctx, protocol.StreamReports, protocol.ScopeReportSubject(s)); err != nil {
		return err
	}
	err := h.c.Pool.Tx(ctx, func(tx pgx.Tx) error {
		for _, table := range []string{
			"reports", "csv_lives", "group_observations", "operator_details", "published",
		} {
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
