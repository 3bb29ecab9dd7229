package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// NightlySamples keeps which scopes are resolved again at night, and what was found.
type NightlySamples struct {
	pool  *pg.Pool
	marks Marker
}

const (
	// sampleAgain is when a sample that a replica took up and did not finish is taken up again.
	sampleAgain = 10 * time.Minute
	// sampleNights is how many nights' samples are kept for people to read.
	sampleNights = 30
)

// Sample is a scope that is to be resolved afresh in a night.
type Sample struct {
	Tenant string
	Night  time.Time // a day, UTC
	Scope  resolution.Scope
}

// Choose chooses the scopes of a night, by the digest of date and scope: at most size, the same ones whoever
// chooses. A night is chosen for once.
func (n *NightlySamples) Choose(ctx context.Context, night time.Time, size int) error {
	return n.pool.Tx(ctx, func(tx pgx.Tx) error {
		err := exec(ctx, tx, `insert into resolver.samples (tenant, night, cluster, namespace)
			select s.tenant, $1::date, s.cluster, s.namespace from resolver.scopes s
			where (select eventlog.at_work('`+Consumer+`'))
			  and not exists (select from resolver.samples where night = $1::date)
			  and not exists (select from resolver.clusters c where c.tenant = s.tenant and c.name = s.cluster
			  and c.removed)
			order by sha256(convert_to(to_char($1::date, 'YYYY-MM-DD') || '/' || s.tenant || '/' || s.cluster || '/' ||
			s.namespace, 'UTF8')) limit $2
			on conflict do nothing`, night, size)
		if err != nil {
			return fmt.Errorf("choose the sample of a night: %w", err)
		}
		return exec(ctx, tx, `delete from resolver.samples where night < $1::date - $2::int`, night, sampleNights)
	})
}

// Take takes up one scope of a night that nobody has taken up; ok is false where none is left.
func (n *NightlySamples) Take(ctx context.Context, night, now time.Time) (m Sample, ok bool, err error) {
	m.Night = night
	err = n.pool.QueryRow(ctx, `update resolver.samples m set begun = $2 from (
		  select tenant, cluster, namespace from resolver.samples
		  where (select eventlog.at_work('`+Consumer+`')) and night = $1::date and looked is null and (begun is null or begun < $3)
		  order by tenant, cluster, namespace limit 1 for update skip locked) next
		where m.night = $1::date and m.tenant = next.tenant and m.cluster = next.cluster
		and m.namespace = next.namespace
		returning m.tenant, m.cluster, m.namespace`, night, now, now.Add(-sampleAgain)).Scan(&m.Tenant, &m.Scope.Cluster, &m.Scope.Namespace)
	if errors.Is(err, pgx.ErrNoRows) {
		return m, false, nil
	}
	if err != nil {
		return m, false, fmt.Errorf("take up a sample: %w", pg.Err(err))
	}
	return m, true, nil
}

// Note writes down what a sample found, and makes the scope dirty where that is something. Where the scope is not
// any more what l says, it will be or was resolved, and nothing was found.
func (n *NightlySamples) Note(ctx context.Context, m Sample, l Loaded, found []string, now time.Time) (
	written []string, err error,
) {
	err = n.pool.Tx(ctx, func(tx pgx.Tx) error {
		written = []string{}
		if len(found) > 0 {
			still, err := unmoved(ctx, tx, l)
			if err != nil {
				return err
			}
			if still {
				written = found
				if err := n.marks.Mark(ctx, tx, bus.FanOut,
					bus.Scope{Tenant: m.Tenant, Cluster: m.Scope.Cluster, Namespace: m.Scope.Namespace}); err != nil {
					return err
				}
			}
		}
		return exec(ctx, tx, `update resolver.samples set looked = $5, found = $6 where tenant = $1 and night = $2::date
			and cluster = $3 and namespace = $4`,
			m.Tenant, m.Night, m.Scope.Cluster, m.Scope.Namespace, now, written)
	})
	return written, err
}

// unmoved says whether a scope is clean, and it and its catalogs are as they were loaded.
func unmoved(ctx context.Context, tx pgx.Tx, l Loaded) (bool, error) {
	now := Loaded{}
	now.Tenant, now.Scope = l.Tenant, l.Scope
	b := &pgx.Batch{}
	loadScope(b, &now)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return false, fmt.Errorf("compare %s/%s: %w", l.Scope.Cluster, l.Scope.Namespace, pg.Err(err))
	}
	return !now.Dirty && !now.Removed && now.Decisions == l.Decisions && now.clock == l.clock, nil
}
