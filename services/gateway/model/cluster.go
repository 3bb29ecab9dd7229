package model

import "time"

// States of a cluster.
const (
	ClusterPending       = "Pending"
	ClusterConnected     = "Connected"
	ClusterDegraded      = "Degraded"
	ClusterUnreachable   = "Unreachable"
	ClusterHeldElsewhere = "HeldElsewhere"
	ClusterCordoned      = "Cordoned"
	ClusterOLMRunning    = "OLMRunning"
)

// ClusterRegistered is the connection of a cluster that no executor has connected to yet, and ClusterNoReport the
// reason why it is pending.
const (
	ClusterRegistered = "Registered"
	ClusterNoReport   = "NoReport"
)

// ClusterCondition is one thing that is true of a cluster.
type ClusterCondition struct {
	Type   string    `json:"type" enum:"Pending,Connected,Degraded,Unreachable,HeldElsewhere,Cordoned,OLMRunning"`
	Reason string    `json:"reason,omitempty" doc:"Code, such as ConnectionRefused"`
	Since  time.Time `json:"since"`
}

// ClusterState is where a cluster stands.
type ClusterState struct {
	State      string             `json:"state" enum:"Pending,Connected,Degraded,Unreachable,HeldElsewhere,Cordoned,OLMRunning" doc:"The first of its conditions. Pending until an executor has reported; HeldElsewhere where its API server is held for another registration, which the message names; Unreachable where it does not answer, refuses the credential (connection Unauthorized) or cannot be served (connection Refused); OLMRunning while OLM is at work there, and nothing is done; Degraded where something else is wrong; Cordoned where no new install plans are made"`
	StateSince time.Time          `json:"stateSince" doc:"Since when the state and its reason are as they are"`
	Reason     string             `json:"reason,omitempty" doc:"Code that says why it is in its state, such as ConnectionRefused"`
	Message    string             `json:"message,omitempty" doc:"Sentence for people"`
	Conditions []ClusterCondition `json:"conditions" nullable:"false" doc:"All that is true of it, the most telling first"`
	Connection string             `json:"connection" enum:"Registered,Connected,Unreachable,Unauthorized,Refused,HeldElsewhere" doc:"What its executor found: Registered until it has connected; Unauthorized where the credential is refused; Refused where the cluster cannot be served (reasons DuplicateCluster, KubernetesNotSupported, AddressRefused); HeldElsewhere where it was served and another registration holds it by now"`
}

// Cluster is a registered cluster.
type Cluster struct {
	Name   string            `json:"name" example:"spoke-1"`
	Access string            `json:"access" enum:"Hosted,Agent" doc:"Who runs its executor: the installer with a kubeconfig (Hosted), or the agent in the cluster"`
	Labels map[string]string `json:"labels,omitempty"`
	Taints map[string]string `json:"taints,omitempty" doc:"Keep fleet subscriptions away that do not tolerate them"`
	ClusterState
	KubernetesVersion string           `json:"kubernetesVersion,omitempty"`
	Facts             *ClusterFacts    `json:"facts,omitempty" doc:"What it is made of; absent until its executor has looked"`
	APIs              []string         `json:"apis,omitempty" doc:"API groups that it serves, as group/version, in answers about one cluster"`
	CordonedSince     *time.Time       `json:"cordonedSince,omitempty" doc:"Since when no new install plans are made for it; absent where they are made"`
	HolderEpoch       int64            `json:"holderEpoch,omitempty" doc:"Of the executor that holds the cluster"`
	Waived            []string         `json:"waived,omitempty" doc:"What an administrator waived for the kubeconfig in use: http (no TLS), insecure-skip-tls-verify, proxy-url"`
	TokenAuth         string           `json:"tokenAuth,omitempty" enum:"AWS,Azure,GCP" doc:"The cloud whose short-lived tokens operators get here: subscriptions of operators that can use them name an identity in config.env (R-TOK-1); absent where there is none"`
	CredentialEndsAt  *time.Time       `json:"credentialEndsAt,omitempty" doc:"When the credential in use ends, as its token or certificate says; absent where it does not say. The token of a cluster that was registered with --bootstrap is followed by the next one at half of its life"`
	Settings          ClusterSettings  `json:"settings"`
	PlatformUpgrade   *PlatformUpgrade `json:"platformUpgrade,omitempty" doc:"What installed operators say of an upgrade of the platform, in answers about one cluster"`
	RegisteredAt      time.Time        `json:"registeredAt"`
	UpdatedAt         time.Time        `json:"updatedAt"`
	Stream            string           `json:"stream,omitempty" doc:"Id of its stream of events"`
	Version           int64            `json:"version,omitempty" doc:"Of its stream"`
	Position          string           `json:"position,omitempty" doc:"Of the write, in answers to writes"`
}

