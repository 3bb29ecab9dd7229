package watch

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// record is a log, and the rights of who follows it. It is used by the goroutine of the stream alone.
type record struct {
	events   []model.StreamedEvent // at the positions 1-1, 1-2 and so on
	versions []events.Position     // of the rights, one for each time that they are asked for; the last one stays
}

func (r *record) Next(
	_ context.Context, after events.Position, limit int,
) ([]model.StreamedEvent, events.Position, bool, error) {
	rest := r.events[min(int(after.N), len(r.events)):]
	rest = rest[:min(limit, len(rest))]
	next := events.Position{Epoch: after.Epoch, N: after.N + int64(len(rest))}
	return rest, next, next.N >= int64(len(r.events)), nil
}

func (r *record) Moved() <-chan struct{} { return nil }

func (r *record) Caller(context.Context) (model.Caller, events.Position, error) {
	version := r.versions[0]
	if len(r.versions) > 1 {
		r.versions = r.versions[1:]
	}
	return model.Caller{Actor: version.String()}, version, nil
}

// happens adds an event about a subscription of the namespace east/ports.
func (r *record) happens() {
	r.events = append(r.events, model.StreamedEvent{Type: "subscription.created.v1", Subject: "east/ports/gauge"})
}

// object is one of the namespace east/ports.
func object(name, content string) Object {
	return Object{
		In: Scope{"east", "ports"}, Name: Name{Cluster: "east", Namespace: "ports", Name: name},
		JSON: fmt.Appendf(nil, `{"name":%q,"content":%q}`, name, content),
	}
}

// follows runs a stream over what read returns until it has sent so many bookmarks, or ends, and returns what it sent.
func follows(
	t *testing.T, d Deps, head int64, again bool, bookmarks int,
) (said []string, err error) {
	t.Helper()
	d.Hold = func(context.Context, events.Position) error { return nil }
	d.Heartbeat, d.Life = time.Minute, time.Minute
	if d.Room == nil {
		d.Room = NewRoom()
	}
	d.List.Kinds = []events.Kind{events.KindSubscription}
	d.List.Allowed = func(context.Context, model.Caller) error { return nil }
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	d.Write = func(text []byte) error {
		for m := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
			change, data := "", ""
			for line := range strings.Lines(m) {
				field, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
				switch field {
				case "event":
					change = value
				case "data":
					data = value
				}
			}
			if change != "" {
				said = append(said, change+" "+data)
			}
			if change == string(bookmark) {
				bookmarks--
			}
		}
		if bookmarks <= 0 {
			cancel()
		}
		return nil
	}
	s, err := Open(ctx, d, events.Position{Epoch: 1, N: head}, again)
	if err != nil {
		return nil, err
	}
	err = s.Run(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Fatalf("no end after %v", said)
	}
	return said, err
}

