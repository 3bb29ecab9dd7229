package hubtest

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/rpc"
)

// answers are those of the hub to executors that ask whether effects are allowed: they are, unless the test says else.
type answers struct {
	mu      sync.Mutex
	silent  bool
	goAhead protocol.GoAhead
}

func (a *answers) serve(tb testing.TB, conn *nats.Conn, key ed25519.PrivateKey) {
	tb.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	by := rpc.Answerer{Sign: protocol.HubSigns(key)}
	go func() {
		defer close(done)
		// A connection that was closed with the server serves nobody any more.
		_ = by.Serve(ctx, conn, bustest.Log(tb), protocol.RPCGoAheadSubject(Tenant, "*"), a.answer)
	}()
	tb.Cleanup(func() {
		stop()
		<-done
	})
}

func (a *answers) answer(context.Context, json.RawMessage) (any, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.silent {
		return nil, errs.New(errs.Unavailable, "the hub does not know")
	}
	said := a.goAhead
	said.Tenant, said.AsOf = Tenant, time.Now()
	return said, nil
}

// GoAhead is what executors are told from now on that ask whether effects are allowed.
func (h *Hub) GoAhead(say protocol.GoAhead) {
	h.answers.mu.Lock()
	defer h.answers.mu.Unlock()
	h.answers.silent, h.answers.goAhead = false, say
}

// Silence has the hub say nothing any more to executors that ask whether effects are allowed.
func (h *Hub) Silence() {
	h.answers.mu.Lock()
	defer h.answers.mu.Unlock()
	h.answers.silent = true
}

// Ask asks the executor that holds the cluster, as the installer does, and believes what its session signed.
func (h *Hub) Ask(ctx context.Context, question string, in, out any) error {
	by := rpc.Asker{Sign: protocol.HubSigns(h.Key), Verify: protocol.SessionSigned(h.holds.Last().PublicKey)}
	return by.Ask(ctx, h.JetStream.Conn(), protocol.RPCSubject(Tenant, h.ClusterID, question), in, out)
}
