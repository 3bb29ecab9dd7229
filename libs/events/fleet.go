package events

// fleetEvents are the events of fleet subscriptions and rollouts, in the order of docs/events.md.
func fleetEvents() []Definition {
	return []Definition{
		define(KindFleetSubscription, Gateway, FleetSubscriptionSet{}, "Somebody wants an operator on many clusters."),
		define(KindFleetSubscription, Gateway, FleetSubscriptionDeleted{},
			"The intent ended; what is on the clusters stays."),
		define(KindRollout, Fleet, RolloutStarted{}, "A change for many clusters began, with what it brings and where."),
		define(KindRollout, Fleet, RolloutWaveOpened{}, "Clusters of a wave may be changed."),
		define(KindRollout, Fleet, RolloutClusterDirected{}, "The change was asked of a cluster."),
		define(KindRollout, Fleet, RolloutClusterSettled{}, "What the change came to on a cluster."),
		define(KindRollout, Fleet, RolloutWavePassed{}, "A wave is as wanted, for as long as it has to be."),
		define(KindRollout, Fleet, RolloutGatesDue{}, "The gates of a wave are evaluated from now on."),
		define(KindRollout, Fleet, RolloutGateEvaluated{}, "A gate of a wave says something else than before."),
		define(KindRollout, Fleet, RolloutHalted{}, "Nothing more is changed until a person has the rollout go on."),
		define(KindRollout, Fleet, RolloutEnded{}, "The rollout is done, or another one takes its place."),
		define(KindRollout, Gateway, RolloutPaused{}, "A person has no further cluster changed."),
		define(KindRollout, Gateway, RolloutResumed{}, "A person has a paused or halted rollout go on."),
		define(KindRollout, Gateway, RolloutPromoted{}, "A person lets the next wave begin."),
		define(KindRollout, Gateway, RolloutGateOverridden{}, "A person lets a wave go on without one of its gates."),
		define(KindRollout, Gateway, RolloutClusterSkipped{}, "A person leaves a cluster out."),
		define(KindRollout, Gateway, RolloutClusterRetried{}, "A person has a cluster tried again."),
		define(KindRollout, Gateway, RolloutAborted{}, "A person ended the rollout; nothing is undone."),
		define(KindRollout, Gateway, RolloutRollbackRequested{},
			"A person has what the rollout brought taken back, whether it goes on or has ended."),
	}
}

// FleetSubscriptionSet carries the whole intent. Subject: its name.
type FleetSubscriptionSet struct {
	Name string                `json:"name"`
	Spec FleetSubscriptionSpec `json:"spec"`
}

// EventType implements Payload.
func (FleetSubscriptionSet) EventType() Type { return "fleet.subscription-set.v1" }

// FleetSubscriptionSpec is an operator for many clusters.
type FleetSubscriptionSpec struct {
	Package string `json:"package"`
	Channel string `json:"channel,omitempty"`
	Catalog string `json:"catalog"` // of the hub
	// Versions bounds what a rollout takes from the channel; the zero value is its newest.
	Versions  PolicyVersions `json:"versions"`
	Namespace string         `json:"namespace"`        // on every cluster
	Approval  string         `json:"approval"`         // Automatic, Manual: of the subscriptions on the clusters
	Config    string         `json:"config,omitempty"` // commitment, as in SubscriptionSpec
	// Overrides are what some clusters get otherwise.
	Overrides []FleetOverride `json:"overrides,omitempty"`
	// OperatorGroup is made on clusters on which the namespace has none.
	OperatorGroup FleetOperatorGroup `json:"operatorGroup,omitzero"`
	// Adopt takes over subscriptions of the same name that no fleet subscription owns; otherwise such a cluster fails.
	Adopt     bool            `json:"adopt,omitempty"`
	Placement FleetPlacement  `json:"placement"`
	Strategy  RolloutStrategy `json:"strategy"`
	// DeletionPolicy is what becomes of clusters that leave: Orphan, KeepCRDs, Remove.
	DeletionPolicy string `json:"deletionPolicy"`
}