func wantSaid(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("said\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestWhoGoesOnIsToldEverything: a change that comes while the list is read for a client that goes on is told, whatever
// the log says of it, and what is gone is not told again.
func TestWhoGoesOnIsToldEverything(t *testing.T) {
	t.Parallel()
	r := &record{versions: []events.Position{{Epoch: 1, N: 1}}}
	r.happens()
	read := func(context.Context, model.Caller, Scope, string) ([]Object, string, error) {
		if len(r.events) == 1 {
			r.happens() // behind the head with which the stream began, and already in what is read now
		}
		return []Object{object("gauge", "new"), object("other", "same")}, "", nil
	}
	said, err := follows(t, Deps{Log: r, List: List{Page: read}}, 1, true, 1)
	if err != nil {
		t.Fatal(err)
	}
	wantSaid(t, said, `RESET {}`, `ADDED {"name":"gauge","content":"new"}`, `ADDED {"name":"other","content":"same"}`,
		`BOOKMARK {"position":"1-1"}`)
}

// TestChangeBesideTheFirstReading: what changes after the list was read first is told behind the first bookmark.
func TestChangeBesideTheFirstReading(t *testing.T) {
	t.Parallel()
	r := &record{versions: []events.Position{{Epoch: 1, N: 1}}}
	content := "old"
	read := func(context.Context, model.Caller, Scope, string) ([]Object, string, error) {
		now := content
		if content == "old" {
			content = "new"
			r.happens()
		}
		return []Object{object("gauge", now)}, "", nil
	}
	said, err := follows(t, Deps{Log: r, List: List{Page: read}}, 0, false, 2)
	if err != nil {
		t.Fatal(err)
	}
	wantSaid(t, said, `ADDED {"name":"gauge","content":"old"}`, `BOOKMARK {"position":"1-0"}`,
		`MODIFIED {"name":"gauge","content":"new"}`, `BOOKMARK {"position":"1-1"}`)
}

// TestRightsThatEndInTheFirstReading: a page that was told is taken back, and one that was read meanwhile is not told.
func TestRightsThatEndInTheFirstReading(t *testing.T) {
	t.Parallel()
	before, after := events.Position{Epoch: 1, N: 1}, events.Position{Epoch: 1, N: 2}
	r := &record{versions: []events.Position{before, before, after}} // of Open, and behind each page
	read := func(_ context.Context, who model.Caller, _ Scope, cursor string) ([]Object, string, error) {
		switch {
		case who.Actor == after.String():
			return []Object{object("seen", "1")}, "", nil
		case cursor == "":
			return []Object{object("hidden", "1"), object("seen", "1")}, "2", nil
		default:
			return []Object{object("secret", "1")}, "", nil
		}
	}
	said, err := follows(t, Deps{Log: r, List: List{Page: read}}, 0, true, 1)
	if err != nil {
		t.Fatal(err)
	}
	wantSaid(t, said, `RESET {}`, `ADDED {"name":"hidden","content":"1"}`, `ADDED {"name":"seen","content":"1"}`,
		`DELETED {"cluster":"east","namespace":"ports","name":"hidden"}`, `BOOKMARK {"position":"1-0"}`)
}

// TestRoom: a stream that grows beyond the share of its identity, or the room of all, is told so and ends; one that
// finds no room at all is refused before it begins; a stream that ends gives its room back.
func TestRoom(t *testing.T) {
	t.Parallel()
	watches := func(room *Room, identity string, pages ...[]Object) ([]string, error) {
		r := &record{versions: []events.Position{{Epoch: 1, N: 1}}}
		read := func(_ context.Context, _ model.Caller, _ Scope, cursor string) ([]Object, string, error) {
			if n := len(cursor) + 1; n < len(pages) {
				return pages[n-1], cursor + "+", nil
			}
			return pages[len(cursor)], "", nil
		}
		return follows(t, Deps{Log: r, List: List{Page: read}, Room: room, Identity: identity}, 0, false, 1)
	}
	room := newRoom(3, 2)
	one, two, three := object("1", ""), object("2", ""), object("3", "")
	for range 2 { // what the first one took is there again
		said, err := watches(room, "ann", []Object{one, two}, []Object{three})
		if full := (*FullError)(nil); !errors.As(err, &full) || len(said) != 3 ||
			!strings.HasPrefix(said[2], "ERROR") || !strings.Contains(said[2], "more than 2 objects") {
			t.Errorf("beyond the share: %v, %v", said, err)
		}
	}
	if said, err := watches(room, "ann", []Object{one}, []Object{two}); err != nil || len(said) != 3 {
		t.Errorf("as many as the share: %v, %v", said, err)
	}
	if err := room.take("bo", 2); err != nil {
		t.Fatal(err)
	}
	if said, err := watches(room, "ann", []Object{one, two}); err == nil || len(said) > 0 {
		t.Errorf("beyond the room of all: %v, %v", said, err)
	}
	room.give("bo", 2)
	if room.taken != 0 || len(room.of) != 0 {
		t.Errorf("%d are taken in the end, by %v", room.taken, room.of)
	}
}

// BenchmarkRemembered is what a stream remembers of an object: one in each namespace.
func BenchmarkRemembered(b *testing.B) {
	const objects = 100_000
	d := Deps{Room: NewRoom(), Write: func([]byte) error { return nil }}
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		s := &Stream{Deps: d, seen: map[string]entry{}}
		for i := range objects {
			cluster, namespace := fmt.Sprintf("cluster-%04d", i/100), fmt.Sprintf("namespace-%06d", i)
			if err := s.tell([]Object{{
				In:   Scope{cluster, namespace},
				Name: Name{Cluster: cluster, Namespace: namespace, Name: "operator"}, JSON: []byte("{}"),
			}}); err != nil {
				b.Fatal(err)
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/objects, "B/object")
		s.Room.give("", len(s.seen))
		runtime.KeepAlive(s)
	}
}

// paced runs a stream for a while of a clock of its own, with an event about one part every 10 ms, and returns how
// often the list was read. Each reading takes some time.
func paced(t *testing.T, life, took time.Duration, take func() (time.Duration, bool)) (read int, said string) {
	t.Helper()
	moved := make(chan struct{})
	r := &recordThatMoves{record: record{versions: []events.Position{{Epoch: 1, N: 1}}}, moved: moved}
	ctx, cancel := context.WithTimeout(t.Context(), life)
	defer cancel()
	go func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				r.happens()
			case <-ctx.Done():
				return
			}
		}
	}()
	var out strings.Builder
	s, err := Open(ctx, Deps{
		Log: r, Hold: func(context.Context, events.Position) error { return nil },
		Write: func(text []byte) error {
			out.Write(text)
			return nil
		},
		Heartbeat: time.Second, Life: time.Hour, Room: NewRoom(), Take: take,
		List: List{
			Kinds:   []events.Kind{events.KindSubscription},
			Allowed: func(context.Context, model.Caller) error { return nil },
			Page: func(ctx context.Context, _ model.Caller, in Scope, _ string) ([]Object, string, error) {
				read++
				if in != everything {
					<-time.After(took)
				}
				return []Object{object("gauge", fmt.Sprint(read))}, "", ctx.Err()
			},
		},
	}, events.Position{Epoch: 1}, false)
	if err == nil {
		err = s.Run(ctx)
	}
	if err != nil {
		t.Error(err)
	}
	return read, out.String()
}

