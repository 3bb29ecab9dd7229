package bus_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/errs"
)

type question struct{ Text string }

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

func TestCall(t *testing.T) {
	t.Parallel()
	n := bustest.Start(t)
	serve(t, n.Bus, "chandler.rpc.echo", func(_ context.Context, q json.RawMessage) (any, error) {
		var in question
		if err := json.Unmarshal(q, &in); err != nil {
			return nil, err
		}
		return in, nil
	})
	for _, size := range []int{10, 3 << 20} { // the second is more than a message takes, and packed
		var out question
		in := question{Text: strings.Repeat("a", size)}
		if err := call(t, n.Connect(t), "chandler.rpc.echo", in, &out); err != nil {
			t.Fatal(err)
		}
		if out != in {
			t.Errorf("the answer of %d bytes has %d", size, len(out.Text))
		}
	}
}

func TestAskKeepsTheKindOfAnError(t *testing.T) {
	t.Parallel()
	n := bustest.Start(t)
	serve(t, n.Bus, "chandler.rpc.fail", func(_ context.Context, q json.RawMessage) (any, error) {
		if strings.Contains(string(q), "panic") {
			panic("at the disco")
		}
		return nil, errs.New(errs.Unprocessable, "no such channel").At("spec.channel", "R-SUB-7")
	})
	err := call(t, n.Bus, "chandler.rpc.fail", question{}, nil)
	var e *errs.Error
	if !errs.Is(err, errs.Unprocessable) || err.Error() != "no such channel" {
		t.Errorf("Ask = %v", err)
	}
	if e = asError(err); e == nil || e.Field != "spec.channel" || e.Rule != "R-SUB-7" {
		t.Errorf("field and rule are lost: %+v", e)
	}
	if err := call(t, n.Bus, "chandler.rpc.fail", question{Text: "panic"}, nil); !errs.Is(err, errs.Internal) {
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
	n := bustest.Start(t)
	if err := n.Bus.Call(t.Context(), "chandler.rpc.nobody", question{}, nil); !errs.Is(err, errs.Unavailable) {
		t.Errorf("Ask = %v", err)
	}
}
