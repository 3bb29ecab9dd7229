package api

import (
	"context"
	"net/http"
	"net/url"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/rules"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/limit"
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
	register(a, whereAsked(access.Get, access.Subscriptions),
		classed(operation(http.MethodGet, pathSubscriptions+"/{name}/explanation", "explain-subscription",
			tagSubscriptions,
			"Explain the last decision about a subscription: make it again from its recorded input, compare, and say "+
				"what would help"), limit.List), h.explainSubscription)
	register(a, ofObject(access.Get, access.InstallPlans),
		classed(operation(http.MethodGet, "/installplans/{id}/explanation", "explain-installplan", tagPlans,
			"Explain an install plan: make the decision again from its recorded input, compare, and explain why nothing newer"),
			limit.List),
		h.explainInstallplan)
	register(a, ofObject(access.Get, access.InstallPlans),
		classed(operation(http.MethodGet, "/installplans/{id}/check", "check-installplan", tagPlans,
			"List what would block a plan in its cluster now: every missing right, each custom resource definition "+
				"with whether it may be changed and undone, and anything else"), limit.List), h.checkInstallplan)
	register(a, whereAsked(access.Get, access.Operators),
		classed(operation(http.MethodGet, "/clusters/{cluster}/namespaces/{namespace}/operators/{name}/why",
			"why-operator", tagOperators,
			"Explain why an operator is installed, and for every newer version why it is not; name is its CSV, its "+
				"subscription or its package"), limit.List), h.whyOperator)
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

// named is the plan that a request names.
func (h explanationHandlers) named(ctx context.Context, who model.Caller, at PlanPath) (model.InstallPlan, error) {
	id, err := h.plan(ctx, who, at)
	if err != nil {
		return model.InstallPlan{}, err
	}
	return h.Reads.InstallPlans.Get(ctx, who, id)
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
	p, err := h.named(ctx, who, in.PlanPath)
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
	p, err := h.named(ctx, who, in.PlanPath)
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

const (
	tagRules  = "Rules"
	pathRules = "/rules"
)

// ruleHelp is where the API explains a rule, "" for one that it does not know.
func ruleHelp(id string) string {
	if _, ok := rules.Find(id); !ok {
		return ""
	}
	return prefix + pathRules + "?" + url.Values{"id": {id}}.Encode()
}

// ruleHandlers explain the rules that problems and findings name.
type ruleHandlers struct{}

func (h ruleHandlers) register(a *API) {
	register(a, everybody, classed(operation(http.MethodGet, pathRules, "list-rules", tagRules,
		"Explain the rules that problems and findings name"), limit.Read), h.listRules)
}

type listRulesInput struct {
	ID string `query:"id" maxLength:"128" doc:"Only this rule, such as R-CAT-43 or one-of"`
}

func (h ruleHandlers) listRules(
	_ context.Context, _ model.Caller, in *listRulesInput,
) (*listOutput[rules.Rule], error) {
	if in.ID == "" {
		return listed(rules.All(), nil, nil)
	}
	r, ok := rules.Find(in.ID)
	if !ok {
		return nil, errs.New(errs.NotFound, "there is no rule %q", in.ID)
	}
	return listed([]rules.Rule{r}, nil, nil)
}
