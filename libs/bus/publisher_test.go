package bus_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/natsconn"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// hints returns "id subject body" of every message in EVENTS, in order; nil where the stream is missing.
func (e *env) hints() []string {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), 5*time.Second)
	defer cancel()
	s, err := e.nats.Bus.Stream(ctx, protocol.StreamEvents)
	if err != nil {
		return nil
	}
	info := s.CachedInfo()
	var list []string
	for seq := info.State.FirstSeq; seq > 0 && seq <= info.State.LastSeq; seq++ {
		m, err := s.GetMsg(ctx, seq)
		if err != nil {
			return nil // it is being replaced in this moment
		}
		list = append(list, m.Header.Get(jetstream.MsgIDHeader)+" "+m.Subject+" "+string(m.Data))
	}
	return list
}

// full reports whether EVENTS holds the whole log in order.
func (e *env) full() bool {
	recs, _, err := e.log.ReadAfter(e.t.Context(), e.pool, events.Position{}, eventlog.Filter{Raw: true}, 100_000)
	if err != nil {
		e.t.Fatal(err)
	}
	hints := e.hints()
	if len(hints) != len(recs) {
		return false
	}
	for i, r := range recs {
		if hints[i] != r.Position.String()+" "+bus.Subject(r.Tenant, r.StreamID)+" "+string(r.Bytes) {
			return false
		}
	}
	return true
}

func (e *env) delete(stream string) {
	e.t.Helper()
	err := e.nats.Bus.JetStream().DeleteStream(e.t.Context(), e.nats.Bus.StreamName(stream))
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) { // not yet made again since it was deleted last
		e.t.Fatal(err)
	}
}

func TestPublisherFollowsTheLogInOrder(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.sequence("a", e.nats.Bus.Publisher(e.log, e.pool).Lead)
	c := e.catalog("one")
	c.append(1200)
	c.sequenced()
	e.eventually("all hints there", e.full)
	c.append(1)
	c.sequenced()
	e.eventually("the next hint there", e.full)
}

