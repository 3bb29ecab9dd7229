package model

import (
	"encoding/json"
	"time"

	"github.com/chandler-fleet/chandler/libs/previewapi"
)

// PreviewRequest asks what changes would lead to, all of them together.
type PreviewRequest struct {
	Changes []PreviewChange `json:"changes" minItems:"1" maxItems:"20" nullable:"false" doc:"In the order in which they would happen"`
	// Cluster and Namespace narrow the answer.
	Cluster   string `json:"cluster,omitempty" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label" doc:"Only namespaces of this cluster"`
	Namespace string `json:"namespace,omitempty" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label" doc:"Only namespaces of this name"`
}

// PreviewChange is one change; exactly one field is set.
type PreviewChange struct {
	Subscription   *PreviewSubscription  `json:"subscription,omitempty"`
	OperatorGroup  *PreviewOperatorGroup `json:"operatorGroup,omitempty"`
	Catalog        *PreviewCatalog       `json:"catalog,omitempty"`
	ApprovalPolicy *PreviewPolicy        `json:"approvalPolicy,omitempty"`
	Operator       *PreviewOperator      `json:"operator,omitempty"`
}

// What a change does.
const (
	PreviewApply   = "apply" // creates or replaces
	PreviewCreate  = "create"
	PreviewReplace = "replace"
	PreviewDelete  = "delete"
)

// PreviewSubscription is a change of an intent.
type PreviewSubscription struct {
	Cluster   string `json:"cluster" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label"`
	Namespace string `json:"namespace" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label"`
	Name      string `json:"name" maxLength:"253" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" patternDescription:"a DNS-1123 subdomain"`
	Action    string `json:"action" enum:"apply,create,replace,delete" doc:"apply creates or replaces"`
	Metadata
	Spec *SubscriptionSpec `json:"spec,omitempty" doc:"Unless it is deleted"`
}

// PreviewOperatorGroup is a change of an intent.
type PreviewOperatorGroup struct {
	Cluster   string `json:"cluster" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label"`
	Namespace string `json:"namespace" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label"`
	Name      string `json:"name" maxLength:"253" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" patternDescription:"a DNS-1123 subdomain"`
	Action    string `json:"action" enum:"apply,create,replace,delete" doc:"apply creates or replaces"`
	Metadata
	Spec *OperatorGroupSpec `json:"spec,omitempty" doc:"Unless it is deleted"`
}

// PreviewCatalog is a change of a catalog.
type PreviewCatalog struct {
	Name      string `json:"name" maxLength:"253" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" patternDescription:"a DNS-1123 subdomain"`
	Cluster   string `json:"cluster,omitempty" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label" doc:"Of a cluster's own catalog"`
	Namespace string `json:"namespace,omitempty" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label" doc:"Of a cluster's own catalog"`
	Revision  string `json:"revision,omitempty" maxLength:"71" pattern:"^[a-z0-9]+:[0-9a-z]+$" patternDescription:"a digest" doc:"Digest of a stored revision, of this or of another catalog, that is put in service"`
	Disabled  *bool  `json:"disabled,omitempty"`
	Priority  *int32 `json:"priority,omitempty"`
	Remove    bool   `json:"remove,omitempty"`
}

// PreviewPolicy is a change of an approval policy.
type PreviewPolicy struct {
	Name   string `json:"name" maxLength:"253" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" patternDescription:"a DNS-1123 subdomain"`
	Remove bool   `json:"remove,omitempty"`
	Metadata
	Spec *ApprovalPolicySpec `json:"spec,omitempty" doc:"Unless it is removed"`
}

// PreviewOperator removes an installed operator.
type PreviewOperator struct {
	Cluster   string `json:"cluster" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label"`
	Namespace string `json:"namespace" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label"`
	Name      string `json:"name" maxLength:"253" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" patternDescription:"a DNS-1123 subdomain" doc:"Name of its ClusterServiceVersion"`
}

