package model

import (
	"encoding/json"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
)

// SubscriptionSpec is the intent to follow a channel of a package (R-SUB §4.1).
type SubscriptionSpec struct {
	Package          string          `json:"package" minLength:"1" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label"`
	Channel          string          `json:"channel,omitempty" maxLength:"253" doc:"Every channel is a candidate without it, the default one preferred"`
	Catalog          string          `json:"catalog" minLength:"1" maxLength:"253" doc:"Name of the catalog"`
	CatalogNamespace string          `json:"catalogNamespace,omitempty" maxLength:"63" doc:"Of a cluster's catalog; a hub catalog has none"`
	StartingCSV      string          `json:"startingCSV,omitempty" maxLength:"253" doc:"First version to install"`
	Approval         string          `json:"approval,omitempty" enum:"Automatic,Manual" doc:"Automatic without it"`
	Config           json.RawMessage `json:"config,omitempty" doc:"OLM's spec.config: env, resources, tolerations and so on. Kept outside the event log. A viewer reads (hidden) for the values of variables."`
}

// Subscription is an intent and what became of it.
type Subscription struct {
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Metadata
	Spec       SubscriptionSpec    `json:"spec"`
	Generated  bool                `json:"generated,omitempty" doc:"Made by the resolver for a dependency"`
	Owner      string              `json:"owner,omitempty" doc:"Fleet subscription that asks for it: it is changed and deleted there"`
	Target     *SubscriptionTarget `json:"target,omitempty" doc:"How far a rollout lets it go. It holds when the owner is gone, until the subscription is changed"`
	Status     SubscriptionStatus  `json:"status"`
	Warnings   []string            `json:"warnings,omitempty" nullable:"false" doc:"What it may lack, in answers to writes"`
	CreatedAt  time.Time           `json:"createdAt"`
	UpdatedAt  time.Time           `json:"updatedAt"`
	Stream     string              `json:"stream,omitempty" doc:"Id of its stream of events"`
	Version    int64               `json:"version,omitempty" doc:"Of its stream"`
	Position   string              `json:"position,omitempty" doc:"Of the write, in answers to writes"`
	Unreadable []Unreadable        `json:"unreadable,omitempty" nullable:"false" doc:"What of it is stored and cannot be opened: it is left out"`
}

// SubscriptionTarget is what a rollout brings to a subscription.
type SubscriptionTarget struct {
	Version string `json:"version"`
	CSV     string `json:"csv"`
	Rollout int    `json:"rollout" doc:"Number of the rollout of its fleet subscription"`
}

// TargetOf is what a rollout brings to a subscription, nil where none does.
func TargetOf(t events.RolloutTarget, rollout int) *SubscriptionTarget {
	if t == (events.RolloutTarget{}) {
		return nil
	}
	return &SubscriptionTarget{Version: t.Version, CSV: t.CSV, Rollout: rollout}
}

// States of a subscription (R-SUB §4.3). The empty state is "nothing resolved".
const (
	StateUpgradePending = "UpgradePending"
	StateAtLatestKnown  = "AtLatestKnown"
	StateUpgradeFailed  = "UpgradeFailed"
)

// What may be so of a subscription whatever its state; lists choose by them as by states.
const (
	StateRequiresApproval = "RequiresApproval" // its plan waits for people
	StateUpgradeAvailable = "UpgradeAvailable" // a newer version than the installed one was found for it
	StateFailing          = "Failing"          // it does not resolve, or its plan or operator failed
	StateDeprecated       = "Deprecated"       // its package, its channel or what is installed
)

// SubscriptionStatus is R-SUB §4.3.
type SubscriptionStatus struct {
	State                 string                `json:"state" enum:",UpgradePending,UpgradeAvailable,AtLatestKnown,UpgradeFailed" doc:"Empty while nothing is resolved"`
	CurrentCSV            string                `json:"currentCSV,omitempty" doc:"Newest version known, or being moved to"`
	InstalledCSV          string                `json:"installedCSV,omitempty"`
	Phase                 string                `json:"phase,omitempty" doc:"Phase of the installed CSV: health is read here, not from state"`
	InstallPlan           *PlanRef              `json:"installPlan,omitempty" doc:"The current plan"`
	InstallPlanGeneration int64                 `json:"installPlanGeneration,omitempty" doc:"Of the current plan"`
	UpgradeAvailable      bool                  `json:"upgradeAvailable,omitempty" doc:"A newer version than the installed one was found for it"`
	Deprecated            []string              `json:"deprecated,omitempty" nullable:"false" doc:"What its catalog has deprecated: olm.package, olm.channel/NAME of its channel, olm.bundle/NAME of what is installed"`
	CatalogHealth         []CatalogSourceHealth `json:"catalogHealth,omitempty" nullable:"false" doc:"Of each catalog that the namespace sees, in answers about one subscription"`
	Explanation           *Explanation          `json:"explanation,omitempty" doc:"Why nothing can be planned, in answers about one subscription"`
	Rollback              *Rollback             `json:"rollback,omitempty" doc:"Asked for since the intent was changed last"`
	Conditions            []Condition           `json:"conditions"`
}

