package events

// csvEvents are the events of ClusterServiceVersions, in the order of docs/events.md.
func csvEvents() []Definition {
	return []Definition{
		define(KindCSV, Installer, CSVPhaseChanged{}, "A ClusterServiceVersion entered a phase."),
		define(KindCSV, Installer, CSVRemoved{}, "The ClusterServiceVersion is gone from the cluster."),
		define(KindCSV, Installer, CSVFlapping{}, "The phase changes too often to record each change."),
		define(KindCSV, Gateway, CSVRemovalRequested{}, "Somebody wants the operator uninstalled."),
		define(KindCSV, Fleet, CSVRemovalDirected{}, "A fleet subscription has the operator uninstalled."),
		define(KindCSV, Installer, CSVRemovalStarted{}, "The executor began to remove the operator."),
		define(KindCSV, Installer, CSVRemovalBlocked{},
			"The removal waits for something outside and goes on by itself."),
		define(KindCSV, Installer, CSVRemovalRefused{}, "The removal was refused in the cluster; nothing was removed."),
		define(KindCSV, Installer, CSVDrifted{}, "Objects of the operator are not as Chandler wrote them."),
		define(KindCSV, Installer, CSVDriftEnded{}, "All objects of the operator are as Chandler wrote them again."),
		define(KindCSV, Installer, CSVReadinessChanged{},
			"Other Deployments of the operator are not ready, or for other reasons."),
		define(KindCSV, Installer, OperatorConditionChanged{}, "The operator lets itself be upgraded, or no longer."),
		define(KindCSV, Gateway, OperatorConditionOverridden{},
			"These overrides count from now on in the place of what the operator says of itself."),
		define(KindCSV, Gateway, OperatorConditionOverridesRemoved{},
			"What the operator says of itself counts again."),
	}
}

// CSVPhaseChanged is one transition of a ClusterServiceVersion. Subject: cluster/namespace/name.
type CSVPhaseChanged struct {
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Package   string `json:"package"`
	Version   string `json:"version"`
	Phase     string `json:"phase"`  // R-CSV §6.2
	Reason    string `json:"reason"` // R-CSV §6.2
	Content   string `json:"content"`
	Plan      string `json:"plan"`
}

// EventType implements Payload.
func (CSVPhaseChanged) EventType() Type { return "csv.phase-changed.v1" }

// CSVRemoved ends the stream: the ClusterServiceVersion is gone from the cluster. It is alone in its stream where
// somebody deleted what a plan had brought before anything of it was recorded.
type CSVRemoved struct {
	Reason string `json:"reason"` // Replaced, Deleted, Uninstalled
	// Removal is the request that it ends with, where one did.
	Removal string `json:"removal,omitempty"`
}

// EventType implements Payload.
func (CSVRemoved) EventType() Type { return "csv.removed.v1" }

// CSVFlapping summarizes further phase changes of a CSV that changes too often to record each.
type CSVFlapping struct {
	Changes int `json:"changes"` // in the window
	Window  int `json:"window"`  // seconds
}

// EventType implements Payload.
func (CSVFlapping) EventType() Type { return "csv.flapping.v1" }

// CSVRemovalRequested is the intent to uninstall an operator. Its subscriptions are deleted by events of their own.
type CSVRemovalRequested struct {
	Removal string `json:"removal"` // random id, a UUID
	// CRDs are the names of the custom resource definitions to be deleted with it, and with them every object of
	// theirs, sorted. Those that are not named stay (R-UNI-2).
	CRDs []string `json:"crds,omitempty"`
	// Plan is the digest of the removal plan that was shown, "" where none was. Another one is refused in the cluster.
	Plan string `json:"plan,omitempty"`
	// Dependants are the installed operators, as namespace/csv, that depend on it by requirements that the cluster does
	// not know, sorted.
	Dependants []string `json:"dependants,omitempty"`
}

// EventType implements Payload.
func (CSVRemovalRequested) EventType() Type { return "csv.removal-requested.v1" }

// CSVRemovalDirected is the intent to uninstall an operator of a fleet subscription that is for the cluster no more, as
// its deletion policy says.
type CSVRemovalDirected struct {
	Removal string `json:"removal"` // random id, a UUID
	// CRDs are as in CSVRemovalRequested; * is every definition of the operator's own.
	CRDs              []string `json:"crds,omitempty"`
	FleetSubscription string   `json:"fleetSubscription"` // name
}

// EventType implements Payload.
func (CSVRemovalDirected) EventType() Type { return "csv.removal-directed.v1" }