// Preview is what changes would lead to.
type Preview struct {
	ID            string            `json:"id"`
	AskedAt       time.Time         `json:"askedAt"`
	ExpiresAt     time.Time         `json:"expiresAt" doc:"Until then it is kept and can be applied"`
	Applicable    bool              `json:"applicable" doc:"POST /previews/{id}/apply can carry it out, once it is read to its end and while it holds"`
	NotApplicable string            `json:"notApplicable,omitempty" doc:"Why not"`
	Warnings      []string          `json:"warnings,omitempty" nullable:"false" doc:"What the writes would be warned of, in the answer to the question"`
	Totals        previewapi.Totals `json:"totals" doc:"Of all pages read so far"`
	Items         []PreviewScope    `json:"items" nullable:"false" doc:"Namespaces with news, and the one that was asked about"`
	Next          string            `json:"next,omitempty" doc:"Cursor of the next page; absent on the last"`
}

// PreviewScope is what would be decided in one namespace.
type PreviewScope struct {
	Cluster    string                         `json:"cluster"`
	Namespace  string                         `json:"namespace"`
	Plans      []PreviewPlan                  `json:"plans" nullable:"false" doc:"Plans that would be proposed"`
	Superseded []previewapi.PreviewSuperseded `json:"superseded" nullable:"false" doc:"Plans that are there and would be superseded"`
	Failures   []previewapi.PreviewFailure    `json:"failures" nullable:"false" doc:"What could not be planned, and why"`
	Waiting    []previewapi.PreviewWaiting    `json:"waiting" nullable:"false" doc:"What would have to wait, and for what"`
	Settled    []previewapi.PreviewOutcome    `json:"settled" nullable:"false" doc:"Subscriptions that would be recorded as being at the latest known version"`
	Generated  []string                       `json:"generated,omitempty" doc:"Subscriptions that would be made for dependencies"`
	Unchanged  int                            `json:"unchanged" doc:"Components about which there is nothing new"`
}

// PreviewPlan is an install plan as it would be proposed. Its id, name and generation come with the proposal; its
// digest is the same.
type PreviewPlan struct {
	Component     string          `json:"component"`
	Approval      string          `json:"approval" enum:"Automatic,Manual"`
	Digest        string          `json:"digest" doc:"Of the plan, as it will be proposed"`
	Input         string          `json:"input" doc:"Digest of everything consulted"`
	Semantics     string          `json:"semantics" doc:"Rules by which it is decided"`
	Steps         int             `json:"steps"`
	Base          PlanBase        `json:"base"`
	Bundles       []PlannedBundle `json:"bundles" nullable:"false"`
	Policies      []string        `json:"policies,omitempty" doc:"Approval policies that shape it"`
	ManualReasons []string        `json:"manualReasons,omitempty" doc:"Why policies want a person"`
	Approvers     int             `json:"approvers,omitempty" doc:"How many people must approve; one without it"`
	Windows       []PlanWindows   `json:"windows,omitempty" nullable:"false" doc:"When it may begin: in one window of each policy"`
	Document      json.RawMessage `json:"document,omitempty" doc:"The plan with its steps, in previews of one namespace"`
}

// PreviewOf writes what the resolver answers as the API does, without the cursor.
func PreviewOf(p previewapi.Page) Preview {
	out := Preview{
		ID: p.ID.String(), AskedAt: p.AskedAt, ExpiresAt: p.Expires, Totals: p.Totals,
		Items: []PreviewScope{},
	}
	for _, o := range p.Scopes {
		out.Items = append(out.Items, PreviewScopeOf(o))
	}
	return out
}

