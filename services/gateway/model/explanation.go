package model

import (
	"encoding/json"
	"time"
)

// Decision is a recorded decision of the resolver, made again from its recorded input.
type Decision struct {
	Cluster      string `json:"cluster"`
	Namespace    string `json:"namespace"`
	Subscription string `json:"subscription,omitempty" doc:"Whose outcome it is; empty for an install plan"`
	Outcome      string `json:"outcome" enum:"Planned,AtLatestKnown,Failed" doc:"As it was recorded"`
	CSV          string `json:"csv,omitempty" doc:"What the subscription moves to or has"`
	Reason       string `json:"reason,omitempty" doc:"Code of a failure, such as ConstraintsNotSatisfiable"`
	Plan         string `json:"plan,omitempty" doc:"Id of the install plan"`
	PlanName     string `json:"planName,omitempty"`
	PlanDigest   string `json:"planDigest,omitempty"`
	Input        string `json:"input" doc:"Digest of everything that was consulted"`
	Semantics    string `json:"semantics" doc:"Version of the rules that decided, and decided again"`
	Agrees       bool   `json:"agrees" doc:"The decision made again from its recorded input is what was recorded"`
	// Differences say what is not, where it does not agree.
	Differences []DecisionDifference `json:"differences,omitempty" nullable:"false"`
	Class       string               `json:"class,omitempty" doc:"Kind of failure, more finely than the reason"`
	// Conflict are the subscriptions and operators that cannot live together: leaving out any one helps the others.
	Conflict   []string            `json:"conflict,omitempty" nullable:"false" doc:"subscription/name or operator/name"`
	Statements []Statement         `json:"statements,omitempty" nullable:"false" doc:"Why it fails: a minimal set of reasons"`
	More       int                 `json:"more,omitempty" doc:"Statements that were left out"`
	Remedies   []Remedy            `json:"remedies,omitempty" nullable:"false" doc:"Changes that would help now, nearest first; with each the namespace was resolved again, and nothing that is known of bundles and cluster is against what it came to"`
	Exhausted  bool                `json:"exhausted,omitempty" doc:"There were more changes to try than the bound allows"`
	Resolves   bool                `json:"resolves,omitempty" doc:"The subscription resolves now as it is, and nothing is known against what it comes to: what was in the way is gone"`
	Waits      []string            `json:"waits,omitempty" nullable:"false" doc:"What a subscription that resolves now waits for"`
	Bundles    []PlannedBundle     `json:"bundles,omitempty" nullable:"false" doc:"What the plan brings, and why"`
	Why        []OperatorReasoning `json:"why,omitempty" nullable:"false" doc:"Of a plan that lives: why each bundle is this one and not a newer one"`
	Again      json.RawMessage     `json:"again,omitempty" doc:"The decision made again, with its whole input and every question that was asked of catalogs"`
}

// DecisionDifference is one way in which a decision that was made again is not what was recorded.
type DecisionDifference struct {
	What     string `json:"what" doc:"input, outcome, csv, explanation, component, bundles or digest"`
	Recorded string `json:"recorded,omitempty"`
	Again    string `json:"again,omitempty"`
}

// Statement is one reason of a failure. Which fields are set depends on the kind; text says it all.
type Statement struct {
	Kind         string   `json:"kind" example:"unmet-requirement"`
	Subscription string   `json:"subscription,omitempty"`
	Bundle       string   `json:"bundle,omitempty" doc:"Who asks or is excluded"`
	Other        string   `json:"other,omitempty" doc:"Who forbids"`
	Package      string   `json:"package,omitempty"`
	Channel      string   `json:"channel,omitempty"`
	Catalog      string   `json:"catalog,omitempty"`
	Revision     string   `json:"revision,omitempty" doc:"Digest of the package document of the catalog that says so"`
	Policy       string   `json:"policy,omitempty" doc:"Name of an approval policy"`
	Requirement  string   `json:"requirement,omitempty"`
	Choices      []string `json:"choices,omitempty" nullable:"false" doc:"What exists instead"`
	Text         string   `json:"text" doc:"Sentence for people"`
}

