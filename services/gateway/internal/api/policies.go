package api

import (
	"context"
	"net/http"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/approvalpolicies"
	"github.com/chandler-fleet/chandler/services/gateway/internal/watch"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const tagPolicies = "Approval policies"

// PolicyPath is an approval policy in a path.
type PolicyPath struct {
	Name string `path:"name" maxLength:"253" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" patternDescription:"a DNS-1123 subdomain"`
}

// policyHandlers are the operations on approval policies.
type policyHandlers struct{ Deps }

func (h policyHandlers) register(a *API) {
	registerList(a, fleetWide(access.List, access.ApprovalPolicies),
		operation(http.MethodGet, "/approvalpolicies", "list-approval-policies", tagPolicies,
			"List approval policies by name"), watchedPolicies, h.listApprovalPolicies)
	register(a, fleetWide(access.Get, access.ApprovalPolicies),
		operation(http.MethodGet, "/approvalpolicies/{name}", "get-approval-policy", tagPolicies,
			"Get an approval policy"), h.getApprovalPolicy)
	register(a, fleetWide(access.Update, access.ApprovalPolicies), triable[model.ApprovalPolicy](a,
		operation(http.MethodPut, "/approvalpolicies/{name}", "set-approval-policy", tagPolicies,
			"Make an approval policy, or replace all of it; approvals of plans that it changes are void")),
		h.setApprovalPolicy)
	register(a, fleetWide(access.Delete, access.ApprovalPolicies), triable[model.Removed](a,
		operation(http.MethodDelete, "/approvalpolicies/{name}", "delete-approval-policy", tagPolicies,
			"End an approval policy")), h.deleteApprovalPolicy)
}

var watchedPolicies = watchedInFleet(
	func(p model.ApprovalPolicy) watch.Name { return watch.Name{Name: p.Name} }, events.KindPolicy)

type listApprovalPoliciesInput struct {
	FleetListQuery
	LabelQuery
}

func (h policyHandlers) listApprovalPolicies(
	ctx context.Context, who model.Caller, in *listApprovalPoliciesInput,
) (*listOutput[model.ApprovalPolicy], error) {
	page, err := h.waitList(ctx, who, approvalpolicies.Name, in.ListQuery)
	if err != nil {
		return nil, err
	}
	return listed(h.Reads.Policies.List(ctx, who, model.PolicyFilter{Label: in.Label, Page: page}))
}

type getApprovalPolicyInput struct {
	PolicyPath
	ReadQuery
}

func (h policyHandlers) getApprovalPolicy(
	ctx context.Context, who model.Caller, in *getApprovalPolicyInput,
) (*output[model.ApprovalPolicy], error) {
	if err := h.wait(ctx, who, approvalpolicies.Name, in.ReadQuery); err != nil {
		return nil, err
	}
	return read(h.Reads.Policies.Get(ctx, who, in.Name))
}

type setApprovalPolicyInput struct {
	PolicyPath
	MakeHeaders
	DryRunQuery
	Body model.SetApprovalPolicy
}

func (h policyHandlers) setApprovalPolicy(
	ctx context.Context, who model.Caller, in *setApprovalPolicyInput,
) (*tried, error) {
	if in.DryRun {
		return h.dryRun(ctx, who, model.PreviewChange{ApprovalPolicy: &model.PreviewPolicy{
			Name: in.Name, Metadata: in.Body.Metadata, Spec: &in.Body.ApprovalPolicySpec,
		}}, "", "", "")
	}
	p, err := h.Intents.Policies.Set(ctx, who, in.Name, in.Body)
	return wroteOr(http.StatusOK, p, p.Position, "", err)
}

type deleteApprovalPolicyInput struct {
	PolicyPath
	DryRunQuery
}

func (h policyHandlers) deleteApprovalPolicy(
	ctx context.Context, who model.Caller, in *deleteApprovalPolicyInput,
) (*tried, error) {
	if in.DryRun {
		return h.dryRun(ctx, who, model.PreviewChange{
			ApprovalPolicy: &model.PreviewPolicy{Name: in.Name, Remove: true},
		}, "", "", "")
	}
	r, err := h.Intents.Policies.Delete(ctx, who, in.Name)
	return wroteOr(http.StatusOK, r, r.Position, "", err)
}
