package app

import (
	"context"
	"encoding/json"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/resolver/fleet"
	"github.com/chandler-fleet/chandler/services/resolver/internal/store/fleetstore"
)

// fleetPreviewer says what a fleet subscription would lead to: placement, waves and target come from the fleet
// controller's own decisions, and what a cluster would plan from a preview of its namespace.
type fleetPreviewer struct {
	*previewer

	fleet *fleetController
}

func (p fleetPreviewer) preview(ctx context.Context, question json.RawMessage) (any, error) {
	var q previewapi.FleetQuestion
	if err := json.Unmarshal(question, &q); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "read the question")
	}
	if err := p.catchUp(ctx); err != nil {
		return nil, err
	}
	s, err := p.store.Fleets.Suppose(ctx, fleetstore.Name{Tenant: q.Tenant, Name: q.Name}, q.Spec)
	if err != nil {
		return nil, err
	}
	members, err := s.Members()
	if err != nil {
		return nil, errs.Wrap(errs.Unprocessable, err, "read the placement of %s", q.Name)
	}
	var target events.RolloutTarget
	waits := fleet.WaitsForCluster
	if len(members) > 0 {
		if target, waits, _, err = p.fleet.target(ctx, s.State); err != nil {
			return nil, err
		}
	}
	var out previewapi.FleetPage
	var all []previewapi.FleetCluster
	if out.FleetPreview, all, err = s.Preview(target, waits); err != nil {
		return nil, errs.Wrap(errs.Unprocessable, err, "read the strategy of %s", q.Name)
	}
	var asked []int
	if out.Clusters, asked, out.Next = fleetPage(all, q.After, q.Limit); len(asked) == 0 {
		return out, nil
	}
	begins, _, err := s.Begin(members, target)
	if err != nil {
		return nil, errs.Wrap(errs.Unprocessable, err, "read the strategy of %s", q.Name)
	}
	return out, each(len(asked), func(i int) error {
		return p.leads(ctx, s, begins, &out.Clusters[asked[i]])
	})
}

// fleetPage is a page of clusters, which ends where as many have to be decided on as one answer may. asked are the
// places of those.
func fleetPage(all []previewapi.FleetCluster, after string, limit int) (
	page []previewapi.FleetCluster, asked []int, next string,
) {
	if limit < 1 || limit > previewapi.MaxFleetClusters {
		limit = previewapi.MaxFleetClusters
	}
	page = []previewapi.FleetCluster{}
	for _, c := range all {
		if c.Name <= after {
			continue
		}
		decides := c.Wave != "" && c.Change == ""
		if len(page) == limit || decides && len(asked) == previewapi.MaxDecisions {
			return page, asked, page[len(page)-1].Name
		}
		if decides {
			asked = append(asked, len(page))
		}
		page = append(page, c)
	}
	return page, asked, ""
}

// leads asks a cluster as the rollout that would begin does, in a preview.
func (p fleetPreviewer) leads(
	ctx context.Context, s fleetstore.Supposed, begins events.RolloutStarted, c *previewapi.FleetCluster,
) error {
	placed := fleet.Ask(begins, c.Name)
	if placed.Spec.Config != s.Placed[c.Name].Spec.Config { // what nobody has committed to cannot be rendered
		placed.Spec.Config = ""
	}
	at := previewapi.Scope{Cluster: c.Name, Namespace: placed.Namespace}
	in := at.Cluster + "/" + at.Namespace + "/"
	q := previewapi.Question{Tenant: s.Tenant}
	suppose := func(name string, payload events.Payload) error {
		h, err := previewapi.NewHypothesis(in+name, 1, payload)
		q.Hypotheses = append(q.Hypotheses, h)
		return err
	}
	if g := begins.Intent.OperatorGroup; g.Name != "" && !s.Grouped[c.Name] {
		if err := suppose(g.Name, events.OperatorGroupPlaced{
			Cluster: at.Cluster, Namespace: at.Namespace, Name: g.Name, Spec: g.Spec, Owner: s.Name,
		}); err != nil {
			return err
		}
	}
	if err := suppose(s.Name, placed); err != nil {
		return err
	}
	_, before, after, err := p.suppose(ctx, q, at)
	if err != nil {
		return err
	}
	fleet.Leads(c, s.Name, begins.Target, before, after)
	return nil
}
