package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/fleets"
	"github.com/chandler-fleet/chandler/services/gateway/internal/limit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/fleet"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/operators"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/subscriptions"
	"github.com/chandler-fleet/chandler/services/gateway/internal/watch"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
)

const (
	tagFleet      = "Fleet subscriptions"
	pathRollout   = "/fleet/rollouts/{subscription}/{number}"
	pathInRollout = pathRollout + "/clusters/{cluster}"
	pathGate      = pathRollout + "/gates/{gate}"
)

// FleetSubscriptionPath is a fleet subscription in a path.
type FleetSubscriptionPath struct {
	Name string `path:"name" maxLength:"253" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" patternDescription:"a DNS-1123 subdomain"`
}

// RolloutPath is a rollout in a path.
type RolloutPath struct {
	Subscription string `path:"subscription" maxLength:"253" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" patternDescription:"a DNS-1123 subdomain" doc:"Name of the fleet subscription"`
	Number       int    `path:"number" minimum:"1" maximum:"2147483647"`
}

func (p RolloutPath) rollout() fleets.Rollout {
	return fleets.Rollout{FleetSubscription: p.Subscription, Number: p.Number}
}

// fleetHandlers are the operations on fleet subscriptions and rollouts. A placement may choose any cluster: all of them
// want rights on the whole fleet.
type fleetHandlers struct{ Deps }

func (h fleetHandlers) register(a *API) {
	registerList(a, fleetWide(access.List, access.FleetSubscriptions),
		operation(http.MethodGet, "/fleet/subscriptions", "list-fleet-subscriptions", tagFleet,
			"List fleet subscriptions by name, each with its newest rollout"), watchedFleets, h.listFleetSubscriptions)
	register(a, fleetWide(access.Get, access.FleetSubscriptions),
		operation(http.MethodGet, "/fleet/subscriptions/{name}", "get-fleet-subscription", tagFleet,
			"Get a fleet subscription"), h.getFleetSubscription)
	register(a, fleetWide(access.Update, access.FleetSubscriptions),
		operation(http.MethodPut, "/fleet/subscriptions/{name}", "set-fleet-subscription", tagFleet,
			"Make a fleet subscription, or replace all of it; a rollout that is under way is superseded by the next one"),
		h.setFleetSubscription)
	register(a, fleetWide(access.Delete, access.FleetSubscriptions),
		operation(http.MethodDelete, "/fleet/subscriptions/{name}", "delete-fleet-subscription", tagFleet,
			"End a fleet subscription: the subscriptions on the clusters stay, without their owner"),
		h.deleteFleetSubscription)
	register(a, fleetWide(access.Update, access.Rollouts),
		operation(http.MethodPost, "/fleet/subscriptions/{name}/rollback", "rollback-fleet-subscription", tagFleet,
			"Take back what the newest rollout brought, whether it goes on or has ended: the next rollout does"),
		h.rollbackFleetSubscription)
	h.matrix(a)
	h.previews(a)
	h.rollouts(a)
}

// matrix is about what is in clusters: whoever may list that sees it.
func (h fleetHandlers) matrix(a *API) {
	register(a, whatIsSeen(access.List, access.Operators),
		classed(operation(http.MethodGet, "/fleet/matrix", "get-fleet-matrix", "Fleet",
			"Say which versions run on which clusters, how far they are apart, and what is offered, by package or by cluster"),
			limit.List), h.getFleetMatrix)
}

func (h fleetHandlers) previews(a *API) {
	const path = "/fleet/subscriptions/{name}/preview"
	register(a, fleetWide(access.Get, access.FleetSubscriptions),
		classed(operation(http.MethodGet, path, "get-fleet-preview", tagFleet,
			"Ask what a fleet subscription leads to on every cluster, and why it does not choose others"), limit.List),
		h.getFleetPreview)
	register(a, fleetWide(access.Update, access.FleetSubscriptions),
		intended(classed(operation(http.MethodPost, path, "create-fleet-preview", tagFleet,
			"Ask what a fleet subscription would lead to on every cluster if it was set, after the same checks"), limit.List)),
		h.createFleetPreview)
}

