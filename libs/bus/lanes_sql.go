package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/pg"
)

// maxReason bounds the text of a failure kept beside a scope or a parked event.
const maxReason = 500

// Storable makes text of any origin fit for a text column: at most limit bytes, cut between characters, and
// without what Postgres refuses (SQLSTATE 22021), which is NUL and bytes that are not UTF-8.
func Storable(s string, limit int) string {
	s = strings.ReplaceAll(s, "\x00", "")
	if len(s) > limit {
		s = s[:limit]
	}
	return strings.ToValidUTF8(s, "")
}

// errLostClaim is why the context of a work ends whose claim another has taken.
var errLostClaim = errors.New("the claim on this scope expired and was taken over")

// pair is a cluster of a tenant that has work in a lane.
type pair struct{ tenant, cluster string }

// ring is one round of turns in a lane: every cluster with work once, tenants alternating. It is read
// again when the round is over.
type ring struct {
	pairs []pair
	// tenants had work when the round began; claims counts those of this round.
	tenants map[string]bool
	claims  int
}

// newcomersEvery is after how many claims of a round new tenants are searched: they must not wait for the round of a
// tenant with a thousand clusters.
const newcomersEvery = 16

// rounds orders clusters so that tenants take turns, and within a tenant its clusters. The pairs are sorted by tenant
// and cluster.
func rounds(pairs []pair) []pair {
	byTenant := map[string][]pair{}
	var tenants []string
	for _, p := range pairs {
		if len(byTenant[p.tenant]) == 0 {
			tenants = append(tenants, p.tenant)
		}
		byTenant[p.tenant] = append(byTenant[p.tenant], p)
	}
	ordered := make([]pair, 0, len(pairs))
	for i := 0; len(ordered) < len(pairs); i++ {
		for _, t := range tenants {
			// A tenant with fewer clusters has another turn while one with more goes on.
			ordered = append(ordered, byTenant[t][i%len(byTenant[t])])
			if len(ordered) == len(pairs) {
				break
			}
		}
	}
	return ordered
}

// claim takes up to n scopes, interactive lane first, in the order in which they are to be worked on.
func (l *Lanes) claim(ctx context.Context, n int) ([]Scope, error) {
	var all []Scope
	for _, lane := range []Lane{Interactive, FanOut} {
		scopes, err := l.claimIn(ctx, lane, n-len(all))
		all = append(all, scopes...)
		if err != nil || len(all) >= n {
			return all, err
		}
	}
	return all, nil
}

// claimIn goes on with the round of a lane, and begins another where that is over.
func (l *Lanes) claimIn(ctx context.Context, lane Lane, n int) ([]Scope, error) {
	r := l.rings[lane]
	fresh := len(r.pairs) == 0
	if fresh {
		if err := l.turn(ctx, lane, r); err != nil || len(r.pairs) == 0 {
			return nil, err
		}
	} else if r.claims%newcomersEvery == newcomersEvery-1 {
		if err := l.newcomers(ctx, lane, r); err != nil {
			return nil, err
		}
	}
	r.claims++
	take := min(n, len(r.pairs))
	pairs := r.pairs[:take]
	r.pairs = r.pairs[take:]
	scopes, err := l.claimPairs(ctx, lane, pairs)
	if err == nil && len(scopes) == 0 && !fresh { // what the round promised was taken by others
		r.pairs = nil
		return l.claimIn(ctx, lane, n)
	}
	return scopes, err
}

const (
	// aheadFactor is by how much a time in a row may exceed what it can be at most before it counts as set by a clock
	// that was ahead and is right again: else a day ahead would be a day of waiting.
	aheadFactor = 2
	// aheadClaims is the same for claims, whose length is a setting of each process.
	aheadClaims = 10
)

// due is the condition under which a time in a column has come: it is past, or further away than any that is set now.
func due(column string, most time.Duration) string {
	return fmt.Sprintf("(%[1]s <= now() or %[1]s > now() + interval '%[2]d milliseconds')", column, most.Milliseconds())
}

