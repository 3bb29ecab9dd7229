package api

import (
	"context"
	"net/http"

	"github.com/chandler-fleet/chandler/services/gateway/internal/view/installplans"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/operators"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/subscriptions"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// explanations are questions that other services answer. What is asked about must be known here first, so that a
// caller learns the same of what is not there whoever answers.
// explanationHandlers are questions that other services answer. What is asked about must be known here first, so that a
// caller gets the same answer for what is not there, whoever answers.
type explanationHandlers struct{ Deps }

func (h explanationHandlers) register(a *API) {
	register(a, needRead, operation(http.MethodGet, pathSubscriptions+"/{name}/explanation", "explain-subscription",
		tagSubscriptions,
		"Explain the last decision about a subscription: make it again from its recorded input, compare, and say "+
			"what would help"), h.explainSubscription)
	register(a, needRead, operation(http.MethodGet, "/installplans/{id}/explanation", "explain-installplan", tagPlans,
		"Explain an install plan: make the decision again from its recorded input, compare, and explain why nothing newer"),
		h.explainInstallplan)
	register(a, needRead, operation(http.MethodGet, "/installplans/{id}/check", "check-installplan", tagPlans,
		"List what would block a plan in its cluster now: every missing right, each custom resource definition "+
			"with whether it may be changed and undone, and anything else"), h.checkInstallplan)
	register(a, needRead, operation(http.MethodGet, "/clusters/{cluster}/namespaces/{namespace}/operators/{name}/why",
		"why-operator", tagOperators,
		"Explain why an operator is installed, and for every newer version why it is not; name is its CSV, its "+
			"subscription or its package"), h.whyOperator)
}

type explainSubscriptionInput struct {
	ObjectPath
	ReadQuery
}

func (h explanationHandlers) explainSubscription(
	ctx context.Context, who model.Caller, in *explainSubscriptionInput,
) (*output[model.Decision], error) {
	if err := h.wait(ctx, who, subscriptions.Name, in.ReadQuery); err != nil {
		return nil, err
	}
	if _, err := h.Reads.Subscriptions.Get(ctx, who, in.Cluster, in.Namespace, in.Name); err != nil {
		return nil, err
	}
	return read(h.Resolver.ExplainSubscription(ctx, who, in.Cluster, in.Namespace, in.Name))
}

type explainInstallplanInput struct {
	PlanPath
	ReadQuery
}

func (h explanationHandlers) explainInstallplan(
	ctx context.Context, who model.Caller, in *explainInstallplanInput,
) (*output[model.Decision], error) {
	if err := h.wait(ctx, who, installplans.Name, in.ReadQuery); err != nil {
		return nil, err
	}
	p, err := h.Reads.InstallPlans.Get(ctx, who, in.ID)
	if err != nil {
		return nil, err
	}
	return read(h.Resolver.ExplainPlan(ctx, who, p))
}

type checkInstallplanInput struct {
	PlanPath
	ReadQuery
}

func (h explanationHandlers) checkInstallplan(
	ctx context.Context, who model.Caller, in *checkInstallplanInput,
) (*output[model.PlanCheck], error) {
	if err := h.wait(ctx, who, installplans.Name, in.ReadQuery); err != nil {
		return nil, err
	}
	p, err := h.Reads.InstallPlans.Get(ctx, who, in.ID)
	if err != nil {
		return nil, err
	}
	return read(h.Installer.CheckPlan(ctx, who, p))
}

type whyOperatorInput struct {
	ObjectPath
	ReadQuery
}

func (h explanationHandlers) whyOperator(
	ctx context.Context, who model.Caller, in *whyOperatorInput,
) (*output[model.OperatorReasoning], error) {
	if err := h.wait(ctx, who, operators.Name, in.ReadQuery); err != nil {
		return nil, err
	}
	return read(h.Resolver.WhyOperator(ctx, who, in.Cluster, in.Namespace, in.Name))
}
