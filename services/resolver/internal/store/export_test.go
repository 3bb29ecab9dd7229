package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// SweepRows is how much one transaction of a sweep takes up.
const SweepRows = sweepRows

// OldStatements are those of a sweep that ask who needs what a decision rests on.
func OldStatements() []string { return []string{oldDocuments, oldInputs, oldExplanations} }

// LoadSubscriptions is the part of Scopes.Load that reads subscriptions, in a transaction of the caller.
func LoadSubscriptions(ctx context.Context, tx pgx.Tx, tenant string, s resolution.Scope) (int, error) {
	l := Loaded{State: decide.State{Tenant: tenant, Scope: s}}
	b := &pgx.Batch{}
	loadSubscriptions(b, &l)
	err := tx.SendBatch(ctx, b).Close()
	n := 0
	for _, sub := range l.Subscriptions {
		if sub.Explained != nil {
			n++
		}
	}
	return n, err
}
