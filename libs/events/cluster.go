package events

import (
	"cmp"
	"maps"
	"time"
)

// clusterEvents are the events of clusters, in the order of docs/events.md.
func clusterEvents() []Definition {
	return []Definition{
		define(KindCluster, Gateway, ClusterRegistered{}, "A cluster was given to Chandler: with a kubeconfig, or to be served by an agent."),
		define(KindCluster, Gateway, ClusterCredentialReplaced{}, "Another kubeconfig is to be used for the cluster."),
		define(KindCluster, Gateway, ClusterConfigured{}, "How the cluster is to be treated."),
		define(KindCluster, Gateway, ClusterLabelsChanged{}, "The cluster has other labels from now on."),
		define(KindCluster, Gateway, ClusterTaintsChanged{}, "The cluster has other taints from now on."),
		define(KindCluster, Gateway, ClusterCordoned{}, "No new plans are made for the cluster."),
		define(KindCluster, Gateway, ClusterUncordoned{}, "Plans are made for the cluster again."),
		define(KindCluster, Gateway, ClusterJoinTokenIssued{}, "Who has this token may ask to become the agent of the cluster."),
		define(KindCluster, Installer, ClusterJoinRequested{}, "Somebody with a token has asked to become the agent of the cluster."),
		define(KindCluster, Gateway, ClusterJoinAccepted{}, "Who has asked is the agent of the cluster from now on; the one before is let in no more."),
		define(KindCluster, Gateway, ClusterJoinRejected{}, "Who has asked does not become the agent of the cluster."),
		define(KindCluster, Gateway, ClusterAgentRevoked{}, "Nobody is the agent of the cluster any more, and no token is good."),
		define(KindCluster, Installer, ClusterAgentCloned{}, "Two live processes have the credentials of the agent: neither is let in any more."),
		define(KindCluster, Gateway, ClusterRemoved{}, "Chandler lets go of the cluster; what is installed stays."),
		define(KindCluster, Installer, ClusterObserved{}, "The executor's view of the cluster changed."),
		define(KindCluster, Installer, ClusterFactsObserved{}, "What the cluster is made of changed."),
		define(KindCluster, Installer, ClusterCredentialRotated{}, "The token by which the cluster is reached was followed by the next one."),
	}
}

// ClusterRegistered says that a cluster was given to Chandler. Subject: the cluster's name.
type ClusterRegistered struct {
	Name string `json:"name"`
	// Access is how the cluster is reached: AccessAgent, or AccessHosted, which "" is, too.
	Access string `json:"access,omitempty"`
	// Credential is the commitment of the encrypted kubeconfig in the gateway's erasable store; "" with an agent.
	Credential string            `json:"credential"`
	Labels     map[string]string `json:"labels,omitempty"`
	// Waived are the rules of kubeconfigs that an administrator waived for this one: http, proxy-url,
	// insecure-skip-tls-verify; only those that it needs.
	Waived []string `json:"waived,omitempty"`
	// Ends is when the credential ends, as it says itself, in UTC; absent where it does not say.
	Ends time.Time `json:"ends,omitzero"`
}

// How a cluster is reached.
const (
	AccessHosted = "Hosted" // the installer runs its executor, with the kubeconfig
	AccessAgent  = "Agent"  // its executor runs there
)

// EventType implements Payload.
func (ClusterRegistered) EventType() Type { return "cluster.registered.v1" }

// ClusterCredentialReplaced says that another kubeconfig is to be used.
type ClusterCredentialReplaced struct {
	Credential string `json:"credential"`
	// Waived are as in ClusterRegistered, for the new kubeconfig: those of the one before are gone with it.
	Waived []string `json:"waived,omitempty"`
	// Ends is as in ClusterRegistered, for the new kubeconfig.
	Ends time.Time `json:"ends,omitzero"`
}

// EventType implements Payload.
func (ClusterCredentialReplaced) EventType() Type { return "cluster.credential-replaced.v1" }

// ClusterCredentialRotated says that the hub has asked the cluster for the next token of its account, with the one
// before. Server, waivers and account stay.
type ClusterCredentialRotated struct {
	Credential string `json:"credential"` // commitment of the kubeconfig with the new token
	// Replaces is the commitment of the one before, which its API server takes until it ends.
	Replaces string    `json:"replaces"`
	Expires  time.Time `json:"expires"` // of the new token, in UTC
}

// EventType implements Payload.
func (ClusterCredentialRotated) EventType() Type { return "cluster.credential-rotated.v1" }

// ClusterConfigured carries how a cluster is to be treated, whole.
type ClusterConfigured struct {
	Settings ClusterSettings `json:"settings"`
}

// EventType implements Payload.
func (ClusterConfigured) EventType() Type { return "cluster.configured.v1" }