// PreviewScopeOf turns the preview of one namespace into the form of the API.
func PreviewScopeOf(o previewapi.ScopePreview) PreviewScope {
	scope := PreviewScope{
		Cluster: o.Cluster, Namespace: o.Namespace, Plans: []PreviewPlan{}, Superseded: o.Superseded,
		Failures: o.Failures, Waiting: o.Waiting, Settled: o.Settled, Generated: o.Generated, Unchanged: o.Unchanged,
	}
	for _, f := range o.Plans {
		scope.Plans = append(scope.Plans, PreviewPlan{
			Component: f.Component, Approval: f.Approval, Digest: f.Digest, Input: f.Input, Semantics: f.Semantics,
			Steps: f.Steps, Base: PlanBase(f.Base), Bundles: Bundles(f.Bundles), Policies: f.Policies,
			ManualReasons: f.ManualReasons, Approvers: f.Approvers, Document: f.Document,
		})
		for _, w := range f.Windows {
			last := &scope.Plans[len(scope.Plans)-1]
			last.Windows = append(last.Windows, PlanWindows{Policy: w.Policy, Windows: windows(w.Windows)})
		}
	}
	return scope
}

// PreviewApplied is a preview that was carried out.
type PreviewApplied struct {
	ID        string         `json:"id"`
	AppliedAt time.Time      `json:"appliedAt"`
	AppliedBy string         `json:"appliedBy" doc:"Opaque id"`
	Writes    []PreviewWrite `json:"writes" nullable:"false"`
	Position  string         `json:"position,omitempty" doc:"Of the last write"`
}

// PreviewWrite is an intent that was carried out.
type PreviewWrite struct {
	Subject  string `json:"subject" doc:"Natural key of what was written"`
	Stream   string `json:"stream" doc:"Id of its stream of events"`
	Version  int64  `json:"version" doc:"Of its stream"`
	Position string `json:"position"`
}

// ShadowRequest asks which recorded decisions would come out differently: by the rules of the version that runs alone,
// or beside a catalog's other revision, or an approval policy.
type ShadowRequest struct {
	Cluster   string         `json:"cluster,omitempty" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label"`
	Namespace string         `json:"namespace,omitempty" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label"`
	Catalog   string         `json:"catalog,omitempty" maxLength:"400" pattern:"^[a-z0-9][-a-z0-9./]*$" patternDescription:"name, or cluster/namespace/name" doc:"Name, or cluster/namespace/name; with revision"`
	Revision  string         `json:"revision,omitempty" maxLength:"71" pattern:"^[a-z0-9]+:[0-9a-z]+$" patternDescription:"a digest" doc:"Digest of a stored revision, of this or of another catalog"`
	Policy    *PreviewPolicy `json:"approvalPolicy,omitempty"`
	From      string         `json:"from,omitempty" maxLength:"64" doc:"Position: every decision behind it; without from and to the last one of each subscription"`
	To        string         `json:"to,omitempty" maxLength:"64" doc:"Position: no decision behind it"`
	Cursor    string         `json:"cursor,omitempty" maxLength:"2048" doc:"next of the page before"`
	Limit     int            `json:"limit,omitempty" minimum:"0" maximum:"500" doc:"Decisions that are made again for one page; 200 without it"`
}

// Shadow is a page of a shadow run.
type Shadow struct {
	Same        int                           `json:"same" doc:"Decisions of this page that come out the same"`
	Differences []previewapi.ShadowDifference `json:"differences" nullable:"false"`
	Missing     int                           `json:"missing" doc:"Decisions of this page whose record is not kept any more"`
	Next        string                        `json:"next,omitempty" doc:"Cursor of the next page; absent on the last"`
}

// Question is what left no event: who asked what and when, tokens included.
type Question struct {
	ID      string    `json:"id"`
	At      time.Time `json:"at"`
	Actor   string    `json:"actor" doc:"Opaque id of who asked"`
	Via     string    `json:"via,omitempty" doc:"Service account through which they asked"`
	Action  string    `json:"action" enum:"preview,preview.read,preview.apply,shadow,token.add,token.rotate,token.revoke,identity.configure,log.parked.retry,log.parked.skip,replica.drain,replica.undrain"`
	About   string    `json:"about,omitempty" doc:"What it was about, by name"`
	Preview string    `json:"preview,omitempty" doc:"Id of the preview"`
}