// unclaimed is the condition under which nobody works on a row.
func (l *Lanes) unclaimed() string {
	return "(owner is null or " + due("until", aheadClaims*l.claimTime()) + ")"
}

// free is the condition under which a row may be claimed. Where the lanes follow a consumer, nothing may be claimed
// while it reads the log again: the tables that the work goes by are behind it.
func (l *Lanes) free() string {
	free := " " + due("not_before", aheadFactor*(l.Settle+retryMax)) + " and " + l.unclaimed() + " "
	if l.Follows == "" {
		return free
	}
	return free + `and (select eventlog.at_work('` + strings.ReplaceAll(l.Follows, "'", "''") + `')) `
}

// turn begins a round: it steps from cluster to cluster in the index, whatever number of scopes each has.
func (l *Lanes) turn(ctx context.Context, lane Lane, r *ring) error {
	pairs, err := l.pairs(ctx, `with recursive step as (
		  (select tenant, cluster from `+l.table+` where lane = $1 and`+l.free()+`order by tenant, cluster limit 1)
		  union all
		  select x.tenant, x.cluster from step, lateral (
		    select tenant, cluster from `+l.table+` d where lane = $1 and (d.tenant, d.cluster) > (step.tenant, step.cluster) and`+l.free()+`
		    order by d.tenant, d.cluster limit 1) x)
		select tenant, cluster from step`, int16(lane))
	if err != nil {
		return err
	}
	*r = ring{pairs: rounds(pairs), tenants: map[string]bool{}}
	for _, p := range pairs {
		r.tenants[p.tenant] = true
	}
	return nil
}

// newcomers gives tenants a turn that had no work when the round began: it steps from tenant to tenant. They get one
// now and again until the round is over. What is left of it keeps its order, so that nobody's last clusters are put off
// again and again.
func (l *Lanes) newcomers(ctx context.Context, lane Lane, r *ring) error {
	first, err := l.pairs(ctx, `with recursive step as (
		  (select tenant, cluster from `+l.table+` where lane = $1 and`+l.free()+`order by tenant, cluster limit 1)
		  union all
		  select x.tenant, x.cluster from step, lateral (
		    select tenant, cluster from `+l.table+` d where lane = $1 and d.tenant > step.tenant and`+l.free()+`
		    order by d.tenant, d.cluster limit 1) x)
		select tenant, cluster from step`, int16(lane))
	if err != nil {
		return err
	}
	var come []pair
	for _, p := range first {
		if !r.tenants[p.tenant] {
			come = append(come, p)
		}
	}
	r.pairs = append(come, r.pairs...)
	return nil
}

func (l *Lanes) pairs(ctx context.Context, sql string, args ...any) ([]pair, error) {
	rows, err := l.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("find dirty scopes: %w", pg.Err(err))
	}
	pairs, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (p pair, err error) {
		return p,
			r.Scan(&p.tenant, &p.cluster)
	})
	if err != nil {
		return nil, fmt.Errorf("find dirty scopes: %w", pg.Err(err))
	}
	return pairs, nil
}

