package events_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/chandler-fleet/chandler/libs/events"
)

func drawUUID(t *rapid.T) uuid.UUID {
	b := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "uuid")
	return uuid.UUID(b)
}

func TestStreamIDRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := events.StreamID{
			Kind: rapid.SampledFrom([]events.Kind{
				events.KindCSV, events.KindCatalog,
				events.KindInstallPlan,
			}).Draw(t, "kind"),
			Key:         drawUUID(t),
			Incarnation: rapid.IntRange(1, 1<<30).Draw(t, "incarnation"),
		}
		got, err := events.ParseStreamID(want.String())
		if err != nil || got != want {
			t.Fatalf("ParseStreamID(%q) = %+v, %v", want, got, err)
		}
	})
}

func TestParseStreamIDRefuses(t *testing.T) {
	t.Parallel()
	key := uuid.NewString()
	for _, s := range []string{
		"", "csv", "csv:" + key, "csv:x:1", "csv:" + key + ":0", "csv:" + key + ":-1",
		"csv:" + key + ":1:2", "csv:" + key + ":one",
	} {
		if id, err := events.ParseStreamID(s); err == nil {
			t.Errorf("ParseStreamID(%q) = %+v, want an error", s, id)
		}
	}
}

func TestPositionRoundTripAndOrder(t *testing.T) {
	t.Parallel()
	position := rapid.Custom(func(t *rapid.T) events.Position {
		return events.Position{
			Epoch: rapid.Int64Range(1, 5).Draw(t, "epoch"),
			N:     rapid.Int64Range(0, 1<<50).Draw(t, "n"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		p, q := position.Draw(t, "p"), position.Draw(t, "q")
		got, err := events.ParsePosition(p.String())
		if err != nil || got != p {
			t.Fatalf("ParsePosition(%q) = %v, %v", p, got, err)
		}
		less, greater := p.Less(q), q.Less(p)
		if less && greater || p == q == (less || greater) {
			t.Fatalf("%v and %v are not ordered: %v, %v", p, q, less, greater)
		}
	})
}

func TestParsePositionRefuses(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "1", "-", "0-1", "1--1", "a-1", "1-b", "1-2-3"} {
		if p, err := events.ParsePosition(s); err == nil {
			t.Errorf("ParsePosition(%q) = %v, want an error", s, p)
		}
	}
}

// DESIGN, settled details: Streams. These ids are stored; they must never change.
func TestKnownIDs(t *testing.T) {
	t.Parallel()
	s := events.StreamID{Kind: events.KindSubscription, Key: events.Key("default", events.KindSubscription,
		"east-1/ports/harbor-master"), Incarnation: 2}
	if got, want := s.String(), "subscription:7d353b10-cee2-515f-98f2-d02aeb861b5d:2"; got != want {
		t.Errorf("stream id = %s, want %s", got, want)
	}
	if got, want := s.UUID().String(), "79831c11-1c63-59e7-8d44-e2093b966117"; got != want {
		t.Errorf("uuid = %s, want %s", got, want)
	}
	if got, want := events.EventID(uuid.Nil, s, 1).String(), "917ed282-2074-5533-8073-e985c94ce3f0"; got != want {
		t.Errorf("event id = %s, want %s", got, want)
	}
}

// DESIGN §3: a retry of a command carries the same event ids, another command or place other ones.
func TestSealDerivesTheID(t *testing.T) {
	t.Parallel()
	s := events.StreamID{
		Kind: events.KindAccess, Key: events.Key("default", events.KindAccess, "fleet"),
		Incarnation: 1,
	}
	m := events.Meta{
		Tenant: "default", Source: events.Gateway, Command: uuid.New(),
		Time: time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("east", 3600)),
	}
	seal := func(m events.Meta, index int) events.Envelope {
		e, err := events.Seal(m, s, "fleet", 1, index, events.EffectsResumed{Epoch: 2})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	first := seal(m, 0)
	if again := seal(m, 0); again.ID != first.ID {
		t.Errorf("a retry has another id: %s and %s", first.ID, again.ID)
	}
	if second := seal(m, 1); second.ID == first.ID {
		t.Errorf("two events of one command share the id %s", first.ID)
	}
	m.Command = uuid.New()
	if other := seal(m, 0); other.ID == first.ID {
		t.Errorf("two commands share the id %s", first.ID)
	}
	if first.Time.Location() != time.UTC {
		t.Errorf("time %v is not UTC", first.Time)
	}
}

// DESIGN §3: a type that a reader does not know stops that reader, visibly.
func TestDecodeOfAnUnknownTypeIsAnError(t *testing.T) {
	t.Parallel()
	_, err := events.Decode(events.Envelope{ID: "e1", Type: "subscription.created.v99", Data: []byte(`{}`)})
	var unknown *events.UnknownTypeError
	if !errors.As(err, &unknown) || unknown.Type != "subscription.created.v99" {
		t.Fatalf("Decode = %v, want an UnknownTypeError that names the type", err)
	}
}

func TestDecodeNamesTheEventThatDoesNotFit(t *testing.T) {
	t.Parallel()
	_, err := events.Decode(events.Envelope{
		ID: "e1", Type: "access.effects-resumed.v1",
		Data: []byte(`{"epoch":"two"}`),
	})
	if err == nil {
		t.Fatal("text was taken for a number")
	}
	for _, want := range []string{"e1", "access.effects-resumed.v1", "epoch"} {
		if !contains(err.Error(), want) {
			t.Errorf("%q does not name %q", err, want)
		}
	}
}

// A fact has the same command again when it is recorded again, and another fact at the same place has another one:
// after a restored backup a stream comes to the same version again, with something else, or with the same in another
// epoch.
func TestFactCommand(t *testing.T) {
	t.Parallel()
	space := uuid.MustParse("5f0c64c1-36a8-5d6e-8f55-0a2b7c1de903")
	in := func(epoch int64, place string, payloads ...events.Payload) uuid.UUID {
		t.Helper()
		id, err := events.FactCommand(space, epoch, place, payloads...)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	command := func(place string, payloads ...events.Payload) uuid.UUID {
		t.Helper()
		return in(1, place, payloads...)
	}
	first := command("a 1", events.HookCreated{Catalog: "x"})
	if again := command("a 1", events.HookCreated{Catalog: "x"}); again != first {
		t.Errorf("the same fact has %s and %s", first, again)
	}
	if before := uuid.MustParse("9460c81d-9e08-5871-9270-d4315ed9f7e7"); first != before {
		t.Errorf("a fact of the first epoch has %s, had %s", first, before)
	}
	second := in(2, "a 1", events.HookCreated{Catalog: "x"})
	if again := in(2, "a 1", events.HookCreated{Catalog: "x"}); again != second {
		t.Errorf("the same fact has %s and %s in epoch 2", second, again)
	}
	for name, other := range map[string]uuid.UUID{
		"another content": command("a 1", events.HookCreated{Catalog: "y"}),
		"another type":    command("a 1", events.HookRevoked{Catalog: "x"}),
		"another place":   command("a 2", events.HookCreated{Catalog: "x"}),
		"one more":        command("a 1", events.HookCreated{Catalog: "x"}, events.HookCreated{Catalog: "x"}),
		"another epoch":   second,
		"one more epoch":  in(3, "a 1", events.HookCreated{Catalog: "x"}),
	} {
		if other == first || name != "another epoch" && other == second {
			t.Errorf("%s has the same command", name)
		}
	}
}
