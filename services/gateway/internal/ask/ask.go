// Package ask puts questions of the API to other services, over the bus: to the resolver why a decision came out as it
// did, and why an operator is not a newer one; to the installer what stands in the way of a plan in its cluster. The
// gateway never resolves, and never looks into a cluster (DESIGN, settled details).
package ask

import (
	"context"
	"encoding/json"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Subjects on which the resolver answers.
const (
	explainSubject = "chandler.ask.resolver.explain"
	whySubject     = "chandler.ask.resolver.why"
)

// Asker puts a question on a subject and decodes the answer.
type Asker interface {
	Ask(ctx context.Context, subject string, in, out any) error
}

// Resolver asks the resolver.
type Resolver struct{ Bus Asker }

// question is what the resolver is asked; which fields count depends on the subject.
type question struct {
	Tenant       string `json:"tenant"`
	Cluster      string `json:"cluster,omitempty"`
	Namespace    string `json:"namespace,omitempty"`
	Subscription string `json:"subscription,omitempty"`
	Plan         string `json:"plan,omitempty"`
	Operator     string `json:"operator,omitempty"`
}

// answer is what it says of a decision.
type answer struct {
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

// ExplainSubscription tells of the last decision about a subscription.
func (r Resolver) ExplainSubscription(ctx context.Context, who model.Caller, cluster, namespace, name string) (model.Decision, error) {
	var a answer
	err := r.ask(ctx, explainSubject, question{Tenant: who.Tenant, Cluster: cluster, Namespace: namespace, Subscription: name}, &a)
	d := a.decision()
	d.Cluster, d.Namespace, d.Subscription = cluster, namespace, name
	return d, err
}

// ExplainPlan tells of the decision that an install plan is.
func (r Resolver) ExplainPlan(ctx context.Context, who model.Caller, p model.InstallPlan) (model.Decision, error) {
	var a answer
	err := r.ask(ctx, explainSubject, question{Tenant: who.Tenant, Plan: p.ID}, &a)
	d := a.decision()
	d.Cluster, d.Namespace = p.Cluster, p.Namespace
	return d, err
}

// WhyOperator tells why an operator is what it is and not a newer one; name is its CSV, its subscription or its package.
func (r Resolver) WhyOperator(ctx context.Context, who model.Caller, cluster, namespace, name string) (model.OperatorReasoning, error) {
	var a model.OperatorReasoning
	err := r.ask(ctx, whySubject, question{Tenant: who.Tenant, Cluster: cluster, Namespace: namespace, Operator: name}, &a)
	return a, err
}

func (r Resolver) ask(ctx context.Context, subject string, q question, out any) error {
	err := r.Bus.Ask(ctx, subject, q, out)
	if errs.Is(err, errs.Unavailable) {
		return errs.New(errs.Unavailable, "the resolver does not answer at the moment; what is recorded can be read without it, and the question asked again in a moment")
	}
	return err
}

func (a answer) decision() model.Decision {
	d := model.Decision{
		Outcome: a.Recorded.Outcome, CSV: a.Recorded.CSV, Reason: a.Recorded.Reason, Plan: a.Recorded.Plan, PlanName: a.Recorded.PlanName,
		PlanDigest: a.Recorded.Digest, Bundles: a.Recorded.Bundles, Input: a.Input, Semantics: a.Semantics, Agrees: a.Agrees,
		Differences: a.Differences, Why: a.Why, Again: a.Component,
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
		d.Remedies, d.Exhausted, d.Resolves, d.Waits = a.Advice.Remedies, a.Advice.Exhausted, a.Advice.Resolves, a.Advice.Waits
	}
	return d
}