// ClusterFacts are what a cluster is made of. Numbers of more than two digits are rounded to two.
type ClusterFacts struct {
	ClusterUID    string            `json:"clusterUID,omitempty" doc:"Of namespace kube-system, by which an API server is known"`
	Distribution  string            `json:"distribution,omitempty" example:"openshift" doc:"Such as openshift, eks, gke, aks, k3s, rke2, kind; absent where nothing tells it"`
	Nodes         int64             `json:"nodes,omitempty"`
	Architectures map[string]int64  `json:"architectures,omitempty" doc:"Nodes by architecture, such as amd64"`
	CPUCores      int64             `json:"cpuCores,omitempty" doc:"Allocatable of all nodes"`
	MemoryGiB     int64             `json:"memoryGiB,omitempty" doc:"Allocatable of all nodes"`
	APIs          string            `json:"apis,omitempty" doc:"Digest of the API groups that it serves"`
	APICount      int64             `json:"apiCount,omitempty" doc:"How many these are, each with a version"`
	Missing       map[string]string `json:"missing,omitempty" doc:"Why clusterUID, nodes or apis are not known: Forbidden where the executor lacks the right, TooMany where there are more than it reads"`
}

// PlatformUpgrade is up to which version of the platform the installed operators let themselves be carried (R-CSV-60),
// and what they use that the next one no longer serves (R-CSV-61).
type PlatformUpgrade struct {
	MaxVersion  string          `json:"maxVersion,omitempty" example:"4.15" doc:"Lowest of the limits"`
	Reason      string          `json:"reason" enum:"IncompatibleOperatorsInstalled,ErrorCheckingOperatorCompatibility,RemovedAPIsInUse" doc:"RemovedAPIsInUse is a warning; the others are limits"`
	Message     string          `json:"message"`
	Operators   []PlatformLimit `json:"operators" nullable:"false"`
	RemovedAPIs []RemovedAPI    `json:"removedAPIs,omitempty" nullable:"false" doc:"What installed operators use and the next minor version of Kubernetes no longer serves: replace them before (R-CSV-61)"`
}

// PlatformLimit is what one installed operator says: its property olm.maxOpenShiftVersion.
type PlatformLimit struct {
	Namespace  string `json:"namespace"`
	Name       string `json:"name" doc:"Of the CSV"`
	MaxVersion string `json:"maxVersion"`
}

// ClusterSettings say how a cluster is treated.
type ClusterSettings struct {
	Mirror string `json:"mirror" enum:"none,csv,all" doc:"Which of OLM's kinds are kept in the cluster for people and tools that read them: none, ClusterServiceVersions, or all"`
	Drift  string `json:"drift" enum:"correct,report" doc:"What becomes of edits to managed objects: they are put right, or only reported"`
	// Optional is as events.ClusterSettings has it.
	Optional string `json:"optional" example:"monitoring.coreos.com,console.openshift.io/ConsolePlugin" doc:"API groups, or kinds as GROUP/KIND, with commas between, that operators do not wait for where the cluster does not serve them: their objects are written when it does; none for no kind"`
	Events   string `json:"events" enum:"on,off" doc:"Whether Kubernetes Events are written for what happens to the mirrored objects, as OLM writes them; off where nothing is mirrored"`
	// CopiedCSVs is as events.ClusterSettings has it.
	CopiedCSVs string `json:"copiedCSVs" enum:"on,off,olmconfig" doc:"Whether mirrored ClusterServiceVersions are copied to the namespaces that they serve: olmconfig is what the OLMConfig of the cluster says, and no where it says nothing. Without effect where nothing is mirrored"`
}

// ConfigureCluster changes settings, labels and taints, and cordons; what is left out stays as it is.
type ConfigureCluster struct {
	Mirror     string             `json:"mirror,omitempty" enum:"none,csv,all" doc:"As in the cluster's settings"`
	Drift      string             `json:"drift,omitempty" enum:"correct,report" doc:"As in the cluster's settings"`
	Optional   string             `json:"optional,omitempty" maxLength:"4096" doc:"As in the cluster's settings"`
	Events     string             `json:"events,omitempty" enum:"on,off" doc:"As in the cluster's settings"`
	CopiedCSVs string             `json:"copiedCSVs,omitempty" enum:"on,off,olmconfig" doc:"As in the cluster's settings"`
	Cordoned   *bool              `json:"cordoned,omitempty" doc:"true: no new install plans are made for the cluster; those that are there already are carried out. false: they are made again"`
	Labels     map[string]*string `json:"labels,omitempty" maxProperties:"128" doc:"Labels to set; null takes one away, others stay. Approval policies follow: what they choose by labels is resolved again"`
	Taints     map[string]*string `json:"taints,omitempty" maxProperties:"128" doc:"Taints to set, in the syntax of labels; null takes one away, others stay. They keep fleet subscriptions away that do not tolerate them, and concern no others"`
}

