package api

import (
	"context"
	"net/http"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// explanations are questions that other services answer. What is asked about must be known here first, so that a
// caller learns the same of what is not there whoever answers.
func (a *API) explanations() {
	register(a, needRead, operation(http.MethodGet, pathSubscriptions+"/{name}/explanation", "explain-subscription", tagSubscriptions,
		"Explain the last decision about a subscription: make it again from its recorded input, compare, and say what would help"),
		func(ctx context.Context, who model.Caller, in *struct {
			ObjectPath
			ReadQuery
		},
		) (*output[model.Decision], error) {
			if err := a.wait(ctx, who, a.d.Views.Subscriptions, in.ReadQuery); err != nil {
				return nil, err
			}
			if _, err := a.d.Reads.Subscription(ctx, who, in.Cluster, in.Namespace, in.Name); err != nil {
				return nil, err
			}
			return read(a.d.Resolver.ExplainSubscription(ctx, who, in.Cluster, in.Namespace, in.Name))
		})
	register(a, needRead, operation(http.MethodGet, "/installplans/{id}/explanation", "explain-installplan", tagPlans,
		"Explain an install plan: make the decision again from its recorded input, compare, and say why nothing newer"),
		func(ctx context.Context, who model.Caller, in *struct {
			PlanPath
			ReadQuery
		},
		) (*output[model.Decision], error) {
			if err := a.wait(ctx, who, a.d.Views.InstallPlans, in.ReadQuery); err != nil {
				return nil, err
			}
			p, err := a.d.Reads.InstallPlan(ctx, who, in.ID)
			if err != nil {
				return nil, err
			}
			return read(a.d.Resolver.ExplainPlan(ctx, who, p))
		})
	register(a, needRead, operation(http.MethodGet, "/installplans/{id}/check", "check-installplan", tagPlans,
		"Ask the cluster what stands in the way of a plan now: every missing right, each custom resource definition with whether it may be changed and undone, and anything else"),
		func(ctx context.Context, who model.Caller, in *struct {
			PlanPath
			ReadQuery
		},
		) (*output[model.PlanCheck], error) {
			if err := a.wait(ctx, who, a.d.Views.InstallPlans, in.ReadQuery); err != nil {
				return nil, err
			}
			p, err := a.d.Reads.InstallPlan(ctx, who, in.ID)
			if err != nil {
				return nil, err
			}
			return read(a.d.Installer.CheckPlan(ctx, who, p))
		})
	register(a, needRead, operation(http.MethodGet, "/clusters/{cluster}/namespaces/{namespace}/operators/{name}/why", "why-operator", tagOperators,
		"Say why an operator is there, and for every newer version why it is not taken; name is its CSV, its subscription or its package"),
		func(ctx context.Context, who model.Caller, in *struct {
			ObjectPath
			ReadQuery
		},
		) (*output[model.OperatorReasoning], error) {
			if err := a.wait(ctx, who, a.d.Views.Operators, in.ReadQuery); err != nil {
				return nil, err
			}
			return read(a.d.Resolver.WhyOperator(ctx, who, in.Cluster, in.Namespace, in.Name))
		})
}
