package api

import (
	"context"
	"net/http"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const tagPolicies = "Approval policies"

// PolicyPath is an approval policy in a path.
type PolicyPath struct {
	Name string `path:"name" maxLength:"253" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" patternDescription:"a DNS-1123 subdomain"`
}

func (a *API) approvalPolicies() {
	register(a, needRead, operation(http.MethodGet, "/approvalpolicies", "list-approval-policies", tagPolicies, "List approval policies by name"),
		func(ctx context.Context, who model.Caller, in *struct {
			ListQuery
			LabelQuery
		},
		) (*listOutput[model.ApprovalPolicy], error) {
			page, err := a.waitList(ctx, who, a.d.Views.Policies, in.ListQuery)
			if err != nil {
				return nil, err
			}
			return listed(a.d.Reads.ApprovalPolicies(ctx, who, model.PolicyFilter{Label: in.Label, Page: page}))
		})
	register(a, needRead, operation(http.MethodGet, "/approvalpolicies/{name}", "get-approval-policy", tagPolicies, "Get an approval policy"),
		func(ctx context.Context, who model.Caller, in *struct {
			PolicyPath
			ReadQuery
		},
		) (*output[model.ApprovalPolicy], error) {
			if err := a.wait(ctx, who, a.d.Views.Policies, in.ReadQuery); err != nil {
				return nil, err
			}
			return read(a.d.Reads.ApprovalPolicy(ctx, who, in.Name))
		})
	register(a, needWrite, triable[model.ApprovalPolicy](a, operation(http.MethodPut, "/approvalpolicies/{name}", "set-approval-policy", tagPolicies,
		"Make an approval policy, or replace all of it; approvals of plans that it changes are void")),
		func(ctx context.Context, who model.Caller, in *struct {
			PolicyPath
			DryRunQuery
			Body model.SetApprovalPolicy
		},
		) (*tried, error) {
			if in.DryRun {
				return a.dryRun(ctx, who, model.PreviewChange{ApprovalPolicy: &model.PreviewPolicy{
					Name: in.Name, Metadata: in.Body.Metadata, Spec: &in.Body.ApprovalPolicySpec,
				}}, "", "", "")
			}
			p, err := a.d.Intents.Policies.Set(ctx, who, in.Name, in.Body)
			return wroteOr(http.StatusOK, p, p.Position, "", err)
		})
	register(a, needWrite, triable[model.Removed](a, operation(http.MethodDelete, "/approvalpolicies/{name}", "delete-approval-policy", tagPolicies, "End an approval policy")),
		func(ctx context.Context, who model.Caller, in *struct {
			PolicyPath
			DryRunQuery
		},
		) (*tried, error) {
			if in.DryRun {
				return a.dryRun(ctx, who, model.PreviewChange{ApprovalPolicy: &model.PreviewPolicy{Name: in.Name, Remove: true}}, "", "", "")
			}
			r, err := a.d.Intents.Policies.Delete(ctx, who, in.Name)
			return wroteOr(http.StatusOK, r, r.Position, "", err)
		})
}