func (h fleetHandlers) rollouts(a *API) {
	registerList(a, fleetWide(access.List, access.Rollouts),
		operation(http.MethodGet, "/fleet/rollouts", "list-rollouts", tagFleet,
			"List rollouts by fleet subscription, newest first, without their clusters"), watchedRollouts, h.listRollouts)
	register(a, fleetWide(access.Get, access.Rollouts),
		operation(http.MethodGet, pathRollout, "get-rollout", tagFleet,
			"Get a rollout with its waves, and where each cluster stands"), h.getRollout)
	update := fleetWide(access.Update, access.Rollouts)
	register(a, update, operation(http.MethodPost, pathRollout+"/pause", "pause-rollout", tagFleet,
		"Change no further cluster; what was asked of clusters goes on"), h.pauseRollout)
	register(a, update, operation(http.MethodPost, pathRollout+"/resume", "resume-rollout", tagFleet,
		"Go on with a rollout that was paused or has halted; the failures so far are forgiven"), h.resumeRollout)
	register(a, update, operation(http.MethodPost, pathRollout+"/promote", "promote-rollout", tagFleet,
		"Let the wave after the open one begin"), h.promoteRollout)
	register(a, update, operation(http.MethodPost, pathRollout+"/abort", "abort-rollout", tagFleet,
		"End a rollout; nothing is undone"), h.abortRollout)
	register(a, update, operation(http.MethodPost, pathGate+"/pass", "pass-rollout-gate", tagFleet,
		"Let the open wave go on without one of its gates"), h.passRolloutGate)
	register(a, update, operation(http.MethodPost, pathInRollout+"/skip", "skip-rollout-cluster", tagFleet,
		"Leave a cluster out of a rollout"), h.skipRolloutCluster)
	register(a, update, operation(http.MethodPost, pathInRollout+"/retry", "retry-rollout-cluster", tagFleet,
		"Try a cluster again that failed or was skipped"), h.retryRolloutCluster)
}

var watchedFleets = watchedInFleet(
	func(f fleetmodel.FleetSubscription) watch.Name { return watch.Name{Name: f.Name} }, events.KindFleetSubscription,
	events.KindRollout)

var watchedRollouts = watchedInFleet(func(r fleetmodel.Rollout) watch.Name {
	return watch.Name{Name: fleetmodel.RolloutSubject(r.FleetSubscription, r.Number)}
}, events.KindRollout)

func (h fleetHandlers) listFleetSubscriptions(
	ctx context.Context, who model.Caller, in *FleetListQuery,
) (*listOutput[fleetmodel.FleetSubscription], error) {
	page, err := h.waitList(ctx, who, fleet.Name, in.ListQuery)
	if err != nil {
		return nil, err
	}
	return listed(h.Reads.Fleet.List(ctx, who, page))
}

type getFleetSubscriptionInput struct {
	FleetSubscriptionPath
	ReadQuery
}

func (h fleetHandlers) getFleetSubscription(
	ctx context.Context, who model.Caller, in *getFleetSubscriptionInput,
) (*output[fleetmodel.FleetSubscription], error) {
	if err := h.wait(ctx, who, fleet.Name, in.ReadQuery); err != nil {
		return nil, err
	}
	return read(h.Reads.Fleet.Get(ctx, who, in.Name))
}

type setFleetSubscriptionInput struct {
	FleetSubscriptionPath
	MakeHeaders
	TryQuery
	Body fleetmodel.SetFleetSubscription
}

func (h fleetHandlers) setFleetSubscription(
	ctx context.Context, who model.Caller, in *setFleetSubscriptionInput,
) (*written[fleetmodel.FleetSubscription], error) {
	f, err := h.Intents.Fleets.Set(ctx, who, in.Name, in.Body)
	return wrote(f, f.Position, "", err)
}

type getFleetMatrixInput struct {
	By      string `query:"by" enum:"package,cluster" default:"package" doc:"What each item is: a package with the versions that run, or a cluster with what runs there"`
	Package string `query:"package" maxLength:"63"`
	Cluster string `query:"cluster" maxLength:"63"`
	ClusterSelectorQuery
	Limit       int    `query:"limit" minimum:"1" maximum:"200" default:"100" doc:"At most so many items"`
	Cursor      string `query:"cursor" maxLength:"2048" doc:"next of the page before"`
	MinPosition string `query:"minPosition" maxLength:"128" doc:"Wait until the answer shows this position"`
}

func (h fleetHandlers) getFleetMatrix(
	ctx context.Context, who model.Caller, in *getFleetMatrixInput,
) (*listOutput[fleetmodel.MatrixRow], error) {
	q := ListQuery{Limit: in.Limit, Cursor: in.Cursor, MinPosition: in.MinPosition}
	page, err := h.waitList(ctx, who, operators.Name, q)
	if err == nil {
		_, err = h.waitList(ctx, who, subscriptions.Name, q)
	}
	if err != nil {
		return nil, err
	}
	return listed(h.Reads.Matrix.List(ctx, who, fleetmodel.MatrixFilter{
		By: in.By, Package: in.Package, Cluster: in.Cluster, ClusterSelector: in.ClusterSelector, Page: page,
	}))
}