// Values of DeletionPolicy.
const (
	DeletionPolicyOrphan   = "Orphan"   // the subscription stays, without its owner
	DeletionPolicyKeepCRDs = "KeepCRDs" // the operator is uninstalled; its definitions and their objects stay
	DeletionPolicyRemove   = "Remove"   // the operator is uninstalled, with its definitions and all objects of theirs
)

// FleetOperatorGroup is the operator group of a fleet subscription's namespace; without a name none is made.
type FleetOperatorGroup struct {
	Name string            `json:"name"`
	Spec OperatorGroupSpec `json:"spec"`
}

// FleetPlacement chooses clusters. All that is given must fit; an empty one chooses none, so that a field that was
// forgotten does not mean the whole fleet.
type FleetPlacement struct {
	Clusters []string `json:"clusters,omitempty"` // names, or beginnings of names followed by *
	Selector string   `json:"selector,omitempty"` // of labels, as Kubernetes writes it
	Except   []string `json:"except,omitempty"`   // as Clusters: never these
	// Tolerations are the taints of clusters that keep nothing away.
	Tolerations []FleetToleration `json:"tolerations,omitempty"`
	// Count is how many of the clusters that fit; 0 is all.
	Count int `json:"count,omitempty"`
	// SpreadBy is the key of a label over whose values they are spread.
	SpreadBy string `json:"spreadBy,omitempty"`
	// Prefer says which come first where Count leaves some out.
	Prefer []FleetPreference `json:"prefer,omitempty"`
}

// FleetToleration is a taint of clusters that keeps nothing away.
type FleetToleration struct {
	Key   string `json:"key"`
	Value string `json:"value,omitempty"` // any without one
}

// FleetPreference adds a weight to clusters with some labels.
type FleetPreference struct {
	Selector string `json:"selector"`
	Weight   int    `json:"weight"`
}

// RolloutStrategy is how a change reaches the clusters.
type RolloutStrategy struct {
	Waves []RolloutWaveSpec `json:"waves,omitempty"`
	// MaxConcurrent is how many clusters are being changed at a time; 0 is the default.
	MaxConcurrent int `json:"maxConcurrent,omitempty"`
	// MaxFailures is how many clusters of the whole may fail, as a number or a percentage; one more halts the rollout.
	MaxFailures string `json:"maxFailures,omitempty"`
	// MaxUnreachable is how many clusters of a wave may be away, as a number or a percentage: they are changed when
	// they are back. With more the wave waits.
	MaxUnreachable string `json:"maxUnreachable,omitempty"`
	// DeadlineSeconds is how long one cluster may take before it counts as failed; 0 is the default.
	DeadlineSeconds int64 `json:"deadlineSeconds,omitempty"`
	// Windows are when clusters may be asked for a change: in one of them at least. None is always.
	Windows []Window `json:"windows,omitempty"`
}

// RolloutWaveSpec is one wave. It takes of the clusters that no wave before it took.
type RolloutWaveSpec struct {
	Name     string `json:"name"`
	Selector string `json:"selector,omitempty"` // of labels; all clusters that are left without one
	// Size is how many of those, as a number or a percentage of them; all without one.
	Size string `json:"size,omitempty"`
	// SoakSeconds is how long the wave has to be as wanted before the next one begins.
	SoakSeconds int64 `json:"soakSeconds,omitempty"`
	// Promotion is what lets the next wave begin: Automatic, Manual.
	Promotion string `json:"promotion,omitempty"`
	// MaxFailures is as in RolloutStrategy, of this wave; without one any failure halts the rollout.
	MaxFailures string `json:"maxFailures,omitempty"`
	// Gates have to pass before the next wave begins, or before this one does.
	Gates []RolloutGate `json:"gates,omitempty"`
}

// FleetSubscriptionDeleted ends the intent.
type FleetSubscriptionDeleted struct{}

// EventType implements Payload.
func (FleetSubscriptionDeleted) EventType() Type { return "fleet.subscription-deleted.v1" }

