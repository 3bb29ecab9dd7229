package protocol

import (
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/errs"
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
	// Token is the public key of the join token, and Proof the signature of its key over Text.
	Token string `json:"token"`
	Proof []byte `json:"proof"`
	// Instance is the id of the one who asks, made at random once and kept beside Key: a UUID.
	Instance string `json:"instance"`
	// Key is the public key of the user of NATS whose seed the agent has made and keeps.
	Key string `json:"key"`
	// ClusterUID is the UID of the namespace kube-system: of the API server, whatever it is called.
	ClusterUID        string `json:"clusterUID"`
	KubernetesVersion string `json:"kubernetesVersion"`
	// Recipient is a public age key, to which the configuration is encrypted in the answer.
	Recipient string `json:"recipient"`
}

// Text is what the token signs of a question about a cluster: all of it but the proof.
func (q JoinQuestion) Text(tenant, clusterID string) []byte {
	return []byte(strings.Join([]string{
		"chandler.join.v1", tenant, clusterID, q.Token, q.Instance, q.Key, q.ClusterUID, q.KubernetesVersion,
		q.Recipient,
	}, "\n"))
}

// Bounds of what a JoinQuestion says: UUIDs, and what API servers call their versions.
const (
	maxJoinID      = 64
	maxJoinVersion = 128
)

// Check reports errs.Invalid for a question that nobody asks by honest means. What it says becomes part of events.
func (q JoinQuestion) Check() error {
	for name, id := range map[string]string{"instance": q.Instance, "clusterUID": q.ClusterUID} {
		if _, err := uuid.Parse(id); err != nil || len(id) > maxJoinID {
			return errs.New(errs.Invalid, "%s %.80q is no UUID", name, id).At(name, "uuid")
		}
	}
	if len(q.KubernetesVersion) > maxJoinVersion || strings.ContainsAny(q.KubernetesVersion, " \t\r\n") {
		return errs.New(errs.Invalid, "kubernetesVersion %.80q is no version", q.KubernetesVersion).
			At("kubernetesVersion", "version")
	}
	return nil
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
	// Config is agentconfig.Config, encrypted to JoinQuestion.Recipient.
	Config []byte `json:"config,omitempty"`
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

// RPCInstallerJoinToken is where the installer service is asked for what a join token needs: JoinTokenQuestion →
// JoinTokenAnswer. Where NATS is not in operator mode it is errs.Conflict.
const RPCInstallerJoinToken = "chandler.rpc.installer.join-token"

// JoinTokenQuestion asks for the credentials of who has a token.
type JoinTokenQuestion struct {
	Tenant    string    `json:"tenant"`
	ClusterID string    `json:"clusterId"`
	Token     string    `json:"token"` // its public key
	Ends      time.Time `json:"ends"`
}

// JoinTokenAnswer is of use to who has the seed of the token alone.
type JoinTokenAnswer struct {
	JWT     string   `json:"jwt"`
	URL     string   `json:"url"`          // of NATS, for agents
	CA      string   `json:"ca,omitempty"` // authorities of its certificate in PEM; "": those of the system
	HubKeys []string `json:"hubKeys"`      // by which the agent believes the hub, as keys.PublicEntry writes them
}
