package eventlist

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// counted counts the queries of a tail.
type counted struct {
	pg.Querier
	queries atomic.Int64
}

func (c *counted) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	c.queries.Add(1)
	return c.Querier.Query(ctx, sql, args...)
}

func (c *counted) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	c.queries.Add(1)
	return c.Querier.QueryRow(ctx, sql, args...)
}

// sessions are tokens of which some were revoked.
type sessions struct {
	asked   atomic.Int64
	revoked map[model.Session]bool
	version events.Position
}

// policies are roles and bindings that the test changes, with their version.
type policies struct{ state access.State }

func (p *policies) Policy(context.Context, string, events.Position) (*access.Policy, error) {
	return access.NewPolicy(p.state, nil), nil
}

func (s *sessions) Good(_ context.Context, tokens []model.Session) (map[model.Session]events.Position, error) {
	s.asked.Add(1)
	good := map[model.Session]events.Position{}
	for _, t := range tokens {
		if !s.revoked[t] {
			good[t] = s.version
		}
	}
	return good, nil
}

// tailBench is a tail over a log of its own, whose rounds the test makes.
type tailBench struct {
	*Tail

	t        testing.TB
	pool     *pg.Pool
	queries  *counted
	sessions *sessions
	policies *policies
	n        int
}

func newTailBench(t testing.TB) *tailBench {
	t.Helper()
	pool := pgtest.DB(t).Pool(t, "gateway")
	log := eventlog.New(pool)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- eventlog.NewSequencer(log, eventlog.Options{ID: "test"}).Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	b := &tailBench{t: t, pool: pool, queries: &counted{Querier: pool}, sessions: &sessions{}, policies: &policies{}}
	b.Tail = NewTail(&Reader{Pool: pool, Log: log, Work: pool}, b.queries, b.sessions, b.policies)
	return b
}

