package recorder_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// claim is a report of a cluster that says it has acted on a position.
func (e *env) claim(epoch int64, seen events.Position, proof []byte) error {
	e.t.Helper()
	r := protocol.ScopeReport{
		Scope: e.scope, Epoch: epoch, Seen: seen, Proof: proof, Reported: time.Now().UTC(),
		CSVs: []protocol.CSVReport{pending("u1", "")},
	}
	return e.recorder.Record(e.t.Context(), e.message(protocol.ScopeReportSubject(r.Scope), r))
}

func (e *env) stopped() bool {
	e.t.Helper()
	_, is, err := e.log.EffectsStopped(e.t.Context())
	if err != nil {
		e.t.Fatal(err)
	}
	return is
}

// TestSeenIsProved: a cluster stops the fleet only with what the hub told it (DESIGN D1); what it merely claims costs
// it its own reports.
func TestSeenIsProved(t *testing.T) {
	t.Parallel()
	seen := events.Position{Epoch: 1, N: 9000}
	prove := func(cluster string, key ed25519.PrivateKey) []byte {
		proof, err := protocol.ProvePosition(cluster, seen, key)
		if err != nil {
			t.Error(err)
		}
		return proof
	}
	of := func(e *env) []byte { return prove(e.scope.ClusterID, hubKey) }
	for name, c := range map[string]struct {
		proof func(e *env) []byte
		seen  events.Position
	}{
		"no proof":            {func(*env) []byte { return nil }, seen},
		"of another position": {of, events.Position{Epoch: 1 << 62, N: 1}},
		"of another cluster": {func(*env) []byte {
			return prove(uuid.NewString(), hubKey)
		}, seen},
		"of a cluster by a message": {func(*env) []byte {
			text, _ := protocol.SignMessage("s", []byte("b"), hubKey)
			signature, _ := base64.StdEncoding.DecodeString(text)
			return signature
		}, seen},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			if err := e.claim(1, c.seen, c.proof(e)); !errs.Is(err, errs.Forbidden) {
				t.Errorf("the report is %v, want forbidden", err)
			}
			if e.stopped() {
				t.Error("effects are stopped everywhere")
			}
			e.facts(events.KindCSV, "east/ns/etcd.v1")
			if said := e.text(
				`select message from installer.messages where kind = 'cluster' and subject = 'east'`); !strings.Contains(said, "chandler-seen") {
				t.Errorf("people are told %q", said)
			}
		})
	}
	t.Run("proved", func(t *testing.T) {
		t.Parallel()
		e := setup(t)
		if err := e.claim(1, seen, of(e)); err != nil || !e.stopped() {
			t.Errorf("recorded %v, effects are not stopped", err)
		}
		e.facts(events.KindCSV, "east/ns/etcd.v1", "csv.phase-changed.v1")
	})
	t.Run("not the holder", func(t *testing.T) {
		t.Parallel()
		e := setup(t)
		e.session(6)
		e.observed(7, "Connected")
		if err := e.claim(6, seen, of(e)); err != nil || e.stopped() {
			t.Errorf("recorded %v, effects are stopped by a holder that was replaced", err)
		}
	})
	t.Run("not registered", func(t *testing.T) {
		t.Parallel()
		e := setup(t)
		e.session(1)
		e.scope.ClusterID = uuid.NewString()
		if err := e.claim(1, seen, of(e)); !errs.Is(err, errs.Forbidden) || e.stopped() {
			t.Errorf("recorded %v, effects are stopped by a cluster that nobody knows", err)
		}
	})
}
