package client

import (
	"context"
	"net/url"
	"strconv"

	"github.com/chandler-fleet/chandler/libs/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
)

// FleetSubscriptions lists fleet subscriptions.
func (c *Client) FleetSubscriptions(ctx context.Context) ([]fleetmodel.FleetSubscription, error) {
	return all[fleetmodel.FleetSubscription](ctx, c, client.NewListFleetSubscriptionsRequest(nil))
}

// FleetSubscription returns one fleet subscription.
func (c *Client) FleetSubscription(ctx context.Context, name string) (fleetmodel.FleetSubscription, error) {
	return get[fleetmodel.FleetSubscription](ctx, c, client.NewGetFleetSubscriptionRequest(name, nil))
}

// SetFleetSubscription makes a fleet subscription, or replaces all of the one whose tag is match.
func (c *Client) SetFleetSubscription(ctx context.Context, name, match string, want fleetmodel.SetFleetSubscription) (
	fleetmodel.FleetSubscription, error,
) {
	req := client.NewSetFleetSubscriptionRequest(name, nil, client.SetFleetSubscription{})
	return replace[fleetmodel.FleetSubscription](ctx, c, with(req, want), match)
}

// DeleteFleetSubscription ends a fleet subscription.
func (c *Client) DeleteFleetSubscription(ctx context.Context, name string) (model.Removed, error) {
	return get[model.Removed](ctx, c, client.NewDeleteFleetSubscriptionRequest(name, nil))
}

// FleetPreview says what a fleet subscription leads to on every cluster, or would lead to if it was set to want.
func (c *Client) FleetPreview(ctx context.Context, name string, want *fleetmodel.FleetSubscriptionSpec) (
	fleetmodel.FleetPreview, error,
) {
	page := func(cursor string) (fleetmodel.FleetPreview, error) {
		if want == nil {
			return get[fleetmodel.FleetPreview](ctx, c,
				client.NewGetFleetPreviewRequest(name, &client.GetFleetPreviewParams{Cursor: cursor}))
		}
		req := client.NewCreateFleetPreviewRequest(name, &client.CreateFleetPreviewParams{Cursor: cursor},
			client.SetFleetSubscription{})
		return get[fleetmodel.FleetPreview](ctx, c,
			with(req, fleetmodel.SetFleetSubscription{FleetSubscriptionSpec: *want}))
	}
	out, err := page("")
	for err == nil && out.Next != "" {
		var next fleetmodel.FleetPreview
		next, err = page(out.Next)
		next.Clusters = append(out.Clusters, next.Clusters...)
		out = next
	}
	return out, err
}

// FleetMatrix says what runs where, by package or by cluster.
func (c *Client) FleetMatrix(ctx context.Context, f fleetmodel.MatrixFilter) ([]fleetmodel.MatrixRow, error) {
	return all[fleetmodel.MatrixRow](ctx, c, where(client.NewGetFleetMatrixRequest(nil), url.Values{
		"by": {f.By}, "package": {f.Package}, "cluster": {f.Cluster}, "clusterSelector": {f.ClusterSelector},
	}))
}

// Rollouts lists the rollouts of a fleet subscription, newest first, at most limit; 0 lists all.
func (c *Client) Rollouts(ctx context.Context, fleet string, limit int) ([]fleetmodel.Rollout, error) {
	q := url.Values{"subscription": {fleet}}
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	return all[fleetmodel.Rollout](ctx, c, where(client.NewListRolloutsRequest(nil), q))
}

// RolloutRef names a rollout.
type RolloutRef struct {
	FleetSubscription string
	Number            int
}

func (r RolloutRef) number() string { return strconv.Itoa(r.Number) }

// Rollout returns one rollout with its clusters.
func (c *Client) Rollout(ctx context.Context, r RolloutRef) (fleetmodel.Rollout, error) {
	return get[fleetmodel.Rollout](ctx, c, client.NewGetRolloutRequest(r.FleetSubscription, r.number(), nil))
}

// PauseRollout has no further cluster changed.
func (c *Client) PauseRollout(ctx context.Context, r RolloutRef) (fleetmodel.Rollout, error) {
	return get[fleetmodel.Rollout](ctx, c, client.NewPauseRolloutRequest(r.FleetSubscription, r.number(), nil))
}

// ResumeRollout has a rollout go on.
func (c *Client) ResumeRollout(ctx context.Context, r RolloutRef) (fleetmodel.Rollout, error) {
	return get[fleetmodel.Rollout](ctx, c, client.NewResumeRolloutRequest(r.FleetSubscription, r.number(), nil))
}

// AbortRollout ends a rollout.
func (c *Client) AbortRollout(ctx context.Context, r RolloutRef) (fleetmodel.Rollout, error) {
	return get[fleetmodel.Rollout](ctx, c, client.NewAbortRolloutRequest(r.FleetSubscription, r.number(), nil))
}

// PromoteRollout lets the wave after the open one begin.
func (c *Client) PromoteRollout(
	ctx context.Context, r RolloutRef, in fleetmodel.PromoteRollout,
) (fleetmodel.Rollout, error) {
	req := client.NewPromoteRolloutRequest(r.FleetSubscription, r.number(), nil, client.PromoteRollout{})
	return get[fleetmodel.Rollout](ctx, c, with(req, in))
}

// SkipCluster leaves a cluster out of a rollout.
func (c *Client) SkipCluster(
	ctx context.Context, r RolloutRef, cluster string, in fleetmodel.SkipCluster,
) (fleetmodel.Rollout, error) {
	req := client.NewSkipRolloutClusterRequest(r.FleetSubscription, r.number(), cluster, nil, client.SkipCluster{})
	return get[fleetmodel.Rollout](ctx, c, with(req, in))
}

// RetryCluster has a cluster tried again.
func (c *Client) RetryCluster(ctx context.Context, r RolloutRef, cluster string) (fleetmodel.Rollout, error) {
	return get[fleetmodel.Rollout](ctx, c,
		client.NewRetryRolloutClusterRequest(r.FleetSubscription, r.number(), cluster, nil))
}
