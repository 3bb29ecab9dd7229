package model

import "time"

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
