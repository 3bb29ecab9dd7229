package bus_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// TestPublished: a stream is replaced after three publishes in a row without an acknowledgement (DESIGN D4: the
// deletion of a stream costs only time), and kept if it acknowledges one in between.
func TestPublished(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	e := bustest.Start(t)
	all := bus.Streams()
	mute := all[slices.IndexFunc(all, func(c jetstream.StreamConfig) bool { return c.Name == protocol.StreamContent })]
	mute.NoAck = true
	if _, err := e.Bus.JetStream().CreateStream(ctx, mute); err != nil {
		t.Fatal(err)
	}
	publish := func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		_, err := e.Bus.JetStream().Publish(ctx, protocol.SubjectChunks+".t.d.0", []byte("x"))
		return e.Bus.Published(ctx, protocol.StreamContent, err)
	}
	silent := func() {
		t.Helper()
		if err := publish(200 * time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("published into a stream that does not answer: %v", err)
		}
	}
	silent()
	silent()
	if err := e.Bus.Published(ctx, protocol.StreamContent, nil); err != nil {
		t.Fatal(err)
	}
	silent()
	silent()
	if s, err := e.Bus.JetStream().Stream(ctx, protocol.StreamContent); err != nil || !s.CachedInfo().Config.NoAck {
		t.Fatalf("it was made anew after two publishes without an answer (%v)", err)
	}
	silent()
	if err := publish(patience); err != nil {
		t.Errorf("after the third: %v", err)
	}
}
