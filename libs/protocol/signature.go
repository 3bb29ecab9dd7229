package protocol

import (
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/chandler-fleet/chandler/libs/digest"
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
	eventType    = "chandler.position-of-event.v1"
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

// ProvePosition signs that the hub has sent a position to a cluster, and with which event: hash is that of the event's
// exact bytes, "" where the record holds none at it. Reports return the proof: a position beyond the log, and an event
// that the log does not hold, stop effects everywhere (DESIGN D1). The hash is behind the signature, so that who stores
// the proof, or hands it on, needs to know nothing of it.
func ProvePosition(clusterID string, p events.Position, hash digest.Digest, key crypto.Signer) ([]byte, error) {
	sum, err := hex.DecodeString(hash.Hex())
	if err != nil || len(sum) != 0 && len(sum) != sha256.Size {
		return nil, errs.New(errs.Invalid, "position %s: %q is not the hash of an event", p, hash)
	}
	signature, err := keys.Sign(key, signedPosition(clusterID, p, hash))
	return append(signature, sum...), err
}

// Proved reports whether the hub has sent the position to the cluster, and the hash of the event there; "" where the
// proof does not say it, as those of releases before 0.1 do not.
func Proved(clusterID string, p events.Position, proof []byte, hub keys.Accepted) (hash digest.Digest, ok bool) {
	hash = ProvedHash(proof)
	return hash, len(proof) >= keys.SignatureBytes &&
		hub.Verify(signedPosition(clusterID, p, hash), proof[:keys.SignatureBytes])
}

// ProvedHash is the hash that a proof names; "" where it names none.
func ProvedHash(proof []byte) digest.Digest {
	if len(proof) != keys.SignatureBytes+sha256.Size {
		return ""
	}
	return digest.FromSum(proof[keys.SignatureBytes:])
}

func signedPosition(clusterID string, p events.Position, hash digest.Digest) []byte {
	if hash == "" {
		return []byte(strings.Join([]string{positionType, clusterID, p.String()}, "\n"))
	}
	return []byte(strings.Join([]string{eventType, clusterID, p.String(), string(hash)}, "\n"))
}
