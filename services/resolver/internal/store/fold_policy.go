package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
)

// policyFolds folds approval policies.
type policyFolds struct{ dirty *dirtyScopes }

// policySubject is the beginning of the subject of approval policies; the name follows.
const policySubject = "approval/"

// fold folds an event of an approval policy, and makes dirty exactly the scopes that it chooses now or chose
// before.
func (f *policyFolds) fold(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
	name := strings.TrimPrefix(e.Subject, policySubject)
	before, err := readPolicy(ctx, tx, e.Tenant, name)
	if err != nil {
		return err
	}
	var chosen []events.PolicySelector
	after := decide.EvolvePolicy(before, eventOf(e))
	switch {
	case after != nil:
		raw, err := encode(after.Spec)
		if err != nil {
			return err
		}
		err = exec(ctx, tx, `insert into resolver.approval_policies (tenant, name, spec) values ($1, $2, $3)
			on conflict (tenant, name) do update set spec = excluded.spec`, e.Tenant, name, raw)
		if err != nil {
			return err
		}
		chosen = append(chosen, after.Spec.Selector)
	case before == nil:
		return nil
	default:
		if err := exec(ctx, tx, `delete from resolver.approval_policies where tenant = $1 and name = $2`, e.Tenant,
			name); err != nil {
			return err
		}
	}
	if before != nil {
		chosen = append(chosen, before.Spec.Selector)
	}
	return f.dirty.markChosen(ctx, tx, e, chosen)
}

// readPolicy reads the row of a policy; nil without one.
func readPolicy(ctx context.Context, tx pgx.Tx, tenant, name string) (*decide.Policy, error) {
	p := decide.Policy{Name: name}
	err := tx.QueryRow(ctx, `select spec from resolver.approval_policies where tenant = $1 and name = $2`, tenant,
		name).Scan(&p.Spec)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // there is none, which is no error
	}
	if err != nil {
		return nil, fmt.Errorf("read approval policy %s: %w", name, pg.Err(err))
	}
	return &p, nil
}

func scanPolicy(r pgx.CollectableRow) (p decide.Policy, err error) {
	return p, r.Scan(&p.Name, &p.Spec)
}
