package hubclient

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/rpc"
)

// TestFresh: DESIGN D7: a go-ahead ends protocol.GoAheadValid after the question by whichever clock says that more time
// has passed: neither a clock that is set back nor a machine that slept makes it last longer.
func TestFresh(t *testing.T) {
	t.Parallel()
	asked := time.Now()
	wall := asked.Round(0)
	for name, c := range map[string]struct {
		asked, now time.Time
		fresh      bool
	}{
		"at once":                         {asked, asked, true},
		"just in time":                    {asked, asked.Add(protocol.GoAheadValid - 1), true},
		"too late":                        {asked, asked.Add(protocol.GoAheadValid), false},
		"never asked":                     {time.Time{}, asked, false},
		"the machine slept":               {asked, wall.Add(protocol.GoAheadValid), false},
		"set forward: nothing is assumed": {asked, wall.Add(24 * time.Hour), false},
	} {
		if got := fresh(c.asked, c.now, protocol.GoAheadValid); got != c.fresh {
			t.Errorf("%s: fresh is %v", name, got)
		}
	}
}

// TestGoAheadOfAnAgent: an agent may go on for as long as the hub said of its cluster, and no longer than anybody may;
// an answer about all clusters of a tenant, which is the installer's own, holds as long as ever.
func TestGoAheadOfAnAgent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cluster string
		seconds int64
		want    time.Duration
	}{
		"a day":                     {"east", 86400, 24 * time.Hour},
		"nothing said":              {"east", 0, protocol.GoAheadValid},
		"less than everybody's":     {"east", 1, protocol.GoAheadValid},
		"about all":                 {protocol.GoAheadAll, 86400, protocol.GoAheadValid},
		"more than an agent's":      {"east", 1 << 40, protocol.GoAheadValid},
		"more than a number's room": {"east", 1 << 62, protocol.GoAheadValid},
		"negative":                  {"east", -5, protocol.GoAheadValid},
	} {
		if got := validFor(c.cluster, protocol.GoAhead{AwaySeconds: c.seconds}); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestGoAhead: DESIGN D7: what the hub says counts, and nothing that another says who answers sooner; without an answer
// of the hub nothing is allowed any more after a bounded time, and again when it answers.
func TestGoAhead(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t).Connect(t, bus.WithName(natsauth.Installer))
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var say *protocol.GoAhead
	answer := func(a *protocol.GoAhead) { mu.Lock(); say = a; mu.Unlock() }
	const about = "chandler.rpc.go-ahead.t.all"
	first := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan struct{})
	go func() {
		defer close(served)
		by := rpc.Answerer{Sign: protocol.HubSigns(key)}
		if err := by.Serve(ctx, b.Conn(), bustest.Log(t), about,
			func(context.Context, json.RawMessage) (any, error) {
				mu.Lock()
				defer mu.Unlock()
				if say == nil {
					return nil, errs.New(errs.Unavailable, "not known")
				}
				return say, nil
			}); err != nil {
			t.Error(err)
		}
	}()
	defer func() { stop(); <-served }()
	// A forger hears every question and says at once that all is allowed: unsigned, and with a key of its own.
	_, own, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	sub, err := b.Conn().Subscribe(about, func(m *nats.Msg) {
		stolen, err := protocol.HubSigns(own)(m.Data)
		if err != nil {
			t.Error(err)
		}
		for _, signature := range []string{"", "x", stolen} {
			forged := nats.NewMsg(m.Reply)
			forged.Data = []byte(`{"tenant":"t","asOf":"2032-02-03T04:05:06Z"}`)
			forged.Header.Set("Chandler-Signature", signature)
			if err := b.Conn().PublishMsg(forged); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()

	clock := time.Now()
	now := func() time.Time { mu.Lock(); defer mu.Unlock(); return clock }
	g := NewGoAheads(b.Conn(), protocol.GoAheadAll, keys.Accept(key.Public().(ed25519.PublicKey)), bustest.Log(t), now)
	a := &goAhead{}
	g.tenants["t"] = a
	ask := func() error { return g.once(t.Context(), "t", a) }
	if err := ask(); !errs.Is(err, errs.Unavailable) || g.Check("t", "east") != Unknown {
		t.Errorf("a hub that does not know: %v, allowed %d", err, g.Check("t", "east"))
	}
	answer(&protocol.GoAhead{Tenant: "t", AsOf: first, Stopped: []string{"west"}})
	if err := ask(); err != nil || g.Check("t", "east") != Going || g.Check("t", "west") != Stopped ||
		g.Check("other", "east") != Unknown {
		t.Errorf("one cluster is stopped: %v, east %d, west %d", err, g.Check("t", "east"), g.Check("t", "west"))
	}
	answer(&protocol.GoAhead{Tenant: "t", All: true}) // as of never: a hub that has just started knows of the stop
	if err := ask(); err != nil || g.Check("t", "east") != Stopped {
		t.Errorf("all are stopped: %v, east %d", err, g.Check("t", "east"))
	}
	for name, a := range map[string]protocol.GoAhead{
		"about another tenant": {Tenant: "other", AsOf: first.Add(time.Second)},
		"as of never":          {Tenant: "t"},
		"as of before":         {Tenant: "t", AsOf: first.Add(-protocol.GoAheadMemory)},
	} {
		answer(&a)
		if err := ask(); err == nil || g.Check("t", "east") != Stopped {
			t.Errorf("an answer %s: %v, east %d", name, err, g.Check("t", "east"))
		}
	}
	// PostgreSQL's clock was set back.
	answer(&protocol.GoAhead{Tenant: "t", AsOf: first.Add(-protocol.GoAheadMemory - 1)})
	if err := ask(); err != nil || g.Check("t", "west") != Going {
		t.Errorf("nothing is stopped: %v, west %d", err, g.Check("t", "west"))
	}
	answer(nil)
	mu.Lock()
	clock = clock.Add(protocol.GoAheadValid)
	mu.Unlock()
	if err := ask(); err == nil || g.Check("t", "west") != Unknown {
		t.Errorf("the hub is silent: %v, west %d", err, g.Check("t", "west"))
	}
}
