package fleets

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/override"
	"github.com/chandler-fleet/chandler/libs/fleet/placement"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/bodies"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
	"github.com/chandler-fleet/chandler/services/gateway/subscription"
)

// configs are the configurations that a fleet subscription is asked with, as canonical JSON; nil is none.
type configs struct {
	all         []byte
	own, merged [][]byte // of the overrides
}

// configsOf reads and checks all of them.
func configsOf(in fleetmodel.SetFleetSubscription) (c configs, err error) {
	if c.all, err = readConfig(in.Config); err != nil {
		return c, err
	}
	var v rule.Violations
	for i, o := range in.Overrides {
		own, merged, err := c.lay(o.Config)
		if err != nil { // whatever it is, it is there
			own = o.Config
		}
		v.AddAt(fmt.Sprintf("/overrides/%d", i), err)
		c.own, c.merged = append(c.own, own), append(c.merged, merged)
	}
	return c, v.Err()
}

// lay lays the configuration of an override over that of all.
func (c configs) lay(over []byte) (own, merged []byte, err error) {
	if own, err = readConfig(over); err != nil || own == nil {
		return nil, c.all, err
	}
	if merged, err = override.Merge(c.all, own); err == nil {
		merged, err = readConfig(merged)
	}
	return own, merged, err
}

func readConfig(raw []byte) ([]byte, error) {
	body, err := subscription.CanonicalConfig(raw)
	if err == nil && body != nil {
		err = subscription.CheckTokens(body)
	}
	return body, err
}

// draft is the fleet subscription with texts in the place of commitments, for checks alone: equal ones are equal.
func (c configs) draft(in fleetmodel.SetFleetSubscription) events.FleetSubscriptionSpec {
	out := in.Event("")
	for i := range out.Overrides {
		if i < len(c.own) {
			out.Overrides[i].Config, out.Overrides[i].MergedConfig = string(c.own[i]), string(c.merged[i])
		} else if len(in.Overrides[i].Config) > 0 { // it is not read, since something else is wrong
			out.Overrides[i].Config = "unread"
		}
	}
	return out
}

// commit stores what is not stored yet, and puts the commitments into spec. What is the same as before keeps its
// commitment, whichever override had it, so that it is no change of a cluster.
func (c configs) commit(ctx context.Context, u *unit.Work, before events.FleetSubscriptionSpec,
	spec *events.FleetSubscriptionSpec,
) error {
	known := map[string]string{} // commitments by body
	for _, commitment := range commitmentsOf(before) {
		// One that cannot be opened is another body: writing it again is the way out.
		if body, err := bodies.Read(ctx, u, commitment); err == nil && body != nil {
			known[string(body)] = commitment
		}
	}
	put := func(body []byte, into *string) (err error) {
		*into = ""
		if body == nil {
			return nil
		}
		if *into = known[string(body)]; *into == "" {
			*into, err = bodies.Commit(ctx, u, store.KindSubscriptionConfig, body, "")
			known[string(body)] = *into
		}
		return err
	}
	if err := put(c.all, &spec.Config); err != nil {
		return err
	}
	for i := range spec.Overrides {
		if err := put(c.own[i], &spec.Overrides[i].Config); err != nil {
			return err
		}
		if err := put(c.merged[i], &spec.Overrides[i].MergedConfig); err != nil {
			return err
		}
	}
	return nil
}

func commitmentsOf(spec events.FleetSubscriptionSpec) (list []string) {
	all := []string{spec.Config}
	for _, o := range spec.Overrides {
		all = append(all, o.Config, o.MergedConfig)
	}
	seen := map[string]bool{"": true}
	for _, one := range all {
		if !seen[one] {
			list = append(list, one)
		}
		seen[one] = true
	}
	return list
}

// overridden are the clusters that overrides are held against, as placements see them; none where there is no override
// that another one could be in conflict with.
func overridden(
	ctx context.Context, u *unit.Work, in fleetmodel.SetFleetSubscription,
) (list []placement.Cluster, err error) {
	if len(in.Overrides) < 2 { //nolint:mnd // a pair
		return nil, nil
	}
	rows, err := u.Tx.Query(ctx, `select name, labels, taints, facts, kubernetes_version from clusters where tenant = $1`,
		u.Caller.Tenant)
	if err != nil {
		return nil, pg.Err(err)
	}
	var name, version string
	var labels, taints map[string]string
	var facts *events.ClusterFacts
	_, err = pgx.ForEachRow(rows, []any{&name, &labels, &taints, &facts, &version}, func() error {
		if facts == nil {
			facts = &events.ClusterFacts{}
		}
		minor, err := source.Variant(version)
		if err != nil { // it is not known yet
			minor = ""
		}
		list = append(list, placement.Cluster{
			Name: name, Labels: placement.Labels(labels, *facts, minor), Taints: taints,
		})
		labels, taints, facts = nil, nil, nil
		return nil
	})
	return list, pg.Err(err)
}
