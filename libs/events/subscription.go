package events

// subscriptionEvents are the events of subscriptions, in the order of docs/events.md.
func subscriptionEvents() []Definition {
	return []Definition{
		define(KindSubscription, Gateway, SubscriptionCreated{}, "Somebody wants to follow a channel of a package."),
		define(KindSubscription, Resolver, SubscriptionGenerated{}, "A dependency is followed from now on, too."),
		define(KindSubscription, Gateway, SubscriptionChanged{}, "The intent changed."),
		define(KindSubscription, Gateway, SubscriptionMetadataChanged{},
			"The subscription has other labels or annotations from now on."),
		define(KindSubscription, Gateway, SubscriptionRollbackRequested{},
			"Somebody wants to go back to an earlier version."),
		define(KindSubscription, Gateway, SubscriptionDeleted{}, "The intent ended; the installed operator stays."),
		define(KindSubscription, Fleet, SubscriptionPlaced{},
			"A fleet subscription asks this of its subscription on a cluster, which is made where there is none."),
		define(KindSubscription, Fleet, SubscriptionReleased{},
			"The fleet subscription lets go: the subscription stays, at its version, until somebody changes it."),
		define(KindSubscription, Fleet, SubscriptionRemoved{},
			"The fleet subscription takes back what it asked of a cluster, as its deletion policy says."),
		define(KindSubscription, Resolver, ResolutionFailed{}, "Nothing can be planned, and why."),
		define(KindSubscription, Resolver, ResolutionSucceeded{}, "The subscription resolves, and to what."),
	}
}

// SubscriptionSpec is the intent to follow a channel of a package.
type SubscriptionSpec struct {
	Package          string `json:"package"`
	Channel          string `json:"channel,omitempty"`
	Catalog          string `json:"catalog"`
	CatalogNamespace string `json:"catalogNamespace,omitempty"`
	StartingCSV      string `json:"startingCSV,omitempty"`
	Approval         string `json:"approval"`         // Automatic, Manual
	Config           string `json:"config,omitempty"` // commitment of spec.config; "" without one
}

// SubscriptionCreated is the intent of a person or portal. Subject: cluster/namespace/name.
type SubscriptionCreated struct {
	Cluster   string           `json:"cluster"`
	Namespace string           `json:"namespace"`
	Name      string           `json:"name"`
	Spec      SubscriptionSpec `json:"spec"`
}

// EventType implements Payload.
func (SubscriptionCreated) EventType() Type { return "subscription.created.v1" }

// SubscriptionGenerated is a subscription that the resolver makes for an operator that came in as a
// dependency (R-RES-40).
type SubscriptionGenerated struct {
	Cluster   string           `json:"cluster"`
	Namespace string           `json:"namespace"`
	Name      string           `json:"name"`
	Spec      SubscriptionSpec `json:"spec"`
	Plan      string           `json:"plan"`
}

// EventType implements Payload.
func (SubscriptionGenerated) EventType() Type { return "subscription.generated.v1" }

// SubscriptionChanged carries the whole new intent.
type SubscriptionChanged struct {
	Spec SubscriptionSpec `json:"spec"`
}

// EventType implements Payload.
func (SubscriptionChanged) EventType() Type { return "subscription.changed.v1" }

// SubscriptionRollbackRequested is the intent to go back from one installed version to an earlier one. A plan for it
// always waits for a person. Afterwards From is not taken again until the subscription is changed.
type SubscriptionRollbackRequested struct {
	From string `json:"from"` // CSV that is installed
	To   string `json:"to"`   // CSV that was installed before it
}

// EventType implements Payload.
func (SubscriptionRollbackRequested) EventType() Type { return "subscription.rollback-requested.v1" }

// SubscriptionDeleted ends the stream. The installed operator stays (R-SUB-32).
type SubscriptionDeleted struct{}

// EventType implements Payload.
func (SubscriptionDeleted) EventType() Type { return "subscription.deleted.v1" }

// SubscriptionPlaced is what a rollout asks of a cluster: the whole intent, and how far it goes. Its correlation id is
// the directive of the rollout. It makes the subscription where there is none, and replaces its intent otherwise.
type SubscriptionPlaced struct {
	Cluster   string           `json:"cluster"`
	Namespace string           `json:"namespace"`
	Name      string           `json:"name"`
	Spec      SubscriptionSpec `json:"spec"`
	Owner     string           `json:"owner"`   // name of the fleet subscription
	Rollout   int              `json:"rollout"` // its number
	Target    RolloutTarget    `json:"target"`
	// Rollback has the subscription go back to the target from what it has. A plan for it needs no approval for that
	// alone: a person has asked for it.
	Rollback SubscriptionRollback `json:"rollback,omitzero"`
	// Avoids are CSVs that are not installed again, as in RolloutStarted.
	Avoids []string `json:"avoids,omitempty"`
}

// EventType implements Payload.
func (SubscriptionPlaced) EventType() Type { return "subscription.placed.v1" }

// SubscriptionReleased says that a fleet subscription lets go of a cluster. What was asked last holds until somebody
// changes the subscription: who leaves a fleet is not upgraded for that.
type SubscriptionReleased struct {
	// Kept is why the operator stays although the deletion policy has it removed: Required (other operators need it).
	Kept string `json:"kept,omitempty"`
}

// KeptRequired is why an operator stays that other operators need.
const KeptRequired = "Required"

// EventType implements Payload.
func (SubscriptionReleased) EventType() Type { return "subscription.released.v1" }

// SubscriptionRemoved ends the stream: a fleet subscription whose deletion policy is not Orphan is for this cluster no
// more. What it installed is uninstalled by csv.removal-directed.v1, which it causes.
type SubscriptionRemoved struct{}

// EventType implements Payload.
func (SubscriptionRemoved) EventType() Type { return "subscription.removed.v1" }

// ResolutionFailed says why nothing can be planned for a subscription. It stands in the
// subscription's stream and is appended only when reason or explanation changed.
type ResolutionFailed struct {
	Semantics   string `json:"semantics"`
	Input       string `json:"input"`       // digest of everything consulted
	Reason      string `json:"reason"`      // ConstraintsNotSatisfiable, ErrorPreventedResolution, ...
	Explanation string `json:"explanation"` // digest of the structured explanation in the resolver schema
}

// EventType implements Payload.
func (ResolutionFailed) EventType() Type { return "resolution.failed.v1" }

// ResolutionSucceeded says that a subscription resolves (again). It is appended when the outcome
// differs from the one recorded before.
type ResolutionSucceeded struct {
	Semantics string `json:"semantics"`
	Input     string `json:"input"`
	Outcome   string `json:"outcome"` // Planned, AtLatestKnown
	CSV       string `json:"csv"`     // what the subscription moves to or has
	Plan      string `json:"plan,omitempty"`
	// Content is the digest of what runs, where a rollout asks for it; none while the operator does not run.
	Content string `json:"content,omitempty"`
}

// EventType implements Payload.
func (ResolutionSucceeded) EventType() Type { return "resolution.succeeded.v1" }

// SubscriptionMetadataChanged carries all labels and annotations that the subscription has from now on.
type SubscriptionMetadataChanged struct {
	Metadata Metadata `json:"metadata"`
}

// EventType implements Payload.
func (SubscriptionMetadataChanged) EventType() Type { return "subscription.metadata-changed.v1" }
