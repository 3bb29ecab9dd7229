package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/pg"
)

// maxReason bounds the text of a failure kept beside a scope.
const maxReason = 500

// errLostClaim is why the context of a work ends whose claim another has taken.
var errLostClaim = errors.New("the claim on this scope expired and was taken over")

// claim takes the next scope, interactive lane first. Claiming need not survive a crash of Postgres:
// the worst is that the scope is claimed again, so the statement does not wait for the disk.
func (l *Lanes) claim(ctx context.Context) (Scope, bool, error) {
	for _, lane := range []Lane{Interactive, FanOut} {
		for range claimTries {
			s, found, err := l.claimIn(ctx, lane)
			if s.Cluster != "" || err != nil {
				return s, err == nil, err
			}
			if !found {
				break
			}
		}
	}
	return Scope{}, false, nil
}

// claimTries is how often another tenant is tried when others claimed all that a tenant had in the same moment.
const claimTries = 4

// claimIn takes the next turn in a lane. found: there was claimable work, though another may have been
// faster, in which case the scope is empty.
func (l *Lanes) claimIn(ctx context.Context, lane Lane) (s Scope, found bool, err error) {
	l.mu.Lock()
	t := l.turns[lane]
	if t == nil {
		t = &turn{clusters: map[string]string{}}
		l.turns[lane] = t
	}
	after := t.tenant
	l.mu.Unlock()
	tenant, ok, err := l.nextTenant(ctx, lane, after)
	if err != nil || !ok {
		return Scope{}, false, err
	}
	l.mu.Lock()
	cluster := t.clusters[tenant]
	l.mu.Unlock()
	s, ok, err = l.claimAfter(ctx, lane, tenant, cluster)
	if err != nil {
		return Scope{}, false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t.tenant = tenant
	if !ok {
		return Scope{}, true, nil
	}
	t.clusters[tenant] = s.Cluster
	return s, true, nil
}

// free is the condition under which a row may be claimed.
const free = ` not_before <= now() and (owner is null or until < now()) `

// nextTenant is the tenant with claimable work that comes after another in their order, going round.
func (l *Lanes) nextTenant(ctx context.Context, lane Lane, after string) (string, bool, error) {
	var tenant string
	err := l.pool.QueryRow(ctx, `select tenant from (
		  (select 0 as round, tenant from `+l.table+` where lane = $1 and tenant > $2 and`+free+`order by tenant limit 1)
		  union all
		  (select 1, tenant from `+l.table+` where lane = $1 and tenant <= $2 and`+free+`order by tenant limit 1)
		) x order by round limit 1`, int16(lane), after).Scan(&tenant)
	return tenant, err == nil, ignoreNoRows(err)
}

// claimAfter takes the oldest mark of the next cluster of a tenant, going round. A row that another claims
// in this moment is passed over.
func (l *Lanes) claimAfter(ctx context.Context, lane Lane, tenant, after string) (s Scope, ok bool, err error) {
	for _, part := range []string{`cluster > $3`, `cluster <= $3`} {
		s = Scope{Tenant: tenant, Lane: lane}
		var off string
		err = l.pool.QueryRow(ctx, `with pick as (
			  select tenant, cluster, namespace from `+l.table+` where lane = $1 and tenant = $2 and `+part+` and`+free+`
			  order by cluster, marked limit 1 for update skip locked)
			update `+l.table+` d set owner = $4, until = now() + $5::interval
			from pick where d.tenant = pick.tenant and d.cluster = pick.cluster and d.namespace = pick.namespace
			returning d.cluster, d.namespace, d.generation, d.attempts, d.cause, d.traceparent,
			  set_config('synchronous_commit', 'off', true)`,
			int16(lane), tenant, after, l.owner, l.claimTime()).
			Scan(&s.Cluster, &s.Namespace, &s.Generation, &s.Attempts, &s.Cause, &s.TraceParent, &off)
		if !errors.Is(err, pgx.ErrNoRows) {
			break
		}
	}
	return s, err == nil, ignoreNoRows(err)
}

func ignoreNoRows(err error) error {
	if err == nil || errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return fmt.Errorf("claim a scope: %w", pg.Err(err))
}

func (l *Lanes) claimTime() time.Duration {
	if l.Claim > 0 {
		return l.Claim
	}
	return claimFor
}

// finish removes the scope if no mark came since it was claimed; otherwise it is free again.
func (l *Lanes) finish(ctx context.Context, s Scope) error {
	tag, err := l.pool.Exec(ctx, `delete from `+l.table+`
		where tenant = $1 and cluster = $2 and namespace = $3 and generation = $4 and owner = $5`,
		s.Tenant, s.Cluster, s.Namespace, s.Generation, l.owner)
	if err != nil || tag.RowsAffected() == 1 {
		return pg.Err(err)
	}
	_, err = l.pool.Exec(ctx, `update `+l.table+` set owner = null, until = null, marked = now()
		where tenant = $1 and cluster = $2 and namespace = $3 and owner = $4`,
		s.Tenant, s.Cluster, s.Namespace, l.owner)
	return pg.Err(err)
}

// fail frees the scope for a later try; at once, if it was marked meanwhile.
func (l *Lanes) fail(ctx context.Context, s Scope, cause error) error {
	reason := cause.Error()
	if len(reason) > maxReason {
		reason = reason[:maxReason]
	}
	_, err := l.pool.Exec(ctx, `update `+l.table+` set owner = null, until = null,
		  attempts = case when generation = $4 then attempts + 1 else attempts end,
		  not_before = case when generation = $4 then now() + $6::interval else not_before end,
		  reason = $7
		where tenant = $1 and cluster = $2 and namespace = $3 and owner = $5`,
		s.Tenant, s.Cluster, s.Namespace, s.Generation, l.owner, backoff(s.Attempts, retryFirst, retryMax), reason)
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

// renew prolongs the claims of this process until ctx ends, and ends the work whose claim is lost.
func (l *Lanes) renew(ctx context.Context) {
	t := time.NewTicker(min(renewEvery, l.claimTime()/3))
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

func (l *Lanes) renewOnce(ctx context.Context) {
	l.mu.Lock()
	before := make([]Scope, 0, len(l.mine))
	for s := range l.mine {
		before = append(before, s)
	}
	l.mu.Unlock()
	if len(before) == 0 {
		return
	}
	rows, err := l.pool.Query(ctx, `update `+l.table+` set until = now() + $2::interval
		where owner = $1 returning tenant, cluster, namespace`, l.owner, l.claimTime())
	if err != nil {
		return // a claim that cannot be renewed expires by itself, and effects are fenced where they happen
	}
	held, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (s Scope, err error) {
		return s, r.Scan(&s.Tenant, &s.Cluster, &s.Namespace)
	})
	if err != nil {
		return
	}
	l.cancelLost(before, held)
}

func (l *Lanes) cancelLost(before, held []Scope) {
	have := map[Scope]bool{}
	for _, s := range held {
		have[s] = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range before {
		if cancel := l.mine[s]; cancel != nil && !have[s] {
			cancel(errLostClaim)
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