// Request is the same as if a person had asked for it.
func (e CSVRemovalDirected) Request() CSVRemovalRequested {
	return CSVRemovalRequested{Removal: e.Removal, CRDs: e.CRDs}
}

// CSVRemovalStarted says that the executor has begun to remove the operator.
type CSVRemovalStarted struct {
	Removal string `json:"removal"`
}

// EventType implements Payload.
func (CSVRemovalStarted) EventType() Type { return "csv.removal-started.v1" }

// CSVRemovalBlocked says that a removal waits for something outside; it goes on by itself. It is appended when
// the reason changes.
type CSVRemovalBlocked struct {
	Removal string `json:"removal"`
	Class   string `json:"class"`  // transient, conflict, stopped
	Reason  string `json:"reason"` // a code
}

// EventType implements Payload.
func (CSVRemovalBlocked) EventType() Type { return "csv.removal-blocked.v1" }

// CSVRemovalRefused ends a request without effect: what is there now is not what was shown, or somebody needs it.
type CSVRemovalRefused struct {
	Removal string `json:"removal"`
	Reason  string `json:"reason"` // a code
}

// EventType implements Payload.
func (CSVRemovalRefused) EventType() Type { return "csv.removal-refused.v1" }

// CSVDrifted says that objects of an operator are not as Chandler wrote them. It is appended when the set changes.
type CSVDrifted struct {
	Objects int    `json:"objects"`
	Diff    string `json:"diff"`   // digest of the differences, which are kept in the installer schema
	Policy  string `json:"policy"` // correct, report
}

// EventType implements Payload.
func (CSVDrifted) EventType() Type { return "csv.drifted.v1" }

// CSVDriftEnded says that all objects of an operator are as Chandler wrote them again.
type CSVDriftEnded struct{}

// EventType implements Payload.
func (CSVDriftEnded) EventType() Type { return "csv.drift-ended.v1" }

// CSVReadinessChanged says which Deployments of an operator are not ready, and why; none says that all of those that
// were told of are. It is appended when a reason changes, not with every Pod.
type CSVReadinessChanged struct {
	Deployments []NotReadyDeployment `json:"deployments,omitempty"` // by name
}

// EventType implements Payload.
func (CSVReadinessChanged) EventType() Type { return "csv.readiness-changed.v1" }

// NotReadyDeployment is a Deployment that is not ready.
type NotReadyDeployment struct {
	Name   string `json:"name"`
	Reason string `json:"reason"` // a code, such as ImagePullFailed
	// Webhook is the admission webhook that keeps its Pods out, and Owner the operator that this belongs to, as
	// namespace/csv.
	Webhook string `json:"webhook,omitempty"`
	Owner   string `json:"owner,omitempty"`
}

// OperatorConditionChanged says whether an operator lets itself be upgraded (R-COND-3). It stands in the stream
// of its ClusterServiceVersion and is appended when it changes.
type OperatorConditionChanged struct {
	Upgradeable bool `json:"upgradeable"`
	// Reason is a code: that of the condition or override, Outdated, or "" where the operator says nothing.
	Reason     string `json:"reason,omitempty"`
	Overridden bool   `json:"overridden,omitempty"` // by a cluster administrator
}

// EventType implements Payload.
func (OperatorConditionChanged) EventType() Type { return "operatorcondition.changed.v1" }

// OperatorConditionOverridden carries all overrides that the OperatorCondition of a ClusterServiceVersion has from now
// on by Chandler (R-COND-6). They end with the ClusterServiceVersion. Their messages are for people and stay out of the
// log.
type OperatorConditionOverridden struct {
	Overrides []ConditionOverride `json:"overrides"` // by type, each once
}

// EventType implements Payload.
func (OperatorConditionOverridden) EventType() Type { return "operatorcondition.overridden.v1" }

// ConditionOverride is what counts of one condition of an operator, whatever the operator says.
type ConditionOverride struct {
	Type   string `json:"type"`   // Upgradeable; no other one has an effect (R-COND-3)
	Status string `json:"status"` // True, False, Unknown
	Reason string `json:"reason"` // a code
}

// String is the override for people.
func (o ConditionOverride) String() string { return o.Type + "=" + o.Status + " (" + o.Reason + ")" }

// OperatorConditionOverridesRemoved ends all overrides of a ClusterServiceVersion that were set by Chandler.
type OperatorConditionOverridesRemoved struct{}

// EventType implements Payload.
func (OperatorConditionOverridesRemoved) EventType() Type {
	return "operatorcondition.overrides-removed.v1"
}
