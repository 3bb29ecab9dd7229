package hub_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/hub"
)

// TestPlansLeaveOutWhatCannotBeRead: a message that cannot be read is told with its subject, and hides nothing of
// the other scopes (DESIGN D4).
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
	for ns, body := range map[string][]byte{"bad": []byte(`{"scope":`), "strange": good, "good": good} {
		if _, err := b.JetStream().Publish(t.Context(), protocol.PlansSubject(scope(ns)), body); err != nil {
			t.Fatal(err)
		}
	}
	var refused []string
	plans, err := hub.New(b.JetStream(), "default", id).Plans(t.Context(), func(err error) { refused = append(refused, err.Error()) })
	if err != nil {
		t.Fatal(err)
	}
	if len(plans) != 1 || plans[0].Scope.Namespace != "good" {
		t.Errorf("read %+v, want the scope good alone", plans)
	}
	told := strings.Join(refused, "\n")
	for _, ns := range []string{"bad", "strange"} {
		if !strings.Contains(told, protocol.PlansSubject(scope(ns))) {
			t.Errorf("the subject of scope %s is not told: %s", ns, told)
		}
	}
	if len(refused) != 2 {
		t.Errorf("%d messages are refused, want 2: %s", len(refused), told)
	}
}
