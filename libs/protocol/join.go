package protocol

import (
	"strings"
	"time"
)

// Where a program asks that wants to become the agent of a cluster, or is it: <prefix>.<tenant>.<cluster>.
const (
	// RPCJoin is JoinQuestion → JoinAnswer. Questions are signed by the key of the join token, answers by the hub.
	RPCJoin = "chandler.rpc.join"
	// RPCRenew is RenewQuestion → RenewAnswer. Who may publish there is alone in an account of NATS; what is answered
	// is of use to who has the seed alone.
	RPCRenew = "chandler.rpc.renew"
)

const (
	// AgentJWTLife is how long credentials of an agent are good: a hub that is away for a night costs no agent its
	// connection, since a new JWT is asked for at half of it.
	AgentJWTLife = 24 * time.Hour
	// JoinLife is how long who has asked to join may ask again after its token has ended: a person accepts it on the
	// next working day.
	JoinLife = 72 * time.Hour
)

// RPCJoinSubject is where who has a token for a cluster asks.
func RPCJoinSubject(tenant, clusterID string) string {
	return strings.Join([]string{RPCJoin, tenant, clusterID}, ".")
}

// RPCRenewSubject is where the agent of a cluster asks for a newer JWT.
func RPCRenewSubject(tenant, clusterID string) string {
	return strings.Join([]string{RPCRenew, tenant, clusterID}, ".")
}

// JoinQuestion asks to become the agent of a cluster. It is asked again, with the same content, until it is decided.
type JoinQuestion struct {
	// Instance is the id of the one who asks, made at random once and kept beside Key: a UUID.
	Instance string `json:"instance"`
	// Key is the public key of the user of NATS whose seed the agent has made and keeps.
	Key string `json:"key"`
	// ClusterUID is the UID of the namespace kube-system: of the API server, whatever it is called.
	ClusterUID        string `json:"clusterUID"`
	KubernetesVersion string `json:"kubernetesVersion"`
}

// States of a JoinAnswer.
const (
	JoinPending  = "Pending"  // somebody has to accept it: ask again
	JoinAccepted = "Accepted" // with a JWT
	JoinRejected = "Rejected" // for good: another token is needed
)

// JoinAnswer says what became of a JoinQuestion.
type JoinAnswer struct {
	State string `json:"state"`
	// JWT is that of the agent's user, good for AgentJWTLife.
	JWT string `json:"jwt,omitempty"`
	// Installation is the id by which the streams of the installation are named.
	Installation string `json:"installation,omitempty"`
}

// RenewQuestion asks for a newer JWT.
type RenewQuestion struct {
	// Process is the id of the process that asks, made at random at its start.
	Process string `json:"process"`
}

// RenewAnswer is the newer JWT.
type RenewAnswer struct {
	JWT string `json:"jwt"`
}