// ConfiguredCluster is the answer to a change of settings.
type ConfiguredCluster struct {
	Name     string            `json:"name"`
	Settings ClusterSettings   `json:"settings"`
	Labels   map[string]string `json:"labels,omitempty"`
	Taints   map[string]string `json:"taints,omitempty"`
	Cordoned bool              `json:"cordoned" doc:"No new install plans are made for it"`
	Version  int64             `json:"version" doc:"Of the cluster's stream"`
	Position string            `json:"position" doc:"Of the write"`
}

// RegisterCluster gives a cluster to Chandler.
type RegisterCluster struct {
	Name       string            `json:"name" minLength:"1" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label" example:"spoke-1"`
	Access     string            `json:"access,omitempty" enum:"Hosted,Agent" doc:"Hosted, the default: the installer runs its executor, with the kubeconfig. Agent: an agent in the cluster does, and there is no kubeconfig"`
	Kubeconfig string            `json:"kubeconfig,omitempty" minLength:"1" maxLength:"262144" doc:"Of a hosted cluster. YAML or JSON; token or certificate data inside, no exec or auth-provider plugin, no file references, no impersonation; keys as clientcmd has them, in their case. What the current context uses is encrypted at once and never shown again; the rest is not kept."`
	Waive      []string          `json:"waive,omitempty" maxItems:"3" enum:"http,insecure-skip-tls-verify,proxy-url" doc:"What this kubeconfig may have that is refused otherwise: a server without TLS, one whose certificate is not checked, a proxy. What it needs of them is recorded in the event and shown in the cluster"`
	Labels     map[string]string `json:"labels,omitempty" maxProperties:"64"`
	Taints     map[string]string `json:"taints,omitempty" maxProperties:"64" doc:"In the syntax of labels: keep fleet subscriptions away that do not tolerate them"`
}

// AgentConfigRequest asks for what the agent of a cluster is to know.
type AgentConfigRequest struct {
	Recipient string `json:"recipient" minLength:"1" maxLength:"4096" doc:"Public age key (age1…) of who asks: the answer is encrypted to it"`
}

// AgentConfig is what the agent of a cluster is to know, encrypted to who asked.
type AgentConfig struct {
	ClusterID string `json:"clusterId" doc:"Of this registration, as subjects of NATS name it"`
	Sealed    []byte `json:"sealed" doc:"The document of CHANDLER_AGENT_CONFIG, encrypted with age; it has the key that opens configuration values of this cluster"`
}

// ReplaceCredentials gives another kubeconfig for a cluster.
type ReplaceCredentials struct {
	Kubeconfig string   `json:"kubeconfig" minLength:"1" maxLength:"262144" doc:"As when registering"`
	Waive      []string `json:"waive,omitempty" maxItems:"3" enum:"http,insecure-skip-tls-verify,proxy-url" doc:"As when registering; what was waived for the kubeconfig before holds no more"`
}

// Removed is the answer to a delete.
type Removed struct {
	Position string `json:"position" doc:"Of the write"`
}

// ClusterFilter chooses clusters; empty fields choose all.
type ClusterFilter struct {
	Name  string
	State string
	Label string // key=value, or key
	Choice
	Page
}

// Choice is how every list of objects in clusters is chosen and sorted; empty fields choose all.
type Choice struct {
	Sort            string // a field, with - in front for the other way round
	FieldSelector   string
	ClusterSelector string // over labels of clusters
}

// Page is a part of a list: at most Limit items after the item whose key is After.
type Page struct {
	Limit int
	After []string
}

