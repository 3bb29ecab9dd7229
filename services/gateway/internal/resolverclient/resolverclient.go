// Package resolverclient sends requests to the resolver over the bus: why a decision came out as it did, and what
// changes would lead to. The gateway never resolves itself.
package resolverclient

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Subjects of explanations.
const (
	explainSubject = "chandler.rpc.resolver.explain"
	whySubject     = "chandler.rpc.resolver.why"
)

// Bus sends a request to a subject and decodes the reply.
type Bus interface {
	Call(ctx context.Context, subject string, in, out any) error
}

// Client sends requests to the resolver.
type Client struct {
	Bus  Bus
	Slog *slog.Logger
}

// request is what the resolver is asked to explain; which fields count depends on the subject.
type request struct {
	Tenant       string `json:"tenant"`
	Cluster      string `json:"cluster,omitempty"`
	Namespace    string `json:"namespace,omitempty"`
	Subscription string `json:"subscription,omitempty"`
	Plan         string `json:"plan,omitempty"`
	Operator     string `json:"operator,omitempty"`
}

// reply is what it says about a decision.
type reply struct {
	Recorded struct {
		Outcome  string                `json:"outcome"`
		CSV      string                `json:"csv"`
		Reason   string                `json:"reason"`
		Plan     string                `json:"plan"`
		PlanName string                `json:"planName"`
		Digest   string                `json:"digest"`
		Bundles  []model.PlannedBundle `json:"bundles"`
	} `json:"recorded"`
	Input       string                     `json:"input"`
	Semantics   string                     `json:"semantics"`
	Agrees      bool                       `json:"agrees"`
	Differences []model.DecisionDifference `json:"differences"`
	Component   json.RawMessage            `json:"component"`
	Explanation *struct {
		Class         string            `json:"class"`
		Subscriptions []string          `json:"subscriptions"`
		CSVs          []string          `json:"csvs"`
		Statements    []model.Statement `json:"statements"`
		More          int               `json:"more"`
	} `json:"explanation"`
	Advice *struct {
		Remedies  []model.Remedy `json:"remedies"`
		Exhausted bool           `json:"exhausted"`
		Resolves  bool           `json:"resolves"`
		Waits     []string       `json:"waits"`
	} `json:"advice"`
	Why []model.OperatorReasoning `json:"why"`
}

// ExplainSubscription explains the last decision about a subscription.
func (c Client) ExplainSubscription(
	ctx context.Context, who model.Caller, cluster, namespace, name string,
) (model.Decision, error) {
	var a reply
	err := c.explain(ctx, explainSubject, request{
		Tenant: who.Tenant, Cluster: cluster, Namespace: namespace,
		Subscription: name,
	}, &a)
	d := a.decision()
	d.Cluster, d.Namespace, d.Subscription = cluster, namespace, name
	return d, err
}

// ExplainPlan explains the decision that an install plan is.
func (c Client) ExplainPlan(ctx context.Context, who model.Caller, p model.InstallPlan) (model.Decision, error) {
	var a reply
	err := c.explain(ctx, explainSubject, request{Tenant: who.Tenant, Plan: p.ID}, &a)
	d := a.decision()
	d.Cluster, d.Namespace = p.Cluster, p.Namespace
	return d, err
}

// WhyOperator explains why an operator is what it is and not a newer one; name is its CSV, its subscription or its
// package.
func (c Client) WhyOperator(
	ctx context.Context, who model.Caller, cluster, namespace, name string,
) (model.OperatorReasoning, error) {
	var a model.OperatorReasoning
	err := c.explain(ctx, whySubject, request{
		Tenant: who.Tenant, Cluster: cluster, Namespace: namespace,
		Operator: name,
	}, &a)
	return a, err
}

func (c Client) explain(ctx context.Context, subject string, in request, out any) error {
	err := c.Bus.Call(ctx, subject, in, out)
	if errs.Is(err, errs.Unavailable) {
		c.Slog.WarnContext(ctx, "the resolver does not answer", "subject", subject, "error", err)
		return errs.New(errs.Unavailable,
			"the resolver does not answer at the moment: try again in a moment; recorded decisions can be read "+
				"without it")
	}
	return err
}

func (a reply) decision() model.Decision {
	d := model.Decision{
		Outcome: a.Recorded.Outcome, CSV: a.Recorded.CSV, Reason: a.Recorded.Reason, Plan: a.Recorded.Plan,
		PlanName: a.Recorded.PlanName, PlanDigest: a.Recorded.Digest, Bundles: a.Recorded.Bundles, Input: a.Input,
		Semantics: a.Semantics, Agrees: a.Agrees, Differences: a.Differences, Why: a.Why, Again: a.Component,
	}
	if e := a.Explanation; e != nil {
		d.Class, d.Statements, d.More = e.Class, e.Statements, e.More
		for _, s := range e.Subscriptions {
			d.Conflict = append(d.Conflict, "subscription/"+s)
		}
		for _, c := range e.CSVs {
			d.Conflict = append(d.Conflict, "operator/"+c)
		}
	}
	if a.Advice != nil {
		d.Remedies, d.Exhausted, d.Resolves, d.Waits = a.Advice.Remedies, a.Advice.Exhausted, a.Advice.Resolves,
			a.Advice.Waits
	}
	return d
}
