package previewapi

import "github.com/chandler-fleet/chandler/libs/events"

// FleetSubject is where the resolver says what a fleet subscription would lead to on every cluster: FleetQuestion →
// FleetPage. Nothing is kept of the answer: each page is worked out anew.
const FleetSubject = "chandler.rpc.resolver.preview.fleet"

// MaxFleetClusters bounds the clusters of a page; of these at most MaxDecisions are decided on.
const MaxFleetClusters = 200

// FleetQuestion names a fleet subscription, or says how it would be.
type FleetQuestion struct {
	Tenant string `json:"tenant"`
	Name   string `json:"name"`
	// Spec is what it would be; nil is what it is.
	Spec *events.FleetSubscriptionSpec `json:"spec,omitempty"`
	// After is the cluster behind which the page begins; "" is the beginning.
	After string `json:"after,omitempty"`
	Limit int    `json:"limit,omitempty"` // clusters of the page; 0 is MaxFleetClusters
}

// FleetPage is a part of what a fleet subscription would lead to.
type FleetPage struct {
	FleetPreview

	// Clusters are those of the tenant, by name, chosen or not.
	Clusters []FleetCluster `json:"clusters"`
	// Next is the last cluster of this page; "" where there are no more.
	Next string `json:"next,omitempty"`
}

// FleetPreview is what would come of a fleet subscription as a whole.
type FleetPreview struct {
	// WaitsFor is a code of why no rollout could begin.
	WaitsFor string                `json:"waitsFor,omitempty"`
	Target   *events.RolloutTarget `json:"target,omitempty"`
	// Change is why the rollout would begin; "" where none would.
	Change string `json:"change,omitempty"`
	// UnderWay is the number of the rollout that goes on, and has to end first; Supersedes of one that would end.
	UnderWay   int         `json:"underWay,omitempty"`
	Supersedes int         `json:"supersedes,omitempty"`
	Waves      []FleetWave `json:"waves"`
	Totals     FleetTotals `json:"totals"`
}

// FleetWave is a wave of the rollout that would begin, counted out.
type FleetWave struct {
	Name           string `json:"name"`
	Clusters       int    `json:"clusters"`
	SoakSeconds    int64  `json:"soakSeconds,omitempty"`
	Promotion      string `json:"promotion" enum:"Automatic,Manual"`
	MaxFailures    int    `json:"maxFailures"`
	MaxUnreachable int    `json:"maxUnreachable"`
}

// FleetTotals count clusters, of all pages.
type FleetTotals struct {
	Clusters  int            `json:"clusters" doc:"Of the tenant"`
	Chosen    int            `json:"chosen"`
	NotChosen map[string]int `json:"notChosen,omitempty" doc:"By the criterion that keeps them away"`
	Joining   int            `json:"joining" doc:"Chosen, and not placed on yet"`
	Leaving   int            `json:"leaving" doc:"Placed on, and chosen no more"`
	Asked     int            `json:"asked" doc:"In a wave of the rollout that would begin"`
	Away      int            `json:"away" doc:"Of those asked, clusters that do not answer or are cordoned"`
}

// What a fleet subscription leads to on a cluster.
const (
	FleetInstalls   = "Install"
	FleetUpgrades   = "Upgrade"
	FleetConfigures = "Configure"     // the same version, with another configuration
	FleetKeeps      = "None"          // it has what is wanted
	FleetGoesOn     = "UnderWay"      // the rollout that goes on has asked it, or will
	FleetTried      = "Tried"         // the same was tried, and is not tried again
	FleetConflicts  = "Conflict"      // it cannot be asked
	FleetNoPath     = "NoUpgradePath" // nothing leads to the target from what is installed
	FleetFails      = "Fails"         // nothing that can be planned has it
	FleetHeldUp     = "Waits"         // something has to happen first
	FleetLeaves     = "Leaves"        // chosen no more
	FleetUnknown    = "Unknown"       // there is no target yet
)

// FleetCluster is what a fleet subscription means for one cluster.
type FleetCluster struct {
	Name   string `json:"name"`
	Chosen bool   `json:"chosen"`
	// Override is that which holds for it.
	Override string `json:"override,omitempty" doc:"Override that holds for it"`
	Placed   bool   `json:"placed,omitempty" doc:"It has the subscription already"`
	Away     bool   `json:"away,omitempty" doc:"It does not answer or is cordoned: what is said of it rests on what was seen last"`
	Wave     string `json:"wave,omitempty" doc:"Of the rollout that would begin"`
	Change   string `json:"change,omitempty" enum:"Install,Upgrade,Configure,None,UnderWay,Tried,Conflict,NoUpgradePath,Fails,Waits,Leaves,Unknown" doc:"What it leads to; absent where the cluster is not chosen and has nothing"`
	Reason   string `json:"reason,omitempty" doc:"Code of why: why it is not chosen, or what is in the way"`
	Detail   string `json:"detail,omitempty" doc:"The taint that is not tolerated, the subscription that is in the way, or the overrides that are in conflict"`
	From     string `json:"from,omitempty" doc:"CSV that is installed"`
	To       string `json:"to,omitempty" doc:"CSV that the first plan brings; the target, or a step on the way"`
	// Approval is of that plan.
	Approval  string   `json:"approval,omitempty" enum:"Automatic,Manual" doc:"Of that plan, policies included"`
	Sentences []string `json:"sentences,omitempty" nullable:"false" doc:"What the reason means"`
}