// claimPairs takes the oldest mark of each cluster. A row that another claims in this moment is passed over.
// Claiming need not survive a crash of Postgres: the worst is that a scope is claimed again, so the
// statement does not wait for the disk.
func (l *Lanes) claimPairs(ctx context.Context, lane Lane, pairs []pair) ([]Scope, error) {
	tenants, clusters := make([]string, len(pairs)), make([]string, len(pairs))
	for i, p := range pairs {
		tenants[i], clusters[i] = p.tenant, p.cluster
	}
	rows, err := l.pool.Query(ctx, `with pick as materialized (
		  select u.turn, d.* from unnest($2::text[], $3::text[]) with ordinality as u(t, c, turn), lateral (
		    select tenant, cluster, namespace from `+l.table+`
		    where lane = $1 and tenant = u.t and cluster = u.c and`+l.free()+`
		    order by marked limit 1 for update skip locked) d)
		update `+l.table+` d set owner = $4, until = now() + $5::interval
		from pick where d.tenant = pick.tenant and d.cluster = pick.cluster and d.namespace = pick.namespace and `+l.unclaimed()+`
		returning pick.turn, d.tenant, d.cluster, d.namespace, d.generation, d.attempts, d.cause, d.traceparent,
		  set_config('synchronous_commit', 'off', true)`,
		int16(lane), tenants, clusters, l.owner, l.claimTime())
	if err != nil {
		return nil, fmt.Errorf("claim scopes: %w", pg.Err(err))
	}
	type claimed struct {
		turn  int
		scope Scope
	}
	list, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (c claimed, err error) {
		var off string
		c.scope.Lane = lane
		return c, r.Scan(&c.turn, &c.scope.Tenant, &c.scope.Cluster, &c.scope.Namespace, &c.scope.Generation,
			&c.scope.Attempts, &c.scope.Cause, &c.scope.TraceParent, &off)
	})
	if err != nil {
		return nil, fmt.Errorf("claim scopes: %w", pg.Err(err))
	}
	slices.SortFunc(list, func(a, b claimed) int { return cmp.Compare(a.turn, b.turn) })
	scopes := make([]Scope, len(list))
	for i, c := range list {
		scopes[i] = c.scope
	}
	return scopes, nil
}

func (l *Lanes) claimTime() time.Duration {
	if l.Claim > 0 {
		return l.Claim
	}
	return claimFor
}

// finish removes the scope if no mark came since it was claimed; otherwise it is free again. It need not
// survive a crash of Postgres either: work that is done once more finds nothing to do.
func (l *Lanes) finish(ctx context.Context, s Scope) error {
	var gone int
	var off string
	err := l.pool.QueryRow(ctx, `with gone as (delete from `+l.table+`
		  where tenant = $1 and cluster = $2 and namespace = $3 and generation = $4 and owner = $5 returning 1)
		select count(*), set_config('synchronous_commit', 'off', true) from gone`,
		s.Tenant, s.Cluster, s.Namespace, s.Generation, l.owner).Scan(&gone, &off)
	if err != nil || gone == 1 {
		return pg.Err(err)
	}
	_, err = l.pool.Exec(ctx, `update `+l.table+` set owner = null, until = null, marked = now()
		where tenant = $1 and cluster = $2 and namespace = $3 and owner = $4`,
		s.Tenant, s.Cluster, s.Namespace, l.owner)
	return pg.Err(err)
}

// release gives back a scope that was claimed and not begun.
func (l *Lanes) release(ctx context.Context, s Scope) {
	l.letGo(s, nil)
	l.giveBack(ctx, s, func(ctx context.Context) error {
		_, err := l.pool.Exec(ctx, `update `+l.table+` set owner = null, until = null
			where tenant = $1 and cluster = $2 and namespace = $3 and owner = $4`, s.Tenant, s.Cluster, s.Namespace, l.owner)
		return pg.Err(err)
	})
}

// fail frees the scope for a later try; at once, if it was marked meanwhile.
func (l *Lanes) fail(ctx context.Context, s Scope, cause error) error {
	_, err := l.pool.Exec(ctx, `update `+l.table+` set owner = null, until = null,
		  attempts = case when generation = $4 then attempts + 1 else attempts end,
		  not_before = case when generation = $4 then now() + $6::interval else not_before end,
		  reason = $7
		where tenant = $1 and cluster = $2 and namespace = $3 and owner = $5`,
		s.Tenant, s.Cluster, s.Namespace, s.Generation, l.owner, backoff(s.Attempts, retryFirst, retryMax),
		Storable(cause.Error(), maxReason))
	return pg.Err(err)
}

