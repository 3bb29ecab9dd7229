package protocol

import (
	"context"
	"crypto"
	"encoding/base64"
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/libs/keys"
)

// The stop switch fails closed (DESIGN D7): an executor takes a step only while the hub has said a moment ago that
// effects are allowed. It asks, and counts from the moment at which it asked by its own clock that runs evenly: no two
// clocks are compared, and an answer that somebody held back or repeats is no newer for it.
const (
	// RPCGoAhead is where the installer is asked: <prefix>.<tenant>.<cluster>, GoAheadQuestion → GoAhead. An agent asks
	// for its cluster; a process of the installer asks once for all clusters of a tenant that it works on.
	RPCGoAhead = "chandler.rpc.go-ahead"
	// GoAheadAll stands for the cluster in a question about all clusters of a tenant. No cluster has such an id.
	GoAheadAll = "all"
	// GoAheadEvery is how often it is asked: so soon a stop is known where the messages of PLANS do not arrive.
	GoAheadEvery = 5 * time.Second
	// GoAheadValid is for how long after the question an answer allows steps. Three answers may be lost, and the
	// installer may be restarted, before anything waits.
	GoAheadValid = 20 * time.Second
	// GoAheadMaxAway bounds GoAhead.AwaySeconds: who was away for longer asks first.
	GoAheadMaxAway = 90 * 24 * time.Hour
	// GoAheadMemory is for how long the installer answers by what it last read, while PostgreSQL is away: a fail-over
	// takes less. Who stops effects writes to PostgreSQL: where it is away for everybody, nobody can.
	GoAheadMemory = time.Minute
)

// RPCGoAheadSubject is where it is asked for a cluster of a tenant, or for GoAheadAll.
func RPCGoAheadSubject(tenant, clusterID string) string {
	return strings.Join([]string{RPCGoAhead, tenant, clusterID}, ".")
}

// GoAheadQuestion asks whether effects are allowed in the clusters of a tenant.
type GoAheadQuestion struct {
	Tenant string `json:"tenant"`
}

// GoAhead is the answer.
type GoAhead struct {
	// Tenant is the one that was asked about, and AsOf when the hub read this, by its own clock. An answer whose tenant
	// is another one, or whose AsOf lies before that of an answer that came before, allows nothing.
	Tenant string    `json:"tenant"`
	AsOf   time.Time `json:"asOf"`
	// All is set where effects are stopped in all clusters of the tenant; else Stopped are the ids of those where they
	// are.
	All     bool     `json:"all,omitempty"`
	Stopped []string `json:"stopped,omitempty"`
	// AwaySeconds is for how long after the question the answer to an agent allows steps, where that is longer than
	// GoAheadValid: an agent goes on with what it has while the hub is away.
	AwaySeconds int64 `json:"awaySeconds,omitempty"`
}

// HubSigns signs questions and answers of the hub (libs/rpc).
func HubSigns(key crypto.Signer) func(text []byte) (string, error) {
	return func(text []byte) (string, error) {
		signature, err := keys.Sign(key, text)
		return base64.StdEncoding.EncodeToString(signature), err
	}
}

// HubSigned reports whether the hub signed a question or an answer.
func HubSigned(hub keys.Accepted) func(ctx context.Context, text []byte, signature string) bool {
	return func(_ context.Context, text []byte, signature string) bool {
		raw, err := base64.StdEncoding.DecodeString(signature)
		return err == nil && hub.Verify(text, raw)
	}
}