// Replica is a replica of the installer. It runs the executors of clusters whose kubeconfigs are stored, and records
// the reports of clusters.
type Replica struct {
	Name       string     `json:"name"`
	Live       bool       `json:"live" doc:"Heard in the last seconds"`
	Draining   bool       `json:"draining" doc:"It takes no clusters"`
	DrainingBy string     `json:"drainingBy,omitempty" doc:"Actor of the person who drains it"`
	Capacity   int        `json:"capacity" doc:"Weight of the clusters that it takes; 0 is any"`
	Clusters   int        `json:"clusters" doc:"Whose executors it runs"`
	Weight     int        `json:"weight" doc:"Of its clusters: each has 1, and 1 for each operator"`
	Unplaced   int        `json:"unplaced" doc:"Clusters of the fleet for which it finds no replica with room"`
	Recorded   int        `json:"recorded" doc:"Clusters whose reports it records"`
	Moves      int64      `json:"moves" doc:"Executors that it has given to other replicas"`
	Heard      *time.Time `json:"heard,omitempty" doc:"When it last said that it lives; absent once it has stopped"`
}

// DrainReplica has a replica take clusters no more, or again.
type DrainReplica struct {
	Replica  string `json:"replica" minLength:"1" maxLength:"512" doc:"As the list of replicas names it"`
	Draining bool   `json:"draining" doc:"true: its clusters move to the others; false: it takes clusters again"`
}

// Agent is who serves a cluster from within, or wants to.
type Agent struct {
	Cluster  string     `json:"cluster"`
	Phase    string     `json:"phase" enum:"None,Invited,Pending,Accepted,Rejected,Revoked,Cloned" doc:"Invited: there is a join token; Pending: somebody has used it and waits to be accepted; Cloned: two live processes had the credentials of the agent, and neither is let in any more"`
	Token    *JoinToken `json:"token,omitempty" doc:"The join token that was issued last"`
	Asks     *Joiner    `json:"asks,omitempty" doc:"Who waits to be accepted"`
	Agent    *Joiner    `json:"agent,omitempty" doc:"Who was accepted"`
	Position string     `json:"position,omitempty" doc:"Of the write, in answers to writes"`
}

// JoinToken is a token by which one may ask to become the agent of a cluster, without its secret.
type JoinToken struct {
	Key    string    `json:"key" doc:"Public key of the token"`
	EndsAt time.Time `json:"endsAt" doc:"Until when it may be used first"`
	Accept string    `json:"accept" enum:"Manual,Automatic" doc:"Whether a person accepts who uses it"`
	UsedBy string    `json:"usedBy,omitempty" doc:"Instance that has used it; nobody else may"`
}

// Joiner is who asks to become the agent of a cluster, or is it.
type Joiner struct {
	Instance          string `json:"instance" doc:"Id that it has drawn"`
	Key               string `json:"key" doc:"Public key of its user of NATS"`
	ClusterUID        string `json:"clusterUID" doc:"UID of its namespace kube-system"`
	KubernetesVersion string `json:"kubernetesVersion"`
}

// IssueJoinToken asks for a join token. Its secret stays with who asks.
type IssueJoinToken struct {
	Key        string `json:"key" minLength:"56" maxLength:"56" pattern:"^U[A-Z2-7]{55}$" patternDescription:"the public key of a user of NATS" doc:"Public key of the token: of a key pair of a user of NATS, made by who asks. Its seed is the secret of the token"`
	TTLSeconds int64  `json:"ttlSeconds,omitempty" minimum:"60" maximum:"604800" doc:"For how long the token may be used first; an hour without it"`
	Accept     string `json:"accept,omitempty" enum:"Manual,Automatic" doc:"Manual, the default: a person accepts who uses the token. Automatic: the token does, which needs the right to update the cluster, too"`
}

// IssuedJoinToken is what who has the seed of a join token needs beside it. Nothing of it is of use without.
type IssuedJoinToken struct {
	Tenant    string    `json:"tenant"`
	Cluster   string    `json:"cluster"`
	ClusterID string    `json:"clusterId" doc:"Of this registration, as subjects of NATS name it"`
	EndsAt    time.Time `json:"endsAt" doc:"Until when it may be used first"`
	JWT       string    `json:"jwt" doc:"Of the token's user of NATS"`
	NATSURL   string    `json:"natsURL"`
	NATSCA    string    `json:"natsCA,omitempty" doc:"Authorities of its certificate in PEM; absent: those of the system"`
	HubKeys   []string  `json:"hubKeys" nullable:"false" doc:"Public keys by which the agent believes the hub"`
	Position  string    `json:"position" doc:"Of the write"`
}

// DecideAgent accepts or rejects who asks to become the agent of a cluster, or revokes agent and token.
type DecideAgent struct {
	Action   string `json:"action" enum:"Accept,Reject,Revoke" doc:"Accept: who asks becomes the agent, and the one before is let in no more; Reject: it does not; Revoke: nobody is the agent any more, and no token is good"`
	Instance string `json:"instance,omitempty" maxLength:"64" doc:"Who asks, as it was looked at; for Accept and Reject"`
}
