package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/installplans"
	"github.com/chandler-fleet/chandler/services/gateway/internal/watch"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const tagPlans = "Install plans"

// PlanPath is an install plan in a path.
type PlanPath struct {
	ID        string `path:"id" maxLength:"253" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" patternDescription:"an id or a DNS-1123 subdomain" doc:"Id of the plan, or its name; a name that several plans have is a conflict that lists them"`
	Cluster   string `query:"cluster" maxLength:"63" doc:"With a name: only a plan in this cluster"`
	Namespace string `query:"namespace" maxLength:"63" doc:"With a name: only a plan in this namespace"`
}

// plan is the id of the plan that a request names.
func (d Deps) plan(ctx context.Context, who model.Caller, at PlanPath) (string, error) {
	return d.Reads.InstallPlans.ID(ctx, who, at.ID, at.Cluster, at.Namespace)
}

// planHandlers are the operations on install plans.
type planHandlers struct{ Deps }

func (h planHandlers) register(a *API) {
	registerList(a, whatIsSeen(access.List, access.InstallPlans),
		operation(http.MethodGet, "/installplans", "list-installplans", tagPlans,
			"List install plans, newest first"), watchedPlans, h.listInstallplans)
	register(a, ofObject(access.Get, access.InstallPlans),
		operation(http.MethodGet, "/installplans/{id}", "get-installplan", tagPlans,
			"Get an install plan with its steps and reasons"), h.getInstallplan)
	register(a, ofObject(access.Approve, access.InstallPlans),
		lasting(a, operation(http.MethodPost, "/installplans/{id}/approve", "approve-installplan", tagPlans,
			"Approve exactly this digest of a plan")), h.approveInstallplan)
	register(a, ofObject(access.Update, access.InstallPlans),
		operation(http.MethodPut, "/installplans/{id}/metadata", "note-installplan", tagPlans,
			"Replace the labels and annotations of a plan; nothing else comes of them"), h.noteInstallplan)
	register(a, ofObject(access.Get, access.InstallPlans),
		operation(http.MethodGet, "/installplans/{id}/comments", "list-installplan-comments", tagPlans,
			"List what people said of a plan, reasons of approvals and rejections included"), h.listInstallplanComments)
	register(a, ofObject(access.Comment, access.InstallPlans),
		created("/installplans/{id}/comments", "comment-installplan", tagPlans,
			"Say something of a plan; nothing is decided by it"), h.commentInstallplan)
	register(a, ofObject(access.Reject, access.InstallPlans),
		operation(http.MethodPost, "/installplans/{id}/reject", "reject-installplan", tagPlans,
			"End a plan that has not begun"), h.rejectInstallplan)
}

var watchedPlans = watchedAs[model.InstallPlan]{
	kinds: []events.Kind{events.KindInstallPlan, events.KindCluster},
	name: func(p model.InstallPlan) (watch.Scope, watch.Name) {
		in, name := inNamespace(p.Cluster, p.Namespace, p.Name)
		name.ID = p.ID
		return in, name
	},
}

type listInstallplansInput struct {
	ListQuery
	WatchQuery
	Cluster   string `query:"cluster" maxLength:"63"`
	Namespace string `query:"namespace" maxLength:"63"`
	Phase     string `query:"phase" enum:"RequiresApproval,Installing,Complete,Failed,Superseded,Rejected"`
	Blocked   string `query:"blocked" enum:"true,false" doc:"Only those that something in their cluster keeps from going on, or only the others"`
	LabelQuery
	Sort string `query:"sort" enum:"name,-name,cluster,-cluster,phase,-phase,created,-created,changed,-changed" doc:"What to sort by, with - the other way round; newest first without it"`
	ChoiceQuery
}

func (in *listInstallplansInput) part(of watch.Scope) bool {
	return narrow(&in.Cluster, &in.Namespace, of)
}

func (h planHandlers) listInstallplans(
	ctx context.Context, who model.Caller, in *listInstallplansInput,
) (*listOutput[model.InstallPlan], error) {
	page, err := h.waitList(ctx, who, installplans.Name, in.ListQuery)
	if err != nil {
		return nil, err
	}
	return listed(h.Reads.InstallPlans.List(ctx, who, model.PlanFilter{
		Cluster: in.Cluster, Namespace: in.Namespace, Phase: in.Phase, Blocked: in.Blocked, Label: in.Label,
		Choice: in.choice(in.Sort), Page: page,
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
	id, err := h.plan(ctx, who, in.PlanPath)
	if err != nil {
		return nil, err
	}
	return read(h.Reads.InstallPlans.Get(ctx, who, id))
}

type approveInstallplanInput struct {
	PlanPath
	TryQuery
	Body model.ApprovePlan
}

func (h planHandlers) approveInstallplan(
	ctx context.Context, who model.Caller, in *approveInstallplanInput,
) (*written[model.InstallPlan], error) {
	id, err := h.plan(ctx, who, in.PlanPath)
	if err != nil {
		return nil, err
	}
	p, err := h.Intents.InstallPlans.Approve(ctx, who, id, in.Body)
	return wrote(p, p.Position, "", err)
}

type noteInstallplanInput struct {
	PlanPath
	TryQuery
	Body model.Metadata
}

func (h planHandlers) noteInstallplan(
	ctx context.Context, who model.Caller, in *noteInstallplanInput,
) (*written[model.InstallPlan], error) {
	id, err := h.plan(ctx, who, in.PlanPath)
	if err != nil {
		return nil, err
	}
	p, err := h.Intents.InstallPlans.SetMetadata(ctx, who, id, in.Body)
	return wrote(p, p.Position, "", err)
}

type rejectInstallplanInput struct {
	PlanPath
	TryQuery
	Body model.RejectPlan
}

func (h planHandlers) rejectInstallplan(
	ctx context.Context, who model.Caller, in *rejectInstallplanInput,
) (*written[model.InstallPlan], error) {
	id, err := h.plan(ctx, who, in.PlanPath)
	if err != nil {
		return nil, err
	}
	p, err := h.Intents.InstallPlans.Reject(ctx, who, id, in.Body)
	return wrote(p, p.Position, "", err)
}

type listInstallplanCommentsInput struct {
	PlanPath
	ListQuery
}

func (h planHandlers) listInstallplanComments(
	ctx context.Context, who model.Caller, in *listInstallplanCommentsInput,
) (*listOutput[model.PlanComment], error) {
	page, err := h.waitList(ctx, who, installplans.Name, in.ListQuery)
	if err != nil {
		return nil, err
	}
	done, err := behind(page.After)
	if err != nil {
		return nil, err
	}
	id, err := h.plan(ctx, who, in.PlanPath)
	if err != nil {
		return nil, err
	}
	items, more, err := h.Reads.InstallPlans.Comments(ctx, who, id, done, page.Limit)
	var next []string
	if more {
		next = []string{strconv.Itoa(items[len(items)-1].Number)}
	}
	return listed(items, next, err)
}

type commentInstallplanInput struct {
	PlanPath
	Body model.CommentPlan
}

func (h planHandlers) commentInstallplan(
	ctx context.Context, who model.Caller, in *commentInstallplanInput,
) (*written[model.PlanComment], error) {
	id, err := h.plan(ctx, who, in.PlanPath)
	if err != nil {
		return nil, err
	}
	c, err := h.Intents.InstallPlans.Comment(ctx, who, id, in.Body)
	return wrote(c, c.Position, prefix+"/installplans/"+id+"/comments", err)
}