// register appends an event of a tenant and returns its position.
func (b *tailBench) register(tenant, cluster string) events.Position {
	b.t.Helper()
	ctx := b.t.Context()
	var done eventlog.Appended
	err := b.pool.TenantTx(ctx, tenant, func(tx pgx.Tx) (err error) {
		id := events.StreamID{
			Kind: events.KindCluster, Key: events.Key(tenant, events.KindCluster, cluster), Incarnation: 1,
		}
		m := events.Meta{Tenant: tenant, Source: events.Gateway, Command: uuid.New(), Time: time.Unix(0, 0).UTC()}
		done, err = b.reads.Log.Append(ctx, tx, m, id, cluster, 0, events.ClusterRegistered{Name: cluster})
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	at, ok, err := b.reads.Log.Wait(ctx, done, time.Minute)
	if err != nil || !ok {
		b.t.Fatalf("no position: %v", err)
	}
	return at
}

func (b *tailBench) follow(tenant string, f model.EventFilter) *Follower {
	b.t.Helper()
	return b.followAs(model.Caller{Tenant: tenant, Role: model.RoleAdmin}, f)
}

func (b *tailBench) followAs(who model.Caller, f model.EventFilter) *Follower {
	b.t.Helper()
	b.n++
	who.Session = model.Session{Token: model.HashToken(fmt.Sprint(b.n))}
	one, err := b.Join(who, f)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(one.Leave)
	return one
}

func (b *tailBench) look() {
	b.t.Helper()
	if _, err := b.round(b.t.Context(), b.open()); err != nil {
		b.t.Fatal(err)
	}
}

func (b *tailBench) next(f *Follower, after events.Position) (positions []events.Position, end events.Position) {
	b.t.Helper()
	items, end, done, err := f.Next(b.t.Context(), after, 100)
	if err != nil || !done {
		b.t.Fatalf("got %v, done %v", err, done)
	}
	for _, i := range items {
		positions = append(positions, i.Position)
	}
	return positions, end
}

// TestTailCostsOneReadForAll: 200 streams cost what one costs, and each gets what its filter and tenant allow.
func TestTailCostsOneReadForAll(t *testing.T) {
	t.Parallel()
	b := newTailBench(t)
	first := b.register("default", "before")
	all := make([]*Follower, 0, 200)
	for range cap(all) {
		all = append(all, b.follow("default", model.EventFilter{}))
	}
	eve := b.follow("other", model.EventFilter{})
	named := b.follow("default", model.EventFilter{Subject: "harbour"})
	stream := b.follow("default", model.EventFilter{Stream: events.StreamID{
		Kind: events.KindCluster, Key: events.Key("default", events.KindCluster, "spoke"), Incarnation: 1,
	}.String()})
	b.look()
	spoke, harbour := b.register("default", "spoke"), b.register("default", "harbour")
	before, asked := b.queries.queries.Load(), b.sessions.asked.Load()
	b.look()
	for _, f := range all {
		if got, end := b.next(f, first); len(got) != 2 || got[0] != spoke || got[1] != harbour || end != harbour {
			t.Fatalf("got %v, up to %v", got, end)
		}
	}
	if got, end := b.next(eve, first); got != nil || end != harbour {
		t.Errorf("another tenant got %v, up to %v", got, end)
	}
	if got, _ := b.next(named, first); len(got) != 1 || got[0] != harbour {
		t.Errorf("by subject: %v", got)
	}
	if got, _ := b.next(stream, first); len(got) != 1 || got[0] != spoke {
		t.Errorf("by stream: %v", got)
	}
	if read, tokens := b.queries.queries.Load()-before, b.sessions.asked.Load()-asked; read != 1 || tokens != 1 {
		t.Errorf("a round of %d streams cost %d reads of the log and %d of tokens, want 1 and 1", len(all)+3, read, tokens)
	}
}

// TestPortalsMayStopAskingForPeople: whoever follows for somebody gets nothing that comes after they may ask for people
// no longer, though both may watch.
func TestPortalsMayStopAskingForPeople(t *testing.T) {
	t.Parallel()
	b := newTailBench(t)
	portal := events.AccessSubject{Kind: access.KindServiceAccount, Name: "portal"}
	bound := func(name string, to events.AccessSubject) events.Payload {
		return events.RoleBindingDefined{Name: name, Role: name, Subjects: []events.AccessSubject{to}}
	}
	fold := func(list ...events.Payload) (s access.State) {
		for _, e := range list {
			var err error
			if s, err = access.Evolve(s, e); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	both := bound("viewer", portal).(events.RoleBindingDefined)
	both.Subjects = append(both.Subjects, events.AccessSubject{Kind: access.KindUser, Name: "ann"})
	asks := events.RoleDefined{Name: "asks", Rules: []events.AccessRule{
		{Verbs: []string{string(access.Impersonate)}, Resources: []string{string(access.People)}},
	}}
	b.policies.state = fold(both, asks, bound("asks", portal))
	who := model.Caller{Tenant: "default", Actor: portal.Name, Kind: portal.Kind, OnBehalfOf: "ann"}
	first := b.register("default", "before")
	follower := b.followAs(who, model.EventFilter{})
	b.look()
	may := b.register("default", "may")
	b.look()
	if got, _ := b.next(follower, first); len(got) != 1 || got[0] != may {
		t.Errorf("while it may: %v, want %v", got, may)
	}
	b.policies.state = fold(both, asks)
	b.register("default", "late")
	b.look()
	if got, _ := b.next(follower, may); len(got) != 0 {
		t.Errorf("when it may not any more: %v", got)
	}
}

// TestRevokedTokensGetNothingMore: a token that was revoked before an event came does not see it, from memory or from
// the log.
func TestRevokedTokensGetNothingMore(t *testing.T) {
	t.Parallel()
	b := newTailBench(t)
	first := b.register("default", "before")
	live, late, other := b.follow("default", model.EventFilter{}), b.follow("default", model.EventFilter{}),
		b.follow("default", model.EventFilter{})
	b.look()
	b.sessions.revoked = map[model.Session]bool{live.who.Session: true, late.who.Session: true}
	b.register("default", "after")
	b.look()
	for f, after := range map[*Follower]events.Position{live: first, late: {Epoch: 1}} {
		if items, _, _, err := f.Next(t.Context(), after, 100); !errs.Is(err, errs.Unauthenticated) {
			t.Errorf("got %d events and %v", len(items), err)
		}
	}
	if got, _ := b.next(other, first); len(got) != 1 {
		t.Errorf("another token got %v", got)
	}
}

// TestSlowFollowersEnd: who falls further behind than what is remembered is ended, and goes on from its position
// without a gap when it comes again.
func TestSlowFollowersEnd(t *testing.T) {
	t.Parallel()
	b := newTailBench(t)
	first := b.register("default", "first")
	slow := b.follow("default", model.EventFilter{})
	b.look()
	b.next(slow, first)
	second, third := b.register("default", "second"), b.register("default", "third")
	b.look()
	b.move(func() {
		b.add([]tailed{{item: model.StreamedEvent{Position: third, JSON: make([]byte, tailBytes+1)}}}, third)
	})
	if _, _, _, err := slow.Next(t.Context(), first, 100); !errors.Is(err, ErrBehind) {
		t.Errorf("got %v", err)
	}
	again := b.follow("default", model.EventFilter{})
	if got, _ := b.next(again, first); len(got) != 2 || got[0] != second || got[1] != third {
		t.Errorf("who came again got %v", got)
	}
	if got, end := b.next(again, third); got != nil || end != third {
		t.Errorf("then %v, up to %v", got, end)
	}
	if len(b.kept) > tailEvents || b.bytes > tailBytes {
		t.Errorf("%d events of %d bytes are remembered", len(b.kept), b.bytes)
	}
}

// TestTailFollowsTheLog: who begins before what is remembered reads up to there, and is then told of what comes.
func TestTailFollowsTheLog(t *testing.T) {
	t.Parallel()
	b := newTailBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	f := b.follow("default", model.EventFilter{})
	at, seen := events.Position{Epoch: 1}, 0
	want := b.register("default", "spoke")
	for seen == 0 {
		moved := f.Moved()
		var got []events.Position
		got, at = b.next(f, at)
		if seen += len(got); seen > 0 {
			break
		}
		select {
		case <-moved:
		case <-time.After(time.Minute):
			t.Fatal("the event did not come")
		}
	}
	if at != want || seen != 1 {
		t.Errorf("%d events, up to %v, want one, up to %v", seen, at, want)
	}
	f.Leave()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// BenchmarkTail is one event for 200 streams, from the log to each of them.
func BenchmarkTail(b *testing.B) {
	bench := newTailBench(b)
	all := make([]*Follower, 0, 200)
	for range cap(all) {
		all = append(all, bench.follow("default", model.EventFilter{}))
	}
	bench.look()
	at := events.Position{Epoch: 1}
	before, n := bench.queries.queries.Load(), 0
	for b.Loop() {
		n++
		b.StopTimer()
		next := bench.register("default", fmt.Sprintf("spoke-%d", n))
		b.StartTimer()
		bench.look()
		for _, f := range all {
			if got, _ := bench.next(f, at); len(got) != 1 {
				b.Fatalf("got %v", got)
			}
		}
		at = next
	}
	b.ReportMetric(float64(bench.queries.queries.Load()-before)/float64(n), "reads/op")
}

// TestJoinUnseen: who reads with the rights of the caller what events are about gets every event of the tenant, from
// memory and from the log, whatever the caller may see of events; and nothing once the session has ended.
func TestJoinUnseen(t *testing.T) {
	t.Parallel()
	b := newTailBench(t)
	first := b.register("default", "before")
	nobody := model.Caller{Tenant: "default", Session: model.Session{Token: model.HashToken("nobody")}}
	all := b.JoinUnseen(nobody)
	t.Cleanup(all.Leave)
	if got, _ := b.next(all, events.Position{Epoch: 1}); len(got) != 1 || got[0] != first {
		t.Errorf("from the log: %v", got)
	}
	b.look()
	b.register("other", "hidden")
	second := b.register("default", "after")
	b.look()
	if got, _ := b.next(all, first); len(got) != 1 || got[0] != second {
		t.Errorf("from memory: %v, want %v", got, second)
	}
	if _, _, err := all.Caller(t.Context()); err != nil {
		t.Errorf("a good session: %v", err)
	}
	b.sessions.revoked = map[model.Session]bool{nobody.Session: true}
	b.register("default", "late")
	b.look()
	if _, _, err := all.Caller(t.Context()); !errs.Is(err, errs.Unauthenticated) {
		t.Errorf("a session that ended: %v", err)
	}
	if got, _, _, err := all.Next(t.Context(), second, 100); !errs.Is(err, errs.Unauthenticated) {
		t.Errorf("and got %d events, %v", len(got), err)
	}
}
