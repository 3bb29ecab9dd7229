package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
)

// groupFolds folds operator groups.
type groupFolds struct{ dirty *dirtyScopes }

// intent folds an event of an operator group.
func (f *groupFolds) intent(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
	cluster, namespace, name, err := splitSubject(e.Subject)
	if err != nil {
		return err
	}
	if g := decide.EvolveGroup(nil, eventOf(e)); g != nil {
		raw, err := encode(g.Spec)
		if err != nil {
			return err
		}
		err = exec(ctx, tx, `insert into resolver.operator_groups (tenant, cluster, namespace, name, version, spec)
			values ($1, $2, $3, $4, $5, $6)
			on conflict (tenant, cluster, namespace, name) do update set version = excluded.version,
			spec = excluded.spec, targets = null`,
			e.Tenant, cluster, namespace, name, e.Version, raw)
		if err != nil {
			return err
		}
	} else if err := exec(ctx, tx, `delete from resolver.operator_groups where tenant = $1 and cluster = $2
		and namespace = $3 and name = $4`,
		e.Tenant, cluster, namespace, name); err != nil {
		return err
	}
	if err := f.dirty.clusterChanged(ctx, tx, e, cluster); err != nil {
		return err
	}
	return f.dirty.markOwn(ctx, tx, scopeOf(e, cluster, namespace))
}

// observed keeps what a group came to in its cluster: which namespaces it serves, and what it provides there.
func (f *groupFolds) observed(ctx context.Context, tx pgx.Tx, e eventlog.Recorded,
	p events.OperatorGroupObserved,
) error {
	cluster, namespace, name, err := splitSubject(e.Subject)
	if err != nil {
		return err
	}
	targets, provided := append([]string{}, p.Targets...), append([]string{}, p.ProvidedAPIs...)
	tag, err := tx.Exec(ctx, `update resolver.operator_groups set targets = $5, provided = $6
		where tenant = $1 and cluster = $2 and namespace = $3 and name = $4 and (targets, provided) is distinct
		from ($5, $6)`,
		e.Tenant, cluster, namespace, name, targets, provided)
	if err != nil {
		return fmt.Errorf("note what operator group %s serves: %w", e.Subject, pg.Err(err))
	}
	if tag.RowsAffected() == 0 {
		return nil
	}
	return f.dirty.clusterChanged(ctx, tx, e, cluster)
}
