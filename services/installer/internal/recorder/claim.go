package recorder

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/placement"
)

// errOvertaken is what a transaction ends in that would record under a claim that is not the last one.
var errOvertaken = errs.New(errs.Conflict, "another recorder has claimed the cluster")

// claim is a cluster whose reports this recorder records.
type claim struct {
	epoch int64
	sub   *nats.Subscription // nil before it listens
	// looked is when the subjects were to be counted last, unseen how many messages came since.
	looked time.Time
	unseen int
}

// registration is a cluster that is registered, and the claim on it that counts.
type registration struct {
	clusterKey
	epoch int64
}

// Place claims the clusters that the placement gives to this replica, reads what is missing of them, and gives up the
// others. It is called in each round of the placement; replicas that disagree for a moment claim from each other, and
// the last claim counts.
func (r *Recorder) Place(ctx context.Context, live []placement.Replica) error {
	rows, err := r.c.Pool.Query(ctx, `select c.tenant, c.cluster_id::text, coalesce(h.recorder_epoch, 0)
		from installer.clusters c left join installer.holders h using (tenant, cluster_id) where not c.removed`)
	if err != nil {
		return pg.Err(err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c registration, err error) {
		return c, row.Scan(&c.tenant, &c.id, &c.epoch)
	})
	if err != nil {
		return pg.Err(err)
	}
	mine := map[clusterKey]bool{}
	var fresh, deaf []clusterKey
	for _, c := range list {
		if placement.Recorder(live, c.id) != r.c.Name {
			continue
		}
		mine[c.clusterKey] = true
		if r.claimOf(c.clusterKey) != c.epoch || c.epoch == 0 {
			fresh = append(fresh, c.clusterKey)
		} else if !r.listens(c.clusterKey) {
			deaf = append(deaf, c.clusterKey)
		}
	}
	for _, of := range r.claimed() {
		if !mine[of] {
			r.release(of)
		}
	}
	if len(fresh) > 0 {
		if err := r.claim(ctx, fresh); err != nil {
			return err
		}
	}
	for _, of := range append(fresh, deaf...) {
		if err := r.listen(of); err != nil {
			return err
		}
		own := Message{Subject: protocol.ClusterReportSubject(of.tenant, of.id)}
		r.queue.put(item{Message: own, shed: true})
		r.queue.put(item{Message: own, catchUp: true})
	}
	return nil
}

// Claim has this recorder record the reports of a cluster that are given to Record, until another one claims it.
func (r *Recorder) Claim(ctx context.Context, tenant, clusterID string) error {
	return r.claim(ctx, []clusterKey{{tenant, clusterID}})
}

// claim raises the epochs of recorders. A process that was killed behind it leaves a claim that the next one overtakes.
func (r *Recorder) claim(ctx context.Context, list []clusterKey) error {
	tenants, ids := make([]string, len(list)), make([]string, len(list))
	for i, of := range list {
		tenants[i], ids[i] = of.tenant, of.id
	}
	rows, err := r.c.Pool.Query(ctx, `insert into installer.holders as h (tenant, cluster_id, epoch, recorder, recorder_epoch)
		select tenant, id, 0, $3, 1 from unnest($1::text[], $2::uuid[]) as c (tenant, id) order by tenant, id
		on conflict (tenant, cluster_id) do update set recorder = excluded.recorder, recorder_epoch = h.recorder_epoch + 1
		returning tenant, cluster_id::text, recorder_epoch`, tenants, ids, r.c.Name)
	if err != nil {
		return pg.Err(err)
	}
	var of clusterKey
	var epoch int64
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err = pgx.ForEachRow(rows, []any{&of.tenant, &of.id, &epoch}, func() error {
		c := r.claims[of]
		if c == nil {
			c = &claim{}
			r.claims[of] = c
		}
		c.epoch = epoch
		delete(r.done, of)
		delete(r.misses, of)
		return nil
	})
	return pg.Err(err)
}

// listen subscribes to the reports of a cluster that is claimed.
func (r *Recorder) listen(of clusterKey) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.claims[of]
	if r.ended || c == nil || c.sub != nil {
		return nil
	}
	sub, err := r.c.Bus.Conn().ChanSubscribe(protocol.ReportsFilter(of.tenant, of.id), r.inbox)
	if err != nil {
		return errs.Wrap(errs.Unavailable, err, "listen for reports")
	}
	c.sub = sub
	return nil
}

func (r *Recorder) listens(of clusterKey) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.claims[of]
	return c != nil && c.sub != nil
}

// release gives a cluster up: what waits of it is read by who records it now.
func (r *Recorder) release(of clusterKey) {
	r.mu.Lock()
	c := r.claims[of]
	delete(r.claims, of)
	delete(r.done, of)
	delete(r.misses, of)
	r.mu.Unlock()
	r.queue.drop(of)
	if c != nil && c.sub != nil {
		if err := c.sub.Unsubscribe(); err != nil {
			r.c.Log.Debug("unsubscribe", "error", err) // the connection may be closed already
		}
	}
}

// end stops listening; what has begun is finished under the claims as they are.
func (r *Recorder) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	for _, c := range r.claims {
		if c.sub != nil {
			if err := c.sub.Unsubscribe(); err != nil {
				r.c.Log.Debug("unsubscribe", "error", err)
			}
		}
	}
}

// claimOf is the epoch of the claim on a cluster, 0 for none.
func (r *Recorder) claimOf(of clusterKey) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.claims[of]; c != nil {
		return c.epoch
	}
	return 0
}

// Clusters is how many clusters this recorder has claimed.
func (r *Recorder) Clusters() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.claims)
}

func (r *Recorder) claimed() []clusterKey {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]clusterKey, 0, len(r.claims))
	for of := range r.claims {
		list = append(list, of)
	}
	return list
}
