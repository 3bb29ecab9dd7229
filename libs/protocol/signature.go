package protocol

import (
	"crypto"
	"encoding/base64"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/keys"
)

// HeaderSignature carries the hub's signature of a ScopePlans message, in base64; the id of the key is in it.
const HeaderSignature = "Chandler-Signature"

// The first line of a signed text names its type: the same key signs grants, and none may be used as another.
const (
	messageType  = "chandler.scope-plans-message.v1"
	positionType = "chandler.position.v1"
)

// SignMessage signs the bytes of a ScopePlans message for its subject: who can write to the bus still cannot forge
// messages of the hub. Cluster, namespace and position are in the bytes.
func SignMessage(subject string, body []byte, key crypto.Signer) (string, error) {
	signature, err := keys.Sign(key, signedMessage(subject, body))
	return base64.StdEncoding.EncodeToString(signature), err
}

// VerifyMessage reports errs.Forbidden unless the hub signed exactly these bytes for this subject.
func VerifyMessage(subject string, body []byte, signature string, hub keys.Accepted) error {
	raw, err := base64.StdEncoding.DecodeString(signature)
	if err != nil || !hub.Verify(signedMessage(subject, body), raw) {
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
func ProvePosition(clusterID string, p events.Position, key crypto.Signer) ([]byte, error) {
	return keys.Sign(key, signedPosition(clusterID, p))
}

// Proved reports whether the hub has sent the position to the cluster.
func Proved(clusterID string, p events.Position, proof []byte, hub keys.Accepted) bool {
	return hub.Verify(signedPosition(clusterID, p), proof)
}

func signedPosition(clusterID string, p events.Position) []byte {
	return []byte(strings.Join([]string{positionType, clusterID, p.String()}, "\n"))
}
