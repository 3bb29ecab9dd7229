package executorhost

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// missing is what the record says of running clusters that are not among those to be served.
type missing struct {
	removed map[string]bool // ids that somebody removed
	// settled is unset while the tables are read again, or effects are stopped since commits were lost: what is missing
	// then may come back.
	settled bool
}

// stopMissing stops what runs for clusters that are not registered; keep has the ids of those that are. Those that
// somebody removed are given back. One that is merely missing, since commits were lost or the tables are read again,
// keeps its executor until that is settled, and is stopped then: nobody said that Chandler shall let go of it.
func (h *Host) stopMissing(ctx context.Context, keep map[string]bool) {
	h.mu.Lock()
	gone := map[string]string{}
	for id, r := range h.running {
		if !keep[id] {
			gone[id] = r.stream
		}
	}
	for id := range h.unusable {
		if !keep[id] {
			delete(h.unusable, id)
		}
	}
	h.mu.Unlock()
	if len(gone) == 0 {
		return
	}
	m, err := h.missing(ctx, gone)
	if err != nil {
		h.c.Log.DebugContext(ctx, "cannot read why clusters are missing; executors go on", "error", err)
		return
	}
	for id := range gone {
		switch {
		case m.removed[id]:
			if r := h.stop(id); r != nil {
				h.releasing.Go(func() { h.release(ctx, r.target) })
			}
		case m.settled:
			if r := h.stop(id); r != nil {
				h.c.Log.WarnContext(ctx, "a cluster is not registered any more although nobody removed it: no executor "+
					"runs, and Chandler's policies stay there", "cluster", r.target.Cluster)
			}
		}
	}
}

// missing reads of which clusters the registration has ended, by id with its stream. The row may be deleted by then; it
// is the stream that says so, closed or in a later incarnation.
func (h *Host) missing(ctx context.Context, gone map[string]string) (missing, error) {
	m := missing{removed: map[string]bool{}}
	var ids, keys []string
	var incarnations []int
	for id, stream := range gone {
		s, err := events.ParseStreamID(stream)
		if err != nil {
			s = events.StreamID{Key: uuid.Nil} // no stream has it
		}
		ids, keys, incarnations = append(ids, id), append(keys, s.Key.String()), append(incarnations, s.Incarnation)
	}
	rows, err := h.c.Pool.Query(ctx, `select r.id::text,
		  exists (select from installer.clusters c where c.cluster_id = r.id and c.removed)
		  or exists (select from eventlog.streams s where s.kind = $4 and s.key = r.key
		    and (s.incarnation > r.incarnation or s.incarnation = r.incarnation and s.closed)),
		  eventlog.at_work($5) and not exists (select from eventlog.stops where resumed is null)
		from unnest($1::uuid[], $2::uuid[], $3::int[]) as r (id, key, incarnation)`,
		ids, keys, incarnations, string(events.KindCluster), h.c.Follows)
	if err != nil {
		return m, pg.Err(err)
	}
	var id string
	var removed bool
	_, err = pgx.ForEachRow(rows, []any{&id, &removed, &m.settled}, func() error {
		m.removed[id] = removed
		return nil
	})
	return m, pg.Err(err)
}
