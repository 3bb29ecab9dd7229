package bus_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// another is the id of an installation that is not the test's.
const another = "0badcafe-0000-4000-8000-000000000002"

// Nothing that may be somebody else's is ever deleted: two installations in one NATS account keep their streams, the
// later one says in readiness whose is in the way, and goes on from Postgres. A person decides (DESIGN D4).
func TestTwoInstallationsInOneAccount(t *testing.T) {
	t.Parallel()
	e := setup(t)
	other := e.nats.Connect(t, bus.WithInstallation(another))
	if _, err := other.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	theirs := other.StreamName(protocol.StreamPlans)
	subject := protocol.SubjectPlans + ".t.c.s"
	if _, err := e.nats.Bus.JetStream().Publish(t.Context(), subject, []byte("theirs")); err != nil {
		t.Fatal(err)
	}
	e.sequence("a", e.nats.Bus.Publisher(e.log, e.pool).Lead)
	c := e.consumer("c", e.nats.Bus)
	e.run(c.Run)
	e.catalog("ours").append(3)
	e.eventually("consumers go on", func() bool { return len(e.effects("c")) == 3 })

	_, err := e.nats.Bus.Ensure(t.Context())
	ready := e.nats.Bus.CheckStreams(t.Context())
	for _, said := range []error{err, ready} {
		if said == nil || !strings.Contains(said.Error(), theirs) || !strings.Contains(said.Error(), another) {
			t.Fatalf("readiness does not name the stream and its owner: %v", said)
		}
	}
	s, err := other.Stream(t.Context(), protocol.StreamPlans)
	if err != nil || s.CachedInfo().State.Msgs != 1 {
		t.Fatalf("the other installation's stream was touched: %v", err)
	}
	if _, stopped, err := e.log.EffectsStopped(t.Context()); err != nil || stopped {
		t.Errorf("another log's hints stopped effects: %v %v", stopped, err)
	}

	replace := make([]string, 0, len(bus.Streams()))
	for _, kind := range bus.Streams() {
		replace = append(replace, other.StreamName(kind))
	}
	if err := bus.Rebuild(t.Context(), e.nats.Bus, e.log, e.pool, replace...); err != nil {
		t.Fatal(err)
	}
	e.eventually("a person has decided", e.full)
	if _, err := e.nats.Bus.Ensure(t.Context()); err != nil || e.nats.Bus.CheckStreams(t.Context()) != nil {
		t.Errorf("after it: %v, %v", err, e.nats.Bus.CheckStreams(t.Context()))
	}
}

