package eventlog_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// D1: the exact bytes are kept and hashed; versions count from 1.
func TestAppendedIsReadBack(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	a := b.mustAppend(t, "east", 0, registered("east"), replaced(1))
	if a.Version != 2 || len(a.Events) != 2 || a.Repeated {
		t.Fatalf("appended %+v", a)
	}
	check := func(where string, list []eventlog.Recorded) {
		t.Helper()
		if len(list) != 2 {
			t.Fatalf("%s: %d events, want 2", where, len(list))
		}
		for i, e := range list {
			if e.Version != int64(i)+1 || e.StreamID != clusterStream("east") || e.Subject != "east" {
				t.Errorf("%s: event %d is %+v", where, i, e.Envelope)
			}
			if diff := cmp.Diff(a.Events[i], e.Envelope); diff != "" {
				t.Errorf("%s: envelope (-appended +read):\n%s", where, diff)
			}
			if err := eventlog.Verify(e); err != nil {
				t.Errorf("%s: %v", where, err)
			}
		}
		if diff := cmp.Diff(replaced(1), list[1].Payload); diff != "" {
			t.Errorf("%s: payload (-appended +read):\n%s", where, diff)
		}
	}
	stream := func() []eventlog.Recorded {
		list, err := b.log.ReadStream(t.Context(), b.pool, events.DefaultTenant, clusterStream("east"), 0)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	check("stream before it has positions", stream())
	b.sequenceAll(t, b.lead(t))
	check("stream", stream())
	check("log", b.readAll(t))
}

// Conflicts are a typed error that says where the stream is.
func TestConflict(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.mustAppend(t, "east", 0, registered("east"), replaced(1))
	for _, c := range []struct {
		name     string
		expected int64
		kind     errs.Kind
	}{
		{"a create of what is there is an exact 409", 0, errs.AlreadyExists},
		{"a decision on an older state", 1, errs.Conflict},
		{"a decision on a state that never was", 3, errs.Conflict},
	} {
		_, err := b.append(t.Context(), "east", c.expected, replaced(2))
		var conflict *eventlog.ConflictError
		if !errors.As(err, &conflict) || errs.KindOf(err) != c.kind {
			t.Fatalf("%s: %v (%s)", c.name, err, errs.KindOf(err))
		}
		if conflict.Expected != c.expected || conflict.Actual != 2 || conflict.Stream != clusterStream("east") {
			t.Errorf("%s: %+v", c.name, conflict)
		}
	}
	_, err := b.append(t.Context(), "west", 1, replaced(2))
	var conflict *eventlog.ConflictError
	if !errors.As(err, &conflict) || conflict.Actual != 0 || !errs.Is(err, errs.Conflict) {
		t.Errorf("a stream that does not exist: %v", err)
	}
}

// Two deciders cannot both win: of many that decided on one version exactly one appends.
func TestOneOfManyWins(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.mustAppend(t, "east", 0, registered("east"))
	const deciders = 12
	results := make([]error, deciders)
	var wg sync.WaitGroup
	for i := range deciders {
		wg.Go(func() { _, results[i] = b.append(t.Context(), "east", 1, replaced(i)) })
	}
	wg.Wait()
	won := 0
	for _, err := range results {
		switch {
		case err == nil:
			won++
		case !errs.Is(err, errs.Conflict):
			t.Errorf("a loser got %v", err)
		}
	}
	if won != 1 {
		t.Errorf("%d won, want 1", won)
	}
}

// Delete and create again starts a new incarnation; an ended stream takes nothing more.
func TestIncarnations(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	latest := func() eventlog.StreamHead {
		t.Helper()
		h, err := b.log.Latest(t.Context(), b.pool, events.DefaultTenant, events.KindCluster, "east")
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	create := func(s events.StreamID) error {
		return b.pool.Tx(t.Context(), func(tx pgx.Tx) error {
			_, err := b.log.Append(t.Context(), tx, meta(), s, "east", 0, registered("east"))
			return err
		})
	}
	if h := latest(); h.Version != 0 || h.Exists() || h.Create() != clusterStream("east") {
		t.Errorf("head of nothing: %+v", h)
	}
	second := clusterStream("east")
	second.Incarnation = 2
	b.mustAppend(t, "east", 0, registered("east"))
	if h := latest(); !h.Exists() || h.Create() != clusterStream("east") {
		t.Errorf("head of a living stream: %+v", h)
	}
	if err := create(second); !errs.Is(err, errs.Conflict) ||
		!strings.Contains(err.Error(), "the one before has not ended") {
		t.Errorf("a second life beside the first: %v", err)
	}
	b.mustAppend(t, "east", 1, events.ClusterRemoved{Name: "east"})
	if h := latest(); h.Exists() || !h.Closed || h.Create() != second {
		t.Errorf("head of an ended stream: %+v", h)
	}
	if _, err := b.append(t.Context(), "east", 2, replaced(1)); !errs.Is(err, errs.Conflict) ||
		!strings.Contains(err.Error(), "has ended") {
		t.Errorf("append to an ended stream: %v", err)
	}
	if err := create(latest().Create()); err != nil {
		t.Errorf("create again: %v", err)
	}
	if h := latest(); !h.Exists() || h.ID != second {
		t.Errorf("head of the second life: %+v", h)
	}
	if err := create(second); !errs.Is(err, errs.AlreadyExists) {
		t.Errorf("create a third time: %v", err)
	}
}

// A command may be sent twice: at the caller's wish the second time changes nothing.
func TestAppendOnce(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	m := meta()
	once := func(expected int64) (a eventlog.Appended, err error) {
		err = b.pool.Tx(t.Context(), func(tx pgx.Tx) (err error) {
			a, err = b.log.AppendOnce(t.Context(), tx, m, clusterStream("east"), "east", expected, registered("east"),
				replaced(1))
			return err
		})
		return a, err
	}
	if a, err := once(0); err != nil || a.Repeated || a.Version != 2 {
		t.Fatalf("first time: %+v %v", a, err)
	}
	b.mustAppend(t, "east", 2, replaced(2))
	for _, when := range []string{"before it has a position", "with a position"} {
		for _, expected := range []int64{0, 2, 3} {
			if a, err := once(expected); err != nil || !a.Repeated || a.Version != 2 || len(a.Events) != 0 {
				t.Errorf("%s, again at %d: %+v %v", when, expected, a, err)
			}
		}
		b.sequenceAll(t, b.lead(t))
	}
	if n := len(b.readAll(t)); n != 3 {
		t.Errorf("%d events, want 3", n)
	}
	// The same command twice at once: one appends, one is told of it.
	m = meta()
	second := make([]eventlog.Appended, 6)
	var wg sync.WaitGroup
	for i := range second {
		wg.Go(func() {
			var err error
			if second[i], err = once(3); err != nil {
				t.Errorf("at once: %v", err)
			}
		})
	}
	wg.Wait()
	fresh := 0
	for _, a := range second {
		if a.Version != 5 {
			t.Errorf("at once: %+v", a)
		}
		if !a.Repeated {
			fresh++
		}
	}
	if fresh != 1 {
		t.Errorf("%d appended, want 1", fresh)
	}
}

// A role that may not write a type is refused by the database, with the writer named.
func TestWritersAreEnforced(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.mustAppend(t, "east", 0, registered("east"))
	for _, c := range []struct {
		role, want string
		payloads   []events.Payload
		kind       errs.Kind
	}{
		{
			"resolver",
			"role chandler_resolver may not write events of type cluster.credential-replaced.v1: their writer is the " +
				"service gateway",
			[]events.Payload{replaced(1)},
			errs.Forbidden,
		},
		{
			"installer",
			"role chandler_installer may not write events of type cluster.removed.v1: their writer is the service " +
				"gateway",
			[]events.Payload{events.ClusterObserved{}, events.ClusterRemoved{}},
			errs.Forbidden,
		},
		{
			"gateway", "stands in streams of kind subscription, not cluster",
			[]events.Payload{events.SubscriptionDeleted{}},
			errs.Invalid,
		},
		{
			"gateway", "event type cluster.painted.v1 is not registered in this database",
			[]events.Payload{painted{}},
			errs.Invalid,
		},
	} {
		pool := b.db.Pool(t, c.role)
		err := pool.Tx(t.Context(), func(tx pgx.Tx) error {
			_, err := b.log.Append(t.Context(), tx, meta(), clusterStream("east"), "east", 1, c.payloads...)
			return err
		})
		if !errs.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v (%s), want %q", c.role, err, errs.KindOf(err), c.want)
		}
	}
	installer := b.db.Pool(t, "installer")
	err := installer.Tx(t.Context(), func(tx pgx.Tx) error {
		_, err := b.log.Append(t.Context(), tx, meta(), clusterStream("east"), "east", 1, events.ClusterObserved{})
		return err
	})
	if err != nil {
		t.Errorf("the type's own writer: %v", err)
	}
}

// painted is a type that only a later release knows.
type painted struct{ Colour string }

func (painted) EventType() events.Type { return "cluster.painted.v1" }

// UPDATE and DELETE are denied to all roles, and so is INSERT beside the function.
func TestRecordCannotBeChanged(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.mustAppend(t, "east", 0, registered("east"))
	b.sequenceAll(t, b.lead(t))
	b.mustAppend(t, "east", 1, replaced(1))
	statements := []string{
		`update eventlog.events set body = ''`, `delete from eventlog.events`, `truncate eventlog.events`,
		`insert into eventlog.events select * from eventlog.events`, `select * from eventlog.events_000000000001`,
		`update eventlog.appended set body = ''`, `delete from eventlog.appended`,
		`insert into eventlog.appended (tenant) values ('x')`, `update eventlog.streams set version = 9`,
		`delete from eventlog.streams`, `update eventlog.sequencer set position = 9`,
		`update eventlog.event_types set writer = 'gateway'`, `delete from eventlog.stops`,
		`delete from eventlog.epochs`, `update eventlog.schema_info set version = 0`,
		`select eventlog.protect('eventlog.events')`, `drop table eventlog.events`,
	}
	for _, role := range []string{"gateway", "resolver", "installer", "catalog-indexer"} {
		pool := b.db.Pool(t, role)
		for _, sql := range statements {
			if _, err := pool.Exec(t.Context(), sql); !errs.Is(pg.Err(err), errs.Forbidden) {
				t.Errorf("%s: %s: %v", role, sql, err)
			}
		}
	}
}

// Row-level security: a session sees and writes its own tenant only.
func TestTenantsAreApart(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	tenants := []string{"blue", "green"}
	stream := func(tenant string) events.StreamID {
		return events.StreamID{
			Kind: events.KindCluster, Key: events.Key(tenant, events.KindCluster, "east"),
			Incarnation: 1,
		}
	}
	appendAs := func(session, tenant string, expected int64, p events.Payload) error {
		m := meta()
		m.Tenant = tenant
		return b.pool.TenantTx(t.Context(), session, func(tx pgx.Tx) error {
			_, err := b.log.Append(t.Context(), tx, m, stream(tenant), "east", expected, p)
			return err
		})
	}
	for _, tenant := range tenants {
		if err := appendAs(tenant, tenant, 0, registered("east")); err != nil {
			t.Fatal(err)
		}
	}
	b.sequenceAll(t, b.lead(t))
	for _, tenant := range tenants {
		if err := appendAs(tenant, tenant, 1, replaced(1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := appendAs("blue", "green", 2, replaced(2)); !errs.Is(err, errs.Forbidden) {
		t.Errorf("append for another tenant: %v", err)
	}
	err := b.pool.TenantTx(t.Context(), "blue", func(tx pgx.Tx) error {
		list, _, err := b.log.ReadAfter(t.Context(), tx, events.Position{}, eventlog.Filter{}, 10)
		if err != nil {
			return err
		}
		if len(list) != 1 || list[0].Tenant != "blue" {
			t.Errorf("blue reads %d events of the log", len(list))
		}
		for tenant, want := range map[string]int{"blue": 2, "green": 0} {
			list, err := b.log.ReadStream(t.Context(), tx, tenant, stream(tenant), 0)
			if err != nil || len(list) != want {
				t.Errorf("blue reads %d events of %s's stream, want %d (%v)", len(list), tenant, want, err)
			}
		}
		h, err := b.log.Latest(t.Context(), tx, "green", events.KindCluster, "east")
		if h.Version != 0 {
			t.Errorf("blue sees green's head %+v", h)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = b.pool.TenantTx(t.Context(), "", func(tx pgx.Tx) error {
		list, _, err := b.log.ReadAfter(t.Context(), tx, events.Position{}, eventlog.Filter{}, 10)
		if len(list) != 0 {
			t.Errorf("a session without a tenant reads %d events", len(list))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What a decider forgets is an error, not a bad event.
func TestAppendRefusesHalfCommands(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	big := events.ClusterRegistered{Name: strings.Repeat("x", eventlog.MaxEventBytes)}
	many := make([]events.Payload, eventlog.MaxEventsPerAppend+1)
	for i := range many {
		many[i] = replaced(i)
	}
	for name, c := range map[string]struct {
		change   func(*events.Meta)
		payloads []events.Payload
		kind     errs.Kind
		want     string
	}{
		"no event":   {func(*events.Meta) {}, nil, errs.Internal, "without an event"},
		"no tenant":  {func(m *events.Meta) { m.Tenant = "" }, many[:1], errs.Internal, "without a tenant"},
		"no command": {func(m *events.Meta) { m.Command = uuid.Nil }, many[:1], errs.Internal, "without a command id"},
		"no time": {
			func(m *events.Meta) { *m = events.Meta{Tenant: m.Tenant, Command: m.Command} }, many[:1],
			errs.Internal, "without the time",
		},
		"too many":  {func(*events.Meta) {}, many, errs.TooLarge, fmt.Sprint(eventlog.MaxEventsPerAppend)},
		"too large": {func(*events.Meta) {}, []events.Payload{big}, errs.TooLarge, fmt.Sprint(eventlog.MaxEventBytes)},
	} {
		m := meta()
		c.change(&m)
		err := b.pool.Tx(t.Context(), func(tx pgx.Tx) error {
			_, err := b.log.Append(t.Context(), tx, m, clusterStream("east"), "east", 0, c.payloads...)
			return err
		})
		if !errs.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