// RolloutStarted freezes what a rollout is to bring and where. Subject: fleet subscription/number. What changes of the
// fleet subscription or of a catalog afterwards is the next rollout's.
type RolloutStarted struct {
	FleetSubscription string `json:"fleetSubscription"` // name
	Number            int    `json:"number"`            // of the rollouts of this fleet subscription, from 1
	Stream            string `json:"stream"`            // of the fleet subscription
	Version           int64  `json:"version"`           // of that stream
	// Change is why it began: Version, Intent, Membership, Rollback.
	Change string `json:"change"`
	// Intent is what is asked of each cluster, beside the target.
	Intent RolloutIntent `json:"intent"`
	Target RolloutTarget `json:"target"`
	Waves  []RolloutWave `json:"waves"`
	// Overrides are the clusters that get something else than Intent says, Conflicts those of which that is not
	// decided.
	Overrides []RolloutOverride `json:"overrides,omitempty"`
	Conflicts []RolloutConflict `json:"conflicts,omitempty"`
	// Strategy with its defaults, percentages counted out.
	MaxConcurrent   int   `json:"maxConcurrent"`
	MaxFailures     int   `json:"maxFailures"`
	DeadlineSeconds int64 `json:"deadlineSeconds"`
	// Windows are when clusters may be asked; none is always. Deadlines of clusters do not run outside of them.
	Windows []Window `json:"windows,omitempty"`
	// Rollback is what it takes back, where that is why it began.
	Rollback RolloutRollback `json:"rollback,omitzero"`
	// Avoids are the CSVs that were rolled back from under the same Version: nothing leads to them, or through them.
	Avoids []string `json:"avoids,omitempty"` // sorted
	// IntentVersion is the version of the fleet subscription whose intent is asked, where a rollback has taken a newer
	// one back.
	IntentVersion int64 `json:"intentVersion,omitempty"`
}

// EventType implements Payload.
func (RolloutStarted) EventType() Type { return "fleet.rollout-started.v1" }

// What a rollout changes.
const (
	ChangeVersion    = "Version"    // the channel offers another one
	ChangeIntent     = "Intent"     // the fleet subscription was changed
	ChangeMembership = "Membership" // other clusters are chosen
	ChangeRollback   = "Rollback"   // a person has the rollout before taken back
)

// RolloutIntent is the subscription that every cluster of a rollout gets, by the name of the fleet subscription.
type RolloutIntent struct {
	Namespace     string             `json:"namespace"`
	Subscription  SubscriptionSpec   `json:"subscription"`
	OperatorGroup FleetOperatorGroup `json:"operatorGroup,omitzero"`
	Adopt         bool               `json:"adopt,omitempty"`
}

// RolloutTarget is what every cluster of a rollout gets: the same digests, however catalogs move meanwhile.
type RolloutTarget struct {
	Package  string `json:"package"`
	Channel  string `json:"channel"`
	Catalog  string `json:"catalog"`
	Revision string `json:"revision"` // of the catalog
	Document string `json:"document"` // digest of what the revision says of the package: the way there is the same, too
	CSV      string `json:"csv"`
	Version  string `json:"version"`
	Content  string `json:"content"` // digest of the canonical bundle
}

// RolloutWave is one wave of a rollout, counted out.
type RolloutWave struct {
	Name           string   `json:"name"`
	Clusters       []string `json:"clusters"` // sorted
	SoakSeconds    int64    `json:"soakSeconds,omitempty"`
	Promotion      string   `json:"promotion"` // Automatic, Manual
	MaxFailures    int      `json:"maxFailures"`
	MaxUnreachable int      `json:"maxUnreachable"`
	// Gates of the wave, with their defaults.
	Gates []RolloutGate `json:"gates,omitempty"`
}

// Values of Promotion.
const (
	PromotionAutomatic = "Automatic"
	PromotionManual    = "Manual"
)

// RolloutWaveOpened says that clusters of a wave may be changed.
type RolloutWaveOpened struct {
	Wave int `json:"wave"` // from 0
}

// EventType implements Payload.
func (RolloutWaveOpened) EventType() Type { return "fleet.rollout-wave-opened.v1" }

