package hubclient_test

import (
	"crypto/ed25519"
	"encoding/json"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/hubclient"
)

// TestPlansLeaveOutWhatCannotBeRead: a message that cannot be read, or that the hub did not sign as it is, is reported
// with its subject, and hides nothing of the other scopes (DESIGN D4).
func TestPlansLeaveOutWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t).Bus
	if _, err := b.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	const id = "0193e6a0-0000-7000-8000-000000000001"
	scope := func(ns string) protocol.Scope {
		return protocol.Scope{Tenant: "default", Cluster: "test", ClusterID: id, Namespace: ns}
	}
	good, err := json.Marshal(protocol.ScopePlans{Scope: scope("good"), Position: events.Position{Epoch: 1, N: 2}})
	if err != nil {
		t.Fatal(err)
	}
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	_, other, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	for ns, m := range map[string]struct {
		body []byte
		key  ed25519.PrivateKey
		sign []byte // what is signed, where it is not the body
	}{
		"bad": {body: []byte(`{"scope":`), key: key}, "strange": {body: good, key: key}, "good": {body: good, key: key},
		"unsigned": {body: good}, "foreign": {body: good, key: other},
		"altered": {body: append(good, ' '), key: key, sign: good},
	} {
		msg := nats.NewMsg(protocol.PlansSubject(scope(ns)))
		msg.Data = m.body
		if m.sign == nil {
			m.sign = m.body
		}
		if m.key != nil {
			signature, err := protocol.SignMessage(msg.Subject, m.sign, m.key)
			if err != nil {
				t.Fatal(err)
			}
			msg.Header.Set(protocol.HeaderSignature, signature)
		}
		if _, err := b.JetStream().PublishMsg(t.Context(), msg); err != nil {
			t.Fatal(err)
		}
	}
	var refused []string
	plans, err := hubclient.New(b.JetStream(), bustest.Installation, "default", id, keys.Accept(public), nil).Plans(
		t.Context(), func(err error) { refused = append(refused, err.Error()) })
	if err != nil {
		t.Fatal(err)
	}
	if len(plans) != 1 || plans[0].Scope.Namespace != "good" {
		t.Errorf("read %+v, want the scope good alone", plans)
	}
	reported := strings.Join(refused, "\n")
	for _, ns := range []string{"bad", "strange", "unsigned", "foreign", "altered"} {
		if !strings.Contains(reported, protocol.PlansSubject(scope(ns))) {
			t.Errorf("the subject of scope %s is not reported: %s", ns, reported)
		}
	}
	if len(refused) != 5 {
		t.Errorf("%d messages are refused, want 5: %s", len(refused), reported)
	}
}
