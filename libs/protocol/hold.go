package protocol

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"strconv"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// Headers of a report. They say which key to check it with, before anything of it is read.
const (
	HeaderSession         = "Chandler-Session"          // the session that wrote it
	HeaderReportSignature = "Chandler-Report-Signature" // of that session, in base64
)

// MaxEpoch bounds the epochs that are registered: above it a number is not exact in every reader of JSON. A cluster
// whose Lease is taken over once a second gets there after 285 million years.
const MaxEpoch = 1 << 53

// maxHolderBytes bounds the name of a holder: that of a Lease's holder, a host's name and a few words.
const maxHolderBytes = 512

// Hold says with which key an executor signs, and in which epoch it holds its cluster. It is registered with the hub
// before the executor reports or changes anything in that epoch: a report under an epoch that was not registered counts
// for nothing (DESIGN D7).
type Hold struct {
	Tenant    string `json:"tenant"`
	ClusterID string `json:"clusterId"`
	// Epoch is that of the cluster's Lease; 0 is a session that does not hold the cluster, and only says why it is not
	// served.
	Epoch int64 `json:"epoch"`
	// Holder names the process slot, as in the Lease.
	Holder string `json:"holder"`
	// Session is a UUID: one executor, from its start to its end. Its key never changes.
	Session   string            `json:"session"`
	PublicKey ed25519.PublicKey `json:"publicKey"`
	// Restored is set where the Lease was below an epoch that the hub knows although it was held: the cluster was
	// restored from a backup.
	Restored bool `json:"restored,omitempty"`
}

// RPCHold is where the agent of a cluster registers its holds: <prefix>.<tenant>.<cluster>, Hold → HoldAnswer. The hub
// takes tenant and cluster from the subject, on which only the agent of that cluster may publish, and signs the
// answer.
const RPCHold = "chandler.rpc.hold"

// RPCHoldSubject is where the agent of a cluster registers its holds.
func RPCHoldSubject(tenant, clusterID string) string { return join(RPCHold, tenant, clusterID) }

// HoldAnswer is the answer: the epoch that the cluster has then.
type HoldAnswer struct {
	Epoch int64 `json:"epoch"`
}

// Check reports errs.Invalid for a hold that cannot be registered.
func (h Hold) Check() error {
	_, badSession := uuid.Parse(h.Session)
	_, badCluster := uuid.Parse(h.ClusterID)
	switch {
	case h.Tenant == "" || badCluster != nil:
		return errs.New(errs.Invalid, "hold of cluster %.60q of tenant %.60q: want a tenant and a UUID", h.ClusterID,
			h.Tenant)
	case badSession != nil:
		return errs.New(errs.Invalid, "hold of cluster %s: session %.60q is not a UUID", h.ClusterID, h.Session)
	case h.Epoch < 0 || h.Epoch > MaxEpoch:
		return errs.New(errs.Invalid, "hold of cluster %s: epoch %d is not between 0 and %d", h.ClusterID, h.Epoch,
			int64(MaxEpoch))
	case len(h.Holder) > maxHolderBytes:
		return errs.New(errs.Invalid, "hold of cluster %s: the holder's name has more than %d bytes", h.ClusterID,
			maxHolderBytes)
	case len(h.PublicKey) != ed25519.PublicKeySize:
		return errs.New(errs.Invalid, "hold of cluster %s: the key has %d bytes, an Ed25519 key has %d", h.ClusterID,
			len(h.PublicKey), ed25519.PublicKeySize)
	}
	return nil
}

// Session signs what one executor says. Its methods may be called side by side.
type Session struct {
	id       string
	key      ed25519.PrivateKey
	sequence atomic.Int64
}

// NewSession returns a session; id is a new UUID, and key a new one that is nowhere else.
func NewSession(id string, key ed25519.PrivateKey) *Session { return &Session{id: id, key: key} }

// ID is the session's UUID.
func (s *Session) ID() string { return s.id }

// PublicKey is what the session's signatures are checked with.
func (s *Session) PublicKey() ed25519.PublicKey {
	public, _ := s.key.Public().(ed25519.PublicKey) // it is one
	return public
}

// Next is the number of the next report. Reports of a session are in the order of their numbers, whatever clocks say.
func (s *Session) Next() int64 { return s.sequence.Add(1) }

// SignReport signs the bytes of a report for its subject.
func (s *Session) SignReport(subject string, body []byte) string {
	return base64.StdEncoding.EncodeToString(ed25519.Sign(s.key, signedReport(subject, body)))
}

// VerifyReport reports errs.Forbidden unless the session whose key this is wrote exactly these bytes for this subject.
func VerifyReport(subject string, body []byte, signature string, key ed25519.PublicKey) error {
	raw, err := base64.StdEncoding.DecodeString(signature)
	if err != nil || len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, signedReport(subject, body), raw) {
		return errs.New(errs.Forbidden, "the report is not signed by the session that it names")
	}
	return nil
}

// reportMessageType is the first line of what is signed, as messageType is.
const reportMessageType = "chandler.report-message.v1"

func signedReport(subject string, body []byte) []byte {
	return append([]byte(reportMessageType+"\n"+subject+"\n"+strconv.Itoa(len(body))+"\n"), body...)
}

// SignAnswer signs an answer of the executor that holds the cluster (libs/rpc).
func (s *Session) SignAnswer(text []byte) (string, error) {
	return base64.StdEncoding.EncodeToString(ed25519.Sign(s.key, text)), nil
}

// SessionSigned reports whether the session with this key signed an answer.
func SessionSigned(key ed25519.PublicKey) func(ctx context.Context, text []byte, signature string) bool {
	return func(_ context.Context, text []byte, signature string) bool {
		raw, err := base64.StdEncoding.DecodeString(signature)
		return err == nil && len(key) == ed25519.PublicKeySize && ed25519.Verify(key, text, raw)
	}
}
