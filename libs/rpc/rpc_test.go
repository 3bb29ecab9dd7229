package rpc_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/rpc"
)

// TestOneSubscriptionForSeveralSubjects: each request is handled by the handler of its own subject. An unknown subject
// is refused at once; the caller does not wait for its timeout.
func TestOneSubscriptionForSeveralSubjects(t *testing.T) {
	t.Parallel()
	conn := bustest.Start(t).Connect(t, bus.WithName(natsauth.Gateway)).Conn()
	say := func(text string) rpc.Handler {
		return func(context.Context, json.RawMessage) (any, error) { return text, nil }
	}
	answers := map[string]rpc.Handler{"chandler.rpc.resolver.one": say("1"), "chandler.rpc.resolver.two": say("2")}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		choose := func(subject string) (rpc.Handler, bool) {
			fn, ok := answers[subject]
			return fn, ok
		}
		done <- rpc.Answerer{Sign: sign}.ServeAll(ctx, conn, bustest.Log(t), "chandler.rpc.resolver.*", choose)
	}()
	for subject, want := range map[string]string{"chandler.rpc.resolver.one": "1", "chandler.rpc.resolver.two": "2"} {
		var got string
		if err := patient(t, conn, subject, &got); err != nil || got != want {
			t.Errorf("%s: answer %q, %v, want %q", subject, got, err, want)
		}
	}
	var got string
	if err := ask(t, conn, "chandler.rpc.resolver.three", &got); !errs.Is(err, errs.NotFound) {
		t.Errorf("a question that nobody knows: %v, want %s", err, errs.NotFound)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("ServeAll = %v", err)
	}
	if err := ask(t, conn, "chandler.rpc.resolver.one", &got); !errs.Is(err, errs.Unavailable) {
		t.Errorf("after the end: %v, want %s", err, errs.Unavailable)
	}
}

// sign and signed are a signature that everybody can make.
func sign(text []byte) (string, error) { return digest.Bytes(text).Short(), nil }

func signed(_ context.Context, text []byte, signature string) bool {
	return signature == digest.Bytes(text).Short()
}

func ask(t *testing.T, conn *nats.Conn, subject string, out any) error {
	t.Helper()
	return rpc.Asker{Verify: signed}.Ask(t.Context(), conn, subject, "?", out)
}

// patient asks until somebody serves the subject.
func patient(t *testing.T, conn *nats.Conn, subject string, out any) error {
	t.Helper()
	for {
		err := ask(t, conn, subject, out)
		if err == nil || !strings.Contains(err.Error(), "nobody serves") {
			return err
		}
	}
}