// ClusterSettings say how a cluster is to be treated. The zero value is the default of each.
type ClusterSettings struct {
	// Mirror is which of OLM's kinds are kept in the cluster for people and tools that read them: none, csv, all;
	// "" is csv.
	Mirror string `json:"mirror,omitempty"`
	// Drift is what becomes of edits to managed objects: correct, report; "" is correct.
	Drift string `json:"drift,omitempty"`
	// Optional are the API groups, or kinds as GROUP/KIND, with commas between, whose objects operators do not wait for
	// where the cluster does not serve them: they are written when it does. "" is OptionalMonitoring, OptionalNone is
	// none.
	Optional string `json:"optional,omitempty"`
	// Events is whether Kubernetes Events are written about mirrored objects: on, off; "" is on if anything is
	// mirrored. Without mirrors it has no effect.
	Events string `json:"events,omitempty"`
	// CopiedCSVs is whether mirrored ClusterServiceVersions are copied to the namespaces that they serve: on, off,
	// olmconfig; "" is olmconfig, what the OLMConfig of the cluster says (R-CFG-1). Without mirrors it has no effect.
	CopiedCSVs string `json:"copiedCSVs,omitempty"`
}

// Values of ClusterSettings.
const (
	MirrorNone   = "none"
	MirrorCSV    = "csv"
	MirrorAll    = "all"
	DriftCorrect = "correct"
	DriftReport  = "report"
	EventsOn     = "on"
	EventsOff    = "off"

	CopiedCSVsOn        = "on"
	CopiedCSVsOff       = "off"
	CopiedCSVsOLMConfig = "olmconfig"
)

// WithDefaults returns the settings with each default in the place of "".
func (s ClusterSettings) WithDefaults() ClusterSettings {
	out := ClusterSettings{
		Mirror: cmp.Or(s.Mirror, MirrorCSV), Drift: cmp.Or(s.Drift, DriftCorrect),
		Optional: cmp.Or(s.Optional, OptionalMonitoring), Events: cmp.Or(s.Events, EventsOn),
		CopiedCSVs: cmp.Or(s.CopiedCSVs, CopiedCSVsOLMConfig),
	}
	if out.Mirror == MirrorNone {
		out.Events = EventsOff
	}
	return out
}

// ClusterLabelsChanged carries the labels that the cluster has from now on, all of them.
type ClusterLabelsChanged struct {
	Labels map[string]string `json:"labels,omitempty"`
}

// EventType implements Payload.
func (ClusterLabelsChanged) EventType() Type { return "cluster.labels-changed.v1" }

// ClusterTaintsChanged carries the taints that the cluster has from now on, all of them. They keep fleet subscriptions
// away that do not tolerate them.
type ClusterTaintsChanged struct {
	Taints map[string]string `json:"taints,omitempty"` // value by key; values may be empty
}

// EventType implements Payload.
func (ClusterTaintsChanged) EventType() Type { return "cluster.taints-changed.v1" }

// ClusterCordoned says that no new plans are made for the cluster. Those that are there already are carried out.
type ClusterCordoned struct{}

// EventType implements Payload.
func (ClusterCordoned) EventType() Type { return "cluster.cordoned.v1" }

// ClusterUncordoned says that plans are made for the cluster again.
type ClusterUncordoned struct{}

// EventType implements Payload.
func (ClusterUncordoned) EventType() Type { return "cluster.uncordoned.v1" }

// ClusterRemoved says that Chandler lets go of a cluster; what is installed there stays.
type ClusterRemoved struct {
	Name string `json:"name"`
}

// EventType implements Payload.
func (ClusterRemoved) EventType() Type { return "cluster.removed.v1" }

// States of ClusterObserved. Whoever asks how a cluster is reads them with its reason.
const (
	ObservedConnected     = "Connected"
	ObservedUnreachable   = "Unreachable"
	ObservedUnauthorized  = "Unauthorized"
	ObservedRefused       = "Refused"
	ObservedHeldElsewhere = "HeldElsewhere" // it was served, and is held for another registration by now
)

// Reasons of ClusterObserved that say more than its state.
const (
	ReasonDuplicateCluster = "DuplicateCluster" // its API server is held for another registration
	ReasonOLMRunning       = "OLMRunning"
	ReasonWorkFailing      = "WorkFailing" // the work on some namespaces has ended in errors for a while
)

// ClusterObserved says what the executor found when its view of a cluster changed.
type ClusterObserved struct {
	State             string `json:"state"`            // Connected, Unreachable, Unauthorized, Refused, HeldElsewhere
	Reason            string `json:"reason,omitempty"` // a code, such as ConnectionRefused
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	HolderEpoch       int64  `json:"holderEpoch,omitempty"`
	// TokenAuth is the cloud whose short-lived tokens operators get: AWS, Azure, GCP; "" for none (R-TOK-1).
	TokenAuth string `json:"tokenAuth,omitempty"`
}