// Who keeps the stream and looks at it while another process publishes takes nothing for deleted.
func TestNothingIsTakenForDeletedWhileOthersPublish(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.sequence("a", e.nats.Bus.Publisher(e.log, e.pool).Lead)
	c := e.catalog("one")
	c.append(1)
	c.sequenced()
	e.eventually("the first hint there", e.full)
	keeper := e.nats.Bus.Publisher(e.log, e.pool)
	appended := make(chan struct{})
	e.run(func(context.Context) error {
		defer close(appended)
		for range 1000 {
			if err := e.tryAppend(c); err != nil {
				return err
			}
		}
		return nil
	})
	looks := 0
	for publishing := true; publishing; looks++ {
		if err := keeper.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		select {
		case <-appended:
			publishing = false
		default:
		}
	}
	e.eventually("all hints there", e.full)
	s, err := e.nats.Bus.Stream(t.Context(), protocol.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	if first := s.CachedInfo().State.FirstSeq; first != 1 {
		t.Errorf("in %d looks the stream was emptied: it begins with sequence %d", looks, first)
	}
}

// Whatever happens to EVENTS, it is as the log again, and every consumer took everything once.
func TestEventsStreamIsRefilledUnaided(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.sequence("a", e.nats.Bus.Publisher(e.log, e.pool).Lead)
	c := e.consumer("c", e.nats.Bus)
	e.run(c.Run)
	one := e.catalog("one")
	one.append(20)
	one.sequenced()
	e.eventually("all hints there", e.full)
	live := strings.Join(e.hints(), "\n")

	e.delete(protocol.StreamEvents)
	e.eventually("an idle publisher notices a deleted stream", e.full)
	if again := strings.Join(e.hints(), "\n"); again != live {
		t.Error("a refilled stream differs from the live one")
	}

	for i := range 30 {
		if i%10 == 5 {
			e.delete(protocol.StreamEvents)
		}
		one.append(1)
	}
	one.sequenced()
	e.eventually("deleted in mid-run", e.full)

	s, err := e.nats.Bus.Stream(t.Context(), protocol.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	one.append(1)
	one.sequenced()
	e.eventually("emptied", e.full)

	e.eventually("all taken", func() bool { return len(e.effects("c")) >= int(e.head().N) })
	e.once("c")
}

// A publisher that lost the lead without knowing it is refused by the server (DESIGN D4).
func TestStalePublisherIsRefused(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.sequence("a", e.nats.Bus.Publisher(e.log, e.pool).Lead)
	c := e.catalog("one")
	c.append(10)
	c.sequenced()
	e.eventually("all hints there", e.full)
	stale := nats.NewMsg(bus.Subject(events.DefaultTenant, c.id))
	stale.Header.Set(jetstream.MsgIDHeader, "1-9000")
	stale.Header.Set(jetstream.ExpectedLastMsgIDHeader, "1-5")
	if _, err := e.nats.Bus.JetStream().PublishMsg(t.Context(), stale); err == nil {
		t.Fatal("a hint behind an older one was accepted")
	}
	if !e.full() {
		t.Error("a refused hint changed the stream")
	}
}

// Two publishers at once, as after a leader that was stopped and goes on, still give the log in order.
func TestTwoPublishersGiveOneOrder(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.sequence("a", nil)
	e.run(e.nats.Bus.Publisher(e.log, e.pool).Lead, e.nats.Connect(t).Publisher(e.log, e.pool).Lead)
	c := e.catalog("one")
	for range 20 {
		c.append(20)
	}
	e.eventually("all hints there", e.full)
}

func TestRebuildEqualsLive(t *testing.T) {
	t.Parallel()
	e := setup(t)
	stop := e.sequence("a", e.nats.Bus.Publisher(e.log, e.pool).Lead)
	one := e.catalog("one")
	one.append(700)
	one.sequenced()
	e.eventually("all hints there", e.full)
	live := strings.Join(e.hints(), "\n")
	stop()
	if err := bus.Rebuild(t.Context(), e.nats.Bus, e.log, e.pool); err != nil {
		t.Fatal(err)
	}
	if again := strings.Join(e.hints(), "\n"); again != live {
		t.Error("a rebuilt stream differs from the live one")
	}
	e.sequence("b", e.nats.Bus.Publisher(e.log, e.pool).Lead)
	e.catalog("two").append(5)
	if err := bus.Rebuild(t.Context(), e.nats.Bus, e.log, e.pool); err != nil {
		t.Fatal(err)
	}
	e.eventually("rebuilt beside a running publisher", e.full)
}

// Hints that come never, twice, late or in the wrong order change nothing but time.
func TestHintsAreOnlyHints(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.sequence("a", nil) // no publisher at all: every hint is lost
	c := e.consumer("c", e.nats.Bus)
	e.run(c.Run)
	one := e.catalog("one")
	for i := range 30 {
		one.append(1)
		for range i % 4 { // hints of other positions, out of order and doubled
			m := nats.NewMsg(bus.Subject(events.DefaultTenant, one.id))
			m.Header.Set(jetstream.MsgIDHeader, events.Position{Epoch: 1, N: int64(30 - i)}.String())
			if err := e.nats.Bus.Conn().PublishMsg(m); err != nil {
				t.Fatal(err)
			}
		}
	}
	e.eventually("all taken", func() bool { return len(e.effects("c")) >= 30 })
	e.once("c")
}

// NATS goes and comes: appends, sequencing and consumers go on, and hints follow.
func TestNATSAwayInMidRun(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.sequence("a", e.nats.Bus.Publisher(e.log, e.pool).Lead)
	c := e.consumer("c", e.nats.Bus)
	e.run(c.Run)
	one := e.catalog("one")
	one.append(10)
	one.sequenced()
	e.eventually("all hints there", e.full)
	e.nats.Server.Stop()
	e.eventually("the loss is seen", func() bool { return errs.Is(e.nats.Bus.Check(t.Context()), errs.Unavailable) })
	one.append(10)
	e.eventually("taken without NATS", func() bool { return len(e.effects("c")) == 20 })
	if err := e.nats.Server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.eventually("hints follow", e.full)
	if err := e.nats.Bus.Check(t.Context()); err != nil {
		t.Error(err)
	}
	e.once("c")
}

func TestConnectWaitsWhileNATSIsAway(t *testing.T) {
	t.Parallel()
	n := bustest.Start(t)
	n.Bus.Close()
	n.Server.Stop()
	lines := &lineCounter{}
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var b *bus.Bus
	go func() {
		var err error
		b, err = bus.Connect(ctx, n.Access(bustest.Test), bus.WithLog(lines.logger()))
		done <- err
	}()
	lines.wait(t, "NATS is away at start")
	if err := n.Server.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if n := lines.count("away at start"); n != 1 {
		t.Errorf("said %d times that NATS is away", n)
	}
}

func TestConnectGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := bus.Connect(ctx, natsconn.Settings{URL: "nats://127.0.0.1:1"}, bus.WithLog((&lineCounter{}).logger()))
	if !errs.Is(err, errs.Unavailable) {
		t.Errorf("Connect = %v", err)
	}
}
