package holds_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"testing"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/rpc"
	"github.com/chandler-fleet/chandler/services/installer/executor/hubclient"
)

// TestServe: an agent registers the holds of its own cluster, whatever the question says, and believes the hub alone; a
// cluster that the hub hosts is taken by no message.
func TestServe(t *testing.T) {
	t.Parallel()
	r, own, mine := setup(t)
	hosted := uuid.NewString()
	if _, err := own.Exec(t.Context(), `insert into installer.clusters (tenant, name, cluster_id, stream, credential)
		values ($1, 'west', $2, 's2', 'c1:a')`, events.DefaultTenant, hosted); err != nil {
		t.Fatal(err)
	}
	e := bustest.Start(t)
	e.AddAgent(t, events.DefaultTenant, mine)
	e.AddAgent(t, events.DefaultTenant, hosted)
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	hub := e.As(t, natsauth.Installer)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- r.Serve(ctx, hub.Conn(), key, bustest.Log(t)) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	agent := e.As(t, natsauth.AgentName(mine)).Conn()
	ask := hubclient.NewHolds(agent, keys.Accept(public))
	h := hold(t, mine, 3)
	var epoch int64
	for { // the subscription of the hub may be on its way
		if epoch, err = ask.Register(t.Context(), h); !errs.Is(err, errs.Unavailable) {
			break
		}
	}
	if err != nil || epoch != 3 {
		t.Fatalf("registered epoch %d: %v", epoch, err)
	}
	later := hold(t, mine, 2)
	if epoch, err := ask.Register(t.Context(), later); err != nil || epoch != 3 {
		t.Errorf("a hold that comes late: epoch %d, %v", epoch, err)
	}

	// What the question says of another cluster counts for nothing.
	lying := hold(t, hosted, 4)
	lying.Tenant = "other"
	var answer protocol.HoldAnswer
	by := rpc.Asker{Verify: protocol.HubSigned(keys.Accept(public))}
	subject := protocol.RPCHoldSubject(events.DefaultTenant, mine)
	if err := by.Ask(t.Context(), agent, subject, lying, &answer); err != nil || answer.Epoch != 4 {
		t.Errorf("a hold on the subject of this cluster: %+v, %v", answer, err)
	}
	if got, err := r.Key(t.Context(), events.DefaultTenant, mine); err != nil || !got.Equal(lying.PublicKey) {
		t.Errorf("the hold is not that of the subject's cluster: %v", err)
	}
	if _, err := r.Key(t.Context(), events.DefaultTenant, hosted); !errs.Is(err, errs.Unavailable) {
		t.Errorf("the hold is that of the cluster in the question: %v", err)
	}

	other := hubclient.NewHolds(e.As(t, natsauth.AgentName(hosted)).Conn(), keys.Accept(public))
	if _, err := other.Register(t.Context(), hold(t, hosted, 1)); !errs.Is(err, errs.NotFound) {
		t.Errorf("a cluster that the hub hosts: %v", err)
	}
	if err := by.Ask(t.Context(), agent, subject, json.RawMessage(`{"session":"x"}`), &answer); !errs.Is(
		err, errs.Invalid) {
		t.Errorf("a hold that is none: %v", err)
	}
}