// RolloutClusterDirected says that the change was asked of a cluster, in the same transaction in which its subscription
// was written. Whatever comes of it carries the directive as its correlation id: nothing else counts (DESIGN D2).
type RolloutClusterDirected struct {
	Cluster   string `json:"cluster"`
	Attempt   int    `json:"attempt"` // from 1
	Directive string `json:"directive"`
}

// EventType implements Payload.
func (RolloutClusterDirected) EventType() Type { return "fleet.rollout-cluster-directed.v1" }

// RolloutClusterSettled is what the change came to on a cluster.
type RolloutClusterSettled struct {
	Cluster   string `json:"cluster"`
	Directive string `json:"directive,omitempty"` // none of a cluster that was away before it was directed
	Outcome   string `json:"outcome"`             // Succeeded, Failed, Unreachable
	Reason    string `json:"reason,omitempty"`    // a code
	// Cause is the id of the event that shows it, which was caused by the directive; none where time ran out.
	Cause string `json:"cause,omitempty"`
}

// EventType implements Payload.
func (RolloutClusterSettled) EventType() Type { return "fleet.rollout-cluster-settled.v1" }

// Outcomes of a cluster; the last one is a person's.
const (
	ClusterSucceeded   = "Succeeded"
	ClusterFailed      = "Failed"
	ClusterUnreachable = "Unreachable"
	ClusterSkipped     = "Skipped"
)

// RolloutWavePassed says that all of a wave is as wanted, within its budgets, for as long as it has to be.
type RolloutWavePassed struct {
	Wave int `json:"wave"`
}

// EventType implements Payload.
func (RolloutWavePassed) EventType() Type { return "fleet.rollout-wave-passed.v1" }

// RolloutHalted says that the rollout directs no further cluster until a person has it go on.
type RolloutHalted struct {
	Wave   int    `json:"wave"`
	Reason string `json:"reason"` // WaveFailures, Failures, GateFailed, GateDeadlineExceeded
}

// EventType implements Payload.
func (RolloutHalted) EventType() Type { return "fleet.rollout-halted.v1" }

// RolloutEnded ends a rollout.
type RolloutEnded struct {
	Outcome string `json:"outcome"` // Succeeded, Superseded
}

// EventType implements Payload.
func (RolloutEnded) EventType() Type { return "fleet.rollout-ended.v1" }

// RolloutPaused has no further cluster directed.
type RolloutPaused struct{}

// EventType implements Payload.
func (RolloutPaused) EventType() Type { return "fleet.rollout-paused.v1" }

// RolloutResumed has a rollout go on that was paused or has halted. The failures so far are forgiven: only those that
// come count against the budgets.
type RolloutResumed struct{}

// EventType implements Payload.
func (RolloutResumed) EventType() Type { return "fleet.rollout-resumed.v1" }

// RolloutPromoted lets the wave after this one begin.
type RolloutPromoted struct {
	Wave int `json:"wave"`
}

// EventType implements Payload.
func (RolloutPromoted) EventType() Type { return "fleet.rollout-promoted.v1" }

// RolloutClusterSkipped leaves a cluster out: it holds nothing up, and counts neither as changed nor as failed.
type RolloutClusterSkipped struct {
	Cluster string `json:"cluster"`
	Reason  string `json:"reason"` // commitment to the words of whoever skipped it
}

// EventType implements Payload.
func (RolloutClusterSkipped) EventType() Type { return "fleet.rollout-cluster-skipped.v1" }

// RolloutClusterRetried has a cluster that failed or was skipped directed once more.
type RolloutClusterRetried struct {
	Cluster string `json:"cluster"`
}

// EventType implements Payload.
func (RolloutClusterRetried) EventType() Type { return "fleet.rollout-cluster-retried.v1" }

// RolloutAborted ends a rollout. What was directed is finished or left by the plans that exist; nothing is undone.
type RolloutAborted struct{}

// EventType implements Payload.
func (RolloutAborted) EventType() Type { return "fleet.rollout-aborted.v1" }
