package previewapi

import (
	"github.com/chandler-fleet/chandler/libs/events"
)

const (
	// ShadowDecisions is how many decisions a page of a shadow run has where the question does not say.
	ShadowDecisions = 200
	// MaxShadowDecisions bounds a page.
	MaxShadowDecisions = 500
)

// ShadowQuestion asks which recorded decisions would come out differently: with this build alone, or beside a
// catalog's other revision, or an approval policy. Nothing is written.
type ShadowQuestion struct {
	Tenant    string `json:"tenant"`
	Cluster   string `json:"cluster,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	// Catalog and Revision put a stored revision in the place of what the catalog offered then.
	Catalog  string `json:"catalog,omitempty"`
	Revision string `json:"revision,omitempty"`
	// Policy is put beside the policies that held then, in place of one of its name.
	Policy *events.ApprovalPolicySet `json:"policy,omitempty"`
	// From and To are positions: every decision behind From and up to To. Without both, the last decision of each
	// subscription.
	From *events.Position `json:"from,omitempty"`
	To   *events.Position `json:"to,omitempty"`
	// After is Next of the page before.
	After string `json:"after,omitempty"`
	Limit int    `json:"limit,omitempty"` // decisions made again; 0 is ShadowDecisions
}

// ShadowPage is a part of a shadow run.
type ShadowPage struct {
	Same        int                `json:"same"`
	Differences []ShadowDifference `json:"differences"`
	// Missing counts decisions whose record or consulted content is not kept any more.
	Missing int    `json:"missing"`
	Next    string `json:"next,omitempty"`
}

// ShadowDifference is a recorded decision that would come out differently.
type ShadowDifference struct {
	Cluster      string        `json:"cluster"`
	Namespace    string        `json:"namespace"`
	Subscription string        `json:"subscription"`
	Input        string        `json:"input" doc:"Digest of what was consulted"`
	Semantics    string        `json:"semantics" doc:"Rules by which it was decided"`
	Before       ShadowOutcome `json:"before"`
	After        ShadowOutcome `json:"after"`
	Why          []string      `json:"why" nullable:"false" doc:"Sentences"`
	// Later says that the new answer also rests on what catalogs offer now: what was not asked then is not recorded.
	Later bool `json:"later,omitempty" doc:"The new answer also rests on what catalogs offer now, since it asks what was not asked then"`
}

// ShadowOutcome is what was or would be decided for a subscription.
type ShadowOutcome struct {
	Kind     string `json:"kind" enum:"Planned,AtLatestKnown,Failed,Waiting" doc:"Waiting: nothing would be recorded yet"`
	CSV      string `json:"csv,omitempty"`
	Approval string `json:"approval,omitempty" doc:"Of the plan"`
	Reason   string `json:"reason,omitempty"`
	// Detail distinguishes two outcomes of one kind: the digest of the explanation.
	Detail string `json:"detail,omitempty"`
}
