package previewapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
)

// Subjects of the bus on which the resolver answers.
const (
	PreviewSubject = "chandler.rpc.resolver.preview"       // Question → Page
	ReadSubject    = "chandler.rpc.resolver.preview.read"  // PageRequest → Page
	CheckSubject   = "chandler.rpc.resolver.preview.check" // PageRequest → CheckResult
	ShadowSubject  = "chandler.rpc.resolver.shadow"        // ShadowQuestion → ShadowPage
)

const (
	// Lifetime is how long a preview is kept and can be applied: time to show it to somebody, and no more, since
	// people act on what they read in it.
	Lifetime = time.Hour
	// MaxHypotheses bounds the events of one preview; each is one write of a person.
	MaxHypotheses = 20
	// PageScopes is how many scopes a page has where the question does not say.
	PageScopes = 50
	// MaxPageScopes bounds a page of what is known already: scopes that are read again, or compared by fingerprint.
	MaxPageScopes = 200
	// MaxDecisions bounds the scopes that are decided on for one answer, which has to be there before the request for
	// it ends: each costs a resolution and the rendering of its plans. The answer says where to go on.
	MaxDecisions = 50
	// MaxAlive bounds the previews of a tenant that are kept at one time: each holds an answer for every namespace that
	// it touches. Dry runs count, so that there is room for one every few seconds.
	MaxAlive = 1000
)

// Hypothesis is an event that a preview adds to the log, without writing it.
type Hypothesis struct {
	Subject     string          `json:"subject"` // of its stream
	Incarnation int             `json:"incarnation,omitempty"`
	Type        events.Type     `json:"type"`
	Data        json.RawMessage `json:"data"`
}

// NewHypothesis makes a hypothesis of a payload.
func NewHypothesis(subject string, incarnation int, p events.Payload) (Hypothesis, error) {
	raw, err := json.Marshal(p)
	return Hypothesis{Subject: subject, Incarnation: incarnation, Type: p.EventType(), Data: raw},
		errs.Wrap(errs.Internal, err, "encode %s", p.EventType())
}

// Payload decodes the event.
func (h Hypothesis) Payload() (events.Payload, error) {
	p, err := events.Decode(events.Envelope{Type: h.Type, Data: h.Data})
	return p, errs.Wrap(errs.Invalid, err, "read the hypothesis about %s", h.Subject)
}

// Scope is one namespace of one cluster. As the place where a reading goes on, the zero value is the beginning.
type Scope struct {
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace"`
}

// Compare orders scopes by cluster and namespace.
func (s Scope) Compare(o Scope) int {
	return cmp.Or(cmp.Compare(s.Cluster, o.Cluster), cmp.Compare(s.Namespace, o.Namespace))
}