// Rollback is the way back from an installed version to an earlier one. Its plan waits for approval; afterwards From is
// not taken again until the intent of the subscription is changed.
type Rollback struct {
	From string `json:"from" doc:"CSV that is left"`
	To   string `json:"to" doc:"CSV that was installed before"`
}

// RollBack asks for a rollback.
type RollBack struct {
	To string `json:"to,omitempty" maxLength:"253" doc:"A CSV that was installed before; the one before the installed one without it"`
}

// Past is what a subscription has installed, and what it had before, newest first.
type Past struct {
	CSV    string
	Before []string
}

// CatalogSourceHealth is how one catalog does, and since which event (R-SUB §4.3).
type CatalogSourceHealth struct {
	Catalog   string    `json:"catalog"`
	Namespace string    `json:"namespace,omitempty" doc:"Of a cluster's own catalog"`
	Healthy   bool      `json:"healthy"`
	State     string    `json:"state" enum:"Loading,Ready,Failed"`
	Reason    string    `json:"reason,omitempty"`
	Since     time.Time `json:"lastUpdated" doc:"Time of the event that set it"`
	Event     string    `json:"event,omitempty" doc:"Id of the event that set it"`
}

// Explanation is why a subscription does not resolve.
type Explanation struct {
	Digest   string          `json:"digest"`
	Document json.RawMessage `json:"document,omitempty"`
}

// Sentences are the explanation's statements for people; none where the document is not given.
func (e Explanation) Sentences() []string {
	var document struct {
		Statements []struct {
			Text string `json:"text"`
		} `json:"statements"`
	}
	if json.Unmarshal(e.Document, &document) != nil {
		return nil // a document of a later form is still shown whole
	}
	texts := make([]string, 0, len(document.Statements))
	for _, s := range document.Statements {
		texts = append(texts, s.Text)
	}
	return texts
}

// PlanRef points to an install plan.
type PlanRef struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Generation int64  `json:"generation"`
	Phase      string `json:"phase"`
}

// CreateSubscription subscribes.
type CreateSubscription struct {
	Name string `json:"name" minLength:"1" maxLength:"253" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" patternDescription:"a DNS-1123 subdomain"`
	Metadata
	SubscriptionSpec
}

// ChangeSubscription is the whole intent of a subscription: what it leaves out is gone.
type ChangeSubscription struct {
	Metadata
	SubscriptionSpec
}

// Intent is all of the subscription but its name.
func (c CreateSubscription) Intent() ChangeSubscription {
	return ChangeSubscription{Metadata: c.Metadata, SubscriptionSpec: c.SubscriptionSpec}
}

// ShownState is the state, or the first condition that holds while there is none: "not resolved" says less than why.
func (s Subscription) ShownState() string {
	if s.Status.State != "" {
		return s.Status.State
	}
	for _, c := range s.Status.Conditions {
		if c.Status == "True" {
			return c.Type
		}
	}
	return ""
}

// SubscriptionFilter chooses subscriptions; empty fields choose all.
type SubscriptionFilter struct {
	Cluster   string
	Namespace string
	Package   string
	Catalog   string
	State     string // as shown: a state, or the condition that stands for it; or what is so whatever the state
	Phase     string // of what is installed
	Label     string // key=value, or key
	Approval  string // Automatic, Manual
	Version   string // a range in which the version of the installed operator lies
	Choice
	Page
}

// Validate says how a subscription is compared with its catalog.
type Validate string

// The ways. Without a word a ready catalog must offer package and channel, and an unknown or unready
// catalog is accepted and shown as a condition.
const (
	ValidateDefault Validate = ""
	ValidateStrict  Validate = "strict"  // an unknown or unready catalog is refused, too
	ValidateLenient Validate = "lenient" // nothing about the catalog is refused
)

// Named is the one thing that a name means.
type Named struct {
	Kind    string `json:"kind" enum:"subscription,operator"`
	Name    string `json:"name" doc:"Of the subscription, or of the operator's CSV"`
	Package string `json:"package"`
}
