package bus_test

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
)

type question struct {
	Tenant string `json:"tenant"`
	Text   string `json:"text"`
}

// asked is a question of a tenant.
func asked(text string) question { return question{Tenant: "blue", Text: text} }

func serve(t *testing.T, b *bus.Bus, subject string, fn func(context.Context, json.RawMessage) (any, error)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Serve(ctx, subject, fn) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve = %v", err)
		}
	})
}

// call calls until somebody serves the subject.
func call(t *testing.T, b *bus.Bus, subject string, in, out any) error {
	t.Helper()
	for {
		err := b.Call(t.Context(), subject, in, out)
		if err == nil || !strings.Contains(err.Error(), "nobody serves") {
			return err
		}
	}
}

// speakers are connections of a resolver and a gateway, which know each other by their keys.
func speakers(t *testing.T) (n *bustest.Env, resolver, gateway *bus.Bus) {
	t.Helper()
	n = bustest.Start(t)
	db := pgtest.DB(t)
	connect := func(service string) *bus.Bus { return n.As(t, service, bustest.Speaking(t, db, service)) }
	return n, connect(natsauth.Resolver), connect(natsauth.Gateway)
}

// TestCall: answers of any size come to who asked, and nobody else is believed: a forger who may do everything on NATS
// hears each question and answers first, unsigned or with a key of its own.
func TestCall(t *testing.T) {
	t.Parallel()
	n, resolver, gateway := speakers(t)
	var heard atomic.Int64
	serve(t, resolver, "chandler.rpc.resolver.echo", func(_ context.Context, q json.RawMessage) (any, error) {
		heard.Add(1)
		var in question
		if err := json.Unmarshal(q, &in); err != nil {
			return nil, err
		}
		return in, nil
	})
	forged := forger(t, n, "chandler.rpc.resolver.>")
	for _, size := range []int{10, 3 << 20} { // the second is more than a message takes, and packed
		var out question
		in := asked(strings.Repeat("a", size))
		if err := call(t, gateway, "chandler.rpc.resolver.echo", in, &out); err != nil {
			t.Fatal(err)
		}
		if out != in {
			t.Errorf("the answer of %d bytes has %d", size, len(out.Text))
		}
	}
	if forged.Load() == 0 {
		t.Error("nobody forged an answer")
	}
	// Where the forger alone answers, the error says so.
	silent, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	if err := gateway.Call(silent, "chandler.rpc.resolver.silent", asked(""), nil); !errs.Is(err, errs.Unavailable) ||
		!strings.Contains(err.Error(), "not signed by who may answer") {
		t.Errorf("a forger alone: %v", err)
	}
	// Nor does anybody answer its questions but itself.
	var out question
	stranger := n.Connect(t, bus.WithName(natsauth.Gateway), bus.WithIdentity(forging{key: newKey(t)}))
	err := stranger.Call(t.Context(), "chandler.rpc.resolver.echo", asked("a"), &out)
	if err != nil || out.Text != "forged" {
		t.Errorf("a question of somebody else: %v, %+v", err, out)
	}
	err = gateway.Call(t.Context(), "chandler.rpc.resolver.echo", asked(""), nil)
	if err != nil || heard.Load() != 3 {
		t.Errorf("the resolver heard %d questions (%v), want the gateway's 3", heard.Load(), err)
	}
}

// TestQuestionsAreOfATenant: what answers a question sees rows of its tenant alone; one of no tenant is refused.
func TestQuestionsAreOfATenant(t *testing.T) {
	t.Parallel()
	_, resolver, gateway := speakers(t)
	pool := pgtest.DB(t).Pool(t, "resolver", pg.WithMaxConns(1))
	serve(t, resolver, "chandler.rpc.resolver.echo", func(ctx context.Context, _ json.RawMessage) (any, error) {
		var sees string
		return &sees, pool.QueryRow(ctx, `select current_setting('chandler.tenant')`).Scan(&sees)
	})
	for _, c := range []struct{ tenant, sees string }{{"blue", "blue"}, {"red", "red"}, {"", ""}, {"*", ""}} {
		var sees string
		err := call(t, gateway, "chandler.rpc.resolver.echo", question{Tenant: c.tenant}, &sees)
		if errs.Is(err, errs.Invalid) != (c.sees == "") || sees != c.sees {
			t.Errorf("a question of tenant %q sees %q (%v), want %q", c.tenant, sees, err, c.sees)
		}
	}
}

// forging signs with a key that nobody knows, and believes everybody.
type forging struct{ key ed25519.PrivateKey }

func (f forging) Sign(text []byte) (string, error) {
	signature, err := keys.Sign(f.key, text)
	return base64.StdEncoding.EncodeToString(signature), err
}

func (forging) Signed(context.Context, []string, []byte, string) bool { return true }

func newKey(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// forger answers each question before who is asked, and counts what it said.
func forger(t *testing.T, n *bustest.Env, subject string) *atomic.Int64 {
	t.Helper()
	var said atomic.Int64
	conn, own := n.Connect(t).Conn(), forging{newKey(t)}
	sub, err := conn.Subscribe(subject, func(m *nats.Msg) {
		signature, err := own.Sign(m.Data)
		if err != nil {
			t.Error(err)
		}
		for _, signature := range []string{"", "x", signature} {
			answer := nats.NewMsg(m.Reply)
			answer.Data = []byte(`{"Text": "forged"}`)
			answer.Header.Set("Chandler-Signature", signature)
			if err := conn.PublishMsg(answer); err != nil {
				t.Error(err)
			}
			said.Add(1)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sub.Unsubscribe() })
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	return &said
}

func TestAskKeepsTheKindOfAnError(t *testing.T) {
	t.Parallel()
	_, resolver, gateway := speakers(t)
	serve(t, resolver, "chandler.rpc.resolver.fail", func(_ context.Context, q json.RawMessage) (any, error) {
		if strings.Contains(string(q), "panic") {
			panic("at the disco")
		}
		return nil, errs.New(errs.Unprocessable, "no such channel").At("spec.channel", "R-SUB-7")
	})
	err := call(t, gateway, "chandler.rpc.resolver.fail", asked(""), nil)
	var e *errs.Error
	if !errs.Is(err, errs.Unprocessable) || err.Error() != "no such channel" {
		t.Errorf("Ask = %v", err)
	}
	if e = asError(err); e == nil || e.Field != "spec.channel" || e.Rule != "R-SUB-7" {
		t.Errorf("field and rule are lost: %+v", e)
	}
	err = call(t, gateway, "chandler.rpc.resolver.fail", asked("panic"), nil)
	if !errs.Is(err, errs.Internal) {
		t.Errorf("a panic is answered by %v", err)
	}
}

func asError(err error) *errs.Error {
	e, ok := err.(*errs.Error) //nolint:errorlint // Ask returns it as it is
	if !ok {
		return nil
	}
	return e
}

func TestAskNobody(t *testing.T) {
	t.Parallel()
	_, _, gateway := speakers(t)
	err := gateway.Call(t.Context(), "chandler.rpc.resolver.nobody", asked(""), nil)
	if !errs.Is(err, errs.Unavailable) {
		t.Errorf("Ask = %v", err)
	}
}