// Question asks what the hypotheses would lead to, in the order given.
type Question struct {
	Tenant     string       `json:"tenant"`
	ID         uuid.UUID    `json:"id"`
	Hypotheses []Hypothesis `json:"hypotheses"`
	// Cluster and Namespace narrow the scopes that are resolved; both empty are all. A single namespace is looked
	// at whether it is touched or not.
	Cluster   string `json:"cluster,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Limit     int    `json:"limit,omitempty"` // scopes of the first page; 0 is PageScopes
}

// Single says whether the question is about one namespace. Its answer holds the plans' documents.
func (q Question) Single() bool { return q.Cluster != "" && q.Namespace != "" }

// PageRequest names a stored preview and where to go on.
type PageRequest struct {
	Tenant string    `json:"tenant"`
	ID     uuid.UUID `json:"id"`
	After  Scope     `json:"after"`
	Limit  int       `json:"limit,omitempty"`
}

// Page is a part of a preview's answer.
type Page struct {
	ID      uuid.UUID `json:"id"`
	AskedAt time.Time `json:"askedAt"`
	Expires time.Time `json:"expires"`
	// Totals count all pages that were read so far.
	Totals Totals `json:"totals"`
	// Scopes are those about which there is news, by cluster and namespace, and the one of a Single question.
	Scopes []ScopePreview `json:"scopes"`
	// Next is where the page after goes on; nil after the last.
	Next *Scope `json:"next,omitempty"`
}

// Totals count what a preview came to.
type Totals struct {
	Scopes     int `json:"scopes" doc:"Namespaces that were resolved"`
	Unchanged  int `json:"unchanged" doc:"Of these, namespaces in which nothing would be decided"`
	Plans      int `json:"plans" doc:"Plans that would be proposed"`
	Superseded int `json:"superseded" doc:"Plans that would be superseded"`
	Failures   int `json:"failures" doc:"Components that could not be planned, and could before or for another reason"`
}

// Add adds what another scope came to.
func (t *Totals) Add(o Totals) {
	t.Scopes += o.Scopes
	t.Unchanged += o.Unchanged
	t.Plans += o.Plans
	t.Superseded += o.Superseded
	t.Failures += o.Failures
}

// ScopePreview is what would be decided in one scope.
type ScopePreview struct {
	Cluster    string              `json:"cluster"`
	Namespace  string              `json:"namespace"`
	Plans      []PreviewPlan       `json:"plans" nullable:"false" doc:"Plans that would be proposed"`
	Superseded []PreviewSuperseded `json:"superseded" nullable:"false" doc:"Plans that are there and would be superseded"`
	Failures   []PreviewFailure    `json:"failures" nullable:"false" doc:"What could not be planned, and why"`
	Generated  []string            `json:"generated,omitempty" doc:"Subscriptions that the resolver makes for dependencies before anything else"`
	Waiting    []PreviewWaiting    `json:"waiting" nullable:"false" doc:"What would have to wait, and for what"`
	Settled    []PreviewOutcome    `json:"settled" nullable:"false" doc:"Subscriptions that would be at the latest known version and are not recorded so"`
	Unchanged  int                 `json:"unchanged" doc:"Components about which there is nothing new"`
}

// Scope is the namespace that it is about.
func (o ScopePreview) Scope() Scope { return Scope{Cluster: o.Cluster, Namespace: o.Namespace} }

// News says whether anything would be decided.
func (o ScopePreview) News() bool {
	for _, f := range o.Failures {
		if f.News {
			return true
		}
	}
	for _, w := range o.Waiting {
		if w.News {
			return true
		}
	}
	return len(o.Plans)+len(o.Superseded)+len(o.Settled)+len(o.Generated) > 0
}

// Totals counts it.
func (o ScopePreview) Totals() Totals {
	t := Totals{Scopes: 1, Plans: len(o.Plans), Superseded: len(o.Superseded)}
	for _, f := range o.Failures {
		if f.News {
			t.Failures++
		}
	}
	if !o.News() {
		t.Unchanged = 1
	}
	return t
}

// PreviewPlan is an install plan as it would be proposed, without what is drawn or counted at that moment: id,
// name and generation. Its digest is that of the plan.
type PreviewPlan struct {
	Component     string                 `json:"component"`
	Approval      string                 `json:"approval" enum:"Automatic,Manual"`
	Digest        string                 `json:"digest" doc:"Of the plan, as it will be proposed"`
	Input         string                 `json:"input" doc:"Digest of everything consulted"`
	Semantics     string                 `json:"semantics"`
	Steps         int                    `json:"steps"`
	Base          events.PlanBase        `json:"base"`
	Bundles       []events.PlannedBundle `json:"bundles" nullable:"false"`
	Policies      []string               `json:"policies,omitempty" doc:"Approval policies that shape it"`
	ManualReasons []string               `json:"manualReasons,omitempty" doc:"Why policies want a person"`
	Approvers     int                    `json:"approvers,omitempty" doc:"How many people must approve; one without it"`
	Windows       []events.WindowGroup   `json:"windows,omitempty" doc:"When it may begin"`
	Document      json.RawMessage        `json:"document,omitempty" doc:"The plan with its steps, in previews of one namespace"`
}

// PreviewSuperseded is a plan that would be superseded.
type PreviewSuperseded struct {
	Plan      string `json:"plan"`
	Name      string `json:"name"`
	Component string `json:"component"`
	Digest    string `json:"digest"`
}

// PreviewFailure is a component that could not be planned.
type PreviewFailure struct {
	Component     string          `json:"component"`
	Subscriptions []string        `json:"subscriptions" nullable:"false"`
	Reason        string          `json:"reason"`
	Class         string          `json:"class"`
	Sentences     []string        `json:"sentences" nullable:"false"`
	Explanation   json.RawMessage `json:"explanation"`
	News          bool            `json:"news" doc:"It does not fail now, or fails for another reason"`
}

// Why a component would wait.
const (
	WaitCatalog  = "CatalogLoading"   // a catalog that it needs is loaded for the first time
	WaitUnderWay = "UnderWay"         // a plan of it is carried out, or an operator of it is not Succeeded
	WaitImage    = "ImageNotFetched"  // a bundle's manifests are in an image that nobody asked for yet
	WaitStrict   = "CatalogUnhealthy" // a catalog namespace is strict, and a catalog of it unhealthy
	WaitCordoned = "ClusterCordoned"  // somebody cordoned the cluster
	WaitEnded    = "AlreadyEnded"     // the same plan failed or was rejected before, and nothing changed since
)

// PreviewWaiting is a component that would have to wait.
type PreviewWaiting struct {
	Component string   `json:"component"`
	For       string   `json:"for" enum:"CatalogLoading,UnderWay,ImageNotFetched,CatalogUnhealthy,ClusterCordoned,AlreadyEnded"`
	Sentences []string `json:"sentences" nullable:"false"`
	News      bool     `json:"news" doc:"It was not shown so far"`
}

// PreviewOutcome is what would be recorded of a subscription.
type PreviewOutcome struct {
	Subscription string `json:"subscription"`
	CSV          string `json:"csv"`
}

// CheckResult says whether a preview still holds, for the scopes that were resolved.
type CheckResult struct {
	Changed []Change `json:"changed"` // at most MaxChanges; none where it holds
	Next    *Scope   `json:"next,omitempty"`
}

// MaxChanges bounds what a check names.
const MaxChanges = 20

// Change is something that a preview was computed on and that is another thing now.
type Change struct {
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace"`
	What      string `json:"what"` // such as "catalog fleet", "subscription buoy", "operator buoy.v1.0.0"
}

// String is a sentence without its dot.
func (c Change) String() string { return fmt.Sprintf("%s of %s/%s", c.What, c.Cluster, c.Namespace) }
