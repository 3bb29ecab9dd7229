package api

import (
	"context"
	"net/http"

	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/installplans"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const tagPlans = "Install plans"

// PlanPath is an install plan in a path.
type PlanPath struct {
	ID string `path:"id" format:"uuid" doc:"Id of the plan"`
}

// planHandlers are the operations on install plans.
type planHandlers struct{ Deps }

func (h planHandlers) register(a *API) {
	register(a, whatIsSeen(access.List, access.InstallPlans),
		operation(http.MethodGet, "/installplans", "list-installplans", tagPlans,
			"List install plans, newest first"), h.listInstallplans)
	register(a, ofObject(access.Get, access.InstallPlans),
		operation(http.MethodGet, "/installplans/{id}", "get-installplan", tagPlans,
			"Get an install plan with its steps and reasons"), h.getInstallplan)
	register(a, ofObject(access.Approve, access.InstallPlans),
		operation(http.MethodPost, "/installplans/{id}/approve", "approve-installplan", tagPlans,
			"Approve exactly this digest of a plan"), h.approveInstallplan)
	register(a, ofObject(access.Update, access.InstallPlans),
		operation(http.MethodPut, "/installplans/{id}/metadata", "note-installplan", tagPlans,
			"Replace the labels and annotations of a plan; nothing else comes of them"), h.noteInstallplan)
	register(a, ofObject(access.Reject, access.InstallPlans),
		operation(http.MethodPost, "/installplans/{id}/reject", "reject-installplan", tagPlans,
			"End a plan that has not begun"), h.rejectInstallplan)
}

type listInstallplansInput struct {
	ListQuery
	Cluster   string `query:"cluster" maxLength:"63"`
	Namespace string `query:"namespace" maxLength:"63"`
	Phase     string `query:"phase" enum:"RequiresApproval,Installing,Complete,Failed,Superseded,Rejected"`
	Blocked   string `query:"blocked" enum:"true,false" doc:"Only those that something in their cluster keeps from going on, or only the others"`
	LabelQuery
}

func (h planHandlers) listInstallplans(
	ctx context.Context, who model.Caller, in *listInstallplansInput,
) (*listOutput[model.InstallPlan], error) {
	page, err := h.waitList(ctx, who, installplans.Name, in.ListQuery)
	if err != nil {
		return nil, err
	}
	return listed(h.Reads.InstallPlans.List(ctx, who, model.PlanFilter{
		Cluster: in.Cluster, Namespace: in.Namespace, Phase: in.Phase, Blocked: in.Blocked, Label: in.Label, Page: page,
	}))
}

type getInstallplanInput struct {
	PlanPath
	ReadQuery
}

func (h planHandlers) getInstallplan(
	ctx context.Context, who model.Caller, in *getInstallplanInput,
) (*output[model.InstallPlan], error) {
	if err := h.wait(ctx, who, installplans.Name, in.ReadQuery); err != nil {
		return nil, err
	}
	return read(h.Reads.InstallPlans.Get(ctx, who, in.ID))
}

type approveInstallplanInput struct {
	PlanPath
	Body model.ApprovePlan
}

func (h planHandlers) approveInstallplan(
	ctx context.Context, who model.Caller, in *approveInstallplanInput,
) (*written[model.InstallPlan], error) {
	p, err := h.Intents.InstallPlans.Approve(ctx, who, in.ID, in.Body)
	return wrote(p, p.Position, "", err)
}

type noteInstallplanInput struct {
	PlanPath
	Body model.Metadata
}

func (h planHandlers) noteInstallplan(
	ctx context.Context, who model.Caller, in *noteInstallplanInput,
) (*written[model.InstallPlan], error) {
	p, err := h.Intents.InstallPlans.SetMetadata(ctx, who, in.ID, in.Body)
	return wrote(p, p.Position, "", err)
}

type rejectInstallplanInput struct {
	PlanPath
	Body model.RejectPlan
}

func (h planHandlers) rejectInstallplan(
	ctx context.Context, who model.Caller, in *rejectInstallplanInput,
) (*written[model.InstallPlan], error) {
	p, err := h.Intents.InstallPlans.Reject(ctx, who, in.ID, in.Body)
	return wrote(p, p.Position, "", err)
}
