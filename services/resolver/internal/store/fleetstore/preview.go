package fleetstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/resolver/fleet"
)

// Supposed is a fleet subscription as it would be.
type Supposed struct {
	fleet.State

	// Grouped are the clusters on which its namespace has an operator group.
	Grouped map[string]bool
}

// Suppose reads what a decision about a fleet subscription would look at, in one snapshot and without holding anything.
// want is what it would be; nil is what it is, and errs.NotFound where it is not there.
func (f *Fleets) Suppose(ctx context.Context, name Name, want *events.FleetSubscriptionSpec) (out Supposed, err error) {
	err = f.pool.Snapshot(ctx, func(tx pgx.Tx) error {
		if out.State, err = supposed(ctx, tx, name, want); err != nil {
			return err
		}
		for _, part := range []func(context.Context, pgx.Tx, *fleet.State) error{
			loadClusters, loadPlaced, loadAsked, loadRollout, loadTries,
		} {
			if err := part(ctx, tx, &out.State); err != nil {
				return fmt.Errorf("read what fleet subscription %s looks at: %w", name.Name, pg.Err(err))
			}
		}
		rows, err := tx.Query(ctx, `select distinct cluster from resolver.operator_groups
			where tenant = $1 and namespace = $2`, name.Tenant, out.Spec.Namespace)
		if err != nil {
			return err
		}
		grouped, err := pgx.CollectRows(rows, pgx.RowTo[string])
		out.Grouped = make(map[string]bool, len(grouped))
		for _, cluster := range grouped {
			out.Grouped[cluster] = true
		}
		return err
	})
	return out, err
}

// supposed is the intent: another one than what is there is of the version that it would get.
func supposed(ctx context.Context, tx pgx.Tx, name Name, want *events.FleetSubscriptionSpec) (fleet.State, error) {
	s := fleet.State{Tenant: name.Tenant, Name: name.Name}
	var spec json.RawMessage
	var incarnation int
	var deleted bool
	err := tx.QueryRow(ctx, `select incarnation, version, spec, deleted from resolver.fleet_subscriptions
		where tenant = $1 and name = $2`, name.Tenant, name.Name).Scan(&incarnation, &s.Version, &spec, &deleted)
	there := err == nil && !deleted
	switch {
	case err != nil && !errors.Is(err, pgx.ErrNoRows):
		return s, fmt.Errorf("read fleet subscription %s: %w", name.Name, pg.Err(err))
	case want == nil && !there:
		return s, errs.New(errs.NotFound, "no fleet subscription %q exists", name.Name)
	case there:
		if err := json.Unmarshal(spec, &s.Spec); err != nil {
			return s, errs.Wrap(errs.Internal, err, "read fleet subscription %s", name.Name)
		}
	default: // it would be made, perhaps once more
		incarnation, s.Version = incarnation+1, 0
	}
	s.Stream = streamOf(name, incarnation)
	if want != nil && (!there || !reflect.DeepEqual(s.Spec, *want)) {
		s.Spec = *want
		s.Version++
	}
	return s, nil
}
