package protocol

import (
	"crypto/ed25519"
	"encoding/base64"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
)

// HeaderSignature carries the hub's signature of a ScopePlans message, in base64.
const HeaderSignature = "Chandler-Signature"

// The first line of a signed text names its type: the same key signs grants, and none may be used as another.
const (
	messageType  = "chandler.scope-plans-message.v1"
	positionType = "chandler.position.v1"
)

// SignMessage signs the bytes of a ScopePlans message for its subject: who can write to the bus still cannot forge
// messages of the hub. Cluster, namespace and position are in the bytes.
func SignMessage(subject string, body []byte, key ed25519.PrivateKey) string {
	return base64.StdEncoding.EncodeToString(ed25519.Sign(key, signedMessage(subject, body)))
}

// VerifyMessage reports errs.Forbidden unless the hub signed exactly these bytes for this subject.
func VerifyMessage(subject string, body []byte, signature string, key ed25519.PublicKey) error {
	raw, err := base64.StdEncoding.DecodeString(signature)
	if err != nil || len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, signedMessage(subject, body), raw) {
		return errs.New(errs.Forbidden,
			"message on %s is not signed by the hub's key: see who else may write to stream %s", subject, StreamPlans)
	}
	return nil
}

func signedMessage(subject string, body []byte) []byte {
	return append([]byte(messageType+"\n"+subject+"\n"), body...)
}

// ProvePosition signs that the hub has sent a position to a cluster. Reports return it as a proof of the position that
// a cluster has seen: a position beyond the log stops effects everywhere (DESIGN D1).
func ProvePosition(clusterID string, p events.Position, key ed25519.PrivateKey) []byte {
	return ed25519.Sign(key, signedPosition(clusterID, p))
}

// Proved reports whether the hub has sent the position to the cluster.
func Proved(clusterID string, p events.Position, proof []byte, key ed25519.PublicKey) bool {
	return len(key) == ed25519.PublicKeySize && ed25519.Verify(key, signedPosition(clusterID, p), proof)
}

func signedPosition(clusterID string, p events.Position) []byte {
	return []byte(strings.Join([]string{positionType, clusterID, p.String()}, "\n"))
}