// recordThatMoves is a record that is written beside the stream.
type recordThatMoves struct {
	record

	mu    sync.Mutex
	moved chan struct{}
}

func (r *recordThatMoves) happens() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.record.happens()
	close(r.moved)
	r.moved = make(chan struct{})
}

func (r *recordThatMoves) Moved() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.moved
}

func (r *recordThatMoves) Next(
	ctx context.Context, after events.Position, limit int,
) ([]model.StreamedEvent, events.Position, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.record.Next(ctx, after, limit)
}

// TestPartsHaveAPace: a part that changes all the time takes a fifth of a connection, and no more (ADR 0062).
func TestPartsHaveAPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const took, life = 100 * time.Millisecond, 10 * time.Second
		want := int(life / ((1 + partShare) * took))
		if read, _ := paced(t, life, took, nil); read < want || read > want+3 {
			t.Errorf("a part that takes %s was read %d times in %s, want %d", took, read, life, want)
		}
	})
}

// TestPagesTakeTheirTurn: each page but the first is counted as a list of the identity. A stream whose turn does not
// come waits, and keeps its connection alive.
func TestPagesTakeTheirTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const rate, life = 2 * time.Second, 20 * time.Second
		next := time.Now().Add(rate)
		taken := 0
		read, said := paced(t, life, time.Millisecond, func() (time.Duration, bool) {
			if wait := time.Until(next); wait > 0 {
				return wait, false
			}
			taken++
			next = next.Add(rate)
			return 0, true
		})
		if most := int(life / rate); taken < most-1 || read > taken+1 {
			t.Errorf("with a list every %s there were %d pages in %s, %d of which were counted", rate, read, life, taken)
		}
		if !strings.Contains(said, ": heartbeat") {
			t.Errorf("who waits for a turn hears nothing: %s", said)
		}
	})
}