// EventType implements Payload.
func (ClusterObserved) EventType() Type { return "cluster.observed.v1" }

// How who asks to join is accepted.
const (
	JoinManual    = "Manual"    // by a person
	JoinAutomatic = "Automatic" // by the token
)

// ClusterJoinTokenIssued says that who has a token may ask to become the agent of the cluster. It takes the place of
// the token before.
type ClusterJoinTokenIssued struct {
	// Token is the public key of the token, whose seed nobody but its holder has.
	Token string    `json:"token"`
	Ends  time.Time `json:"ends"` // until when it may be used first, in UTC
	// Accept is how who asks is accepted: JoinManual, JoinAutomatic.
	Accept string `json:"accept"`
}

// EventType implements Payload.
func (ClusterJoinTokenIssued) EventType() Type { return "cluster.join-token-issued.v1" }

// ClusterJoinRequested says that somebody has used a token. Nobody else may use it.
type ClusterJoinRequested struct {
	Token string `json:"token"` // its public key
	// Instance is the id of who asks, which it has drawn; Key is the public key of its user of NATS.
	Instance string `json:"instance"`
	Key      string `json:"key"`
	// ClusterUID is the UID of the namespace kube-system.
	ClusterUID        string `json:"clusterUID"`
	KubernetesVersion string `json:"kubernetesVersion"`
	// Accepted is set where the token accepts who asks.
	Accepted bool `json:"accepted,omitempty"`
}

// EventType implements Payload.
func (ClusterJoinRequested) EventType() Type { return "cluster.join-requested.v1" }

// ClusterJoinAccepted says that a person has accepted who asked.
type ClusterJoinAccepted struct {
	Instance string `json:"instance"`
}

// EventType implements Payload.
func (ClusterJoinAccepted) EventType() Type { return "cluster.join-accepted.v1" }

// ClusterJoinRejected says that a person has rejected who asked. The token is used up.
type ClusterJoinRejected struct {
	Instance string `json:"instance"`
}

// EventType implements Payload.
func (ClusterJoinRejected) EventType() Type { return "cluster.join-rejected.v1" }

// ClusterAgentRevoked says that a person has withdrawn the agent and the token of the cluster.
type ClusterAgentRevoked struct{}

// EventType implements Payload.
func (ClusterAgentRevoked) EventType() Type { return "cluster.agent-revoked.v1" }

// ClusterAgentCloned says that two live processes have shown the credentials of the agent, which the hub has withdrawn.
type ClusterAgentCloned struct {
	Instance string `json:"instance"` // whose credentials they are
}

// EventType implements Payload.
func (ClusterAgentCloned) EventType() Type { return "cluster.agent-cloned.v1" }

// Parts of ClusterFacts that may be missing, and why.
const (
	FactClusterUID = "clusterUID"
	FactNodes      = "nodes"
	FactAPIs       = "apis"

	FactForbidden = "Forbidden" // the executor's account lacks the right
	FactTooMany   = "TooMany"   // there are more than are read
)

// ClusterFacts are what a cluster is made of. Numbers of more than two digits are rounded to two: a node more or less
// of many is no news.
type ClusterFacts struct {
	ClusterUID   string `json:"clusterUID,omitempty"`   // of namespace kube-system: an API server is known by it
	Distribution string `json:"distribution,omitempty"` // such as openshift, eks, k3s; "" where nothing tells it
	Nodes        int64  `json:"nodes,omitempty"`
	// Architectures are the nodes by architecture, such as amd64.
	Architectures map[string]int64 `json:"architectures,omitempty"`
	CPUCores      int64            `json:"cpuCores,omitempty"`  // allocatable of all nodes
	MemoryGiB     int64            `json:"memoryGiB,omitempty"` // allocatable of all nodes
	// APIs is the digest of the API groups that are served, with their versions; APICount is how many these are.
	APIs     string `json:"apis,omitempty"`
	APICount int64  `json:"apiCount,omitempty"`
	// Missing says of what could not be read why: Forbidden, TooMany, by clusterUID, nodes, apis.
	Missing map[string]string `json:"missing,omitempty"`
}

// Equal reports the same facts.
func (f ClusterFacts) Equal(o ClusterFacts) bool {
	return f.ClusterUID == o.ClusterUID && f.Distribution == o.Distribution && f.Nodes == o.Nodes &&
		maps.Equal(f.Architectures, o.Architectures) && f.CPUCores == o.CPUCores && f.MemoryGiB == o.MemoryGiB &&
		f.APIs == o.APIs && f.APICount == o.APICount && maps.Equal(f.Missing, o.Missing)
}

// ClusterFactsObserved carries the facts of a cluster from now on, whole.
type ClusterFactsObserved struct {
	Facts ClusterFacts `json:"facts"`
}

// EventType implements Payload.
func (ClusterFactsObserved) EventType() Type { return "cluster.facts-observed.v1" }