// FleetPreviewQuery are the parameters of a paged answer about clusters.
type FleetPreviewQuery struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"200" doc:"Clusters of one page; it ends sooner where 50 of them have to be resolved"`
	Cursor string `query:"cursor" maxLength:"2048" doc:"next of the page before"`
}

type getFleetPreviewInput struct {
	FleetSubscriptionPath
	FleetPreviewQuery
}

func (h fleetHandlers) getFleetPreview(
	ctx context.Context, who model.Caller, in *getFleetPreviewInput,
) (*output[fleetmodel.FleetPreview], error) {
	return h.fleetPreview(ctx, who, in.Name, nil, in.FleetPreviewQuery)
}

type createFleetPreviewInput struct {
	FleetSubscriptionPath
	FleetPreviewQuery
	Body fleetmodel.SetFleetSubscription
}

func (h fleetHandlers) createFleetPreview(
	ctx context.Context, who model.Caller, in *createFleetPreviewInput,
) (*output[fleetmodel.FleetPreview], error) {
	return h.fleetPreview(ctx, who, in.Name, &in.Body, in.FleetPreviewQuery)
}

func (h fleetHandlers) fleetPreview(ctx context.Context, who model.Caller, name string,
	want *fleetmodel.SetFleetSubscription, q FleetPreviewQuery,
) (*output[fleetmodel.FleetPreview], error) {
	page, err := ListQuery{Cursor: q.Cursor}.page()
	if err == nil && len(page.After) > 1 {
		err = errs.New(errs.Invalid, "the cursor does not belong to a fleet preview").At("query.cursor", "cursor")
	}
	if err != nil {
		return nil, err
	}
	after := strings.Join(page.After, "") // the cluster, or nothing
	answer, err := h.Intents.Fleets.Preview(ctx, who, name, want, after, q.Limit)
	if err != nil {
		return nil, err
	}
	out := fleetmodel.FleetPreviewOf(name, answer)
	if answer.Next != "" {
		out.Next, err = cursor(answer.Next)
	}
	return read(out, err)
}

type deleteFleetSubscriptionInput struct {
	FleetSubscriptionPath
	TryQuery
}

func (h fleetHandlers) deleteFleetSubscription(
	ctx context.Context, who model.Caller, in *deleteFleetSubscriptionInput,
) (*written[model.Removed], error) {
	r, err := h.Intents.Fleets.Delete(ctx, who, in.Name)
	return wrote(r, r.Position, "", err)
}

type listRolloutsInput struct {
	FleetListQuery
	Subscription string `query:"subscription" maxLength:"253" doc:"Only those of this fleet subscription"`
}

func (h fleetHandlers) listRollouts(
	ctx context.Context, who model.Caller, in *listRolloutsInput,
) (*listOutput[fleetmodel.Rollout], error) {
	page, err := h.waitList(ctx, who, fleet.Name, in.ListQuery)
	if err != nil {
		return nil, err
	}
	return listed(h.Reads.Fleet.Rollouts(ctx, who, fleetmodel.RolloutFilter{
		FleetSubscription: in.Subscription, Page: page,
	}))
}

type getRolloutInput struct {
	RolloutPath
	ReadQuery
}

func (h fleetHandlers) getRollout(
	ctx context.Context, who model.Caller, in *getRolloutInput,
) (*output[fleetmodel.Rollout], error) {
	if err := h.wait(ctx, who, fleet.Name, in.ReadQuery); err != nil {
		return nil, err
	}
	return read(h.Reads.Fleet.Rollout(ctx, who, in.Subscription, in.Number))
}

type decideRolloutInput struct {
	RolloutPath
	TryQuery
}

func (h fleetHandlers) pauseRollout(
	ctx context.Context, who model.Caller, in *decideRolloutInput,
) (*written[fleetmodel.Rollout], error) {
	r, err := h.Intents.Fleets.Pause(ctx, who, in.rollout())
	return wrote(r, r.Position, "", err)
}

func (h fleetHandlers) resumeRollout(
	ctx context.Context, who model.Caller, in *decideRolloutInput,
) (*written[fleetmodel.Rollout], error) {
	r, err := h.Intents.Fleets.Resume(ctx, who, in.rollout())
	return wrote(r, r.Position, "", err)
}

func (h fleetHandlers) abortRollout(
	ctx context.Context, who model.Caller, in *decideRolloutInput,
) (*written[fleetmodel.Rollout], error) {
	r, err := h.Intents.Fleets.Abort(ctx, who, in.rollout())
	return wrote(r, r.Position, "", err)
}

type promoteRolloutInput struct {
	RolloutPath
	TryQuery
	Body fleetmodel.PromoteRollout
}

func (h fleetHandlers) promoteRollout(
	ctx context.Context, who model.Caller, in *promoteRolloutInput,
) (*written[fleetmodel.Rollout], error) {
	r, err := h.Intents.Fleets.Promote(ctx, who, in.rollout(), in.Body)
	return wrote(r, r.Position, "", err)
}

type passRolloutGateInput struct {
	RolloutPath
	Gate string `path:"gate" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label"`
	TryQuery
	Body fleetmodel.PassGate
}