// A stream of somebody else under the very name of ours is left alone, too, and the other streams are made.
func TestStreamOfTheSameName(t *testing.T) {
	t.Parallel()
	ctx, e := t.Context(), bustest.Start(t)
	name := e.Bus.StreamName(protocol.StreamPlans)
	_, err := e.Bus.JetStream().CreateStream(ctx, jetstream.StreamConfig{
		Name: name, Subjects: []string{"weather.>"}, Description: "rain",
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Bus.JetStream().Publish(ctx, "weather.today", nil); err != nil {
		t.Fatal(err)
	}
	infos, err := e.Bus.Ensure(ctx)
	if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "rain") {
		t.Errorf("said %v", err)
	}
	if len(infos) != len(bus.Streams())-1 {
		t.Errorf("%d streams are there; one that is in the way keeps others from being made", len(infos))
	}
	if _, err := e.Bus.Ensured(ctx, protocol.StreamPlans); err == nil {
		t.Error("somebody else's stream was taken for ours")
	}
	if s, err := e.Bus.JetStream().Stream(ctx, name); err != nil || s.CachedInfo().State.Msgs != 1 {
		t.Errorf("it was touched: %v", err)
	}
}

// What an operator chose for a stream stays when Chandler changes it: replicas, placement, bounds, compression and the
// rest; only what makes the stream work is set right (DESIGN D4).
func TestAmendKeepsWhatAnOperatorChose(t *testing.T) {
	t.Parallel()
	ctx, e := t.Context(), bustest.Start(t)
	if _, err := e.Bus.Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	s, err := e.Bus.Stream(ctx, protocol.StreamPlans)
	if err != nil {
		t.Fatal(err)
	}
	is := s.CachedInfo().Config
	is.MaxBytes, is.MaxConsumers, is.MaxMsgSize, is.Compression = 1<<30, -1, 900_000, jetstream.S2Compression
	is.Metadata["team"] = "platform"
	is.AllowDirect, is.MaxMsgsPerSubject, is.NoAck = false, 5, true // these break us
	if _, err := e.Bus.JetStream().UpdateStream(ctx, is); err != nil {
		t.Fatal(err)
	}
	infos, err := e.Bus.Ensure(ctx)
	if err != nil {
		t.Fatal(err)
	}
	got := infos[protocol.StreamPlans].Config
	if !got.AllowDirect || got.MaxMsgsPerSubject != 1 || got.NoAck {
		t.Errorf("what makes the stream work was not set right: %+v", got)
	}
	if got.MaxBytes != 1<<30 || got.MaxMsgSize != 900_000 || got.Compression != jetstream.S2Compression ||
		got.Metadata["team"] != "platform" {
		t.Errorf("what the operator chose is gone: %+v", got)
	}
	if said := e.Bus.NoteStreams(ctx); !strings.Contains(said, "max_bytes 1073741824") ||
		!strings.Contains(said, "max_msg_size 900000") {
		t.Errorf("bounds that somebody set are not said: %q", said)
	}
	if err := e.Bus.CheckStreams(ctx); err != nil {
		t.Errorf("they are fatal: %v", err)
	}
}

// Settings of an installation fill what nobody chose, follow their own changes, and leave what somebody chose: an R3
// that an administrator raised stays.
func TestSettingsOfStreams(t *testing.T) {
	t.Parallel()
	ctx, e := t.Context(), bustest.Start(t)
	with := func(text string) *bus.Bus {
		s, err := bus.ParseStreamSettings(text)
		if err != nil {
			t.Fatal(err)
		}
		b := e.Connect(t, bus.WithStreams(s))
		if _, err := b.Ensure(ctx); err != nil {
			t.Fatal(err)
		}
		return b
	}
	config := func(b *bus.Bus, kind string) jetstream.StreamConfig {
		s, err := b.Stream(ctx, kind)
		if err != nil {
			t.Fatal(err)
		}
		return s.CachedInfo().Config
	}
	b := with(`{"maxBytes": {"CONTENT": 1000000, "EVENTS": 2000000}, "eventsMaxAgeSeconds": 3600}`)
	if c := config(b, protocol.StreamEvents); c.MaxBytes != 2_000_000 || c.MaxAge != time.Hour {
		t.Errorf("EVENTS: %+v", c)
	}
	if said := b.NoteStreams(ctx); said != "" {
		t.Errorf("its own settings are somebody else's: %s", said)
	}
	b = with(`{"maxBytes": {"CONTENT": 5000000}}`)
	if c := config(b, protocol.StreamContent); c.MaxBytes != 5_000_000 {
		t.Errorf("a changed setting: %d", c.MaxBytes)
	}
	if c := config(b, protocol.StreamEvents); c.MaxBytes > 0 || c.MaxAge != 0 {
		t.Errorf("a setting that was taken back: %+v", c)
	}
	mine := config(b, protocol.StreamContent)
	mine.MaxBytes = 7_000_000
	if _, err := e.Bus.JetStream().UpdateStream(ctx, mine); err != nil {
		t.Fatal(err)
	}
	if c := config(with(`{"maxBytes": {"CONTENT": 6000000}}`), protocol.StreamContent); c.MaxBytes != 7_000_000 {
		t.Errorf("what somebody chose was overwritten: %d", c.MaxBytes)
	}
}

func TestSettingsOfStreamsThatCannotBe(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"replicas": 7}`:              "1 to 5",
		`{"maxBytes": {"PLAN": 1}}`:    "PLAN is 1",
		`{"maxBytes": {"PLANS": -1}}`:  "-1",
		`{"eventsMaxAgeSeconds": -1}`:  "-1",
		`{"maxAge": {"PLANS": "24h"}}`: "maxAge",
		`[]`:                           "settings of streams",
	} {
		if _, err := bus.ParseStreamSettings(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A stream that acknowledges nothing may merely be slow: it is said, and not replaced, whatever is in it.
func TestSilentStreamIsKept(t *testing.T) {
	t.Parallel()
	ctx, e := t.Context(), bustest.Start(t)
	infos, err := e.Bus.Ensure(ctx)
	if err != nil {
		t.Fatal(err)
	}
	publish := func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		_, err := e.Bus.JetStream().Publish(ctx, protocol.SubjectChunks+".t.d.0", []byte("x"))
		return e.Bus.Published(protocol.StreamContent, err)
	}
	if err := publish(patience); err != nil {
		t.Fatal(err)
	}
	mute := infos[protocol.StreamContent].Config
	mute.NoAck = true
	if _, err := e.Bus.JetStream().UpdateStream(ctx, mute); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := publish(100 * time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("published into a stream that does not answer: %v", err)
		}
	}
	s, err := e.Bus.Stream(ctx, protocol.StreamContent)
	before := infos[protocol.StreamContent].Created
	if err != nil || s.CachedInfo().State.Msgs != 1 || !s.CachedInfo().Created.Equal(before) {
		t.Fatalf("the stream was replaced: %+v %v", s, err)
	}
	if said := e.Bus.CheckStreams(ctx); said == nil || !strings.Contains(said.Error(), "acknowledges nothing") {
		t.Errorf("readiness says %v", said)
	}
	mute.NoAck = false
	if _, err := e.Bus.JetStream().UpdateStream(ctx, mute); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(publish(patience), e.Bus.CheckStreams(ctx)); err != nil {
		t.Errorf("when it answers again: %v", err)
	}
}

// A full stream refuses what is new and keeps what it has; that is said, and it goes on when there is room.
func TestFullStream(t *testing.T) {
	t.Parallel()
	ctx, e := t.Context(), bustest.Start(t)
	settings, err := bus.ParseStreamSettings(`{"maxBytes": {"PLANS": 100000}}`)
	if err != nil {
		t.Fatal(err)
	}
	b := e.Connect(t, bus.WithStreams(settings))
	if _, err := b.Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	publish := func(scope string, size int) error {
		_, err := b.JetStream().Publish(ctx, protocol.SubjectPlans+".t.c."+scope, make([]byte, size))
		return b.Published(protocol.StreamPlans, err)
	}
	if err := publish("first", 60_000); err != nil {
		t.Fatal(err)
	}
	if err := publish("second", 60_000); err == nil {
		t.Fatal("a full stream took a message: the first scope's plans are gone")
	}
	if said := b.CheckStreams(ctx); said == nil || !strings.Contains(said.Error(), "maximum bytes exceeded") {
		t.Errorf("readiness says %v", said)
	}
	if err := publish("first", 50_000); err != nil {
		t.Errorf("the next value of a scope that is there: %v", err)
	}
	s, err := b.Stream(ctx, protocol.StreamPlans)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Purge(ctx, jetstream.WithPurgeSubject(protocol.SubjectPlans+".t.c.first")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(publish("second", 60_000), b.CheckStreams(ctx)); err != nil {
		t.Errorf("when there is room: %v", err)
	}
}

// A message on EVENTS that no process with the log's database wrote, whatever position and hash it claims, neither
// stops effects nor raises the epoch; the hints come back.
func TestForgedHintsStopNothing(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.sequence("a", e.nats.Bus.Publisher(e.log, e.pool).Lead)
	one := e.catalog("one")
	one.append(10)
	one.sequenced()
	e.eventually("all hints there", e.full)
	hash := string(digest.Bytes([]byte("a lie")))
	for name, h := range map[string]nats.Header{
		"a position far beyond the log": {jetstream.MsgIDHeader: {"1-9223372036854775807"}, bus.HeaderHash: {hash}},
		"the next position":             {jetstream.MsgIDHeader: {"1-11"}, bus.HeaderHash: {hash}},
		"another event at a position":   {jetstream.MsgIDHeader: {"1-10"}, bus.HeaderHash: {hash}},
		"an epoch that is none":         {jetstream.MsgIDHeader: {"9000-3"}, bus.HeaderHash: {hash}},
		"a MAC of somebody else": {
			jetstream.MsgIDHeader: {"1-12"}, bus.HeaderHash: {hash}, bus.HeaderMAC: {"x"},
		},
		"a negative position":              {jetstream.MsgIDHeader: {"1--5"}, bus.HeaderHash: {hash}},
		"a hash that is none":              {jetstream.MsgIDHeader: {"1-13"}, bus.HeaderHash: {"sha256:zz"}},
		"no position":                      {},
		"a position of an unwritten epoch": {jetstream.MsgIDHeader: {"2-11"}, bus.HeaderHash: {hash}},
	} {
		m := nats.NewMsg(bus.Subject(events.DefaultTenant, one.id))
		m.Header, m.Data = h, []byte("garbage")
		if err := e.nats.Bus.Conn().PublishMsg(m); err != nil {
			t.Fatal(err)
		}
		// Each is the last message for a while.
		e.throughout(100*time.Millisecond, "effects go on after "+name, func() bool {
			_, stopped, err := e.log.EffectsStopped(t.Context())
			return err == nil && !stopped
		})
		one.append(1)
		one.sequenced()
		e.eventually("as the log again after "+name, e.full)
	}
	if s, stopped, err := e.log.EffectsStopped(t.Context()); err != nil || stopped {
		t.Errorf("effects are stopped: %v %v", s, err)
	}
	if p := e.head(); p.Epoch != 1 {
		t.Errorf("the epoch was raised: %s", p)
	}
}

// Bounds that somebody else set on EVENTS are no loss of hints: they are not filled again and again.
func TestBoundsOfSomebodyElseOnEvents(t *testing.T) {
	t.Parallel()
	e := setup(t)
	if _, err := e.nats.Bus.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, err := e.nats.Bus.Stream(t.Context(), protocol.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	c := s.CachedInfo().Config
	c.MaxMsgs, c.MaxMsgSize = 5, 5000
	if _, err := e.nats.Bus.JetStream().UpdateStream(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	e.sequence("a", e.nats.Bus.Publisher(e.log, e.pool).Lead)
	one := e.catalog("one")
	one.append(20)
	one.sequenced()
	last := func() (uint64, []string) {
		info, err := s.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return info.State.LastSeq, e.hints()
	}
	e.eventually("the newest hints there", func() bool {
		_, h := last()
		return len(h) == 5 && strings.HasPrefix(h[4], "1-20 ")
	})
	seq, hints := last()
	e.throughout(3*time.Second, "not filled again", func() bool { // longer than an idle publisher's look
		again, _ := last()
		return again == seq
	})
	if _, h := last(); !cmp.Equal(h, hints) {
		t.Errorf("filled again: %v, then %v", hints, h)
	}
	if said := e.nats.Bus.NoteStreams(t.Context()); !strings.Contains(said, "max_msgs 5") {
		t.Errorf("it is not said: %q", said)
	}
}

// A leader that may not shape streams (every service but the installer) publishes into what the installer keeps.
func TestOnlyTheKeeperShapesStreams(t *testing.T) {
	t.Parallel()
	e := setup(t)
	gateway := e.nats.As(t, "gateway")
	e.sequence("a", gateway.Publisher(e.log, e.pool).Lead)
	one := e.catalog("one")
	one.append(10)
	one.sequenced()
	keeper := e.nats.As(t, "installer", bus.WithStreams(bus.StreamSettings{}))
	e.run(keeper.Publisher(e.log, e.pool).Keep)
	e.eventually("made by the keeper, filled by the leader", e.full)
	e.delete(protocol.StreamEvents)
	e.eventually("deleted", e.full)
	s, err := e.nats.Bus.Stream(t.Context(), protocol.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.eventually("emptied", e.full)
	if err := e.nats.Bus.Conn().Publish(bus.Subject(events.DefaultTenant, one.id), []byte("garbage")); err != nil {
		t.Fatal(err)
	}
	one.append(1)
	one.sequenced()
	e.eventually("garbage at its end", e.full)
}
