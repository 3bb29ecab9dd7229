package hub

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

const registration = "11111111-1111-5111-8111-111111111111"

// stream is what the server tells of a stream.
func stream(name string, created time.Time, messages uint64) *jetstream.StreamInfo {
	return &jetstream.StreamInfo{
		Config: jetstream.StreamConfig{Name: name}, Created: created, State: jetstream.StreamState{Msgs: messages},
	}
}

// filledHub is a hub whose one published scope is being worked on.
func filledHub(t *testing.T, created time.Time) (*Hub, *pg.Pool) {
	t.Helper()
	pool := pgtest.DB(t).Pool(t, "installer")
	for _, sql := range []string{
		`insert into installer.clusters (tenant, name, cluster_id, stream, credential) values ($1, 'east', $2, '', '')`,
		`insert into installer.published (tenant, cluster_id, namespace, cluster, digest, stopped, published)
			values ($1, $2, 'ns', 'east', 'sha256:x', false, now())`,
		`insert into installer.dirty (tenant, cluster, namespace, lane, owner, until, cause)
			values ($1, 'east', 'ns', 0, 'worker', now() + interval '1 hour', $2)`,
	} {
		if _, err := pool.Exec(t.Context(), sql, events.DefaultTenant, registration); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{protocol.StreamPlans, protocol.StreamContent} {
		if _, err := pool.Exec(t.Context(), `insert into installer.streams (tenant, name, created, messages, fills)
			values ($1, $2, $3, 7, 1)`,
			events.AllTenants, name, created); err != nil {
			t.Fatal(err)
		}
	}
	return &Hub{c: Config{Pool: pool, Log: bustest.Log(t)}}, pool
}

// A loss marks scopes again, also one that is being worked on: what it sends may go where nobody looks.
func TestRefill(t *testing.T) {
	t.Parallel()
	created := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	later := created.Add(time.Second)
	for name, c := range map[string]struct {
		plans, content *jetstream.StreamInfo
		lost           bool
	}{
		"nothing lost": {
			stream(protocol.StreamPlans, created, 1), stream(protocol.StreamContent, created, 9),
			false,
		},
		"PLANS emptied": {
			stream(protocol.StreamPlans, created, 0), stream(protocol.StreamContent, created, 7),
			true,
		},
		"PLANS made anew": {stream(protocol.StreamPlans, later, 1), stream(protocol.StreamContent, created, 7), true},
		"CONTENT emptied": {
			stream(protocol.StreamPlans, created, 1), stream(protocol.StreamContent, created, 6),
			true,
		},
		"CONTENT made anew": {stream(protocol.StreamPlans, created, 1), stream(protocol.StreamContent, later, 7), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, pool := filledHub(t, created)
			known, err := h.filled(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := h.refill(t.Context(), known, map[string]*jetstream.StreamInfo{
				protocol.StreamPlans: c.plans, protocol.StreamContent: c.content,
			}); err != nil {
				t.Fatal(err)
			}
			var generation, fills, messages int64
			if err := pool.QueryRow(t.Context(), `select d.generation, s.fills, s.messages
				from installer.dirty d, installer.streams s where s.name = $1`,
				protocol.StreamContent).Scan(&generation, &fills, &messages); err != nil {
				t.Fatal(err)
			}
			want := [3]int64{1, 1, 9}
			if c.lost {
				want = [3]int64{2, 2, 0}
			}
			if got := [3]int64{generation, fills, messages}; got != want {
				t.Errorf("generation, fills, messages are %v, want %v", got, want)
			}
		})
	}
}

// What is remembered of CONTENT holds until it is to be filled again, whoever noticed.
func TestContentIsKnownForOneFilling(t *testing.T) {
	t.Parallel()
	c := newContents(nil, nil, bodies.Keys{})
	c.note(1, "a")
	if !c.has(1, "a") || c.has(1, "b") || c.has(2, "a") {
		t.Error("known for another filling, or not for its own")
	}
	c.note(2, "b")
	if c.has(2, "a") || !c.has(2, "b") {
		t.Error("what was put before a filling is known in it")
	}
	c.note(1, "late") // put by one that began before the loss
	if c.has(2, "late") {
		t.Error("what was put before a filling is known in it")
	}
}