func (h fleetHandlers) passRolloutGate(
	ctx context.Context, who model.Caller, in *passRolloutGateInput,
) (*written[fleetmodel.Rollout], error) {
	r, err := h.Intents.Fleets.PassGate(ctx, who, in.rollout(), in.Gate, in.Body)
	return wrote(r, r.Position, "", err)
}

type skipRolloutClusterInput struct {
	RolloutPath
	ClusterPath
	TryQuery
	Body fleetmodel.SkipCluster
}

func (h fleetHandlers) skipRolloutCluster(
	ctx context.Context, who model.Caller, in *skipRolloutClusterInput,
) (*written[fleetmodel.Rollout], error) {
	r, err := h.Intents.Fleets.Skip(ctx, who, in.rollout(), in.Cluster, in.Body)
	return wrote(r, r.Position, "", err)
}

type retryRolloutClusterInput struct {
	RolloutPath
	ClusterPath
	TryQuery
}

func (h fleetHandlers) retryRolloutCluster(
	ctx context.Context, who model.Caller, in *retryRolloutClusterInput,
) (*written[fleetmodel.Rollout], error) {
	r, err := h.Intents.Fleets.Retry(ctx, who, in.rollout(), in.Cluster)
	return wrote(r, r.Position, "", err)
}

type rollbackFleetSubscriptionInput struct {
	FleetSubscriptionPath
	TryQuery
	Body fleetmodel.RollBackRollout
}

func (h fleetHandlers) rollbackFleetSubscription(
	ctx context.Context, who model.Caller, in *rollbackFleetSubscriptionInput,
) (*written[fleetmodel.Rollout], error) {
	r, err := h.Intents.Fleets.Rollback(ctx, who, in.Name, in.Body)
	return wrote(r, r.Position, "", err)
}

// fleetBudgetHandlers are the operations on the budget of mass changes.
type fleetBudgetHandlers struct{ Deps }

func (h fleetBudgetHandlers) register(a *API) {
	register(a, fleetWide(access.Get, access.FleetBudget), operation(http.MethodGet, "/fleet/budget",
		"get-fleet-budget", tagFleet, "Get how many clusters may be changed and let go of within an hour, and what waits for that"), h.get)
	register(a, fleetWide(access.Update, access.FleetBudget),
		operation(http.MethodPut, "/fleet/budget", "set-fleet-budget", tagFleet,
			"Set how many clusters fleet subscriptions may change, and let go of, within an hour"), h.set)
	register(a, fleetWide(access.Override, access.FleetBudget),
		operation(http.MethodPost, "/fleet/budget/allow", "allow-fleet-budget", tagFleet,
			"Let more clusters be changed, or let go of, within the hour that follows"), h.allow)
}

func (h fleetBudgetHandlers) get(
	ctx context.Context, who model.Caller, _ *struct{},
) (*output[fleetmodel.FleetBudget], error) {
	return read(h.Intents.Fleets.Budget(ctx, who))
}

type setFleetBudgetInput struct {
	MakeHeaders
	TryQuery
	Body fleetmodel.SetFleetBudget
}

func (h fleetBudgetHandlers) set(
	ctx context.Context, who model.Caller, in *setFleetBudgetInput,
) (*written[fleetmodel.FleetBudget], error) {
	b, err := h.Intents.Fleets.SetBudget(ctx, who, in.Body)
	return wrote(b, b.Position, "", err)
}

type allowFleetBudgetInput struct {
	TryQuery
	Body fleetmodel.AllowFleetBudget
}

func (h fleetBudgetHandlers) allow(
	ctx context.Context, who model.Caller, in *allowFleetBudgetInput,
) (*written[fleetmodel.FleetBudget], error) {
	b, err := h.Intents.Fleets.AllowBudget(ctx, who, in.Body)
	return wrote(b, b.Position, "", err)
}