// Remedy is a change that would help.
type Remedy struct {
	Kind   string         `json:"kind" enum:"starting-csv,channel,catalog,package,add-operator-group,keep-operator-group,operator-group-targets,show-global-catalogs,raise-policy-bound,lift-policy-bound,subscribe,remove-operator,leave-out,disable-catalog"`
	Target string         `json:"target" doc:"What is changed, as kind/name" example:"subscription/tidegauge"`
	Change []RemedyChange `json:"change,omitempty" nullable:"false"`
	Text   string         `json:"text" doc:"Sentence for people"`
	Also   []string       `json:"also,omitempty" nullable:"false" doc:"What would come of it, and what else would come out differently"`
	// Manifest is what a portal or kubectl-like tool applies.
	Manifest string `json:"manifest,omitempty" doc:"The operator group that the change makes, in OLM's YAML, to be applied as it is"`
}

// RemedyChange is one field before and after.
type RemedyChange struct {
	Field string `json:"field"`
	From  string `json:"from,omitempty"`
	To    string `json:"to,omitempty" doc:"Empty takes it out"`
}

// OperatorReasoning is why an operator is what it is: why it is there, and for every newer version why that is not
// taken.
type OperatorReasoning struct {
	Package      string      `json:"package"`
	CSV          string      `json:"csv,omitempty" doc:"Installed, or what a plan brings"`
	Version      string      `json:"version,omitempty"`
	Phase        string      `json:"phase,omitempty"`
	Subscription string      `json:"subscription,omitempty" doc:"That follows it"`
	Catalog      string      `json:"catalog,omitempty" doc:"That the subscription follows; any without it"`
	Channel      string      `json:"channel,omitempty" doc:"That the subscription follows; any without it"`
	Because      []WhyLink   `json:"because" nullable:"false" doc:"Its subscription, and the chain of requirements from another one"`
	NotTaken     []NewerThan `json:"notTaken" nullable:"false" doc:"Newer versions, the newest first"`
	More         int         `json:"more,omitempty" doc:"Newer versions that are left out"`
}

// WhyLink is one reason for an operator to be there.
type WhyLink struct {
	By          string `json:"by" doc:"subscription/name, or the CSV that requires it"`
	Requirement string `json:"requirement,omitempty"`
	Text        string `json:"text"`
}

// NewerThan is a newer version of one catalog, and why it is not taken.
type NewerThan struct {
	CSV      string      `json:"csv"`
	Version  string      `json:"version,omitempty"`
	Catalog  string      `json:"catalog"`
	Revision string      `json:"revision,omitempty" doc:"Of the catalog"`
	Channels []string    `json:"channels" nullable:"false" doc:"That lead to it, the default channel first"`
	Reasons  []WhyReason `json:"reasons" nullable:"false"`
}

// WhyReason is why a version is not taken.
type WhyReason struct {
	Code        string     `json:"code" doc:"policy, window, approval, one-step, no-path, passed-over, dependency, conflict, deprecated, skipped, other-channel, other-catalog, hidden-catalog, bundle-image-pending, bundle-image-failed, catalog-unhealthy, catalog-loading, operator-not-succeeded, plan-under-way, plan-failed, plan-rejected, planned, stopped, not-subscribed, unresolved, preference, invalid-content, not-installable or not-looked-into"`
	Text        string     `json:"text" doc:"Sentence for people"`
	Policy      string     `json:"policy,omitempty" doc:"Name of the approval policy"`
	Plan        string     `json:"plan,omitempty" doc:"Name of the install plan"`
	Bundle      string     `json:"bundle,omitempty" doc:"The operator or bundle that holds it"`
	Requirement string     `json:"requirement,omitempty"`
	Opens       *time.Time `json:"opens,omitempty" doc:"When the maintenance window opens"`
}
