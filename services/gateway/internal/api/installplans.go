package api

import (
	"context"
	"net/http"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const tagPlans = "Install plans"

// PlanPath is an install plan in a path.
type PlanPath struct {
	ID string `path:"id" format:"uuid" doc:"Id of the plan"`
}

func (a *API) installPlans() {
	register(a, needRead, operation(http.MethodGet, "/installplans", "list-installplans", tagPlans, "List install plans, newest first"),
		func(ctx context.Context, who model.Caller, in *struct {
			ListQuery
			Cluster   string `query:"cluster" maxLength:"63"`
			Namespace string `query:"namespace" maxLength:"63"`
			Phase     string `query:"phase" enum:"RequiresApproval,Installing,Complete,Failed,Superseded,Rejected"`
			Blocked   string `query:"blocked" enum:"true,false" doc:"Only those that something in their cluster keeps from going on, or only the others"`
			LabelQuery
		},
		) (*listOutput[model.InstallPlan], error) {
			page, err := a.waitList(ctx, who, a.d.Views.InstallPlans, in.ListQuery)
			if err != nil {
				return nil, err
			}
			return listed(a.d.Reads.InstallPlans(ctx, who, model.PlanFilter{
				Cluster: in.Cluster, Namespace: in.Namespace, Phase: in.Phase, Blocked: in.Blocked, Label: in.Label, Page: page,
			}))
		})
	register(a, needRead, operation(http.MethodGet, "/installplans/{id}", "get-installplan", tagPlans, "Get an install plan with its steps and reasons"),
		func(ctx context.Context, who model.Caller, in *struct {
			PlanPath
			ReadQuery
		},
		) (*output[model.InstallPlan], error) {
			if err := a.wait(ctx, who, a.d.Views.InstallPlans, in.ReadQuery); err != nil {
				return nil, err
			}
			return read(a.d.Reads.InstallPlan(ctx, who, in.ID))
		})
	register(a, needWrite, operation(http.MethodPost, "/installplans/{id}/approve", "approve-installplan", tagPlans, "Approve exactly this digest of a plan"),
		func(ctx context.Context, who model.Caller, in *struct {
			PlanPath
			Body model.ApprovePlan
		},
		) (*written[model.InstallPlan], error) {
			p, err := a.d.Intents.InstallPlans.Approve(ctx, who, in.ID, in.Body)
			return wrote(p, p.Position, "", err)
		})
	register(a, needWrite, operation(http.MethodPut, "/installplans/{id}/metadata", "note-installplan", tagPlans,
		"Replace the labels and annotations of a plan; nothing else comes of them"),
		func(ctx context.Context, who model.Caller, in *struct {
			PlanPath
			Body model.Metadata
		},
		) (*written[model.InstallPlan], error) {
			p, err := a.d.Intents.InstallPlans.SetMetadata(ctx, who, in.ID, in.Body)
			return wrote(p, p.Position, "", err)
		})
	register(a, needWrite, operation(http.MethodPost, "/installplans/{id}/reject", "reject-installplan", tagPlans, "End a plan that has not begun"),
		func(ctx context.Context, who model.Caller, in *struct {
			PlanPath
			Body model.RejectPlan
		},
		) (*written[model.InstallPlan], error) {
			p, err := a.d.Intents.InstallPlans.Reject(ctx, who, in.ID, in.Body)
			return wrote(p, p.Position, "", err)
		})
}
