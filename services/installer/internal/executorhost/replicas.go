package executorhost

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/installer/placement"
)

const (
	// replicaTimeout is how long a replica counts as live that is not heard of: some rounds, so that one slow statement
	// moves no cluster, and less than a Lease, which has to run out as well before another executor begins.
	replicaTimeout = 8 * time.Second
	// leaveTimeout bounds the farewell of a replica that stops; without it the others wait for replicaTimeout.
	leaveTimeout = 2 * time.Second
	// goneFor is how long a replica is shown that is gone; drainedFor how long it is remembered that one is drained, as
	// long as a node is out of service, so that it does not take clusters when it comes back.
	goneFor    = time.Hour
	drainedFor = 7 * 24 * time.Hour
)

// beat says that this replica lives, and returns all that do. The clock is that of the database alone. A row need not
// survive a crash of Postgres.
func (h *Host) beat(ctx context.Context) ([]placement.Replica, error) {
	h.mu.Lock()
	clusters, load, unplaced, moves := len(h.running), h.load, h.unplaced, h.moves
	h.mu.Unlock()
	recorded := 0
	if h.c.Recorded != nil {
		recorded = h.c.Recorded()
	}
	b := &pgx.Batch{}
	b.Queue(`select set_config('synchronous_commit', 'off', true)`)
	b.Queue(`insert into installer.replicas as r (tenant, name, capacity, heard, clusters, load, unplaced, recorded, moves)
		values ($1, $2, $3, now(), $4, $5, $6, $7, $8) on conflict (tenant, name) do update set
		capacity = excluded.capacity, heard = excluded.heard, clusters = excluded.clusters, load = excluded.load,
		unplaced = excluded.unplaced, recorded = excluded.recorded, moves = r.moves + excluded.moves, gone = null`,
		events.AllTenants, h.c.Name, h.c.Capacity, clusters, load, unplaced, recorded, moves)
	b.Queue(`delete from installer.replicas where tenant = $1 and coalesce(gone, heard) < now() - case when draining
		then $2::interval else $3::interval end`, events.AllTenants, drainedFor, goneFor)
	var live []placement.Replica
	b.Queue(`select name, capacity, draining from installer.replicas where tenant = $1 and heard > now() - $2::interval
		order by name`, events.AllTenants, replicaTimeout).Query(func(rows pgx.Rows) (err error) {
		live, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (p placement.Replica, err error) {
			return p, r.Scan(&p.Name, &p.Capacity, &p.Draining)
		})
		return err
	})
	err := h.c.Pool.Tx(ctx, func(tx pgx.Tx) error { return tx.SendBatch(ctx, b).Close() })
	if err == nil {
		h.mu.Lock()
		h.moves -= moves
		h.mu.Unlock()
	}
	return live, pg.Err(err)
}

// leave takes this replica out of the placement, so that others take its clusters while its executors end.
func (h *Host) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	if _, err := h.c.Pool.Exec(ctx, `update installer.replicas set heard = '-infinity', gone = now(),
		clusters = 0, load = 0, recorded = 0 where tenant = $1 and name = $2`,
		events.AllTenants, h.c.Name); err != nil {
		h.c.Log.DebugContext(ctx, "cannot say farewell; other replicas wait until this one is silent", "error", err)
	}
}

// place places the clusters over the live replicas, and returns those that are this one's, and those without room that
// this one tells of.
func (h *Host) place(live []placement.Replica, wanted []stored) (mine, without map[string]bool) {
	mine, without = map[string]bool{}, map[string]bool{}
	clusters := make([]placement.Cluster, 0, len(wanted))
	for _, s := range wanted {
		clusters = append(clusters, placement.Cluster{ID: s.id, Weight: s.weight})
	}
	load, unplaced := 0, 0
	places := placement.Of(live, clusters)
	for _, c := range clusters {
		switch p := places[c.ID]; p.Primary {
		case h.c.Name:
			mine[c.ID] = true
			load += c.Weight
		case "":
			unplaced++
			without[c.ID] = p.First == h.c.Name
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.load, h.unplaced = load, unplaced
	return mine, without
}