// backoff is the pause after so many failures before: first, doubled each time, at most limit.
func backoff(failures int, first, limit time.Duration) time.Duration {
	d := first
	for range failures {
		if d *= 2; d >= limit {
			return limit
		}
	}
	return d
}

// renew prolongs the claims of this process until ctx ends, early enough for two more tries, and ends the work whose
// claim is lost.
func (l *Lanes) renew(ctx context.Context) {
	t := time.NewTicker(l.claimTime() / 3)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			l.renewOnce(ctx)
		}
	}
}

// lockOrder is the order in which rows of dirty scopes are locked, that of sortScopes: by bytes, whatever language the
// database sorts by. Two who lock in two orders wait for each other.
const lockOrder = `tenant collate "C", cluster collate "C", namespace collate "C"`

// renewOnce leaves out what was given back, or should have been.
func (l *Lanes) renewOnce(ctx context.Context) {
	l.mu.Lock()
	before := maps.Clone(l.mine)
	l.mu.Unlock()
	if len(before) == 0 {
		return
	}
	var tenants, clusters, namespaces []string
	for _, s := range sortScopes(slices.Collect(maps.Keys(before))) {
		tenants, clusters, namespaces = append(tenants, s.Tenant), append(clusters, s.Cluster),
			append(namespaces, s.Namespace)
	}
	rows, err := l.pool.Query(ctx, `with held as materialized (
		  select tenant, cluster, namespace from `+l.table+`
		  where owner = $1 and (tenant, cluster, namespace) in (select t, c, n
		    from unnest($3::text[], $4::text[], $5::text[]) as u(t, c, n))
		  order by `+lockOrder+` for update)
		update `+l.table+` d set until = now() + $2::interval from held
		where d.tenant = held.tenant and d.cluster = held.cluster and d.namespace = held.namespace
		returning d.tenant, d.cluster, d.namespace`, l.owner, l.claimTime(), tenants, clusters, namespaces)
	if err != nil {
		return // a claim that cannot be renewed expires by itself, and effects are fenced where they happen
	}
	held, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (s Scope, err error) {
		return s, r.Scan(&s.Tenant, &s.Cluster, &s.Namespace)
	})
	if err != nil {
		return
	}
	for _, s := range held {
		delete(before, s)
	}
	l.cancelLost(before)
}

func (l *Lanes) cancelLost(lost map[Scope]*claim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s, c := range lost {
		if l.mine[s] == c && c.cancel != nil { // and not given back, or claimed again, meanwhile
			c.cancel(errLostClaim)
		}
	}
}

// Depth is how many scopes are dirty in each lane, and how many of them failed at least once.
type Depth struct{ Interactive, FanOut, Failing int }

// Depth counts the dirty scopes, for metrics and readiness.
func (l *Lanes) Depth(ctx context.Context) (Depth, error) {
	var d Depth
	err := l.pool.QueryRow(ctx, `select count(*) filter (where lane = 0), count(*) filter (where lane > 0),
		count(*) filter (where attempts > 0) from `+l.table).Scan(&d.Interactive, &d.FanOut, &d.Failing)
	return d, pg.Err(err)
}

// MarkAll marks in the lanes of one table what is marked in those of another, both quoted: behind everything else,
// since nobody waits for it.
func MarkAll(ctx context.Context, tx pgx.Tx, into, from string) error {
	_, err := tx.Exec(ctx, `insert into `+into+` as d (tenant, cluster, namespace, lane, cause, traceparent)
		select tenant, cluster, namespace, $1, cause, traceparent from `+from+` order by `+lockOrder+`
		on conflict (tenant, cluster, namespace) do update set generation = d.generation + 1, attempts = 0,
		  not_before = least(d.not_before, excluded.not_before)`, int16(FanOut))
	if err != nil {
		return fmt.Errorf("mark scopes dirty in %s: %w", into, pg.Err(err))
	}
	return nil
}
